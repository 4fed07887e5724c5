"""The journal: what was done to this farm, by whom, and what came of it.

``farm/journal.jsonl`` in OpenClaw's state folder, one for all operators. Each entry is two lines: one
before anything is written, one after. An entry without its second line is *unknown*: it was interrupted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import farmtui
from farmtui.clock import iso, parse_time
from farmtui.operations.lines import VERSION, LineFile
from farmtui.operations.operator import Operator
from farmtui.operations.plan import CronCall, Outcome, OutcomeStatus, Plan
from farmtui.operations.records import NotAPlan, call_from, call_record, plan_from, plan_record

INTERRUPTED = "no outcome was written: it was interrupted, or is still under way"


@dataclass(frozen=True, slots=True)
class Effects:
    """What applying really did: what undo starts from.

    Attributes:
        rows: the row changes were committed.
        events: the events were appended.
        crons: the calls that were done; `job_id` of one that was added is the new job's.
        acknowledged: the acknowledgement was written.
    """

    rows: bool = False
    events: bool = False
    crons: tuple[CronCall, ...] = ()
    acknowledged: bool = False

    @property
    def any(self) -> bool:
        """Whether anything was done at all."""
        return self.rows or self.events or self.acknowledged or bool(self.crons)


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One operation as it stands in the journal.

    Attributes:
        plan: what was to be done, with the times that were written; None where a newer farm wrote it so
            that it is not understood: `problem` says so.
        status: UNKNOWN where there is no second line.
        effects: what was really done; empty where unknown.
        undone_by: the entry that took it back and was not itself taken back.
    """

    id: str
    at: datetime | None
    ended_at: datetime | None
    operation: str
    title: str
    user: str
    sudo_user: str | None
    host: str
    terminal: str | None
    ssh_client: str | None
    version: str
    database: str
    plan: Plan | None
    problem: str | None
    status: OutcomeStatus
    detail: str
    problems: tuple[str, ...] = ()
    after: Mapping[str, Any] = field(default_factory=dict)
    effects: Effects = Effects()
    undone_by: str | None = None

    @property
    def by(self) -> str:
        """The person, as well as it can be told."""
        return self.sudo_user or self.user


class Journal:
    """The journal in one farm folder."""

    def __init__(self, farm_dir: Path) -> None:
        self._file = LineFile(farm_dir / "journal.jsonl")

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def begin(self, plan: Plan, operator: Operator, database: str, at: datetime | None = None) -> str:
        """Write that a plan is about to be applied; returns the entry's id.

        Raises:
            Unwritable: then nothing may be applied.
        """
        moment = at or datetime.now(UTC)
        entry = f"{moment.astimezone(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
        self._file.append(
            {
                "entry": entry,
                "phase": "begin",
                "at": iso(moment),
                "user": operator.user,
                "sudo_user": operator.sudo_user,
                "host": operator.host,
                "terminal": operator.terminal,
                "ssh_client": operator.ssh_client,
                "version": farmtui.__version__,
                "database": database,
                "plan": plan_record(plan),
            }
        )
        return entry

    def finish(self, outcome: Outcome, effects: Effects) -> None:
        """Write what came of the entry.

        Raises:
            Unwritable: the entry then stays unknown.
        """
        self._file.append(
            {
                "entry": outcome.entry,
                "phase": "end",
                "at": iso(datetime.now(UTC)),
                "status": outcome.status.value,
                "detail": outcome.detail,
                "problems": list(outcome.problems),
                "after": dict(outcome.after),
                "effects": {
                    "rows": effects.rows,
                    "events": effects.events,
                    "crons": [call_record(call) for call in effects.crons],
                    "acknowledged": effects.acknowledged,
                },
            }
        )

    def entries(self) -> tuple[JournalEntry, ...]:
        """All entries, oldest first. Lines that cannot be understood are left out.

        Raises:
            Unreadable: the file is there and cannot be read.
        """
        begun: dict[str, JournalEntry] = {}
        for record in self._file.records():
            name = record.get("entry")
            if not isinstance(name, str):
                continue
            if record.get("phase") == "begin" and name not in begun:
                begun[name] = _begun(name, record)
            elif record.get("phase") == "end" and name in begun and begun[name].ended_at is None:
                begun[name] = _ended(begun[name], record)
        return _with_undone(begun.values())


def _begun(name: str, record: Mapping[str, Any]) -> JournalEntry:
    plan, problem = None, None
    if record.get("v") == VERSION:
        try:
            plan = plan_from(record.get("plan"))
        except NotAPlan as error:
            problem = str(error)
    else:
        problem = f"written by another version of farm ({_text(record.get('version')) or '?'})"
    raw = record.get("plan")
    said = raw if isinstance(raw, Mapping) else {}
    return JournalEntry(
        id=name,
        at=parse_time(record.get("at")),
        ended_at=None,
        operation=_text(said.get("operation")),
        title=_text(said.get("title")),
        user=_text(record.get("user")),
        sudo_user=_text(record.get("sudo_user")) or None,
        host=_text(record.get("host")),
        terminal=_text(record.get("terminal")) or None,
        ssh_client=_text(record.get("ssh_client")) or None,
        version=_text(record.get("version")),
        database=_text(record.get("database")),
        plan=plan,
        problem=problem,
        status=OutcomeStatus.UNKNOWN,
        detail=INTERRUPTED,
    )


def _ended(entry: JournalEntry, record: Mapping[str, Any]) -> JournalEntry:
    problems, after = record.get("problems"), record.get("after")
    try:
        status = OutcomeStatus(_text(record.get("status")))
        effects = _effects_from(record.get("effects"))
    except (KeyError, TypeError, ValueError):
        status, effects = OutcomeStatus.UNKNOWN, Effects()
    return replace(
        entry,
        ended_at=parse_time(record.get("at")),
        status=status,
        detail=_text(record.get("detail")),
        problems=tuple(map(str, problems)) if isinstance(problems, list) else (),
        after=after if isinstance(after, Mapping) else {},
        effects=effects,
    )


def _effects_from(record: Any) -> Effects:
    return Effects(
        rows=record["rows"] is True,
        events=record["events"] is True,
        crons=tuple(call_from(each) for each in record["crons"]),
        acknowledged=record["acknowledged"] is True,
    )


def _with_undone(entries: Iterable[JournalEntry]) -> tuple[JournalEntry, ...]:
    """The entries, each with the undo that is in force. An undo that was undone is in force no more."""
    listed = list(entries)
    in_force: dict[str, str] = {}
    for entry in reversed(listed):
        undoes = entry.plan.undoes if entry.plan is not None else None
        if undoes is not None and entry.effects.any and entry.id not in in_force:
            in_force[undoes] = entry.id
    return tuple(replace(entry, undone_by=in_force.get(entry.id)) for entry in listed)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
