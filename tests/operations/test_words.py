"""Plans, outcomes and entries in words and as JSON: safe, masked, complete."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from farmtui.operations.plan import Outcome, OutcomeStatus
from farmtui.operations.words import describe, describe_outcome, entry_json, outcome_json, plan_json
from farmtui.text import ascii_json
from tests.farms import MINUTE, Farmyard, StepRow, StoryRow
from tests.operations.kit import LOOP, ListedCrons, desk_on, job


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def test_a_reset_reads_as_it_will_be_done(yard: Farmyard) -> None:
    run = yard.add_run(
        "shop",
        number=214,
        steps=[StepRow("implement", "dev", "running", loop=LOOP, current_story="S-3", age=124 * MINUTE)],
        stories=[StoryRow("S-3", status="running", age=124 * MINUTE)],
    )
    plan = desk_on(yard.paths, ListedCrons([job("shop", "dev")])).reset(run, "implement")
    assert plan.title == "Reset the stale claim of #214 implement"
    assert describe(plan) == (
        ("why", "running 2h 04m without a word; the limit is 35m"),
        ("will", "step implement  status            running → pending"),
        ("will", "step implement  current story     S-3 → none"),
        ("will", "story S-3       status            running → pending"),
        ("will", "story S-3       retries           0 → 1 of 2"),
        ("will", "events          + step.timeout"),
        ("then", "dev's cron polls in 3m"),
        ("undo", "with u, until an agent claims it or anything else of it moves"),
        ("undo", "but the event step.timeout stays in Antfarm's log"),
    )


def test_text_from_outside_is_safe_and_secrets_are_masked(yard: Farmyard) -> None:
    run = yard.add_run(
        "relay",
        status="failed",
        context={"API_KEY": "k3y"},
        steps=[StepRow("bu\x1b[31mild\n", "x", "failed", output="it [bold]broke[/]\u202e\nAPI_KEY: s3cret")],
    )
    desk = desk_on(yard.paths, ListedCrons([job("relay", "x")]))
    plan = desk.retry(run, "use TOKEN=t0ps3cret")
    rows = describe(plan)
    text = "\n".join(f"{label} {line}" for label, line in rows)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]broke[/]" in text
    assert all("\n" not in line for _, line in rows)
    for shown in (text, ascii_json(plan_json(plan))):
        for secret in ("k3y", "s3cret", "t0ps3cret"):
            assert secret not in shown


def test_json_has_everything_that_is_done_and_the_edits_of_long_texts(yard: Farmyard) -> None:
    run = yard.add_run("relay", status="failed", steps=[StepRow("build", status="failed", output="broke")])
    desk = desk_on(yard.paths, ListedCrons([job("relay", "scout")]))
    plan = desk.retry(run, "hello")
    loaded = json.loads(ascii_json(plan_json(plan)))
    by_column = {(each["table"], each["column"]): each for each in loaded["changes"]}
    assert by_column["runs", "status"]["before"] == "failed"
    assert by_column["runs", "updated_at"]["after"] == "now"
    assert [edit["key"] for edit in by_column["runs", "context"]["edits"]] == [
        "verify_feedback, operator_guidance"
    ]
    assert "before" not in by_column["runs", "context"]
    assert loaded["crons"] == [{"action": "add", "name": "antfarm/relay/build", "id": None}]
    outcome = desk.apply(plan)
    assert outcome_json(outcome) == {
        "status": "applied",
        "detail": "2 rows written; 1 cron created",
        "problems": [],
    }
    (entry,) = (entry_json(entry) for entry in desk.entries())
    assert entry["undoable"] is True
    assert entry["outcome"]["status"] == "applied"
    assert "k3y" not in ascii_json(entry)


def test_an_outcome_in_words() -> None:
    outcome = Outcome(OutcomeStatus.PARTIAL, "e", "1 of 2 crons deleted", ("antfarm/a/b\x1b: no",))
    assert describe_outcome(outcome) == (
        ("partial", "1 of 2 crons deleted"),
        ("but", "antfarm/a/b␛: no"),
    )


def test_long_values_are_cropped_in_the_dialog(yard: Farmyard) -> None:
    run = yard.add_run(
        "relay", status="failed", steps=[StepRow("build", status="failed", output="x" * 100_000)]
    )
    plan = desk_on(yard.paths, ListedCrons([job("relay", "build")])).retry(run)
    assert max(len(line) for _, line in describe(plan)) < 400
    assert describe(replace(plan, reason="y" * 1_000_000))[0][1].endswith("…")


def test_a_secret_of_the_context_is_not_repeated_by_a_plan(yard: Farmyard) -> None:
    run = yard.add_run(
        "relay",
        status="failed",
        context={"deploy_password": "hunter2hunter2"},
        steps=[
            StepRow("build", status="failed", output="could not log in with hunter2hunter2", retry_count=3),
            StepRow("close", input="Close it. {{verify_feedback}}"),
        ],
    )
    plan = desk_on(yard.paths, ListedCrons()).retry(run, "use hunter2hunter2 with care", without_crons=True)
    told = " ".join(text for _, text in describe(plan))
    assert "hunter2" not in told
    assert "with care" in told
