"""What failed runs said last."""

from __future__ import annotations

from pathlib import Path

import pytest

from farmtui.antfarm.failures import Failure, read_failures
from farmtui.antfarm.schema import Unreadable
from tests.farms import VERSIONS, Farmyard, StepRow, StoryRow


def test_a_loop_is_told_with_its_story_and_a_single_step_without(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    loop = yard.add_run(
        "relay",
        status="failed",
        steps=[StepRow("grow", status="failed", loop={"over": "stories"}, output="gave up"), StepRow("pack")],
        stories=[
            StoryRow("S-1", status="done", output="well"),
            StoryRow("S-2", status="failed", output="badly"),
            StoryRow("S-3", status="failed", output="later"),
        ],
    )
    single = yard.add_run(
        "relay",
        status="failed",
        steps=[
            StepRow("scout", status="failed", output="first"),
            StepRow("build", status="failed", output="second"),
        ],
        stories=[StoryRow("S-1", status="failed", output="of an earlier attempt")],
    )
    silent = yard.add_run(
        "relay",
        status="failed",
        steps=[StepRow("grow", status="failed", loop={"over": "stories"}, output="the loop")],
        stories=[StoryRow("S-1", status="failed")],
    )
    never = yard.add_run("relay", status="failed", steps=[StepRow("scout", status="pending")])
    other = yard.add_run("relay", steps=[StepRow("scout", status="failed", output="not asked for")])
    found = read_failures(yard.database, [loop, single, silent, never])
    assert found == {
        loop: Failure("S-2", "badly"),
        single: Failure(None, "first"),
        silent: Failure("S-1", "the loop"),
        never: Failure(None, None),
    }
    assert other not in found
    assert read_failures(yard.database, []) == {}


@pytest.mark.parametrize("schema", VERSIONS)
def test_every_schema_is_read(schema: str, tmp_path: Path) -> None:
    yard = Farmyard(tmp_path, schema=schema)
    run = yard.add_run("relay", status="failed", steps=[StepRow("scout", status="failed", output="no")])
    yard.execute("UPDATE steps SET output = X'6e6fff'")
    assert read_failures(yard.database, [run])[run].output == "no\ufffd"


def test_a_database_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        read_failures(tmp_path / "absent.db", ["run"])
