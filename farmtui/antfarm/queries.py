"""The statements with which the reader asks the database, each for the columns that this schema has.

Costs, with 70,000 steps in 600 MB: a scan of steps 0.2–0.4 s, since `run_id` has no index and nearly each
row fills a page; reading by rowid next to nothing. So rows are found once and then asked for by rowid.
"""

# Statements are put together from names in this package and from integers only.
# ruff: noqa: S608

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from farmtui.antfarm.records import (
    INDEX,
    PARENT,
    Raw,
    run_selection,
    step_selection,
    steps_aggregate,
    story_selection,
)
from farmtui.antfarm.schema import decode, text_of

_MOST_PARAMETERS = 10_000
# With more active runs than this, one scan of all steps is quicker than a search for each.
_MOST_SEARCHED = 150
_WINDOW = 64


class Queries:
    """Asks one open database. The caller holds the transaction."""

    def __init__(self, connection: sqlite3.Connection, columns: Mapping[str, frozenset[str]]) -> None:
        self._connection = connection
        self._runs = run_selection(columns["runs"])
        self._children = {
            "steps": step_selection(columns["steps"]),
            "stories": story_selection(columns["stories"]),
        }
        self._there = {table for table in self._children if {"id", "run_id"} <= columns[table]} | {"runs"}
        self._steps_aggregate = steps_aggregate(columns["steps"])
        # Python's own decoder is quicker, but gives up at the first bad byte: `decode` then takes over.
        connection.text_factory = str

    def runs(self) -> list[Raw]:
        """All runs."""
        return self.fetch(f"SELECT {self._runs} FROM runs")

    def runs_after(self, rowid: int) -> list[Raw]:
        """The runs inserted since."""
        return self.fetch(f"SELECT {self._runs} FROM runs WHERE rowid > {rowid:d}")

    def runs_at(self, rowids: Collection[int]) -> list[Raw]:
        """The runs with these rowids, as far as they exist."""
        return (
            self.fetch(f"SELECT {self._runs} FROM runs WHERE rowid IN ({_listed(rowids)})") if rowids else []
        )

    def run_by_id(self, run_id: str) -> list[Raw]:
        """The run of that id."""
        return self.fetch(f"SELECT {self._runs} FROM runs WHERE id = ?", (run_id,))

    def run_count(self) -> int:
        """How many runs there are: it tells of deletions."""
        return int(self.fetch("SELECT count(*) FROM runs")[0][0])

    def last(self, table: str) -> tuple[int, Any]:
        """Rowid and id of the newest row of a table; (0, None) where there is none."""
        if table not in self._there:
            return 0, None
        found = self.fetch(f"SELECT rowid, id FROM {table} ORDER BY rowid DESC LIMIT 1")
        return (found[0][0], found[0][1]) if found else (0, None)

    def is_at(self, table: str, rowid: int, row_id: Any) -> bool:
        """Whether the row of that id is still at that rowid. Rowid 0 stands for none."""
        if rowid == 0:
            return True
        return self.fetch(f"SELECT id FROM {table} WHERE rowid = {rowid:d}") == [(row_id,)]

    def after(self, table: str, rowid: int) -> list[Raw]:
        """The steps or stories inserted since."""
        return self._select(table, f"rowid > {rowid:d}")

    def at(self, table: str, rowids: Collection[int]) -> list[Raw]:
        """The steps or stories with these rowids, as far as they exist."""
        return self._select(table, f"rowid IN ({_listed(rowids)})") if rowids else []

    def between(self, table: str, first: int, last: int) -> list[Raw]:
        """The steps or stories in this range of rowids."""
        return self._select(table, f"rowid BETWEEN {first:d} AND {last:d}")

    def of(self, table: str, run_ids: Sequence[str]) -> list[Raw]:
        """The steps or stories of these runs, by a scan of the whole table."""
        found: list[Raw] = []
        for start in range(0, len(run_ids), _MOST_PARAMETERS):
            some = run_ids[start : start + _MOST_PARAMETERS]
            marks = ",".join("?" * len(some))
            found += self._select(table, f"run_id IN ({marks})", some)
        return found

    def steps_of(self, runs: Mapping[int, str]) -> list[Raw]:
        """The steps of these runs (ids by rowid), found without a scan where that is possible.

        Antfarm inserts a run and all its steps in one transaction, so steps lie in the order of their
        runs and can be searched for. A run for which that finds nothing, or a gap, is looked for by a scan.
        """
        run_ids = list(runs.values())
        if len(runs) > _MOST_SEARCHED or "steps" not in self._there:
            return self.of("steps", run_ids)
        found: list[Raw] = []
        for rowid, run_id in runs.items():
            steps = self._search(rowid, run_id)
            if sorted(raw[INDEX] or 0 for raw in steps) != list(range(len(steps))) or not steps:
                return self.of("steps", run_ids)
            found += steps
        return found

    def step_sums(self, first: int | None = None, last: int | None = None) -> list[Raw]:
        """(run_id, gathered statuses, first rowid, last rowid, count) of each run, all or in a range."""
        if "steps" not in self._there:
            return []
        return self.fetch(
            f"SELECT run_id, {self._steps_aggregate}, min(rowid), max(rowid), count(*)"
            f" FROM steps{_range(first, last)} GROUP BY run_id"
        )

    def story_sums(self, first: int | None = None, last: int | None = None) -> list[Raw]:
        """(run_id, done, first rowid, last rowid, count) of each run, all or in a range."""
        if "stories" not in self._there:
            return []
        return self.fetch(
            "SELECT run_id, total(status = 'done'), min(rowid), max(rowid), count(*)"
            f" FROM stories{_range(first, last)} GROUP BY run_id"
        )

    def fetch(self, statement: str, parameters: Sequence[Any] = ()) -> list[Raw]:
        """All rows of a statement, run to its end."""
        try:
            with closing(self._connection.execute(statement, parameters)) as cursor:
                return cursor.fetchall()
        except sqlite3.OperationalError as error:
            if self._connection.text_factory is decode or "decode" not in str(error):
                raise
            self._connection.text_factory = decode
            return self.fetch(statement, parameters)

    def _select(self, table: str, condition: str, parameters: Sequence[Any] = ()) -> list[Raw]:
        if table not in self._there:
            return []
        return self.fetch(f"SELECT {self._children[table]} FROM {table} WHERE {condition}", parameters)

    def _search(self, run_rowid: int, run_id: str) -> list[Raw]:
        low, high = 1, self.last("steps")[0] + 1
        while low < high:
            middle = (low + high) // 2
            met = self.fetch(
                "SELECT steps.rowid, runs.rowid FROM steps JOIN runs ON runs.id = steps.run_id"
                " WHERE steps.rowid >= ? ORDER BY steps.rowid LIMIT 1",
                (middle,),
            )
            if not met or met[0][1] >= run_rowid:
                high = middle
            else:
                low = met[0][0] + 1
        found: list[Raw] = []
        while True:
            window = self.between("steps", low, low + _WINDOW - 1)
            found += (raw for raw in window if text_of(raw[PARENT]) == run_id)
            if not window or text_of(window[-1][PARENT]) != run_id:
                return found
            low += _WINDOW


def _listed(rowids: Iterable[int]) -> str:
    return ",".join(map(str, rowids))


def _range(first: int | None, last: int | None) -> str:
    return "" if first is None or last is None else f" WHERE rowid BETWEEN {first:d} AND {last:d}"
