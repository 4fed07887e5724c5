"""The one place where farm writes into Antfarm's database.

Antfarm has no busy time-out: a lock that we hold is an error for an agent. So a write is one short
transaction that checks, writes and commits; what can be slow (syncing, checkpointing) is done outside it
or left to Antfarm.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from farmtui.antfarm.records import run_of
from farmtui.antfarm.schema import SqlValue, connect_ro, decode, explain, readable
from farmtui.operations.plan import Guard, Plan, RowChange
from farmtui.state import Run
from farmtui.text import safe_line

BUSY_S = 2.0
_TABLES = frozenset({"runs", "steps", "stories"})
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that must hold this value; `subject` and `what` name it for people."""

    table: str
    row: str
    column: str
    value: SqlValue
    subject: str
    what: str


class Moved(Exception):
    """Cells do not hold what the plan was made from. `lines` says which, one a line."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


class NotWritten(Exception):
    """Nothing was written. One line: what stands in the way."""


class MaybeWritten(Exception):
    """The commit failed half-way: whether the rows were written has to be looked at. One line."""


def cells_of(plan: Plan) -> tuple[Cell, ...]:
    """Everything in the database that a plan rests on: its guards, and what it will change."""
    return (*map(_guarded, plan.guards), *map(_changed, plan.changes))


def check(path: Path, cells: Iterable[Cell]) -> None:
    """Look, without a lock, whether cells still hold their values.

    Raises:
        Moved: some do not.
        Unreadable: the database cannot be read.
    """
    with readable(path), closing(connect_ro(path)) as connection:
        connection.text_factory = bytes
        _check(connection, cells)


def write(path: Path, cells: Iterable[Cell], changes: Sequence[RowChange]) -> None:
    """Check every cell and make every change, in one transaction: all or nothing.

    Raises:
        Moved: another process was there first; nothing was written.
        NotWritten: locked for longer than `BUSY_S`, read-only, full, or otherwise not to be written.
        MaybeWritten: the commit itself failed in a way that leaves it open.
        Unreadable: the database cannot be opened.
    """
    wanted = tuple(cells)
    with _connect_rw(path) as connection:
        try:
            # Once without the lock: what has moved is told without taking it, and pages are at hand under it.
            _check(connection, wanted)
            connection.execute("BEGIN IMMEDIATE")
            _check(connection, wanted)
            _update(connection, changes)
        except sqlite3.Error as error:
            _roll_back(connection)
            raise NotWritten(_reason(error, path)) from None
        except Moved:
            _roll_back(connection)
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if _roll_back(connection):
                raise NotWritten(_reason(error, path)) from None
            raise MaybeWritten(_reason(error, path)) from None
    _sync(path)


def active_runs(path: Path) -> tuple[Run, ...]:
    """A bare run (id, number, workflow, status) for each that has not ended; an unknown status counts.

    Raises:
        Unreadable: the database cannot be read.
    """
    with readable(path), closing(connect_ro(path)) as connection:
        names = {str(row[1]).lower() for row in connection.execute("PRAGMA table_info(runs)")}
        number = "run_number" if "run_number" in names else "NULL"
        rows = connection.execute(
            f"SELECT rowid, id, workflow_id, '', status, NULL, NULL, {number} FROM runs"  # noqa: S608 (ours)
            " WHERE status IS NULL OR status NOT IN ('completed', 'done', 'failed', 'cancelled', 'canceled')"
        ).fetchall()
    return tuple(run for run in map(run_of, rows) if run.active)


@contextmanager
def _connect_rw(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes: never makes a file, waits at most `BUSY_S` for a lock, never checkpoints.

    The last connection to be closed checkpoints under an exclusive lock. A reading one, which may not,
    stays open beside ours so that this is never us.
    """
    with closing(connect_ro(path)) as witness, readable(path):
        witness.execute("SELECT count(*) FROM sqlite_master").fetchone()
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_S, isolation_level=None
        )
        try:
            # Cells are compared byte by byte: text that is not UTF-8 must not look like its replacement.
            connection.text_factory = bytes
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            # A commit then does not wait for the disk under the lock: `_sync` does, after it.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        with closing(connection):
            yield connection


