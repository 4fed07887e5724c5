"""What is wrong with the farm: all checks over one FarmState, as a pure function of (state, now)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from farmtui.medic import crons
from farmtui.medic.board import board_of
from farmtui.medic.claims import stale_claim, starving_step, waiting_for_verify
from farmtui.medic.findings import in_order
from farmtui.medic.flow import stalled_run, stuck_between_steps, zombie_run
from farmtui.medic.lanes import acknowledged
from farmtui.medic.look import Look
from farmtui.state import FarmState, Finding, Judgement, NotChecked, Run

CHECKS: tuple[tuple[str, str], ...] = (
    ("zombie-run", "a run that says running, and nothing is left that could move it"),
    ("stale-claim", "a step running for longer than 35 min, or than its agent's own time-out + 5 min"),
    ("waiting-for-verify", "a loop without a story, its verify step pending for more than two polls"),
    ("starving-step", "a step pending for more than two polls and a minute that nobody comes for"),
    ("stuck-between-steps", "nothing pending or running, though a step waits and all before it are done"),
    ("stalled-run", "a running run in which nothing changed for 70 min"),
    ("missing-crons", "agents of running runs that no cron wakes"),
    ("orphaned-crons", "crons that poll for a workflow without an active run, or for nobody"),
)

# A run has one cause: the first of these that holds.
_RUN_CHECKS: tuple[Callable[[Look, Run], Finding | None], ...] = (
    zombie_run,
    stale_claim,
    waiting_for_verify,
    starving_step,
    stuck_between_steps,
    stalled_run,
)
_CRON_CHECKS = ("missing-crons", "orphaned-crons")

# Antfarm commits statement by statement, and removes crons after the row: these can be half of one step.
CONTRADICTIONS = frozenset({"zombie-run", "stuck-between-steps", *_CRON_CHECKS})


def judge(
    state: FarmState, now: datetime, seen: frozenset[str] | None = None
) -> tuple[Judgement, frozenset[str]]:
    """Lanes, findings, escalations and the state of the crons at one moment.

    Args:
        state: what is known. With the database unreadable, lanes are those of its last good rows and no check
            is made; with the crons unreadable, the checks on crons are not.
        now: the moment to judge by, aware UTC.
        seen: the contradictions that an earlier reading of the sources showed, as this function returned
            them: others are not findings yet. None trusts what is seen at once.

    Returns:
        The judgement, and the contradictions of this look for the next one.
    """
    board = board_of(state)
    look = Look(state, board.active, now)
    database = state.sources.get("database")
    if database is not None and database.error is not None:
        reason = f"database: {database.error}"
        unchecked = tuple(NotChecked(check, reason) for check, _ in CHECKS)
        return Judgement(now, board.lanes, (), unchecked, board.escalations, {}, ()), frozenset()
    candidates: set[str] = set()

    def counts(identity: str) -> bool:
        candidates.add(identity)
        return seen is None or identity in seen

    findings = []
    for run in look.running:
        finding = _cause(look, run)
        if finding is not None and (finding.check not in CONTRADICTIONS or counts(finding.id)):
            held = acknowledged(run, state.acknowledgements.get(run.id))
            findings.append(replace(finding, acknowledged=True) if held else finding)
    orphans = {
        job: reason
        for job, reason in crons.orphan_reasons(look).items()
        if counts(f"orphaned-crons:{job}:{reason}")
    }
    missing = tuple(
        entry for entry in crons.missing(look) if counts(f"missing-crons:{entry.workflow}:{entry.agent}")
    )
    findings += crons.orphaned_crons(look, orphans)
    findings += crons.missing_crons(look, frozenset(missing))
    unchecked = ()
    if look.crons_error is not None:
        unchecked = tuple(NotChecked(check, look.crons_error) for check in _CRON_CHECKS)
    return (
        Judgement(now, board.lanes, in_order(findings), unchecked, board.escalations, orphans, missing),
        frozenset(candidates),
    )


def _cause(look: Look, run: Run) -> Finding | None:
    return next((finding for check in _RUN_CHECKS if (finding := check(look, run)) is not None), None)
