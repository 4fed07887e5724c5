"""A Plan: everything one write will do, as data.

The same plan is drawn in the confirm dialog, printed by ``--dry-run``, applied, written to the
journal and reversed by undo. It holds no secrets and no functions, so it survives as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SqlValue = str | int | float | None


class Refused(Exception):
    """The operation is not possible or not safe now. The message says why and what to do instead."""


class CronAction(StrEnum):
    """What a plan asks of the gateway."""

    ADD = "add"
    REMOVE = "remove"


class OutcomeStatus(StrEnum):
    """How applying ended. A journal entry with no end is UNKNOWN."""

    APPLIED = "applied"
    PARTIAL = "partial"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Guard:
    """A cell that must still hold this value inside the transaction, though it is not changed.

    `row` is the row's id in its table; `subject` names it for people ("step implement").
    """

    table: str
    row: str
    column: str
    value: SqlValue
    subject: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One place in which a long text differs: at `start` of the text before, `before` becomes `after`.

    `key` names the place for people: a key of the context, or "" for a line of a template.
    """

    key: str
    start: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class RowChange:
    """One cell: table, row id, column, from → to. `before` is checked again when it is applied.

    Attributes:
        subject, what: name it for people: "step implement", "status".
        volatile: a cell such as updated_at whose new value is the moment of writing.
        says: the change in words, where the values themselves say little: "S-3 → none".
        edits: where a long text differs. Then the journal holds these, and hash sums in place of the
            whole texts, which may hold secrets.
        sums: SHA-256 of the text before and after: set, with both values None, in a change that was
            read back from the journal.
    """

    table: str
    row: str
    column: str
    before: SqlValue
    after: SqlValue
    subject: str
    what: str
    volatile: bool = False
    says: str | None = None
    edits: tuple[Edit, ...] = ()
    sums: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class CronCall:
    """One call to the gateway. `definition` is the whole job: what undo of a removal adds again.

    Attributes:
        job_id: of the job to remove; None of one to be added.
        twin: the job of the same name that stays: with it gone, the removal is not done.
    """

    action: CronAction
    name: str
    job_id: str | None
    definition: Mapping[str, Any]
    twin: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one write will do.

    Attributes:
        operation: reset, delete-crons, retry, acknowledge, undo.
        title: what is done to what, for people.
        reason: why it is due.
        run: id of the run concerned; `step` is a step's name.
        guards: cells that must be unchanged, beside the `before` of every change.
        idle_workflows: workflows that must have no active run when their crons are removed: looked at
            again before each removal.
        changes: in the order they are made, in one transaction.
        events: lines for events.jsonl, without `ts`.
        crons: calls made after the rows are written.
        acknowledgement: for the operation acknowledge: {run, run_status, run_updated_at, note}; to take
            one back: {run, withdraws: its entry}.
        notes: what else will happen or should be known ("developer's cron polls in 3m 12s").
        irreversible: what undo cannot bring back.
        undoes: the journal entry that this plan reverses.
    """

    operation: str
    title: str
    reason: str
    run: str | None = None
    run_number: int | None = None
    step: str | None = None
    workflow: str | None = None
    guards: tuple[Guard, ...] = ()
    idle_workflows: tuple[str, ...] = ()
    changes: tuple[RowChange, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    crons: tuple[CronCall, ...] = ()
    acknowledgement: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    irreversible: tuple[str, ...] = ()
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What applying a plan came to.

    Attributes:
        entry: the journal entry's id.
        detail: one line: what was done, or what moved in between.
        problems: what did not work, one a line (a cron that could not be deleted, with the gateway's words).
        after: what was read again afterwards: rows and crons concerned, as JSON-ready data.
    """

    status: OutcomeStatus
    entry: str
    detail: str
    problems: tuple[str, ...] = ()
    after: Mapping[str, Any] = field(default_factory=dict)
