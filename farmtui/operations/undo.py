"""Undo: the reverse of a journal entry, itself a plan that is shown, checked and journalled.

Every cell that the entry wrote must still hold what it wrote; then it gets back what it held before, its
time too. What was logged stays logged. Undoing an undo does the thing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from farmtui.antfarm.rows import NoSuchRun, RunRows, read_rows
from farmtui.antfarm.schema import SqlValue
from farmtui.operations.database import Cell, Moved, check
from farmtui.operations.journal import JournalEntry
from farmtui.operations.plan import CronAction, CronCall, Edit, OutcomeStatus, Plan, Refused, RowChange
from farmtui.operations.records import edited, reversed_edits, text_sum, workflow_of
from farmtui.state import CronListing, Run
from farmtui.text import safe_line


@dataclass(frozen=True, slots=True)
class CronsNow:
    """The crons as they are now, for an entry that changed some.

    Attributes:
        listing: None where the gateway cannot be asked to change them: `note` says why.
        active: the runs that have not ended.
    """

    listing: CronListing | None = None
    note: str | None = None
    active: tuple[Run, ...] = ()

    def needing(self, call: CronCall, besides: str | None) -> str:
        """Labels of the active runs that need the cron, besides one run; "" where none does."""
        workflow = workflow_of(call)
        runs = [run.label for run in self.active if run.workflow == workflow and run.id != besides]
        return ", ".join(runs[:5])


def find_entry(entries: Sequence[JournalEntry], name: str | None, database: str) -> JournalEntry:
    """The entry that is meant: by its id, its beginning or its end, else the latest that can be undone.

    Args:
        database: undone is only what was done to this one.

    Raises:
        Refused: there is none, or several are meant.
    """
    if name is not None:
        found = [entry for entry in entries if entry.id == name]
        if not found and len(name) >= 4:
            found = [entry for entry in entries if entry.id.startswith(name) or entry.id.endswith(name)]
        if len(found) != 1:
            many = "several entries are" if found else "no entry is"
            raise Refused(f"{many} called {safe_line(name, 40)} in the journal (farm journal lists them)")
        if found[0].database != database:
            raise Refused(f"{found[0].id} was done to another database: {safe_line(found[0].database)}")
        return found[0]
    for entry in reversed(entries):
        if entry.database == database and entry.operation != "undo" and refusal(entry) is None:
            return entry
    raise Refused("nothing was done to this farm that could be undone")


def refusal(entry: JournalEntry) -> str | None:
    """Why an entry cannot be undone whatever the farm looks like; None where it may be possible."""
    if entry.plan is None:
        return f"{entry.id} is not understood: {entry.problem}"
    if entry.status is OutcomeStatus.REFUSED:
        return f"{entry.id} was refused and changed nothing"
    if entry.undone_by is not None:
        return f"{entry.id} was undone already, by {entry.undone_by}"
    if entry.status is not OutcomeStatus.UNKNOWN and not entry.effects.any:
        return f"{entry.id} changed nothing"
    return None


def plan_undo(entry: JournalEntry, database: Path, crons: CronsNow) -> Plan:
    """Plan to take an entry back.

    Raises:
        Refused: it cannot be undone, or something that it changed has moved since.
        Unreadable: the database cannot be read.
    """
    plan = entry.plan
    if (reason := refusal(entry)) is not None or plan is None:
        raise Refused(reason or f"{entry.id} cannot be undone")
    unknown = entry.status is OutcomeStatus.UNKNOWN
    changes = _changes_back(entry, plan, database) if entry.effects.rows or unknown else ()
    calls, notes = _crons_back(entry, plan, crons)
    acknowledgement = None
    if plan.acknowledgement is not None and (entry.effects.acknowledged or unknown):
        was = plan.acknowledgement.get("was")
        withdrawal = {"run": plan.run, "withdraws": entry.id, "was": dict(plan.acknowledgement)}
        acknowledgement = was if isinstance(was, dict) else withdrawal
    if not changes and not calls and acknowledgement is None:
        raise Refused("; ".join((f"nothing of {entry.id} is left to undo", *notes)))
    again = plan.operation == "undo"
    title = plan.title.removeprefix("Undo: ") if again else f"Undo: {plan.title}"
    when = f"{entry.at:%Y-%m-%d %H:%M:%S}Z" if entry.at else "?"
    events = ", ".join(dict.fromkeys(str(event.get("event")) for event in plan.events))
    if plan.operation == "reset" and changes:
        notes.append("the step is claimed again as it was, though nobody may be at work on it")
    return Plan(
        operation="undo",
        title=title,
        reason=f"{entry.by} did it at {when}" + (", and how far it went is not known" if unknown else ""),
        run=plan.run,
        run_number=plan.run_number,
        step=plan.step,
        workflow=plan.workflow,
        guards=tuple(
            guard for guard in plan.guards if (guard.table, guard.column) == ("runs", "status") and changes
        ),
        idle_workflows=_idle(calls),
        changes=changes,
        crons=calls,
        acknowledgement=acknowledgement,
        notes=tuple(notes),
        irreversible=(f"{events} stays in Antfarm's log",) if events else (),
        undoes=entry.id,
    )


# ---------------------------------------------------------------- rows


def _changes_back(entry: JournalEntry, plan: Plan, database: Path) -> tuple[RowChange, ...]:
    if not plan.changes or plan.run is None:
        return ()
    try:
        rows = read_rows(database, plan.run)
    except NoSuchRun:
        raise Refused(f"{entry.id} cannot be undone: its run is gone") from None
    if entry.status is OutcomeStatus.UNKNOWN and _never_written(plan, rows):
        return ()
    moved = [line for change in plan.changes if (line := _moved_text(change, rows)) is not None]
    cells = [
        Cell(change.table, change.row, change.column, change.after, change.subject, change.what)
        for change in plan.changes
        if not change.edits
    ]
    try:
        check(database, cells)
    except Moved as error:
        moved += error.lines
    if moved:
        raise Refused(f"{entry.id} cannot be undone, since it has moved on: {'; '.join(moved)}")
    return tuple(_reversed(change, _cell(change, rows)) for change in plan.changes)


def _never_written(plan: Plan, rows: RunRows) -> bool:
    return all(
        text_sum(str(_cell(change, rows))) == change.sums[0]
        if change.sums is not None
        else _cell(change, rows) == change.before
        for change in plan.changes
    )


def _moved_text(change: RowChange, rows: RunRows) -> str | None:
    """That a long text is not what was written; None where it is, or is no long text."""
    if change.sums is None or text_sum(str(_cell(change, rows))) == change.sums[1]:
        return None
    return f"{change.subject}: {change.what} was changed"


def _reversed(change: RowChange, now: SqlValue) -> RowChange:
    if not change.edits or not isinstance(now, str):
        return replace(
            change, before=change.after, after=change.before, says=_said_back(change.says), volatile=False
        )
    back = reversed_edits(change.edits)
    return replace(change, before=now, after=edited(now, back), edits=back, sums=None, says=edits_words(back))


def edits_words(edits: Iterable[Edit]) -> str:
    """Edits of a long text, for people."""
    words = []
    for edit in edits:
        if edit.before and edit.after:
            words.append(f"{edit.key}: {edit.before} → {edit.after}")
        elif edit.key:
            words.append(f"{edit.key}: {'taken out' if edit.before else 'put in'}")
        else:
            words.append(f"- “{edit.before.strip()}”" if edit.before else f"+ “{edit.after.strip()}”")
    return "; ".join(words)


def _said_back(says: str | None) -> str | None:
    if says is None or says.count(" → ") != 1:
        return None
    before, after = says.split(" → ")
    return f"{after} → {before}"


def _cell(change: RowChange, rows: RunRows) -> SqlValue:
    if change.table == "runs":
        return rows.run.get(change.column)
    row = rows.step(change.row) if change.table == "steps" else rows.story(change.row)
    return row.get(change.column) if row is not None else None


# ---------------------------------------------------------------- crons


def _crons_back(entry: JournalEntry, plan: Plan, crons: CronsNow) -> tuple[tuple[CronCall, ...], list[str]]:
    done = entry.effects.crons
    if entry.status is OutcomeStatus.UNKNOWN:
        done = (
            *done,
            *(call for call in plan.crons if call.action is CronAction.REMOVE and call not in done),
        )
    added = [call.name for call in plan.crons if call.action is CronAction.ADD]
    notes = []
    if entry.status is OutcomeStatus.UNKNOWN and added:
        notes.append(f"whether it created {', '.join(added)} is not known: see farm crons")
    if not done:
        return (), notes
    if crons.listing is None:
        return (), [*notes, f"its crons stay as they are: {crons.note or 'the gateway cannot be asked'}"]
    ids = {job.id for job in crons.listing.jobs}
    names = {job.name for job in crons.listing.jobs}
    calls = []
    for call in done:
        if call.action is CronAction.REMOVE and call.name in names:
            notes.append(f"{call.name} is listed: not added again")
        elif call.action is CronAction.REMOVE:
            calls.append(CronCall(CronAction.ADD, call.name, None, call.definition))
        elif call.job_id not in ids:
            notes.append(f"{call.name}, which it created, is gone already")
        elif needing := crons.needing(call, plan.run):
            notes.append(f"{call.name}, which it created, stays: {needing} needs it")
        else:
            calls.append(CronCall(CronAction.REMOVE, call.name, call.job_id, call.definition))
    if any(call.action is CronAction.ADD for call in calls):
        notes.append("crons that are added again have new ids")
    return tuple(calls), notes


def _idle(calls: Iterable[CronCall]) -> tuple[str, ...]:
    """The workflows whose crons are removed: they must have no active run then."""
    removed = (workflow_of(call) for call in calls if call.action is CronAction.REMOVE)
    return tuple(dict.fromkeys(removed))
