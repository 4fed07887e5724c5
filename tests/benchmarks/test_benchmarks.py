"""The benchmarks themselves, on a farm small enough to be made in a moment."""

from __future__ import annotations

from pathlib import Path

from farmtui.antfarm.reader import DatabaseReader
from tests.benchmarks.bench_reading import report
from tests.benchmarks.generate import STEPS, generate


def test_the_generated_farm_is_as_described_and_always_the_same(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    yard = generate(tmp_path / "one", runs=60, active=12)
    assert yard.dump() == generate(tmp_path / "other", runs=60, active=12).dump()
    reader = DatabaseReader(yard.database)
    runs = reader.tally().runs
    reader.close()
    assert [run.number for run in runs] == list(range(60, 0, -1))
    assert [run.active for run in runs] == [True] * 12 + [False] * 48
    assert all(len(run.steps) == len(STEPS) for run in runs if run.active)
    assert all(
        run.tally is not None and run.tally.steps_total == len(STEPS) for run in runs if not run.active
    )
    assert any(run.stories for run in runs)
    assert {run.status for run in runs} >= {"running", "completed", "failed"}


def test_reading_is_measured_as_a_table(tmp_path: Path) -> None:
    lines = report(generate(tmp_path, runs=60).database).splitlines()
    assert [line.split("  ")[0] for line in lines[1:-1]] == [
        "first poll",
        "tally",
        "poll after a commit",
        "poll, nothing new",
        "sweep, one slice",
        "plain: every row",
    ]
