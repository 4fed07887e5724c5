"""Giving a failed run back to its agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from farmtui.antfarm.rendering import resolve
from farmtui.openclaw.kept import KeptJobs
from farmtui.operations.plan import OutcomeStatus, Refused
from farmtui.state import CronSource
from tests.farms import Farmyard, StepRow, StoryRow
from tests.operations.kit import LOOP, ListedCrons, cells, change, desk_on, job

ORCHARD_CRONS = ("planner", "grower", "taster", "packer")


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


@pytest.fixture
def crons() -> ListedCrons:
    """The crons of both workflows are there."""
    return ListedCrons(
        [job("relay", agent) for agent in ("scout", "builder", "closer")]
        + [job("orchard", agent) for agent in ORCHARD_CRONS]
    )


def context(yard: Farmyard, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(yard.row("runs", run)["context"])
    return found


def single(yard: Farmyard, **more: Any) -> str:
    step = StepRow(
        "build",
        "builder",
        "failed",
        output="tests fail: 3 of 14",
        retry_count=2,
        abandoned_count=3,
        input="Build in {{repo}}. {{verify_feedback}}",
    )
    values: dict[str, Any] = {"status": "failed", "number": 9, "context": {"repo": "/srv/app"}, **more}
    steps = [StepRow("scout", status="done"), step, StepRow("close", "closer")]
    return yard.add_run("relay", steps=steps, **values)


def exhausted(yard: Farmyard) -> str:
    """The verifier refused S-2 three times: loop failed, verify step waiting, its last word in its output."""
    return yard.add_run(
        "orchard",
        status="failed",
        context={"verify_feedback": "bad 1", "issues": "bad 2", "status": "retry"},
        steps=[
            StepRow("plan", "planner", "done"),
            StepRow(
                "grow", "grower", "failed", loop=LOOP, output="CHANGES: try 2", input="{{current_story}}"
            ),
            StepRow("verify", "taster", output="STATUS: retry\nISSUES: bad 2\nand worse"),
            StepRow("pack", "packer"),
        ],
        stories=[
            StoryRow("S-1", status="done", output="CHANGES: one"),
            StoryRow("S-2", status="failed", retry_count=3, output="CHANGES: try 2"),
            StoryRow("S-3"),
        ],
    )


def gave_up(
    yard: Farmyard, *, loop: str = "running", story: str | None = None, verify: str = "failed"
) -> str:
    """The verifier used `step fail` until its retries were used up: its loop was left running."""
    return yard.add_run(
        "orchard",
        status="failed",
        steps=[
            StepRow("plan", "planner", "done"),
            StepRow("grow", "grower", loop, loop=LOOP, current_story=story),
            StepRow("verify", "taster", verify, retry_count=3, output="no browser here", input="Check it"),
            StepRow("pack", "packer"),
        ],
        stories=[
            StoryRow("S-1", status="done", output="CHANGES: one"),
            StoryRow("S-2", status="running" if story else "pending"),
        ],
    )


def statuses(yard: Farmyard, run: str) -> list[str]:
    found = yard.execute("SELECT status FROM steps WHERE run_id = ? ORDER BY step_index", run)
    return [status for (status,) in found]


def stories(yard: Farmyard, run: str) -> list[tuple[str, int]]:
    return yard.execute(  # type: ignore[return-value]
        "SELECT status, retry_count FROM stories WHERE run_id = ? ORDER BY story_index", run
    )


def test_a_failed_step_goes_back_with_all_its_counters(yard: Farmyard, crons: ListedCrons) -> None:
    run = single(yard)
    desk = desk_on(yard.paths, crons)
    outcome = desk.apply(desk.retry(run))
    assert outcome.status is OutcomeStatus.APPLIED
    build = yard.step_id(run, "build")
    assert cells(yard, "steps", build, "status", "retry_count", "abandoned_count") == ("pending", 0, 0)
    assert cells(yard, "runs", run, "status") == ("running",)
    assert statuses(yard, run) == ["done", "pending", "waiting"]
    assert not yard.events.exists()  # Antfarm logs no resume either
    # The reason it failed with reaches the next try; its own output stays to be looked at.
    assert context(yard, run) == {
        "task": "Do something",
        "repo": "/srv/app",
        "verify_feedback": "tests fail: 3 of 14",
    }
    assert cells(yard, "steps", build, "output") == ("tests fail: 3 of 14",)


def test_the_last_feedback_is_the_verifiers_last_word(yard: Farmyard, crons: ListedCrons) -> None:
    run = exhausted(yard)
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert context(yard, run)["verify_feedback"] == "bad 2\nand worse"
    assert statuses(yard, run) == ["done", "pending", "waiting", "waiting"]
    assert stories(yard, run) == [("done", 0), ("pending", 0), ("pending", 0)]


def test_without_issues_the_whole_verdict_is_the_feedback(yard: Farmyard, crons: ListedCrons) -> None:
    run = exhausted(yard)
    yard.execute("UPDATE steps SET output = 'STATUS: retry' || char(10) || 'no' WHERE step_id = 'verify'")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert context(yard, run)["verify_feedback"] == "STATUS: retry\nno"


def test_a_loop_whose_agent_gave_up_hands_on_the_reason_not_an_old_verdict(
    yard: Farmyard, crons: ListedCrons
) -> None:
    run = exhausted(yard)
    yard.execute("UPDATE steps SET output = 'cannot build' WHERE step_id = 'grow'")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert context(yard, run)["verify_feedback"] == "cannot build"


@pytest.mark.parametrize("verify", ["waiting", "pending", "running"])
@pytest.mark.parametrize(
    ("loop", "story", "verdict", "feedback"),
    [
        (None, "CHANGES: try 2", "STATUS: retry\nISSUES: bad 2", "bad 2"),
        ("STATUS: done\nCHANGES: it", None, "STATUS: retry\nISSUES: bad 2", "bad 2"),
        ("CHANGES: try 2", "CHANGES: try 2", None, "bad of the context"),
    ],
)
def test_verify_exhaustion_whatever_else_the_rows_hold(
    yard: Farmyard,
    crons: ListedCrons,
    verify: str,
    loop: str | None,
    story: str | None,
    verdict: str | None,
    feedback: str,
) -> None:
    run = exhausted(yard)
    yard.execute("UPDATE steps SET output = ? WHERE step_id = 'grow'", loop)
    yard.execute("UPDATE steps SET output = ?, status = ? WHERE step_id = 'verify'", verdict, verify)
    yard.execute("UPDATE stories SET output = ? WHERE story_id = 'S-2'", story)
    yard.execute("UPDATE runs SET context = json_set(context, '$.issues', 'bad of the context')")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run, "look at the logs"))
    assert statuses(yard, run) == ["done", "pending", "waiting", "waiting"]
    assert stories(yard, run) == [("done", 0), ("pending", 0), ("pending", 0)]
    assert context(yard, run)["verify_feedback"] == feedback
    assert "{{operator_guidance}}" in yard.row("steps", yard.step_id(run, "grow"))["input_template"]


def test_what_was_said_of_another_step_is_not_a_loops_feedback(yard: Farmyard, crons: ListedCrons) -> None:
    run = yard.add_run(
        "orchard",
        status="failed",
        steps=[
            StepRow("plan", "planner", "failed", output="no such repository", input="Plan {{task}}"),
            StepRow("grow", "grower", loop=LOOP, input="{{current_story}} {{verify_feedback}}"),
        ],
    )
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run)
    desk.apply(plan)
    assert "verify_feedback" not in context(yard, run)
    assert any("grow would take it as its own" in note for note in plan.notes)


def test_every_failed_story_goes_back(yard: Farmyard, crons: ListedCrons) -> None:
    """Antfarm's resume takes the first only, and the loop fails at its end by the others."""
    run = exhausted(yard)
    yard.execute("UPDATE stories SET status = 'failed', retry_count = 3 WHERE story_id = 'S-3'")
    yard.execute("UPDATE stories SET status = 'running', retry_count = 1 WHERE story_id = 'S-1'")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    # A story left running is free again, its own tries untouched.
    assert stories(yard, run) == [("pending", 1), ("pending", 0), ("pending", 0)]


