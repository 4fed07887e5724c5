"""The board of a state: lanes and escalations of all its runs, worked out again only for what changed.

None of it depends on the time, and records are reused while nothing changed in them. So what was worked
out for the last state is kept: an idle console with 10,000 runs must not spend its core on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from farmtui.medic.lanes import acknowledged, escalation_of, failed_step, lane_of
from farmtui.state import Acknowledgement, Escalation, FarmState, Lane, Run, Workflow

_NEVER = datetime.max.replace(tzinfo=UTC)

# Reason and step by workflow and tally: runs that failed alike share one tally, and so one answer.
_Reasons = dict[tuple[str, int], tuple[str | None, str | None]]


@dataclass(frozen=True, slots=True)
class Board:
    """Lanes by run id; escalations, oldest first, acknowledged ones too; the runs that have not ended."""

    lanes: Mapping[str, Lane]
    escalations: tuple[Escalation, ...]
    active: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class _Failed:
    """What was found out of a failed run, and what it was found out of."""

    run: Run
    workflow: Workflow | None
    ack: Acknowledgement | None
    escalation: Escalation | None


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last board, and what it was made of."""

    runs: tuple[Run, ...] = ()
    workflows: Mapping[str, Workflow] = field(default_factory=dict)
    acks: Mapping[str, Acknowledgement] = field(default_factory=dict)
    failed: Mapping[str, _Failed] = field(default_factory=dict)
    board: Board = Board({}, (), ())


_kept = _Kept()


def board_of(state: FarmState) -> Board:
    """The board of a state. The very same object while its runs, workflows and acknowledgements are."""
    global _kept
    kept = _kept  # one read: another thread may put in another
    if kept.runs is state.runs and kept.workflows is state.workflows and kept.acks is state.acknowledgements:
        return kept.board
    lanes: dict[str, Lane] = {}
    failed: dict[str, _Failed] = {}
    active = []
    reasons: _Reasons = {}
    for run in state.runs:
        status = run.status
        if status == "completed":
            lanes[run.id] = Lane.DONE
        elif status == "failed":
            found = failed[run.id] = _look(state, run, kept.failed.get(run.id), reasons)
            open_ = found.escalation is not None and not found.escalation.acknowledged
            lanes[run.id] = Lane.HUMAN if open_ else Lane.FAILED
        else:
            lanes[run.id] = lane_of(run, None, None)
            if run.active:
                active.append(run)
    escalations = [found.escalation for found in failed.values() if found.escalation is not None]
    escalations.sort(key=lambda entry: (entry.since or _NEVER, entry.run))
    board = Board(lanes, tuple(escalations), tuple(active))
    _kept = _Kept(state.runs, state.workflows, state.acknowledgements, failed, board)
    return board


def _look(state: FarmState, run: Run, before: _Failed | None, reasons: _Reasons) -> _Failed:
    workflow = state.workflows.get(run.workflow)
    ack = state.acknowledgements.get(run.id)
    if before is not None and before.run is run and before.workflow is workflow and before.ack is ack:
        return before
    way = (run.workflow, id(run if run.steps else run.tally))
    if way not in reasons:
        reasons[way] = (escalation_of(run, workflow), failed_step(run, workflow))
    reason, step = reasons[way]
    if reason is None:
        return _Failed(run, workflow, ack, None)
    escalation = Escalation(
        run=run.id,
        run_number=run.number,
        workflow=run.workflow,
        task=run.task,
        step=step,
        story=None,
        reason=reason,
        since=run.updated_at,
        acknowledged=acknowledged(run, ack),
    )
    return _Failed(run, workflow, ack, escalation)
