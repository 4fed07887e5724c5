"""The exact rows that plans are made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from farmtui.antfarm.rows import NoSuchRun, read_rows, running_workflows
from farmtui.antfarm.schema import Unreadable
from tests.farms import VERSIONS, Farmyard, StepRow, StoryRow


@pytest.mark.parametrize("version", VERSIONS)
def test_every_cell_of_one_run_as_it_stands(tmp_path: Path, version: str) -> None:
    yard = Farmyard(tmp_path, schema=version)
    yard.add_run("other", steps=[StepRow("plan")])
    run = yard.add_run(
        "relay",
        context={"n": 1},
        steps=[StepRow("plan", status="done", output="STATUS: done"), StepRow("build")],
        stories=[StoryRow("S-1"), StoryRow("S-2")],
    )
    rows = read_rows(yard.database, run)
    assert dict(rows.run) == yard.row("runs", run)
    assert [step["step_id"] for step in rows.steps] == ["plan", "build"]
    plan = yard.step_id(run, "plan")
    assert rows.step(plan) == yard.row("steps", plan)
    second = yard.story_id(run, "S-2")
    assert rows.story(second) == yard.row("stories", second)
    assert rows.step("nobody") is None
    assert rows.columns["steps"] == rows.steps[0].keys()


def test_steps_and_stories_come_in_their_order_not_the_rows(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    run = yard.add_run(
        "relay",
        steps=[StepRow("second", extra={"step_index": 5}), StepRow("first", extra={"step_index": 0})],
        stories=[StoryRow("S-2", extra={"story_index": 1}), StoryRow("S-1", extra={"story_index": 0})],
    )
    rows = read_rows(yard.database, run)
    assert [step["step_id"] for step in rows.steps] == ["first", "second"]
    assert [story["story_id"] for story in rows.stories] == ["S-1", "S-2"]


def test_cells_are_plain_values_even_where_they_are_blobs(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    run = yard.add_run("relay", steps=[StepRow("plan")])
    yard.execute("UPDATE steps SET output = ?, retry_count = 'many' WHERE run_id = ?", b"\xffraw", run)
    (step,) = read_rows(yard.database, run).steps
    assert step["output"] == "\N{REPLACEMENT CHARACTER}raw"
    assert step["retry_count"] == "many"


def test_no_such_run_and_no_database(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    with pytest.raises(NoSuchRun, match="no run nobody"):
        read_rows(yard.database, "nobody")
    yard.database.unlink()
    with pytest.raises(Unreadable, match="no database"):
        read_rows(yard.database, "nobody")
    with pytest.raises(Unreadable, match="no database"):
        running_workflows(yard.database)


def test_running_workflows_are_those_antfarm_keeps_crons_for(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    for workflow, status in (
        ("a", "running"),
        ("a", "failed"),
        ("b", "failed"),
        ("c", "running"),
        ("d", "paused"),
    ):
        yard.add_run(workflow, status=status)
    assert running_workflows(yard.database) == {"a", "c"}
