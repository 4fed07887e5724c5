"""Acting on the state folders that real programs left."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from farmtui.operations.desk import Desk
from farmtui.operations.plan import OutcomeStatus, Refused
from farmtui.paths import locate
from tests.boxes import Box
from tests.operations.kit import ListedCrons, desk_on


@pytest.fixture
def crons(box: Box) -> ListedCrons:
    return ListedCrons(box.payload("cron.list")["jobs"])


@pytest.fixture
def desk(box: Box, crons: ListedCrons) -> Desk:
    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)
    return desk_on(paths, crons, now=box.taken_at)


def dump(box: Box) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(box.database)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608
            for table in ("runs", "steps", "stories", "medic_checks")
        }


def row(box: Box, table: str, row_id: str) -> dict[str, Any]:
    with closing(sqlite3.connect(box.database)) as connection:
        connection.row_factory = sqlite3.Row
        found = connection.execute(f"SELECT * FROM {table} WHERE id = ?", (row_id,))  # noqa: S608
        return dict(found.fetchone())


def test_the_stale_claim_is_reset_and_given_back(box: Box, desk: Desk) -> None:
    stale = box.situation("stale-claim")
    before = dump(box)
    plan = desk.reset(stale["run_id"], stale["step"])
    assert plan.reason.startswith("running 2h 00m without a word")
    assert any("builder's cron polls in" in note for note in plan.notes)
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    step = row(box, "steps", stale["step_id"])
    assert (step["status"], step["abandoned_count"]) == ("pending", 2)
    event = json.loads((box.state_dir / "antfarm" / "events.jsonl").read_text().splitlines()[-1])
    assert (event["event"], event["stepId"], event["runId"]) == ("step.timeout", "build", stale["run_id"])
    desk.apply(desk.undo())
    assert dump(box) == before


def test_a_loop_at_work_needs_force(box: Box, desk: Desk) -> None:
    middle = box.situation("loop-middle")
    with pytest.raises(Refused, match="is not stale"):
        desk.reset(middle["run_id"], "grow")
    before = dump(box)
    desk.apply(desk.reset(middle["run_id"], "grow", force=True))
    step = row(box, "steps", middle["step_id"])
    assert (step["status"], step["current_story_id"], step["abandoned_count"]) == ("pending", None, 0)
    changed = [now for was, now in zip(before["stories"], dump(box)["stories"], strict=True) if was != now]
    assert len(changed) == 1
    desk.apply(desk.undo())
    assert dump(box) == before


def test_a_loop_that_waits_to_be_verified_is_never_reset(box: Box, desk: Desk) -> None:
    waiting = box.situation("verify-waiting")
    before = dump(box)
    with pytest.raises(Refused, match="only waits for taste, which is pending"):
        desk.reset(waiting["run_id"], "grow", force=True)
    assert dump(box) == before


@pytest.mark.parametrize("name", ["cancelled", "zombie", "completed-loop", "running-now"])
def test_what_has_not_failed_is_not_given_back(box: Box, desk: Desk, name: str) -> None:
    with pytest.raises(Refused, match="only a failed run"):
        desk.retry(box.situation(name)["run_id"], "x")


def test_the_story_sent_back_three_times_is_tried_again(box: Box, desk: Desk, crons: ListedCrons) -> None:
    failed = box.situation("failed-verify")
    before, listed = dump(box), crons.names()
    old = json.loads(row(box, "runs", failed["run_id"])["context"])
    plan = desk.retry(failed["run_id"], "spray the leaves\nfrom below")
    # packer's cron is gone in the box, and is made from what the listing has shown of its siblings.
    assert [call.name for call in plan.crons] == ["antfarm/orchard/packer"]
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    run = row(box, "runs", failed["run_id"])
    context = json.loads(run["context"])
    assert run["status"] == "running"
    assert context["operator_guidance"] == "spray the leaves\nfrom below"
    # Antfarm left the last but one there; the last is in issues.
    assert old["verify_feedback"] != old["issues"]
    assert context["verify_feedback"] == old["issues"]
    assert {key: context[key] for key in old if key != "verify_feedback"} == {
        key: value for key, value in old.items() if key != "verify_feedback"
    }
    step = row(box, "steps", failed["step_id"])
    assert (step["status"], step["retry_count"]) == ("pending", 0)
    desk.apply(desk.undo())
    assert dump(box) == before
    # The new cron stays: other orchard runs need it.
    assert crons.names() == sorted([*listed, "antfarm/orchard/packer"])


def test_a_step_that_used_up_its_retries_is_told_why(box: Box, desk: Desk) -> None:
    failed = box.situation("failed-retries")
    output = row(box, "steps", failed["step_id"])["output"]
    desk.apply(desk.retry(failed["run_id"]))
    context = json.loads(row(box, "runs", failed["run_id"])["context"])
    assert context["verify_feedback"] == output.strip()


def test_the_orphans_go_and_come_back_and_nothing_else_does(box: Box, desk: Desk, crons: ListedCrons) -> None:
    orphans = box.situation("orphaned-crons")
    before = crons.names()
    plan = desk.delete_orphans()
    assert sorted(call.name for call in plan.crons) == orphans["crons"]
    desk.apply(plan)
    assert crons.names() == sorted(set(before) - set(orphans["crons"]))
    desk.apply(desk.undo())
    assert crons.names() == before


def test_no_token_of_the_config_gets_into_the_journal(box: Box, desk: Desk) -> None:
    desk.apply(desk.delete_orphans())
    desk.apply(desk.retry(box.situation("failed-verify")["run_id"], "x"))
    journal = (box.state_dir / "farm" / "journal.jsonl").read_text()
    assert "REDACTED" not in journal
    assert "#auth=" not in journal