@pytest.mark.parametrize("loop", ["running", "pending", "failed"])
def test_a_verifier_that_gave_up_is_asked_again_so_that_no_story_is_lost(
    yard: Farmyard, crons: ListedCrons, loop: str
) -> None:
    run = gave_up(yard, loop=loop)
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run, "use the headless one")
    assert plan.step == "verify"
    desk.apply(plan)
    # As Antfarm leaves it when a story is done: the loop running without one, the verify step pending.
    assert statuses(yard, run) == ["done", "running", "pending", "waiting"]
    assert cells(yard, "steps", yard.step_id(run, "grow"), "current_story_id") == (None,)
    assert cells(yard, "steps", yard.step_id(run, "verify"), "retry_count") == (0,)
    assert stories(yard, run) == [("done", 0), ("pending", 0)]
    assert any("asked again about the story" in note for note in plan.notes)
    assert any("taster reads the guidance" in note for note in plan.notes)


def test_it_gives_the_loop_that_waits_a_new_time(yard: Farmyard, crons: ListedCrons) -> None:
    """Antfarm's medic resets a loop that has not moved for long, though it only waits."""
    run = gave_up(yard)
    grow = yard.step_id(run, "grow")
    before = cells(yard, "steps", grow, "updated_at")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert cells(yard, "steps", grow, "updated_at") != before


