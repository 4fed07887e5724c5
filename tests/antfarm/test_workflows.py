"""workflow.yml as people write it, and folders that hold anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farmtui.antfarm.workflows import WorkflowFolder, parse_workflow, read_workflows, short_agent
from farmtui.state import StepSpec, Workflow
from tests.boxes import Box

RELAY = """
id: relay
name: Relay
version: 1.5
agents:
  - {id: scout, role: analysis, timeoutSeconds: 1200, workspace: {baseDir: agents/scout}}
  - {id: builder}
steps:
  - id: scout
    agent: scout
    input: "Look into {{task}}"
    expects: "STATUS: done"
    max_retries: 3
    on_fail: {escalate_to: human}
  - id: build_it
    agent: builder
    type: loop
    loop: {over: stories, completion: all_done, verify_each: true, verify_step: verify}
    input: Build
  - id: verify
    agent: scout
    on_fail: {retry_step: build_it, max_retries: 4, on_exhausted: {escalate_to: human}}
cron: {interval_ms: 120000}
context: {repo: /srv/app, port: 8080}
"""


def parse(text: str) -> Workflow:
    return parse_workflow(text, "/w/relay/workflow.yml", "folder")


def step(body: str) -> StepSpec:
    """One step with these lines."""
    (found,) = parse(f"steps:\n  - id: one\n    agent: a\n    {body}\n").steps
    return found


# ---------------------------------------------------------------- one file


def test_a_whole_workflow() -> None:
    relay = parse(RELAY)
    assert (relay.id, relay.name, relay.error, relay.cron_interval_ms) == ("relay", "Relay", None, 120_000)
    assert relay.context_keys == ("repo", "port")
    scout, builder = relay.agents
    assert (scout.id, scout.role, scout.timeout_s, scout.base_dir) == (
        "scout",
        "analysis",
        1200,
        "agents/scout",
    )
    assert (builder.role, builder.timeout_s) == (None, None)
    first, loop, verify = relay.steps
    assert (first.agent, first.type, first.input, first.expects, first.max_retries) == (
        "scout",
        "single",
        "Look into {{task}}",
        "STATUS: done",
        3,
    )
    assert (loop.type, loop.verify_each, loop.verify_step, loop.expects) == ("loop", True, "verify", None)
    assert (verify.max_retries, verify.escalates) == (4, True)


@pytest.mark.parametrize(
    "agents", ["", "agents: []", "agents:", "agents: none", "agents: [3, [], {role: x}]"]
)
def test_agents_may_be_absent_or_odd(agents: str) -> None:
    found = parse(f"{agents}\nsteps:\n  - {{id: a, agent: b}}\n")
    assert (found.id, found.name, found.agents, found.error) == ("folder", "folder", (), None)
    assert [each.id for each in found.steps] == ["a"]


@pytest.mark.parametrize(
    ("on_fail", "escalates", "policy"),
    [
        ("on_fail: {escalate_to: human}", True, "escalate_to: human"),
        ("on_fail: {escalate_to: Human}", True, "escalate_to: human"),
        (
            "on_fail: {retry_step: build, max_retries: 2, on_exhausted: {escalate_to: human}}",
            True,
            "on_exhausted: escalate_to human",
        ),
        (
            "on_fail: {retry_step: b, on_exhausted: escalate_to_human}",
            True,
            "on_exhausted: escalate_to human",
        ),
        ("on_fail: escalate_to_human", True, "on_fail: escalate_to_human"),
        ("on_fail: {retry_step: build, max_retries: 2}", False, "retry_step: build"),
        ("on_fail: {escalate_to: planner}", False, "escalate_to: planner"),
        ("on_fail: stop", False, "on_fail: stop"),
        ("on_fail:", False, ""),
        ("on_fail: [escalate_to, human]", False, ""),
        ("input: x", False, ""),
    ],
)
def test_the_policy_in_every_spelling(on_fail: str, escalates: bool, policy: str) -> None:
    found = step(on_fail)
    assert (found.escalates, found.policy) == (escalates, policy)


@pytest.mark.parametrize(
    ("lines", "retries"),
    [
        ("max_retries: 5", 5),
        ("retries: 4", 4),
        ("max_retries: 0", 0),
        ("on_fail: {max_retries: 3}", 3),
        ("max_retries: 1\n    on_fail: {max_retries: 3}", 1),
        ("max_retries: -1", None),
        ("max_retries: many", None),
        (f"max_retries: {'9' * 5000}", None),
        ("input: x", None),
    ],
)
def test_retries(lines: str, retries: int | None) -> None:
    assert step(lines).max_retries == retries


def test_expects_may_be_a_list() -> None:
    assert step("expects: [STATUS, REPO]").expects == "STATUS, REPO"
    assert step("expects: []").expects is None
    assert step("expects: 7").expects == "7"


@pytest.mark.parametrize("value", ["0", "-5", "soon", "[1]", "''"])
def test_a_time_out_that_is_none(value: str) -> None:
    found = parse(f"agents:\n  - {{id: a, timeoutSeconds: {value}}}\nsteps: []\n")
    assert found.agents[0].timeout_s is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "- a\n- b",
        "id: [unclosed",
        "id: a\n\tsteps: []",
        "a: &a [*a]\nsteps: *a",
        "steps: {a: b}",
        "id: relay",
        "steps: []\n---\nsteps: []",
        "\x00\x01",
        "[" * 100_000,
        "- " * 100_000,
        "{a: " * 500 + "}" * 500,
        "? [a, b]\n: c",
        "steps: [" + "{id: a}," * 1001 + "]",
    ],
)
def test_what_is_no_workflow_is_told_in_one_line(text: str) -> None:
    found = parse(text)
    assert found.error
    assert "\n" not in found.error
    assert (found.steps, found.agents) == ((), ())


def test_an_unusable_file_keeps_its_id_where_it_has_one() -> None:
    assert parse("id: relay\nsteps: 3").id == "relay"
    assert parse("id: [").id == "folder"


def test_aliases_and_merge_keys_do_not_explode() -> None:
    laughs = ["a0: &a0 {x: [lol, lol, lol]}"]
    laughs += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], y: *a{n - 1}}}" for n in range(1, 40)]
    found = parse("\n".join([*laughs, "steps: [{id: one, agent: b, input: *a39, expects: [*a39]}]"]))
    assert found.error is None
    assert (found.steps[0].id, found.steps[0].input) == ("one", "")


def test_tags_construct_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = f"steps: [{{id: a, agent: b, input: !!python/object/apply:os.mkdir ['{made}']}}]"
    assert parse(text).steps[0].input == ""
    assert not made.exists()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_a_workflow_or_an_error(text: str) -> None:
    assert isinstance(parse(text), Workflow)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "agent", "on_fail", "loop", "escalate_to", "on_exhausted", "expects", "cron"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(values, values, values)
def test_wrong_types_anywhere_do_no_harm(agents: object, steps: object, rest: object) -> None:
    text = json.dumps({"agents": agents, "steps": steps, "cron": rest, "context": rest, "id": rest})
    found = parse(text)
    assert found.id
    assert all(each.id for each in (*found.steps, *found.agents))


# ---------------------------------------------------------------- agents' names


@pytest.mark.parametrize("agent_id", ["feature-dev_tester", "feature-dev-tester", "feature-dev/tester"])
def test_short_agent(agent_id: str) -> None:
    assert short_agent(agent_id, "feature-dev") == "tester"


@pytest.mark.parametrize("agent_id", ["feature-dev", "feature-dev_", "other_tester", "feature-devtester", ""])
def test_an_agent_id_of_another_form_stays(agent_id: str) -> None:
    assert short_agent(agent_id, "feature-dev") == agent_id


# ---------------------------------------------------------------- the folder


def install(top: Path, folder: str, text: str = "steps: [{id: a, agent: b}]\n") -> Path:
    path = top / folder / "workflow.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_an_absent_folder_has_no_workflows(tmp_path: Path) -> None:
    assert read_workflows(tmp_path / "nowhere") == {}


def test_a_file_in_the_folder_s_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "workflows").write_text("")
    with pytest.raises(OSError, match="workflows"):
        read_workflows(tmp_path / "workflows")


def test_what_else_lies_about_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path, "relay")
    install(tmp_path, "groups/web/feature-dev")
    install(tmp_path, "relay.bak", "id: old\nsteps: []\n")
    install(tmp_path, ".git/x", "id: hidden\nsteps: []\n")
    install(tmp_path, "relay/agents/scout", "id: inner\nsteps: []\n")
    (tmp_path / "README.md").write_text("# words")
    (tmp_path / "relay" / "workflow.yml.bak").write_text("id: backup\nsteps: []\n")
    (tmp_path / "empty").mkdir()
    assert set(read_workflows(tmp_path)) == {"relay", "feature-dev"}


def test_one_bad_file_stops_no_other(tmp_path: Path) -> None:
    install(tmp_path, "relay")
    install(tmp_path, "broken", "id: [")
    install(tmp_path, "huge", "a: " + "x" * 1024 * 1024)
    (tmp_path / "folder" / "workflow.yml").mkdir(parents=True)
    found = read_workflows(tmp_path)
    assert {name: found[name].error is None for name in found} == {
        "relay": True,
        "broken": False,
        "huge": False,
        "folder": False,
    }
    assert found["huge"].error == "is larger than 1 MiB"


def test_a_pipe_or_a_link_to_nowhere_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "workflow.yml")
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "workflow.yml").symlink_to(tmp_path / "nowhere")
    found = read_workflows(tmp_path)
    assert found["pipe"].error == "is not a regular file"
    assert "cannot be read" in (found["dangling"].error or "")


def test_links_that_go_round_end(tmp_path: Path) -> None:
    install(tmp_path, "relay")
    (tmp_path / "relay" / "again").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    outside = tmp_path.parent / "outside"
    install(outside, "linked")
    (tmp_path / "dev").symlink_to(outside / "linked")
    folder = WorkflowFolder(tmp_path)
    assert set(folder.poll()) == {"relay", "dev"}
    assert folder.shadowed == ()


def test_of_one_id_the_folder_nearest_to_the_top_counts(tmp_path: Path) -> None:
    install(tmp_path, "beta", "id: relay\nname: top\nsteps: []\n")
    install(tmp_path, "alpha/deep", "id: relay\nname: deep\nsteps: []\n")
    folder = WorkflowFolder(tmp_path)
    assert folder.poll()["relay"].name == "top"
    assert len(folder.shadowed) == 1
    assert "alpha/deep/workflow.yml" in folder.shadowed[0]
    install(tmp_path, "relay", "name: own\nsteps: []\n")
    assert folder.poll()["relay"].name == "own"


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    relay, other = install(tmp_path, "relay"), install(tmp_path, "other")
    folder = WorkflowFolder(tmp_path)
    first = folder.poll()
    assert folder.poll() is first
    relay.write_text("name: Changed\nsteps: [{id: a, agent: b}]\n")
    second = folder.poll()
    assert second["relay"].name == "Changed"
    assert second["other"] is first["other"]
    other.unlink()
    assert set(folder.poll()) == {"relay"}


def test_workflows_of_the_boxes(box: Box) -> None:
    found = read_workflows(box.state_dir / "antfarm" / "workflows")
    assert set(found) == {"meadow", "orchard", "relay"}
    assert all(each.error is None and all(one.escalates for one in each.steps) for each in found.values())
    grow = found["orchard"].step("grow")
    assert grow is not None
    assert (grow.verify_each, grow.verify_step) == (True, "taste")