def _check(connection: sqlite3.Connection, cells: Iterable[Cell]) -> None:
    by_row: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        by_row.setdefault((cell.table, cell.row), []).append(cell)
    moved = [line for (table, row), held in by_row.items() for line in _moved(connection, table, row, held)]
    if moved:
        raise Moved(moved)


def _moved(connection: sqlite3.Connection, table: str, row: str, cells: Sequence[Cell]) -> list[str]:
    columns = ", ".join(f"{name}, typeof({name})" for name in (_name(cell.column) for cell in cells))
    found = connection.execute(
        f"SELECT {columns} FROM {_table(table)} WHERE id = ?",  # noqa: S608 (names are checked)
        (row,),
    ).fetchall()
    if len(found) != 1:
        return [f"{cells[0].subject} is gone" if not found else f"{cells[0].subject} is there twice"]
    return [
        f"{cell.subject}: {cell.what} was {_shown(cell.value)}, is {_shown_raw(value, kind)}"
        for cell, value, kind in zip(cells, found[0][::2], found[0][1::2], strict=True)
        if not _holds(cell.value, value, kind)
    ]


def _update(connection: sqlite3.Connection, changes: Sequence[RowChange]) -> None:
    by_row: dict[tuple[str, str], list[RowChange]] = {}
    for change in changes:
        by_row.setdefault((change.table, change.row), []).append(change)
    for (table, row), made in by_row.items():
        columns = ", ".join(f"{_name(change.column)} = ?" for change in made)
        done = connection.execute(
            f"UPDATE {_table(table)} SET {columns} WHERE id = ?",  # noqa: S608 (names are checked)
            (*(change.after for change in made), row),
        )
        if done.rowcount != 1:
            raise Moved([f"{made[0].subject}: {done.rowcount} rows instead of one"])


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Undo the open transaction; whether there was one left to undo."""
    if not connection.in_transaction:
        return False
    with suppress(sqlite3.Error):
        connection.execute("ROLLBACK")
    return not connection.in_transaction


def _sync(path: Path) -> None:
    """Bring the commit to the disk. That it cannot be synced does not make it undone: nothing is raised."""
    with suppress(OSError):
        descriptor = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _holds(expected: SqlValue, value: object, kind: bytes | str) -> bool:
    word = kind.decode() if isinstance(kind, bytes) else kind
    if expected is None:
        return word == "null"
    if isinstance(expected, str):
        return word == "text" and value == expected.encode("utf-8", "surrogatepass")
    if isinstance(expected, int):
        return word == "integer" and value == expected
    return word == "real" and value == expected


def _reason(error: sqlite3.Error, path: Path) -> str:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has held the database {path} locked for {BUSY_S:g} s"
    if code == sqlite3.SQLITE_READONLY:
        return f"the database {path} may not be written to by this user"
    if code == sqlite3.SQLITE_FULL:
        return f"the disk of {path} is full"
    return explain(error, path).replace("cannot read", "cannot write")


def _guarded(guard: Guard) -> Cell:
    return Cell(guard.table, guard.row, guard.column, guard.value, guard.subject, guard.column)


def _changed(change: RowChange) -> Cell:
    return Cell(change.table, change.row, change.column, change.before, change.subject, change.what)


def _table(name: str) -> str:
    if name not in _TABLES:
        raise ValueError(f"{name!r} is no table of Antfarm's runs")
    return name


def _name(column: str) -> str:
    if not column.isidentifier() or not column.isascii():
        raise ValueError(f"{column!r} is no column of Antfarm's")
    return f"[{column}]"  # in double quotes SQLite would take an unknown name for a text


def _shown(value: SqlValue) -> str:
    return "none" if value is None else safe_line(str(value), _SHOWN)


def _shown_raw(value: object, kind: bytes | str) -> str:
    if kind in (b"blob", "blob"):
        return "binary data"
    return _shown(decode(value) if isinstance(value, bytes) else value)  # type: ignore[arg-type]
