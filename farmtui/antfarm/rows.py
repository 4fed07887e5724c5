"""The exact rows of one run, every column as it stands: what plans are made from and guarded by."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from farmtui.antfarm.schema import SqlValue, Unreadable, cell, connect_ro, readable, schema_of, snapshot

Row = Mapping[str, SqlValue]


class NoSuchRun(Unreadable):
    """The database is well, but has no run of that id."""


@dataclass(frozen=True, slots=True)
class RunRows:
    """One run's rows at one moment, by column name in lower case.

    A cell that is not UTF-8 was decoded with replacement, and a blob as text: comparing such a cell
    with what is stored fails, so a plan that would change it is refused rather than guessed.

    Attributes:
        steps: by step_index.
        stories: by story_index.
        columns: of each table, so that a plan writes no column which this schema lacks.
    """

    run: Row
    steps: tuple[Row, ...]
    stories: tuple[Row, ...]
    columns: Mapping[str, frozenset[str]]

    def step(self, step_id: str) -> Row | None:
        """The step whose row id is `step_id`."""
        return next((row for row in self.steps if row["id"] == step_id), None)

    def story(self, story_id: str) -> Row | None:
        """The story whose row id (not "S-1") is `story_id`."""
        return next((row for row in self.stories if row["id"] == story_id), None)


def read_rows(path: Path, run_id: str) -> RunRows:
    """Read one run's rows in one consistent state.

    Raises:
        NoSuchRun: there is no run of that id.
        Unreadable: the database cannot be read.
    """
    with readable(path), closing(connect_ro(path)) as connection, snapshot(connection):
        return rows_in(connection, path, run_id)


def rows_in(connection: sqlite3.Connection, path: Path, run_id: str) -> RunRows:
    """The same through an open connection, inside the caller's transaction."""
    columns = schema_of(connection, path)
    runs = _fetch(connection, "SELECT * FROM runs WHERE id = ?", run_id)
    if not runs:
        raise NoSuchRun(f"no run {run_id} in {path}")
    return RunRows(
        run=runs[0],
        steps=_children(connection, columns["steps"], "steps", "step_index", run_id),
        stories=_children(connection, columns["stories"], "stories", "story_index", run_id),
        columns=columns,
    )


def running_workflows(path: Path) -> frozenset[str]:
    """The workflows that have a run whose status is ``running``: whose crons Antfarm keeps.

    Raises:
        Unreadable: the database cannot be read.
    """
    with readable(path), closing(connect_ro(path)) as connection:
        schema_of(connection, path)
        found = connection.execute(
            "SELECT DISTINCT workflow_id FROM runs WHERE status = 'running'"
        ).fetchall()
    return frozenset(str(cell(workflow)) for (workflow,) in found)


def _children(
    connection: sqlite3.Connection, columns: frozenset[str], table: str, order: str, run_id: str
) -> tuple[Row, ...]:
    if not {"id", "run_id", order} <= columns:
        return ()
    statement = f"SELECT * FROM {table} WHERE run_id = ? ORDER BY {order}, rowid"  # noqa: S608 (our own names)
    return _fetch(connection, statement, run_id)


def _fetch(connection: sqlite3.Connection, statement: str, run_id: str) -> tuple[Row, ...]:
    cursor = connection.execute(statement, (run_id,))
    names = [column[0].lower() for column in cursor.description]
    return tuple(
        {name: cell(value) for name, value in zip(names, row, strict=True)} for row in cursor.fetchall()
    )
