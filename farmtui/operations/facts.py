"""What a plan about one run is made from: its rows as they are now, its workflow, and the crons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from farmtui.antfarm.records import run_with_children
from farmtui.antfarm.rows import Row, RunRows
from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age, duration
from farmtui.medic.look import rank
from farmtui.operations.plan import Guard, Refused, RowChange, SqlValue
from farmtui.state import CronJob, CronListing, Run, Step, Workflow
from farmtui.text import safe_line

_WHAT = {
    "current_story_id": "current story",
    "retry_count": "retries",
    "abandoned_count": "abandoned",
    "updated_at": "updated",
    "input_template": "input",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """One run, read just now.

    Attributes:
        run: the same rows as records, for the rules of Medic.
        workflow: as installed; None where it is not.
        crons: as listed just now; None where they were not asked for: `crons_note` says why.
        now: the machine's time.
    """

    rows: RunRows
    run: Run
    workflow: Workflow | None
    crons: CronListing | None
    crons_note: str | None
    now: datetime

    @property
    def label(self) -> str:
        """``#14``."""
        return self.run.label

    def agent(self, step: Step) -> str:
        """The step's agent within its workflow."""
        return short_agent(step.agent_id, self.run.workflow)

    def job(self, step: Step) -> CronJob | None:
        """The cron that wakes the step's agent; the best where there are several."""
        listed = self.crons.jobs if self.crons is not None else ()
        named = [job for job in listed if (job.workflow, job.agent) == (self.run.workflow, self.agent(step))]
        return min(named, key=rank, default=None)

    @property
    def crons_unknown(self) -> str | None:
        """Why it is not known which crons there are; None where it is."""
        if self.crons is None:
            return self.crons_note or "the crons were not asked for"
        return None if self.crons.known else self.crons.note or "the crons could not be listed"

    def cron_words(self, step: Step) -> str:
        """What will come of the step by itself: when its agent's cron polls, or why nobody will."""
        agent = self.agent(step)
        if (unknown := self.crons_unknown) is not None:
            return f"when {agent}'s cron polls is not known: {unknown}"
        job = self.job(step)
        if job is None:
            makes = f"antfarm workflow ensure-crons {self.run.workflow}"
            return f"{agent} has no cron: nobody will claim the step ({makes} makes them where none is left)"
        if not job.enabled:
            return f"{agent}'s cron is disabled: nobody will claim the step until it is enabled"
        words = f"{agent}'s cron polls {job.schedule}"
        if job.running_since is not None:
            words = f"{agent}'s cron is running just now, for {age(job.running_since, self.now)}"
        elif job.next_run_at is not None:
            away = (job.next_run_at - self.now).total_seconds()
            words = f"{agent}'s cron polls in {duration(away)}" if away > 0 else f"{agent}'s cron is due"
        if job.consecutive_errors:
            words += f"; it failed {job.consecutive_errors} times in a row"
        return words + self._as_of()

    def _as_of(self) -> str:
        note = self.crons.note if self.crons is not None else None
        return f" ({note})" if note else ""


def facts(
    rows: RunRows,
    workflow: Workflow | None,
    crons: CronListing | None,
    now: datetime,
    crons_note: str | None = None,
) -> Facts:
    """The facts about the run of these rows."""
    return Facts(rows, run_with_children(rows), workflow, crons, crons_note, now)


def find_step(found: Facts, name: str) -> Step:
    """The run's step of that id or name.

    Raises:
        Refused: there is none, or several have that name.
    """
    steps = [step for step in found.run.steps if step.id == name]
    steps = steps or [step for step in found.run.steps if step.name == name]
    if len(steps) == 1:
        return steps[0]
    if steps:
        ids = ", ".join(step.id for step in steps)
        raise Refused(f"{found.label} has several steps {safe_line(name, 60)}; give one's id: {ids}")
    names = ", ".join(safe_line(step.name, 40) for step in found.run.steps)
    raise Refused(f"{found.label} has no step {safe_line(name, 60)}; its steps are {names}")


class Changes:
    """Collects the changes of a plan, cell by cell, from what the rows hold.

    A cell that holds the value already is not changed, a column that this schema lacks is left out and
    noted, and each row that changes gets the moment of writing as its `updated_at`.
    """

    def __init__(self, rows: RunRows) -> None:
        self._rows = rows
        self._changes: list[RowChange] = []
        self._touched: dict[tuple[str, str], str] = {}
        self._lacking: dict[str, None] = {}

    def set(
        self, table: str, row: Row, subject: str, column: str, value: SqlValue, says: str | None = None
    ) -> None:
        """Change one cell of a row."""
        if column not in self._rows.columns[table]:
            if value not in (None, 0):
                self._lacking[f"{table}.{column}"] = None
            return
        if row[column] != value or type(row[column]) is not type(value):
            self.add(
                RowChange(
                    table=table,
                    row=str(row["id"]),
                    column=column,
                    before=row[column],
                    after=value,
                    subject=subject,
                    what=_WHAT.get(column, column.replace("_", " ")),
                    says=says,
                )
            )

    def add(self, change: RowChange) -> None:
        """Add a change made elsewhere."""
        self._changes.append(change)

    def touch(self, table: str, row: Row, subject: str) -> None:
        """Give a row the moment of writing, though nothing else of it changes."""
        self._touched[table, str(row["id"])] = subject

    def all(self) -> tuple[RowChange, ...]:
        """The changes, those of a row together, each row's `updated_at` last."""
        by_row: dict[tuple[str, str], list[RowChange]] = {}
        for change in self._changes:
            by_row.setdefault((change.table, change.row), []).append(change)
        subjects = {key: made[0].subject for key, made in by_row.items()} | self._touched
        done: list[RowChange] = []
        for (table, row_id), subject in subjects.items():
            done += by_row.get((table, row_id), [])
            row = self._row(table, row_id)
            if "updated_at" in row:
                done.append(
                    RowChange(
                        table=table,
                        row=row_id,
                        column="updated_at",
                        before=row["updated_at"],
                        after=None,
                        subject=subject,
                        what="updated",
                        volatile=True,
                    )
                )
        return tuple(done)

    @property
    def lacking(self) -> tuple[str, ...]:
        """What this schema has no column for, for people."""
        return tuple(f"this Antfarm's database has no {name}: left out" for name in self._lacking)

    def _row(self, table: str, row_id: str) -> Row:
        if table == "runs":
            return self._rows.run
        listed: Iterable[Row] = self._rows.steps if table == "steps" else self._rows.stories
        return next(row for row in listed if row["id"] == row_id)


def status_guards(rows: RunRows, changes: Iterable[RowChange]) -> tuple[Guard, ...]:
    """The status of the run and of each of its steps must be what it is, unless it is changed anyway."""
    changed = {(change.table, change.row) for change in changes if change.column == "status"}
    subjects = [("runs", rows.run, "run")]
    subjects += [("steps", step, f"step {step['step_id']}") for step in rows.steps]
    return tuple(
        Guard(table, str(row["id"]), "status", row["status"], subject)
        for table, row, subject in subjects
        if (table, str(row["id"])) not in changed
    )
