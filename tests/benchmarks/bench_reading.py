"""Measure the reader on a big farm: ``python -m tests.benchmarks.bench_reading [DIR]``.

Each line stands beside what plain reading takes on the same machine in the same run: every small column of
every row, each time, as records. Without DIR a farm of 10,000 runs is made in a temporary folder.
"""

# Statements are put together from names in this package only.
# ruff: noqa: S608
from __future__ import annotations

import argparse
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from farmtui.antfarm.reader import SLICES, DatabaseReader
from farmtui.antfarm.records import (
    run_of,
    run_selection,
    step_of,
    step_selection,
    story_of,
    story_selection,
)
from farmtui.antfarm.schema import connect_ro, schema_of
from tests.benchmarks.generate import generate

REPEATS = 5


def measure(database: Path) -> list[tuple[str, float]]:
    """Name and median seconds of each kind of look, the plain one last."""
    first = [_timed(_fresh(database).poll) for _ in range(REPEATS)]
    results = [("first poll", statistics.median(first))]
    tallies, sweeps = [], []
    for _ in range(REPEATS):
        reader = _fresh(database)
        reader.poll()
        tallies.append(_timed(reader.tally))
        sweeps += [_timed(reader.sweep) for _ in range(SLICES // REPEATS)]
        reader.close()
    results.append(("tally", statistics.median(tallies)))
    reader = _fresh(database)
    rows = reader.tally()
    active = next(run for run in rows.runs if run.active)
    commits = []
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        for turn in range(4 * REPEATS):
            writer.execute(
                "UPDATE steps SET updated_at = ? WHERE rowid = ?", (str(turn), active.steps[0].rowid)
            )
            commits.append(_timed(reader.poll))
    results.append(("poll after a commit", statistics.median(commits)))
    results.append(("poll, nothing new", statistics.median(_timed(reader.poll) for _ in range(200))))
    results.append(("sweep, one slice", statistics.median(sweeps)))
    reader.close()
    results.append(
        ("plain: every row", statistics.median(_timed(lambda: _plain(database)) for _ in range(3)))
    )
    return results


def _fresh(database: Path) -> DatabaseReader:
    return DatabaseReader(database)


def _plain(database: Path) -> int:
    with closing(connect_ro(database)) as connection:
        columns = schema_of(connection, database)
        runs = connection.execute(f"SELECT {run_selection(columns['runs'])} FROM runs")
        kept = [run_of(raw) for raw in runs.fetchall()]
        steps = connection.execute(f"SELECT {step_selection(columns['steps'])} FROM steps")
        records = [step_of(raw) for raw in steps.fetchall()]
        stories = connection.execute(f"SELECT {story_selection(columns['stories'])} FROM stories")
        return len(kept) + len(records) + len([story_of(raw) for raw in stories.fetchall()])


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def report(database: Path) -> str:
    """The measurements as a table."""
    results = measure(database)
    plain = results[-1][1]
    lines = [f"{'reading':24}{'ms':>10}{'of plain':>12}"]
    lines += [f"{name:24}{seconds * 1000:10.2f}{seconds / plain:12.1%}" for name, seconds in results]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return "\n".join([*lines, f"peak memory, the plain reading included: {peak:.0f} MB"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the reader on a big farm.")
    parser.add_argument("folder", type=Path, nargs="?", help="a farm made by tests.benchmarks.generate")
    parser.add_argument("--runs", type=int, default=10_000, help="of the farm made where DIR is not given")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        print(report(chosen.folder / ".openclaw" / "antfarm" / "antfarm.db"))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(report(generate(Path(folder), chosen.runs).database))


if __name__ == "__main__":
    main()
