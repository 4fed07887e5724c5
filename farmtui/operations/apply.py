"""Applying a plan: journal, rows in one transaction, events, crons, journal, and a look at what is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from farmtui.antfarm.events import append_events
from farmtui.antfarm.rows import RunRows, read_rows
from farmtui.antfarm.schema import Unreadable
from farmtui.clock import sqlite_now
from farmtui.openclaw.crons import CronError, Crons
from farmtui.operations import acknowledgements
from farmtui.operations.database import (
    MaybeWritten,
    Moved,
    NotWritten,
    active_runs,
    cells_of,
    check,
    write,
)
from farmtui.operations.journal import Effects, Journal
from farmtui.operations.lines import Unwritable
from farmtui.operations.operator import Operator
from farmtui.operations.plan import CronAction, CronCall, Outcome, OutcomeStatus, Plan, Refused
from farmtui.operations.records import workflow_of
from farmtui.paths import FarmPaths
from farmtui.state import CronJob, CronSource

_AFTER: Mapping[str, tuple[str, ...]] = {
    "runs": ("id", "status", "updated_at"),
    "steps": (
        *("id", "step_id", "status", "retry_count", "abandoned_count", "current_story_id", "updated_at"),
    ),
    "stories": ("id", "story_id", "status", "retry_count", "updated_at"),
}


@dataclass
class _Progress:
    """What has been done so far, and what did not work."""

    rows: bool = False
    events: bool = False
    acknowledged: bool = False
    crons: list[CronCall] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: int = 0
    unsure: bool = False

    def effects(self) -> Effects:
        return Effects(self.rows, self.events, tuple(self.crons), self.acknowledged)


class _Stopped(Exception):
    """Nothing was changed. The message says why."""


class Applier:
    """Applies plans to one farm."""

    def __init__(self, paths: FarmPaths, crons: Crons, operator: Operator, journal: Journal) -> None:
        self._paths = paths
        self._database = paths.database.path
        self._crons = crons
        self._operator = operator
        self._journal = journal

    def apply(self, plan: Plan) -> Outcome:
        """Do everything the plan says, as far as it goes.

        Where something moved since it was made, nothing is changed and the outcome is refused.

        Raises:
            Refused: the journal cannot be written, so nothing was begun.
        """
        plan = stamped(plan, datetime.now(UTC))
        try:
            entry = self._journal.begin(plan, self._operator, str(self._database.resolve()))
        except Unwritable as error:
            raise Refused(f"nothing was done, since it could not be journalled: {error}") from None
        progress = _Progress()
        try:
            self._do(plan, entry, progress)
        except _Stopped as error:
            outcome = Outcome(OutcomeStatus.REFUSED, entry, str(error))
        else:
            outcome = self._outcome(plan, entry, progress)
        try:
            self._journal.finish(outcome, progress.effects())
        except Unwritable as error:
            told = f"the journal lacks the outcome and calls this entry unknown: {error}"
            outcome = replace(outcome, problems=(*outcome.problems, told))
        return outcome

    # ------------------------------------------------------------ the steps of it

    def _do(self, plan: Plan, entry: str, progress: _Progress) -> None:
        self._write_rows(plan, progress)
        if plan.events and not progress.unsure:
            self._append_events(plan, progress)
        if plan.acknowledgement is not None:
            try:
                acknowledgements.append(self._paths.farm_dir, plan.acknowledgement, self._operator, entry)
            except Unwritable as error:
                raise _Stopped(f"nothing was done: {error}") from None
            progress.acknowledged = True
        if not progress.unsure:
            self._call_all(plan, progress)

    def _write_rows(self, plan: Plan, progress: _Progress) -> None:
        cells = cells_of(plan)
        try:
            if plan.changes:
                write(self._database, cells, plan.changes)
                progress.rows = True
            elif cells:
                check(self._database, cells)
        except Moved as error:
            raise _Stopped(f"nothing was done, since it has changed meanwhile: {error}") from None
        except (NotWritten, Unreadable) as error:
            raise _Stopped(f"nothing was done: {error}") from None
        except MaybeWritten as error:
            self._look_whether_written(plan, progress, str(error))

    def _look_whether_written(self, plan: Plan, progress: _Progress, reason: str) -> None:
        try:
            check(self._database, cells_of(replace(plan, guards=(), changes=_swapped(plan))))
        except Moved:
            raise _Stopped(f"nothing was done: {reason}") from None
        except Unreadable as error:
            progress.unsure = True
            progress.problems.append(f"{reason}; and whether the rows were written cannot be seen: {error}")
        else:
            progress.rows = True

    def _append_events(self, plan: Plan, progress: _Progress) -> None:
        try:
            append_events(self._paths.events.path, plan.events, datetime.now(UTC))
            progress.events = True
        except (OSError, Unreadable) as error:
            reason = getattr(error, "strerror", None) or str(error)
            progress.problems.append(f"the event was not logged: {self._paths.events.path}: {reason}")

    def _call_all(self, plan: Plan, progress: _Progress) -> None:
        """Every cron call in turn; with the gateway gone the rest is not tried, each would only wait."""
        for number, call in enumerate(plan.crons, 1):
            if self._call(plan, call, progress) or number == len(plan.crons):
                continue
            listing = self._crons.list()
            if listing.source not in (CronSource.WEBSOCKET, CronSource.CLI):
                left = len(plan.crons) - number
                progress.problems.append(f"{left} more not tried: {listing.note or 'no answer'}")
                return

    def _call(self, plan: Plan, call: CronCall, progress: _Progress) -> bool:
        """One cron call; whether the gateway answered."""
        try:
            if call.action is CronAction.ADD:
                if any(job.name == call.name for job in self._crons.list().jobs):
                    progress.skipped += 1
                    progress.problems.append(f"{call.name} is there meanwhile: not created")
                    return True
                job_id = self._crons.add(call.definition)
                progress.crons.append(replace(call, job_id=job_id))
                return True
            reason = self._needed(plan, call)
            if reason is not None:
                progress.problems.append(f"{call.name} was not deleted: {reason}")
                return True
            result = self._crons.remove(call.job_id or "")
            if result.gone:
                progress.crons.append(call)
            if result.note and not (result.gone and result.note == "it was gone already"):
                progress.problems.append(f"{call.name}: {result.note}")
        except CronError as error:
            done = "created" if call.action is CronAction.ADD else "deleted"
            may = f"may or may not have been {done}" if error.uncertain else f"was not {done}"
            progress.problems.append(f"{call.name} {may}: {error}")
            progress.unsure = progress.unsure or error.uncertain
            return False
        return True

    def _needed(self, plan: Plan, call: CronCall) -> str | None:
        """Why a job must stay after all; None where it may go."""
        workflow = workflow_of(call)
        if workflow in plan.idle_workflows:
            try:
                active = [run.label for run in active_runs(self._database) if run.workflow == workflow]
            except Unreadable as error:
                return f"whether a run needs it cannot be seen: {error}"
            return f"{', '.join(active[:5])} of {workflow} needs it now" if active else None
        if call.twin is not None:
            listing = self._crons.list()
            if all(job.id != call.twin for job in listing.jobs):
                return "the other job of that name is not listed any more"
        return None

    # ------------------------------------------------------------ what came of it

    def _outcome(self, plan: Plan, entry: str, progress: _Progress) -> Outcome:
        after = self._after(plan, progress)
        self._look_for_new_runs(plan, progress)
        complete = len(progress.crons) + progress.skipped == len(plan.crons)
        if progress.unsure:
            status = OutcomeStatus.UNKNOWN
        elif complete and progress.events == bool(plan.events):
            status = OutcomeStatus.APPLIED
        elif progress.effects().any:
            status = OutcomeStatus.PARTIAL
        else:
            status = OutcomeStatus.REFUSED
        return Outcome(status, entry, _detail(plan, progress, status), tuple(progress.problems), after)

    def _look_for_new_runs(self, plan: Plan, progress: _Progress) -> None:
        """A run that started while its crons were deleted may lack them."""
        removed = {workflow_of(call) for call in progress.crons if call.action is CronAction.REMOVE}
        removed &= set(plan.idle_workflows)
        if not removed:
            return
        try:
            started = [run for run in active_runs(self._database) if run.workflow in removed]
        except Unreadable:
            return
        progress.problems += [
            f"{run.label} of {run.workflow} has started meanwhile and needs its crons: undo, or "
            f"antfarm workflow ensure-crons {run.workflow}"
            for run in started
        ]

    def _after(self, plan: Plan, progress: _Progress) -> dict[str, Any]:
        """What is true now of the rows and crons concerned; what cannot be read is a problem."""
        after: dict[str, Any] = {}
        if plan.changes and plan.run is not None:
            try:
                after.update(_rows_now(plan, read_rows(self._database, plan.run)))
            except Unreadable as error:
                progress.problems.append(f"could not read again: {error}")
        if plan.crons:
            listing = self._crons.list()
            if listing.known:
                names = {call.name for call in plan.crons}
                after["crons"] = [_cron_now(job) for job in listing.jobs if job.name in names]
            else:
                progress.problems.append(f"could not list the crons again: {listing.note}")
        return after


def stamped(plan: Plan, moment: datetime) -> Plan:
    """The plan with the moment of writing in its volatile cells, which is then what the journal holds."""
    written = sqlite_now(moment)
    changes = tuple(replace(change, after=written) if change.volatile else change for change in plan.changes)
    return replace(plan, changes=changes)


def _swapped(plan: Plan) -> tuple[Any, ...]:
    return tuple(replace(change, before=change.after) for change in plan.changes)


def _detail(plan: Plan, progress: _Progress, status: OutcomeStatus) -> str:
    if status is OutcomeStatus.REFUSED:
        return "nothing was done"
    if status is OutcomeStatus.UNKNOWN:
        return "it is not known how far it went"
    parts = []
    if progress.rows:
        count = len({(change.table, change.row) for change in plan.changes})
        parts.append("1 row written" if count == 1 else f"{count} rows written")
    if progress.events:
        parts.append(", ".join(str(event.get("event")) for event in plan.events) + " logged")
    for action, word in ((CronAction.REMOVE, "deleted"), (CronAction.ADD, "created")):
        asked = sum(call.action is action for call in plan.crons)
        done = sum(call.action is action for call in progress.crons)
        if asked:
            of = f"{done}" if done == asked else f"{done} of {asked}"
            parts.append(f"{of} cron{'s' if asked > 1 else ''} {word}")
    if progress.acknowledged and plan.acknowledgement is not None:
        parts.append("taken back" if "withdraws" in plan.acknowledgement else "acknowledged")
    return "; ".join(parts)


def _rows_now(plan: Plan, rows: RunRows) -> dict[str, Any]:
    changed = {(change.table, change.row) for change in plan.changes}
    found: dict[str, Any] = {"run": {name: rows.run.get(name) for name in _AFTER["runs"] if name in rows.run}}
    children: tuple[tuple[str, Sequence[Mapping[str, Any]]], ...] = (
        ("steps", rows.steps),
        ("stories", rows.stories),
    )
    for table, listed in children:
        found[table] = [
            {name: row[name] for name in _AFTER[table] if name in row}
            for row in listed
            if (table, str(row["id"])) in changed
        ]
    return found


def _cron_now(job: CronJob) -> dict[str, Any]:
    return {"id": job.id, "name": job.name, "enabled": job.enabled}
