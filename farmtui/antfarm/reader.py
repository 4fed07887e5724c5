"""Reading Antfarm's database live: what changed since the last look, as cheaply as the schema allows.

The first look reads the runs, and the steps and stories of active ones. Whatever is committed later is
noticed by ``PRAGMA data_version`` on one long-lived read-only connection, and then only this is read
again: active runs with their steps and stories, failed runs (which may be resumed), and what was
inserted. Ended runs are swept slice by slice.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farmtui.antfarm.ledger import Ledger, Renumbered, group
from farmtui.antfarm.queries import Queries
from farmtui.antfarm.records import Raw, tally_from
from farmtui.antfarm.schema import Unreadable, connect_ro, explain, schema_of, snapshot, text_of
from farmtui.state import Run

# With a sweep a second, a late change of an ended run is seen within this many seconds.
SLICES = 50
_ROUND = SLICES + 2  # slices move a little while runs come and go
# Failed runs are where a resume can come from: the newest ones are looked at after every commit.
FAILED_WATCHED = 1_000
# Rowids with a gap of no more than this between them are read in one go.
_GAP = 40

Range = tuple[int, int]
_TABLES = ("runs", "steps", "stories")


@dataclass(frozen=True, slots=True)
class Rows:
    """All runs as last read.

    Attributes:
        runs: newest first; records are the same objects as before while nothing in them changed.
        version: one up whenever anything differs.
        tallied: whether ended runs have their tally.
    """

    runs: tuple[Run, ...]
    version: int
    tallied: bool


@dataclass(frozen=True, slots=True)
class _File:
    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> _File:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def same_file(self, other: _File) -> bool:
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(slots=True)
class _Open:
    """An open database and what it was when it was opened or last read."""

    connection: sqlite3.Connection
    queries: Queries
    file: _File
    schema_version: int
    data_version: int = -1
    loaded: bool = False


class DatabaseReader:
    """Reads one database; every method blocks and belongs to one thread.

    All of them raise `Unreadable` while the database cannot be read, and recover by themselves at a
    later call. Between calls no transaction is open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: _Open | None = None
        self._ledger = Ledger()
        self._rows = Rows((), 0, False)
        self._tally_wanted = False
        self._tallied = False
        self._last: dict[str, tuple[int, Any]] = dict.fromkeys(_TABLES, (0, None))
        self._ranges: dict[str, dict[str, Range]] = {"steps": {}, "stories": {}}
        self._swept_to = 0
        self._unswept = _ROUND

    def poll(self) -> Rows:
        """What is true now. Where nothing was committed this costs microseconds and returns the same Rows."""
        with self._mended():
            opened = self._ready()
            version = int(opened.connection.execute("PRAGMA data_version").fetchone()[0])
            if not opened.loaded or version != opened.data_version:
                with snapshot(opened.connection):
                    self._read(opened)
                opened.data_version, opened.loaded = version, True
                self._unswept = _ROUND
        return self._publish()

    def tally(self) -> Rows:
        """The same with the aggregates of ended runs, which stay up to date from then on.

        One scan of steps and stories, the first time.
        """
        self._tally_wanted = True
        rows = self.poll()
        if self._tallied or self._open is None:
            return rows
        with self._mended(), snapshot(self._open.connection):
            self._read_tallies(self._open.queries)
        return self._publish()

    def sweep(self) -> Rows:
        """Look at the next slice of ended runs, once round after each commit; else the same Rows."""
        rows = self.poll()
        if not self._unswept or self._open is None:
            return rows
        with self._mended(), snapshot(self._open.connection):
            self._sweep(self._open.queries)
        self._unswept -= 1
        return self._publish()

    def close(self) -> None:
        """Let go of the file; a later call opens it again."""
        if self._open is not None:
            self._open.connection.close()
            self._open = None

    # ------------------------------------------------------------ the file

    def _ready(self) -> _Open:
        file = None
        with suppress(OSError):  # what went away is told by opening it again
            file = _File.of(self._path.stat())
        before = self._open
        if before is not None and file != before.file:
            self.close()
            # A checkpoint touches the file, and so does whoever overwrites it in place, of which SQLite tells
            # nobody. The same file is therefore opened again, but not read as if nothing were known.
            replaced = file is None or not file.same_file(before.file)
            self._open = self._connect()
            self._open.loaded = before.loaded and not replaced
            self._unswept = _ROUND
        if self._open is None:
            self._open = self._connect()
        return self._open

    def _connect(self) -> _Open:
        connection = connect_ro(self._path)
        try:
            file = _File.of(self._path.stat())
            with snapshot(connection):
                columns = schema_of(connection, self._path)
                (schema_version,) = connection.execute("PRAGMA schema_version").fetchone()
        except BaseException:
            connection.close()
            raise
        return _Open(connection, Queries(connection, columns), file, schema_version)

    @contextmanager
    def _mended(self) -> Iterator[None]:
        """Any failure inside becomes `Unreadable`, and whatever may be half read is read again next time."""
        try:
            yield
        except (sqlite3.Error, OSError, Unreadable) as error:
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            if self._open is not None and code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._open.loaded = False
            else:
                self.close()
            if isinstance(error, Unreadable):
                raise
            raise Unreadable(explain(error, self._path)) from error

    def _publish(self) -> Rows:
        if self._ledger.changed or self._rows.tallied != self._tallied or not self._rows.version:
            self._ledger.changed = False
            self._rows = Rows(self._ledger.newest_first(), self._rows.version + 1, self._tallied)
        return self._rows

    # ------------------------------------------------------------ reading

    def _read(self, opened: _Open) -> None:
        queries = opened.queries
        (schema_version,) = opened.connection.execute("PRAGMA schema_version").fetchone()
        if schema_version != opened.schema_version:
            columns = schema_of(opened.connection, self._path)
            opened.queries = queries = Queries(opened.connection, columns)
            opened.schema_version, opened.loaded = schema_version, False
        if not opened.loaded or not self._read_changes(queries):
            self._read_all(queries)

    def _read_all(self, queries: Queries) -> None:
        ledger = self._ledger
        ledger.replace_all(queries.runs())
        self._ranges = {"steps": {}, "stories": {}}
        active = {run.rowid: run.id for run in ledger.active()}
        ended_since = [run_id for run_id in ledger.kept() if run_id not in set(active.values())]
        steps = queries.steps_of(active) if active else []
        wanted = [*active.values(), *ended_since]
        stories = queries.of("stories", wanted) if wanted else []
        if ended_since:
            steps += queries.of("steps", ended_since)
        ledger.put_children(wanted, steps, stories)
        self._last = {table: queries.last(table) for table in self._last}
        self._tallied = False
        if self._tally_wanted:
            self._read_tallies(queries)

    def _read_changes(self, queries: Queries) -> bool:
        """Read what may have changed; False where what was remembered is void and all must be read."""
        # Rowids of deleted rows are given again: what lies behind the last row is new only if that is there.
        if not all(queries.is_at(table, *self._last[table]) for table in _TABLES):
            return False
        ledger = self._ledger
        watched = {run.rowid for run in ledger.active()}.union(ledger.failed_rowids()[-FAILED_WATCHED:])
        found = queries.runs_at(watched)
        try:
            ledger.put_runs(found + queries.runs_after(self._last["runs"][0]))
        except Renumbered:
            return False
        self._last["runs"] = queries.last("runs")
        ledger.drop_runs(watched - {raw[0] for raw in found})
        if queries.run_count() != len(ledger):
            return False
        self._read_children(queries)
        return True

    def _read_children(self, queries: Queries) -> None:
        """Steps and stories of active runs, of those that just ended, and of ended ones with new rows."""
        ledger = self._ledger
        steps = queries.at("steps", ledger.step_rowids()) + queries.after("steps", self._last["steps"][0])
        stories = queries.at("stories", ledger.story_rowids()) + queries.after(
            "stories", self._last["stories"][0]
        )
        self._last |= {table: queries.last(table) for table in ("steps", "stories")}
        kept = ledger.kept()
        ids = kept.union(run.id for run in ledger.active())
        fresh = {rowid: run_id for run_id in ids - kept if (rowid := ledger.rowid_of(run_id)) is not None}
        if fresh:
            steps += self._children_of(queries, "steps", fresh)
            stories += self._children_of(queries, "stories", fresh)
        late = (group(steps).keys() | group(stories).keys()) - ids
        if late and self._tallied:
            known = {rowid: run_id for run_id in late if (rowid := ledger.rowid_of(run_id)) is not None}
            steps += self._children_of(queries, "steps", known)
            stories += self._children_of(queries, "stories", known)
            ids = ids.union(known.values())
        ledger.put_children(ids, steps, stories)
        if self._tallied:
            self._remember("steps", steps)
            self._remember("stories", stories)

    def _children_of(self, queries: Queries, table: str, runs: dict[int, str]) -> list[Raw]:
        """Steps or stories of runs of which none are kept: by the ranges that the tally left, else found."""
        ranges = self._ranges[table]
        if self._tallied:
            known = [ranges[run_id] for run_id in runs.values() if run_id in ranges]
            return [raw for first, last in _merged(known) for raw in queries.between(table, first, last)]
        return queries.steps_of(runs) if table == "steps" else queries.of(table, list(runs.values()))

    def _read_tallies(self, queries: Queries) -> None:
        ledger = self._ledger
        step_sums = {text_of(row[0]): row for row in queries.step_sums()}
        story_sums = {text_of(row[0]): row for row in queries.story_sums()}
        self._ranges = {
            "steps": {run_id: (row[2], row[3]) for run_id, row in step_sums.items()},
            "stories": {run_id: (row[2], row[3]) for run_id, row in story_sums.items()},
        }
        self._tallied = True
        active = {run.id: run.rowid for run in ledger.active()}
        self._put_tallies(
            (rowid for rowid in ledger.rowids() if ledger.run(rowid).id not in active), step_sums, story_sums
        )
        # Steps of active runs were searched for by their order: the scan has counted them.
        for run_id, rowid in active.items():
            counts = step_sums[run_id][4] if run_id in step_sums else 0
            if counts != ledger.count(run_id)[0]:
                one = {rowid: run_id}
                ledger.put_children(
                    [run_id],
                    self._children_of(queries, "steps", one),
                    self._children_of(queries, "stories", one),
                )

    def _put_tallies(
        self, rowids: Iterable[int], step_sums: dict[str, Raw], story_sums: dict[str, Raw]
    ) -> None:
        for rowid in rowids:
            run_id = self._ledger.run(rowid).id
            steps, stories = step_sums.get(run_id), story_sums.get(run_id)
            tally = tally_from(
                text_of(steps[1]) if steps else "",
                int(stories[1]) if stories else 0,
                stories[4] if stories else 0,
            )
            self._ledger.put_tally(rowid, tally)

    def _remember(self, table: str, rows: Iterable[Raw]) -> None:
        ranges = self._ranges[table]
        for run_id, own in group(rows).items():
            rowids = [raw[0] for raw in own]
            first, last = ranges.get(run_id, (rowids[0], rowids[0]))
            ranges[run_id] = min(first, *rowids), max(last, *rowids)

    # ------------------------------------------------------------ sweeping

    def _sweep(self, queries: Queries) -> None:
        ledger = self._ledger
        chosen = self._next_slice()
        found = queries.runs_at(chosen)
        try:
            ledger.put_runs(found)
        except Renumbered:
            self._read_all(queries)
            return
        ledger.drop_runs(set(chosen) - {raw[0] for raw in found})
        kept = ledger.kept()
        if any(run.id not in kept for run in ledger.active()) and not self._read_changes(queries):
            self._read_all(queries)
        if not self._tallied:
            return
        kept = ledger.kept()
        ended = [raw[0] for raw in found if ledger.run(raw[0]).id not in kept]
        ids = {ledger.run(rowid).id for rowid in ended}
        self._put_tallies(
            ended,
            self._sums("steps", ids, queries.step_sums),
            self._sums("stories", ids, queries.story_sums),
        )

    def _next_slice(self) -> list[int]:
        rowids = self._ledger.rowids()
        start = bisect_right(rowids, self._swept_to)
        chosen = rowids[start : start + -(-len(rowids) // SLICES)]
        self._swept_to = chosen[-1] if chosen and chosen[-1] != rowids[-1] else 0
        return chosen

    def _sums(self, table: str, ids: set[str], ask: Callable[[int, int], list[Raw]]) -> dict[str, Raw]:
        ranges = self._ranges[table]
        merged = _merged(ranges[run_id] for run_id in ids if run_id in ranges)
        sums = (row for first, last in merged for row in ask(first, last))
        return {run_id: row for row in sums if (run_id := text_of(row[0])) in ids}


def _merged(ranges: Iterable[Range]) -> list[Range]:
    """The ranges in order, those that touch, or nearly do, made one."""
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first - merged[-1][1] <= _GAP:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged
