"""What has been read of the database so far, as records; it knows no SQL.

Records are reused while their raw cells are the same, so whoever draws can compare by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from farmtui.antfarm.records import (
    PARENT,
    RUN_ID,
    Raw,
    run_of,
    step_of,
    story_of,
    tally_of,
    with_children,
)
from farmtui.antfarm.schema import text_of
from farmtui.state import Run, Step, Story, Tally

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

RecordT = TypeVar("RecordT", Step, Story)


class Renumbered(Exception):
    """A rowid belongs to another row than before (after VACUUM, say): what was remembered is void."""


@dataclass(slots=True)
class Children(Generic[RecordT]):
    """A run's steps or stories: raw rows and records, by rowid."""

    raw: dict[int, Raw] = field(default_factory=dict)
    records: dict[int, RecordT] = field(default_factory=dict)

    def sorted(self) -> tuple[RecordT, ...]:
        """The records in their order within the run."""
        return tuple(sorted(self.records.values(), key=lambda record: (record.index, record.rowid)))


@dataclass(slots=True)
class _Kept:
    steps: Children[Step] = field(default_factory=Children)
    stories: Children[Story] = field(default_factory=Children)


class Ledger:
    """The runs as last read, with the steps and stories of active ones."""

    def __init__(self) -> None:
        self.changed = False
        self._raw: dict[int, Raw] = {}
        self._runs: dict[int, Run] = {}
        self._rowids: dict[str, int] = {}
        self._active: set[int] = set()
        self._failed: set[int] = set()
        self._kept: dict[str, _Kept] = {}
        self._order: list[int] | None = None

    # ------------------------------------------------------------ runs

    def __len__(self) -> int:
        return len(self._runs)

    def rowids(self) -> list[int]:
        """The runs' rowids, ascending."""
        return sorted(self._runs)

    def rowid_of(self, run_id: str) -> int | None:
        """The rowid of the run of that id."""
        return self._rowids.get(run_id)

    def run(self, rowid: int) -> Run:
        return self._runs[rowid]

    def active(self) -> Iterator[Run]:
        """The runs that have not ended."""
        return map(self._runs.__getitem__, self._active)

    def failed_rowids(self) -> list[int]:
        """The rowids of failed runs, ascending."""
        return sorted(self._failed)

    def newest_first(self) -> tuple[Run, ...]:
        """All runs by the time of their making."""
        if self._order is None:
            self._order = sorted(self._runs, key=self._age_key, reverse=True)
        return tuple(map(self._runs.__getitem__, self._order))

    def put_runs(self, rows: Iterable[Raw]) -> None:
        """Take in rows of `runs`.

        Raises:
            Renumbered: a known rowid has another id.
        """
        for raw in rows:
            rowid = raw[0]
            before = self._raw.get(rowid)
            if before == raw:
                continue
            if before is None:
                run = run_of(raw)
            elif before[RUN_ID] != raw[RUN_ID]:
                raise Renumbered
            else:
                known = self._runs[rowid]
                run = with_children(run_of(raw), known.steps, known.stories, known.tally)
            if before is None or run.created_at != self._runs[rowid].created_at:
                self._order = None
            self._raw[rowid], self._runs[rowid], self._rowids[run.id] = raw, run, rowid
            if before is not None:
                self._forget_status(rowid)
            if run.active:
                self._active.add(rowid)
            elif run.status == "failed":
                self._failed.add(rowid)
            self.changed = True

    def drop_runs(self, rowids: Iterable[int]) -> None:
        """Forget runs whose rows are gone."""
        for rowid in rowids:
            run = self._runs.pop(rowid)
            del self._raw[rowid]
            self._forget_status(rowid)
            self._rowids.pop(run.id, None)
            self._kept.pop(run.id, None)
            self._order = None
            self.changed = True

    def replace_all(self, rows: Sequence[Raw]) -> None:
        """Take in the whole table, whatever was known before."""
        there = {raw[0]: raw[RUN_ID] for raw in rows}
        self.drop_runs(
            [rowid for rowid, raw in self._raw.items() if rowid not in there or there[rowid] != raw[RUN_ID]]
        )
        self.put_runs(rows)

    # ------------------------------------------------------------ steps and stories

    def kept(self) -> frozenset[str]:
        """Ids of the runs whose steps and stories are kept: active, or active when last read."""
        return frozenset(self._kept)

    def step_rowids(self) -> list[int]:
        """The rowids of all steps that are kept."""
        return [rowid for kept in self._kept.values() for rowid in kept.steps.raw]

    def story_rowids(self) -> list[int]:
        """The rowids of all stories that are kept."""
        return [rowid for kept in self._kept.values() for rowid in kept.stories.raw]

    def count(self, run_id: str) -> tuple[int, int]:
        """How many steps and stories of a run are kept."""
        kept = self._kept.get(run_id)
        return (len(kept.steps.raw), len(kept.stories.raw)) if kept else (0, 0)

    def put_children(self, run_ids: Iterable[str], steps: Iterable[Raw], stories: Iterable[Raw]) -> None:
        """Take in all steps and stories of these runs as they are now; those of other runs are passed over.

        A run that has ended keeps only their aggregate.
        """
        wanted = set(run_ids)
        steps_of, stories_of = group(steps, wanted), group(stories, wanted)
        for run_id in wanted:
            rowid = self._rowids.get(run_id)
            if rowid is None:
                continue
            kept = self._kept.get(run_id) or _Kept()
            _renew(kept.steps, steps_of.get(run_id, ()), step_of)
            _renew(kept.stories, stories_of.get(run_id, ()), story_of)
            own_steps, own_stories = kept.steps.sorted(), kept.stories.sorted()
            if rowid not in self._active:
                self._kept.pop(run_id, None)
                self._put(rowid, (), (), tally_of(own_steps, own_stories))
            else:
                self._kept[run_id] = kept
                self._put(rowid, own_steps, own_stories, None)

    def put_tally(self, rowid: int, tally: Tally) -> None:
        """Take in the aggregate of an ended run."""
        self._put(rowid, (), (), tally)

    def _forget_status(self, rowid: int) -> None:
        self._active.discard(rowid)
        self._failed.discard(rowid)

    def _put(
        self, rowid: int, steps: tuple[Step, ...], stories: tuple[Story, ...], tally: Tally | None
    ) -> None:
        run = self._runs[rowid]
        if _same(run.steps, steps) and _same(run.stories, stories) and run.tally == tally:
            return
        self._runs[rowid] = with_children(run, steps, stories, tally)
        self.changed = True

    def _age_key(self, rowid: int) -> tuple[datetime, int]:
        return self._runs[rowid].created_at or _LONG_AGO, rowid


def group(rows: Iterable[Raw], wanted: set[str] | None = None) -> dict[str, list[Raw]]:
    """Raw steps or stories by the run that they belong to, each once; only of runs in `wanted`."""
    found: dict[str, dict[int, Raw]] = {}
    for raw in rows:
        run_id = text_of(raw[PARENT])
        if wanted is None or run_id in wanted:
            found.setdefault(run_id, {})[raw[0]] = raw
    return {run_id: list(rows_of.values()) for run_id, rows_of in found.items()}


def _renew(children: Children[RecordT], rows: Iterable[Raw], record_of: Callable[[Raw], RecordT]) -> None:
    there = {raw[0]: raw for raw in rows}
    for rowid in children.raw.keys() - there.keys():
        del children.raw[rowid], children.records[rowid]
    for rowid, raw in there.items():
        if children.raw.get(rowid) != raw:
            children.raw[rowid], children.records[rowid] = raw, record_of(raw)


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return one is other or (len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True)))