def test_a_story_in_hand_while_another_waits_to_be_verified_goes_back(
    yard: Farmyard, crons: ListedCrons
) -> None:
    run = gave_up(yard, story="S-2")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert statuses(yard, run) == ["done", "running", "pending", "waiting"]
    assert stories(yard, run) == [("done", 0), ("pending", 0)]
    assert cells(yard, "steps", yard.step_id(run, "grow"), "current_story_id") == (None,)


def test_a_verifier_with_nothing_to_verify_waits_for_the_loop(yard: Farmyard, crons: ListedCrons) -> None:
    run = gave_up(yard)
    yard.execute("UPDATE stories SET status = 'failed' WHERE story_id = 'S-1'")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert statuses(yard, run) == ["done", "pending", "waiting", "waiting"]
    assert stories(yard, run) == [("pending", 0), ("pending", 0)]


def test_a_verify_step_after_its_loop_is_done_is_a_step_like_others(
    yard: Farmyard, crons: ListedCrons
) -> None:
    run = gave_up(yard, loop="done")
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert statuses(yard, run) == ["done", "done", "pending", "waiting"]


def test_a_run_that_never_started_just_runs(yard: Farmyard, crons: ListedCrons) -> None:
    run = yard.add_run(
        "relay", status="failed", steps=[StepRow("scout", status="pending"), StepRow("build", "builder")]
    )
    before = yard.row("steps", yard.step_id(run, "scout"))
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run)
    assert "never started" in plan.reason
    desk.apply(plan)
    assert cells(yard, "runs", run, "status") == ("running",)
    assert yard.row("steps", yard.step_id(run, "scout")) == before


def test_other_steps_that_failed_or_were_active_wait_their_turn(yard: Farmyard, crons: ListedCrons) -> None:
    run = single(yard)
    yard.execute("UPDATE steps SET status = 'pending' WHERE step_id = 'close'")
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run)
    desk.apply(plan)
    assert statuses(yard, run) == ["done", "pending", "waiting"]
    assert any("close was pending as well" in note for note in plan.notes)


@pytest.mark.parametrize("status", ["running", "completed", "cancelled", "paused"])
def test_only_failed_runs_are_given_back(yard: Farmyard, crons: ListedCrons, status: str) -> None:
    run = single(yard, status=status)
    with pytest.raises(Refused, match=f"is {status}: only a failed run"):
        desk_on(yard.paths, crons).retry(run)


def test_a_run_with_nothing_left_is_refused(yard: Farmyard, crons: ListedCrons) -> None:
    run = yard.add_run("relay", status="failed", steps=[StepRow("scout", status="done")])
    with pytest.raises(Refused, match="every step of #1 is done"):
        desk_on(yard.paths, crons).retry(run)


# ---------------------------------------------------------------- guidance


def test_guidance_reaches_the_agent_through_its_input(yard: Farmyard, crons: ListedCrons) -> None:
    run = single(yard)
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run, "  Mock the {{task}} clock\r\nand é 👩‍🚒\x00\x1b[31m  ")
    assert any("builder reads the guidance when it claims build" in note for note in plan.notes)
    desk.apply(plan)
    template = yard.row("steps", yard.step_id(run, "build"))["input_template"]
    shown = resolve(template, context(yard, run))
    assert shown.missing == ()
    # In one pass: what looks like a key in it stays text.
    assert shown.text == (
        "Build in /srv/app. tests fail: 3 of 14\nOperator guidance: Mock the {{task}} clock\nand é 👩‍🚒[31m"
    )


