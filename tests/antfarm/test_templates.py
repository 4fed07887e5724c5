"""Templates as Antfarm renders them, and who gives and needs each key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from farmtui.antfarm.detail import read_detail
from farmtui.antfarm.reader import DatabaseReader
from farmtui.antfarm.rendering import js_text
from farmtui.antfarm.templates import (
    KeyUse,
    awaited_keys,
    key_table,
    missing_keys,
    required_keys,
    resolve,
    step_input,
)
from farmtui.paths import locate
from farmtui.state import Run, RunDetail, Step, StepText, Workflow
from tests.boxes import SHARED, Box
from tests.medic.states import MINUTE, NOW, VERIFIED, run, step, story, workflow

# ---------------------------------------------------------------- rendering


@pytest.mark.parametrize(
    ("template", "keys"),
    [
        ("{{task}} and {{repo}}, {{task}}", ("task", "repo")),
        ("{{steps.plan.REPO}}", ("steps.plan.REPO",)),
        ("{{ task }} {{}} {{a-b}} {{a.}} {{.a}} {task}", ()),
        ("{{größe}} {{名前}} {{a_1}}", ("a_1",)),
        ("{{{task}}}", ("task",)),
        ("{{task}}\n{{Task}}", ("task", "Task")),
    ],
)
def test_required_keys(template: str, keys: tuple[str, ...]) -> None:
    assert required_keys(template) == keys


@pytest.mark.parametrize(
    ("template", "context", "text", "missing"),
    [
        ("{{a}}", {"a": "x"}, "x", ()),
        ("{{A}}", {"a": "x"}, "x", ()),
        ("{{A}}", {"a": "x", "A": "y"}, "y", ()),
        ("{{a}}", {"A": "y"}, "[missing: a]", ("a",)),
        ("{{A.b}}", {"a.b": "x", "a": "no"}, "x", ()),
        ("{{a}}{{b}}{{a}}", {}, "[missing: a][missing: b][missing: a]", ("a", "b")),
        ("{{a}}", {"a": "{{b}}", "b": "never"}, "{{b}}", ()),
        ("{{a}}", {"a": r"\1 \g<0>"}, r"\1 \g<0>", ()),
        ("{{a}} {{b}} {{c}}", {"a": 8080, "b": True, "c": None}, "8080 true null", ()),
        ("{{a}}", {"a": ""}, "", ()),
    ],
)
def test_resolve(template: str, context: Mapping[str, Any], text: str, missing: tuple[str, ...]) -> None:
    resolved = resolve(template, context)
    assert (resolved.text, resolved.missing) == (text, missing)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("0.1", "0.1"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("12345678901234567890", "12345678901234567000"),
        ("9007199254740993", "9007199254740992"),
        ("1" + "0" * 400, "Infinity"),
        ("false", "false"),
        ('[1, null, [2, "a"]]', "1,,2,a"),
        ('{"a": 1}', "[object Object]"),
    ],
)
def test_values_come_out_as_javascript_writes_them(value: str, text: str) -> None:
    assert js_text(json.loads(value)) == text


def test_as_recorded_of_antfarm() -> None:
    path = SHARED / "conformance" / "linear-happy.json"
    if not path.exists():
        pytest.skip("needs shared/conformance, which only the project's own machines have")
    told = [entry for entry in json.loads(path.read_text())["steps"] if entry["op"][0] == "claim"]
    (build,) = (entry for entry in told if entry["op"][1] == "relay_builder" and "input" in entry["result"])
    context = build["state"]["runs"][0]["context"]
    template = "Build in {{repo}} on {{branch}}. Notes: {{notes}}\n"
    assert resolve(template, context).text == build["result"]["input"]


# ---------------------------------------------------------------- one run's keys


def detail(
    of: Run,
    context: Mapping[str, Any] | None = None,
    *,
    templates: Mapping[str, str] | None = None,
    expects: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
    stories: Mapping[str, str] | None = None,
) -> RunDetail:
    """A run as looked at, its texts by step name and story name."""
    texts = {
        each.id: StepText(
            (templates or {}).get(each.name, ""),
            (expects or {}).get(each.name, "STATUS: done"),
            (outputs or {}).get(each.name),
        )
        for each in of.steps
    }
    told = {each.id: (stories or {}).get(each.story_id) for each in of.stories}
    return RunDetail(of, {"task": "Go", **(context or {})}, None, texts, told, (), None, None, NOW)


def named(of: RunDetail, name: str) -> Step:
    return next(each for each in of.run.steps if each.name == name)


def table(of: RunDetail, relay: Workflow | None = None) -> dict[str, KeyUse]:
    return {use.key: use for use in key_table(of, relay)}


TEMPLATES = {
    "plan": "Plan {{task}}. Hand in REPO: and BRANCH:",
    "build": "In {{repo}} on {{branch}}: {{notes}}",
    "close": "Close with {{CHANGES}}",
}


def test_missing_of_a_pending_step_awaited_of_a_waiting_one() -> None:
    pending = detail(
        run(step("plan", "done"), step("build", "pending"), step("close")),
        {"repo": "/r"},
        templates=TEMPLATES,
    )
    assert missing_keys(pending, named(pending, "build")) == ("branch", "notes")
    assert missing_keys(pending, named(pending, "close")) == ()
    assert awaited_keys(pending, named(pending, "close")) == {"CHANGES": "build"}
    assert missing_keys(pending, named(pending, "plan")) == ()
    uses = table(pending)
    assert [use.key for use in key_table(pending, None)] == ["branch", "notes", "changes", "repo", "task"]
    assert (uses["notes"].state, uses["notes"].needed_by, uses["notes"].value) == (
        "missing",
        ("build",),
        None,
    )
    assert (uses["changes"].state, uses["changes"].awaited_from) == ("awaited", "build")
    assert (uses["repo"].state, uses["repo"].needed_by, uses["repo"].value) == ("present", ("build",), "/r")
    assert uses["task"].needed_by == ()


def test_awaited_from_the_step_that_is_asked_for_it_else_the_nearest_before() -> None:
    early = detail(
        run(step("plan", "running"), step("setup"), step("build"), step("close")), templates=TEMPLATES
    )
    assert awaited_keys(early, named(early, "build")) == {"repo": "plan", "branch": "plan", "notes": "setup"}
    asked = detail(
        run(step("plan", "running"), step("setup"), step("build")),
        templates=TEMPLATES,
        expects={"setup": "NOTES: what to know\nMY_REPO: no"},
    )
    assert awaited_keys(asked, named(asked, "build")) == {"repo": "plan", "branch": "plan", "notes": "setup"}
    assert awaited_keys(early, named(early, "plan")) == {}


def test_a_step_that_may_be_claimed_at_any_moment_awaits_nobody() -> None:
    twice = detail(
        run(step("plan", "done"), step("build", "pending"), step("close", "pending")), templates=TEMPLATES
    )
    assert missing_keys(twice, named(twice, "close")) == ("CHANGES",)


def test_nobody_left_to_give_it_is_missing_even_of_a_waiting_step() -> None:
    stuck = detail(run(step("plan", "done"), step("close")), templates=TEMPLATES)
    assert missing_keys(stuck, named(stuck, "close")) == ("CHANGES",)
    assert table(stuck)["changes"].state == "missing"


def test_what_a_claim_or_a_loop_gives_is_not_missing() -> None:
    templates = {
        "plan": "{{task}} in {{run_id}}, {{has_frontend_changes}}",
        "grow": "{{current_story}} {{progress}} {{verify_feedback}} {{repo}}",
        "verify": "{{current_story_id}}: {{changes}}",
        "pack": "{{stories_remaining}} {{progress}}",
    }
    steps = [step("plan", "pending"), step("grow", loop=VERIFIED), step("verify"), step("pack")]
    begun = detail(run(*steps), templates=templates)
    assert all(missing_keys(begun, each) == () for each in begun.run.steps)
    assert awaited_keys(begun, named(begun, "plan")) == {
        "run_id": "its claim",
        "has_frontend_changes": "its claim",
    }
    assert awaited_keys(begun, named(begun, "grow")) == {
        "current_story": "its claim",
        "progress": "its claim",
        "verify_feedback": "its claim",
        "repo": "plan",
    }
    assert awaited_keys(begun, named(begun, "verify")) == {"current_story_id": "grow", "changes": "grow"}
    assert awaited_keys(begun, named(begun, "pack")) == {"stories_remaining": "grow", "progress": "grow"}


def test_what_only_a_loop_gives_is_missing_where_none_came_before() -> None:
    late = detail(
        run(step("grow", "done", loop=VERIFIED), step("verify", "pending")),
        templates={"verify": "{{current_story_id}}"},
    )
    assert missing_keys(late, named(late, "verify")) == ("current_story_id",)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_a_run_that_is_over_needs_nothing(status: str) -> None:
    over = detail(run(step("plan", "done"), step("close", "failed"), status=status), templates=TEMPLATES)
    assert missing_keys(over, named(over, "close")) == ()
    assert [use.key for use in key_table(over, None)] == ["task"]


def test_a_failed_step_may_be_tried_again() -> None:
    failed = detail(run(step("plan", "done"), step("build", "failed"), status="failed"), templates=TEMPLATES)
    assert missing_keys(failed, named(failed, "build")) == ("repo", "branch", "notes")


def test_an_input_with_its_gaps_named() -> None:
    of = detail(
        run(step("plan", "done"), step("build", "pending"), step("close")),
        {"repo": "/r", "branch": "b"},
        templates={**TEMPLATES, "plan": "{{run_id}}"},
    )
    build = step_input(of, named(of, "build"))
    assert (build.text, build.missing) == ("In /r on b: [missing: notes]", ("notes",))
    close = step_input(of, named(of, "close"))
    assert (close.text, close.missing) == ("Close with [awaited from build: CHANGES]", ())
    assert step_input(of, named(of, "plan")).text == of.run.id
    masked = step_input(of, named(of, "build"), {**of.context, "repo": "••••••"})
    assert masked.text.startswith("In ••••••")


# ---------------------------------------------------------------- who gave it


def test_given_by_the_latest_output_with_that_value() -> None:
    of = detail(
        run(
            step("plan", "done", 9 * MINUTE), step("build", "done", 5 * MINUTE), step("close", "done", MINUTE)
        ),
        {"repo": "/r", "status": "done", "branch": "by hand"},
        outputs={
            "plan": "STATUS: done\nREPO: /r\nBRANCH: main",
            "build": "STATUS: retry\nREPO: /r",
            "close": "STATUS: done",
        },
    )
    uses = table(of)
    assert (uses["repo"].given_by, uses["status"].given_by, uses["branch"].given_by) == (
        "build",
        "close",
        "plan",
    )


def test_given_by_an_earlier_output_where_only_that_has_the_value() -> None:
    of = detail(
        run(step("plan", "done", 9 * MINUTE), step("build", "done", MINUTE)),
        {"repo": "/r"},
        outputs={"plan": "REPO: /r", "build": "REPO: /thrown-away"},
    )
    assert table(of)["repo"].given_by == "plan"


def test_given_in_a_loop_by_a_story() -> None:
    loop = step("grow", "running", 2 * MINUTE, loop=VERIFIED)
    of = detail(
        run(
            step("plan", "done", 9 * MINUTE),
            loop,
            step("verify", "pending", 2 * MINUTE),
            stories=[story("S-1", "done", 4 * MINUTE), story("S-2", "done", 2 * MINUTE)],
        ),
        {
            "changes": "two",
            "current_story_id": "S-2",
            "verify_feedback": "typo",
            "run_id": "r",
            "status": "done",
        },
        outputs={"grow": "STATUS: done\nCHANGES: two", "plan": "STATUS: done"},
        stories={"S-1": "CHANGES: one", "S-2": "STATUS: done\nCHANGES: two"},
    )
    uses = table(of)
    assert uses["changes"].given_by == "grow S-2"
    assert uses["current_story_id"].given_by == uses["run_id"].given_by == "grow"
    assert uses["verify_feedback"].given_by == "verify"


def test_given_by_the_run_the_workflow_or_the_operator() -> None:
    of = detail(run(step("plan", "pending")), {"port": 8080, "operator_guidance": "try again", "odd": 1})
    uses = table(of, workflow(context_keys=("port",)))
    assert {key: use.given_by for key, use in uses.items()} == {
        "task": "run",
        "port": "workflow",
        "operator_guidance": "operator",
        "odd": None,
    }
    assert uses["port"].value == "8080"
    assert table(of, workflow(context_keys=("task",)))["task"].given_by == "workflow"


# ---------------------------------------------------------------- the boxes


def test_the_key_that_a_box_s_pending_step_lacks(box: Box) -> None:
    situation = box.situation("missing-key")
    of = looked_at(box, situation["run_id"])
    assert list(missing_keys(of, named(of, situation["step"]))) == situation["missing"]
    assert table(of)["notes"].state == "missing"
    assert table(of)["repo"].given_by == "scout"


def test_a_loop_in_the_middle_lacks_nothing(box: Box) -> None:
    of = looked_at(box, box.situation("loop-middle")["run_id"])
    assert [missing_keys(of, each) for each in of.run.steps] == [()] * 4
    assert table(of)["changes"].given_by == "grow US-002"
    assert table(of)["verified"].given_by == "taste"
    assert table(of)["changes"].needed_by == ("taste", "pack")


def looked_at(box: Box, run_id: str) -> RunDetail:
    """What the Run screen reads of a box's run."""
    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)
    reader = DatabaseReader(paths.database.path)
    try:
        (of,) = (each for each in reader.poll().runs if each.id == run_id)
    finally:
        reader.close()
    return read_detail(paths, of, {}, box.taken_at)
