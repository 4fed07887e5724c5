"""What is read when someone looks at one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from farmtui.antfarm.detail import agent_of, parse_context, read_detail
from farmtui.antfarm.reader import DatabaseReader
from farmtui.antfarm.rows import NoSuchRun
from farmtui.antfarm.schema import Unreadable
from farmtui.antfarm.workflows import parse_workflow
from farmtui.clock import parse_time
from farmtui.paths import locate
from farmtui.state import Agent, Run, RunDetail, StepText
from tests.boxes import Box
from tests.farms import NOW, VERSIONS, Farmyard, StepRow, StoryRow

LOOP = {"over": "stories", "verifyEach": True, "verifyStep": "verify"}
STEPS = (
    StepRow(
        "plan", status="done", input="Plan {{task}}", expects="STATUS: done", output="STATUS: done\nREPO: /x"
    ),
    StepRow("build", agent="developer", status="running", loop=LOOP, current_story="S-2"),
    StepRow("verify"),
)
STORIES = (StoryRow("S-1", status="done", output="CHANGES: all"), StoryRow("S-2", status="running"))


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def _run(yard: Farmyard, run_id: str) -> Run:
    reader = DatabaseReader(yard.database)
    rows = reader.tally()
    reader.close()
    return next(run for run in rows.runs if run.id == run_id)


def _detail(yard: Farmyard, run_id: str, agents: dict[str, Agent] | None = None) -> RunDetail:
    return read_detail(yard.paths, _run(yard, run_id), agents or {}, NOW)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("status", ["running", "completed"])
def test_long_texts_of_active_and_ended_runs_in_every_schema(
    tmp_path: Path, version: str, status: str
) -> None:
    yard = Farmyard(tmp_path, schema=version)
    yard.add_run("other", steps=STEPS)
    run_id = yard.add_run(
        "relay", "Do it", status=status, context={"repo": "/x", "n": 1}, steps=STEPS, stories=STORIES
    )
    yard.add_run("other", steps=STEPS)
    yard.add_events({"event": "run.started", "runId": run_id}, {"event": "run.started", "runId": "other"})
    detail = _detail(yard, run_id)
    assert detail.run.status == status
    assert [step.name for step in detail.run.steps] == ["plan", "build", "verify"]
    assert [story.story_id for story in detail.run.stories] == ["S-1", "S-2"]
    assert detail.context == {"task": "Do it", "repo": "/x", "n": 1}
    assert detail.context_error is None
    assert detail.step_texts[yard.step_id(run_id, "plan")] == StepText(
        "Plan {{task}}", "STATUS: done", "STATUS: done\nREPO: /x"
    )
    assert detail.step_texts[yard.step_id(run_id, "verify")].output is None
    assert detail.story_outputs == {
        yard.story_id(run_id, "S-1"): "CHANGES: all",
        yard.story_id(run_id, "S-2"): None,
    }
    assert [event.event for event in detail.events] == ["run.started"]
    assert detail.read_at == NOW


def test_it_is_read_as_it_is_now_not_as_it_was(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=STEPS, stories=STORIES)
    run = _run(yard, run_id)
    yard.execute(
        "UPDATE steps SET status = 'done', output = 'late' WHERE id = ?", yard.step_id(run_id, "build")
    )
    yard.execute("UPDATE runs SET status = 'failed'")
    detail = read_detail(yard.paths, run, {}, NOW)
    assert detail.run.status == "failed"
    assert detail.run.steps[1].status == "done"
    assert detail.step_texts[yard.step_id(run_id, "build")].output == "late"


def test_steps_that_lie_elsewhere_than_their_run_are_found(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", status="completed", steps=STEPS)
    other = yard.add_run("relay", status="completed", steps=STEPS)
    yard.execute("UPDATE steps SET run_id = ? WHERE run_id = ? AND step_index = 2", run_id, other)
    yard.execute("UPDATE steps SET step_index = 3 WHERE run_id = ? AND rowid = 6", run_id)
    assert len(_detail(yard, run_id).run.steps) == 4


def test_a_text_of_ten_megabytes(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=[StepRow("plan", output="x" * 10_000_000)])
    (texts,) = _detail(yard, run_id).step_texts.values()
    assert texts.output == "x" * 10_000_000


def test_bad_utf8_and_blobs_in_long_texts(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=[StepRow("plan")])
    yard.execute("UPDATE steps SET output = CAST(x'61ff' AS TEXT), expects = x'62fe', input_template = 5")
    (texts,) = _detail(yard, run_id).step_texts.values()
    bad = "\N{REPLACEMENT CHARACTER}"
    assert texts == StepText("5", f"b{bad}", f"a{bad}")


@pytest.mark.parametrize("text", ["", "  ", "{", "[1]", "7", "null", "[" * 100_000])
def test_a_context_that_is_no_object_is_told_in_one_line(yard: Farmyard, text: str) -> None:
    run_id = yard.add_run("relay", context=text, steps=STEPS)
    detail = _detail(yard, run_id)
    assert detail.context == {}
    assert detail.context_error is not None
    assert "\n" not in detail.context_error
    assert len(detail.run.steps) == 3


def test_context_values_keep_their_types() -> None:
    context, error = parse_context('{"port": 8080, "ok": true, "none": null, "nested": {"a": [1]}, "ü": "ö"}')
    assert error is None
    assert context == {"port": 8080, "ok": True, "none": None, "nested": {"a": [1]}, "ü": "ö"}


def test_a_run_that_is_gone_and_a_database_that_is(yard: Farmyard) -> None:
    run_id = yard.add_run("relay")
    run = _run(yard, run_id)
    yard.execute("DELETE FROM runs")
    with pytest.raises(NoSuchRun):
        read_detail(yard.paths, run, {}, NOW)
    yard.database.unlink()
    with pytest.raises(Unreadable, match="no database"):
        read_detail(yard.paths, run, {}, NOW)


def test_an_event_log_that_cannot_be_read_leaves_the_rest(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    yard.events.mkdir()
    detail = _detail(yard, run_id)
    assert detail.events == ()
    assert len(detail.step_texts) == 3


# ---------------------------------------------------------------- progress


def _agent(yard: Farmyard, agent_id: str = "relay_developer") -> dict[str, Agent]:
    return {agent_id: Agent(agent_id, None, str(yard.workspace("relay", "developer")))}


@pytest.mark.parametrize("agent_id", ["relay_developer", "relay-developer", "relay/developer"])
def test_progress_is_in_the_workspace_of_the_first_loops_agent(yard: Farmyard, agent_id: str) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    (yard.workspace("relay", "developer") / f"progress-{run_id}.txt").write_text("S-1 done")
    detail = _detail(yard, run_id, _agent(yard, agent_id))
    assert detail.progress is not None
    assert (detail.progress.text, detail.progress_error) == ("S-1 done", None)


def test_a_run_without_a_loop_has_no_progress_file(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=[StepRow("build", agent="developer")])
    (yard.workspace("relay", "developer") / f"progress-{run_id}.txt").write_text("x")
    detail = _detail(yard, run_id, _agent(yard))
    assert (detail.progress, detail.progress_error) == (None, None)


def test_why_there_is_no_progress_is_told(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    assert "no workspace is known for agent relay_developer" in (_detail(yard, run_id).progress_error or "")
    detail = _detail(yard, run_id, _agent(yard))
    assert (detail.progress, detail.progress_error) == (None, None)
    (yard.workspace("relay", "developer") / f"progress-{run_id}.txt").symlink_to("/etc/passwd")
    detail = _detail(yard, run_id, _agent(yard))
    assert detail.progress is None
    assert "is a link" in (detail.progress_error or "")


@pytest.mark.parametrize(
    ("base_dir", "folder"), [(None, "agents/developer"), ("rooms/dev", "rooms/dev"), ("../../other", None)]
)
def test_a_workspace_that_the_config_does_not_tell_is_where_antfarm_makes_it(
    yard: Farmyard, base_dir: str | None, folder: str | None
) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    agent = "- id: developer" + (f"\n    workspace: {{baseDir: {base_dir}}}" if base_dir else "")
    workflow = parse_workflow(f"agents:\n  {agent}\nsteps: []\n", Path("workflow.yml"), "relay")
    workspace = yard.state_dir / "workspaces" / "workflows" / "relay" / (folder or str(base_dir))
    workspace.mkdir(parents=True)
    (workspace / f"progress-{run_id}.txt").write_text("S-1 done")
    detail = read_detail(yard.paths, _run(yard, run_id), {}, NOW, workflow)
    if folder is None:
        assert detail.progress is None
        assert "no workspace is known" in (detail.progress_error or "")
    else:
        assert detail.progress is not None
        assert detail.progress.text == "S-1 done"


def test_a_hostile_run_id_reads_nothing_elsewhere(yard: Farmyard) -> None:
    run_id = yard.add_run("relay", steps=STEPS, run_id="../../../../../../secret")
    detail = _detail(yard, run_id, _agent(yard))
    assert detail.progress is None
    assert "no file name" in (detail.progress_error or "")


def test_an_agent_of_another_workflow_is_not_taken_for_it() -> None:
    agents = {"relay-x_dev": Agent("relay-x_dev", None, None), "meadow_dev": Agent("meadow_dev", None, None)}
    assert agent_of("relay_dev", "relay", agents) is None
    assert agent_of("relay-x/dev", "relay-x", agents) is agents["relay-x_dev"]


def test_the_boxes_progress_and_big_output(box: Box) -> None:
    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)
    reader = DatabaseReader(box.database)
    runs = {run.id: run for run in reader.tally().runs}
    reader.close()
    agents = {
        f"{folder.parent.parent.name}_{folder.name}": Agent(folder.name, None, str(folder))
        for folder in (box.state_dir / "workspaces" / "workflows").glob("*/agents/*")
    }
    now = parse_time(box.snapshot["taken_at"]) or NOW
    with_progress = next(s for s in box.snapshot["situations"].values() if "progress_file" in s)
    detail = read_detail(paths, runs[with_progress["run_id"]], agents, now)
    assert detail.progress is not None
    assert detail.progress.path == str(box.home / with_progress["progress_file"])
    assert detail.progress.text.count("\n") >= 39
    big = box.situation("big-output")
    detail = read_detail(paths, runs[big["run_id"]], agents, now)
    assert len((detail.step_texts[big["step_id"]].output or "").encode()) > 190_000
    assert detail.events