def test_a_later_guidance_replaces_the_earlier_and_adds_no_second_line(
    yard: Farmyard, crons: ListedCrons
) -> None:
    run = single(yard)
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run, "first"))
    yard.execute("UPDATE runs SET status = 'failed' WHERE id = ?", run)
    yard.execute("UPDATE steps SET status = 'failed' WHERE step_id = 'build'")
    plan = desk.retry(run, "second")
    assert any("takes the place of the guidance given before" in note for note in plan.notes)
    desk.apply(plan)
    template = yard.row("steps", yard.step_id(run, "build"))["input_template"]
    assert template.count("operator_guidance") == 1
    assert context(yard, run)["operator_guidance"] == "second"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("Build", "Build\nOperator guidance: {{operator_guidance}}"),
        ("Build\n", "Build\nOperator guidance: {{operator_guidance}}\n"),
        ("", "Operator guidance: {{operator_guidance}}"),
    ],
)
def test_the_guidance_is_one_line_of_the_input(
    yard: Farmyard, crons: ListedCrons, template: str, expected: str
) -> None:
    run = single(yard)
    yard.execute("UPDATE steps SET input_template = ? WHERE step_id = 'build'", template)
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run, "hello"))
    build = yard.step_id(run, "build")
    assert cells(yard, "steps", build, "input_template") == (expected,)
    desk.apply(desk.undo())
    assert cells(yard, "steps", build, "input_template") == (template,)


def test_the_plan_says_everybody_who_will_read_it(yard: Farmyard, crons: ListedCrons) -> None:
    run = exhausted(yard)
    yard.execute(
        "UPDATE steps SET input_template = '{{operator_guidance}}' WHERE step_id IN ('plan', 'pack')"
    )
    notes = desk_on(yard.paths, crons).retry(run, "mind the gap").notes
    readers = [note for note in notes if " reads " in note]
    assert readers == [
        "grower reads the guidance when it claims grow, and with each story after it",
        "packer reads it too when it claims pack, whose input names it already",
    ]


def test_a_template_that_names_the_key_itself_is_left_as_it_is(yard: Farmyard, crons: ListedCrons) -> None:
    run = single(yard)
    yard.execute("UPDATE steps SET input_template = 'Heed {{OPERATOR_GUIDANCE}}' WHERE step_id = 'build'")
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run, "this")
    assert change(plan, "steps", yard.step_id(run, "build"), "input_template") is None
    desk.apply(plan)
    assert resolve("Heed {{OPERATOR_GUIDANCE}}", context(yard, run)).text == "Heed this"


@pytest.mark.parametrize("guidance", [None, "", "  \n "])
def test_without_guidance_no_line_is_added(yard: Farmyard, crons: ListedCrons, guidance: str | None) -> None:
    run = single(yard)
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run, guidance))
    assert "operator_guidance" not in context(yard, run)
    assert "guidance" not in yard.row("steps", yard.step_id(run, "build"))["input_template"]


@pytest.mark.parametrize("cell", ["not json", "[1]", "", '{"half": '])
def test_a_context_that_is_no_object_takes_no_guidance_but_the_run_may_go(
    yard: Farmyard, crons: ListedCrons, cell: str
) -> None:
    run = single(yard, context=cell)
    desk = desk_on(yard.paths, crons)
    with pytest.raises(Refused, match="no JSON object"):
        desk.retry(run, "hello")
    plan = desk.retry(run)
    assert any("last feedback is not put into it" in note for note in plan.notes)
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    assert cells(yard, "runs", run, "context", "status") == (cell, "running")


def test_guidance_without_end_is_refused(yard: Farmyard, crons: ListedCrons) -> None:
    with pytest.raises(Refused, match="20001 characters"):
        desk_on(yard.paths, crons).retry(single(yard), "x" * 20_001)


def test_secrets_of_the_context_stay_out_of_the_journal(yard: Farmyard, crons: ListedCrons) -> None:
    run = single(
        yard, context={"API_KEY": "k3y-of-gold", "repo": "/srv/app"}, notify_url="https://x/#auth=s3c"
    )
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run, "hello"))
    desk.apply(desk.undo())
    journal = (yard.state_dir / "farm" / "journal.jsonl").read_text()
    assert "k3y-of-gold" not in journal
    assert "s3c" not in journal
    assert "hello" in journal


# ---------------------------------------------------------------- crons


def test_missing_crons_are_made_from_the_kept_definitions(yard: Farmyard) -> None:
    run = single(yard)
    kept = KeptJobs(yard.paths.farm_dir)
    seen = ListedCrons([job("relay", agent) for agent in ("scout", "builder", "closer")], kept)
    seen.jobs[1] = job("relay", "builder", enabled=False) | {
        "payload": {"kind": "agentTurn", "message": 'Own prompt "relay_builder"', "timeoutSeconds": 99}
    }
    seen.list()
    crons = ListedCrons(kept=kept)
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run)
    # Of finished steps too, as Antfarm's resume does: with any listed, its next run would begin without.
    all_three = ["antfarm/relay/builder", "antfarm/relay/closer", "antfarm/relay/scout"]
    assert sorted(call.name for call in plan.crons) == all_three
    assert "builder's new cron polls every 5m" in plan.notes
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.APPLIED
    assert crons.names() == all_three
    made = next(one for one in crons.jobs if one["name"] == "antfarm/relay/builder")
    assert made["payload"]["message"] == 'Own prompt "relay_builder"'
    assert made["enabled"] is True
    assert {each["name"] for each in outcome.after["crons"]} == set(crons.names())


