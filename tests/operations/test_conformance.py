"""Resets and retries against what Antfarm's own clean-up and resume left, operation by operation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farmtui.operations.plan import Refused
from tests.boxes import SHARED
from tests.farms import MINUTE, Farmyard, StepRow, StoryRow
from tests.operations.kit import ListedCrons, desk_on, job

VERIFYING = {"over": "stories", "completion": "all_done", "verifyEach": True, "verifyStep": "taste"}
LOOPS = {"orchard": VERIFYING, "meadow": {"over": "stories", "completion": "all_done"}}


def scenario(name: str) -> list[dict[str, Any]]:
    path = SHARED / "conformance" / f"{name}.json"
    if not path.is_file():
        pytest.skip("needs shared/conformance, which only the project's own machines have")
    loaded: list[dict[str, Any]] = json.loads(path.read_text())["steps"]
    return loaded


def rebuilt(yard: Farmyard, state: dict[str, Any], *, old: str | None = None) -> str:
    """The rows of one recorded state. `old`: the step that is older than any time-out."""
    (run,) = state["runs"]
    workflow = run["workflow_id"]
    steps = [
        StepRow(
            row["id"].split(".")[1],
            row["agent_id"].split("_")[1],
            row["status"],
            loop=LOOPS[workflow] if row["type"] == "loop" else None,
            current_story=row["current_story"].split("/")[1] if row["current_story"] else None,
            output=row["output"],
            retry_count=row["retry_count"],
            max_retries=row["max_retries"],
            abandoned_count=row["abandoned_count"],
            age=(90 if row["id"] == old else 1) * MINUTE,
        )
        for row in state["steps"]
    ]
    stories = [
        StoryRow(
            row["id"].split("/")[1],
            status=row["status"],
            output=row["output"],
            retry_count=row["retry_count"],
            max_retries=row["max_retries"],
        )
        for row in state["stories"]
    ]
    context = json.dumps(run["context"])
    return yard.add_run(workflow, status=run["status"], context=context, steps=steps, stories=stories)


def recorded(state: dict[str, Any]) -> dict[str, Any]:
    """A recorded state as `found` puts a farm's."""
    return {
        "run": state["runs"][0]["status"],
        "context": state["runs"][0]["context"],
        "steps": [
            (
                row["id"].split(".")[1],
                row["status"],
                row["output"],
                row["retry_count"],
                row["abandoned_count"],
                row["current_story"],
            )
            for row in state["steps"]
        ],
        "stories": [
            (row["id"].split("/")[1], row["status"], row["output"], row["retry_count"])
            for row in state["stories"]
        ],
    }


def found(yard: Farmyard) -> dict[str, Any]:
    ((run, context),) = yard.execute("SELECT status, context FROM runs")
    return {
        "run": run,
        "context": json.loads(context),
        "steps": yard.execute(
            "SELECT step_id, status, output, retry_count, abandoned_count, current_story_id"
            " FROM steps ORDER BY step_index"
        ),
        "stories": yard.execute(
            "SELECT story_id, status, output, retry_count FROM stories ORDER BY story_index"
        ),
    }


def before_and_after(steps: list[dict[str, Any]], op: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The states around every operation of that kind. An operation that changed nothing records none."""
    pairs, last = [], {}
    for step in steps:
        state = step.get("state") or last
        if step["op"][0] == op:
            pairs.append((last, state))
        last = state
    return pairs


def test_a_reset_leaves_what_antfarms_clean_up_leaves(tmp_path: Path) -> None:
    pairs = before_and_after(scenario("abandoned-single"), "cleanup")
    resets = [pair for pair in pairs if pair[1]["steps"][0]["status"] == "pending"]
    assert len(resets) == 4
    for number, (before, after) in enumerate(resets):
        folder = tmp_path / str(number)
        folder.mkdir()
        yard = Farmyard(folder)
        run = rebuilt(yard, before, old="run1.scout")
        desk = desk_on(yard.paths)
        desk.apply(desk.reset(run, "scout"))
        assert found(yard) == recorded(after)


def test_where_antfarm_fails_the_run_a_reset_does_not(tmp_path: Path) -> None:
    pairs = before_and_after(scenario("abandoned-single"), "cleanup")
    before, after = next(pair for pair in pairs if pair[1]["runs"][0]["status"] == "failed")
    assert after["steps"][0]["abandoned_count"] == 5
    yard = Farmyard(tmp_path)
    run = rebuilt(yard, before, old="run1.scout")
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "scout"))
    assert found(yard)["run"] == "running"
    assert found(yard)["steps"][0][1::3] == ("pending", 5)


def test_a_loop_that_waits_for_its_verifier_is_left_alone_as_there(tmp_path: Path) -> None:
    ((before, after),) = before_and_after(scenario("abandoned-loop-waiting-verify"), "cleanup")
    assert before == after
    yard = Farmyard(tmp_path)
    run = rebuilt(yard, before, old="run1.grow")
    with pytest.raises(Refused, match="only waits for taste"):
        desk_on(yard.paths).reset(run, "grow", force=True)


@pytest.mark.parametrize(
    ("name", "feedback"),
    [
        ("abandoned-single", "Agent abandoned step without completing (5.0 times)"),
        ("linear-fail-retry", None),
        ("loop-story-fail", "broke 2"),
        ("loop-verify-exhausted", "bad 2"),
    ],
)
def test_a_retry_is_antfarms_resume_with_counters_and_feedback_put_right(
    tmp_path: Path, name: str, feedback: str | None
) -> None:
    before, after = before_and_after(scenario(name), "resume")[0]
    yard = Farmyard(tmp_path)
    run = rebuilt(yard, before)
    workflow = before["runs"][0]["workflow_id"]
    crons = ListedCrons([job(workflow, agent["agent_id"].split("_")[1]) for agent in before["steps"]])
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    ours, theirs = found(yard), recorded(after)
    # Where farm is better on purpose: both counters of the step and those of its failed stories are 0,
    # and the agent is told the last word.
    failed = {row["id"].split(".")[1] for row in before["steps"] if row["status"] == "failed"}
    theirs["steps"] = [(*row[:3], 0, 0, row[5]) if row[0] in failed else row for row in theirs["steps"]]
    refused = {row["id"].split("/")[1] for row in before["stories"] if row["status"] == "failed"}
    theirs["stories"] = [(*row[:3], 0) if row[0] in refused else row for row in theirs["stories"]]
    reason = feedback or next(row["output"] for row in before["steps"] if row["status"] == "failed")
    theirs["context"] = {**theirs["context"], "verify_feedback": reason}
    assert ours == theirs


def test_what_antfarm_does_not_resume_is_not_retried_either(tmp_path: Path) -> None:
    for before, after in before_and_after(scenario("resume-not-failed"), "resume"):
        if before["runs"][0]["status"] == "failed":
            continue
        assert before == after
        folder = tmp_path / before["runs"][0]["status"]
        folder.mkdir()
        yard = Farmyard(folder)
        run = rebuilt(yard, before)
        with pytest.raises(Refused, match="only a failed run"):
            desk_on(yard.paths).retry(run)