@pytest.mark.parametrize("where", ["listed", "kept"])
def test_else_from_a_sibling_of_the_workflow(yard: Farmyard, where: str) -> None:
    run = single(yard)
    kept = KeptJobs(yard.paths.farm_dir)
    crons = ListedCrons([job("relay", "scout")], kept)
    if where == "kept":
        crons.list()
        crons.jobs.clear()
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    made = {one["name"]: one for one in crons.jobs}
    builder = made["antfarm/relay/builder"]
    assert builder["agentId"] == "relay_builder"
    assert builder["payload"]["message"] == 'Run: antfarm step peek "relay_builder"'
    assert "antfarm/relay/closer" in made


def test_with_neither_it_is_refused_and_says_what_to_do(yard: Farmyard) -> None:
    run = single(yard)
    desk = desk_on(yard.paths, ListedCrons([job("orchard", "planner")]))
    with pytest.raises(
        Refused, match=r"crons of builder, closer are missing.*--without-crons.*ensure-crons relay"
    ):
        desk.retry(run)
    plan = desk.retry(run, without_crons=True)
    assert plan.crons == ()
    assert any("builder, closer are missing" in note for note in plan.notes)
    assert desk.apply(plan).status is OutcomeStatus.APPLIED


@pytest.mark.parametrize("source", [CronSource.NONE, CronSource.STORE])
def test_with_the_gateway_away_it_is_refused_where_crons_may_be_missing(
    yard: Farmyard, source: CronSource
) -> None:
    run = single(yard)
    crons = ListedCrons([job("relay", "builder")])
    crons.source, crons.note = source, "gateway down"
    desk = desk_on(yard.paths, crons)
    with pytest.raises(Refused, match=r"gateway down.*--without-crons"):
        desk.retry(run)
    assert desk.apply(desk.retry(run, without_crons=True)).status is OutcomeStatus.APPLIED


def test_a_cron_that_cannot_be_made_makes_it_partial_and_says_why(yard: Farmyard) -> None:
    from farmtui.openclaw.crons import CronError

    run = single(yard)
    crons = ListedCrons([job("relay", "builder")])
    crons.refuses["antfarm/relay/closer"] = CronError("no such agent: relay_closer")
    desk = desk_on(yard.paths, crons)
    outcome = desk.apply(desk.retry(run))
    assert outcome.status is OutcomeStatus.PARTIAL
    assert outcome.problems == ("antfarm/relay/closer was not created: no such agent: relay_closer",)
    assert cells(yard, "runs", run, "status") == ("running",)


def test_a_cron_that_came_meanwhile_is_not_made_twice(yard: Farmyard) -> None:
    run = single(yard)
    crons = ListedCrons([job("relay", "builder")])
    desk = desk_on(yard.paths, crons)
    plan = desk.retry(run)
    crons.jobs.append(job("relay", "closer", "from-antfarm"))
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.APPLIED
    assert crons.names() == ["antfarm/relay/builder", "antfarm/relay/closer", "antfarm/relay/scout"]
    # What it did not make it does not take away again.
    desk.apply(desk.undo())
    assert "from-antfarm" in {one["id"] for one in crons.jobs}


def test_a_database_named_apart_from_the_gateway_gets_no_crons(yard: Farmyard, tmp_path: Path) -> None:
    from dataclasses import replace

    run = single(yard)
    desk = desk_on(replace(yard.paths, split=True), ListedCrons([job("relay", "builder")]))
    with pytest.raises(Refused, match=r"named by --db.*--without-crons"):
        desk.retry(run)


@pytest.mark.parametrize("schema", ["0.1", "0.2.0", "0.3.0", "fork"])
def test_older_and_forked_schemas(tmp_path: Path, schema: str) -> None:
    yard = Farmyard(tmp_path, schema=schema)
    run = single(yard)
    crons = ListedCrons([job("relay", agent) for agent in ("scout", "builder", "closer")])
    desk = desk_on(yard.paths, crons)
    before = yard.dump()
    assert desk.apply(desk.retry(run, "hi")).status is OutcomeStatus.APPLIED
    assert statuses(yard, run) == ["done", "pending", "waiting"]
    desk.apply(desk.undo())
    assert yard.dump() == before
