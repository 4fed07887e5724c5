"""Medic on state folders that real programs left: what SNAPSHOT.json names is found, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from farmtui.antfarm.events import EventLog
from farmtui.antfarm.reader import DatabaseReader
from farmtui.antfarm.workflows import read_workflows
from farmtui.medic.judge import judge
from farmtui.openclaw.config import read_config
from farmtui.openclaw.jobs import listing_of
from farmtui.paths import locate
from farmtui.state import CronSource, FarmState, Finding, Lane, MissingCron
from tests.boxes import Box

MINUTE = timedelta(minutes=1)


def read_box(box: Box) -> FarmState:
    """The box's own files and the crons that its gateway listed."""
    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)
    reader, log = DatabaseReader(paths.database.path), EventLog(paths.events.path)
    reader.poll()
    runs = reader.tally().runs
    reader.close()
    log.poll()
    return FarmState(
        seq=1,
        paths=paths,
        host="box",
        runs=runs,
        tallied=True,
        workflows=read_workflows(paths.workflows.path),
        agents=read_config(paths, {}).agents,
        crons=listing_of(box.payload("cron.list")["jobs"], CronSource.WEBSOCKET, box.taken_at),
        last_claims=log.last_claims,
    )


def findings(box: Box, later: timedelta = timedelta(0)) -> tuple[Finding, ...]:
    """What is found, looking twice at the same state."""
    state, now = read_box(box), box.taken_at + later
    _, candidates = judge(state, now, frozenset())
    return judge(state, now, candidates)[0].findings


def test_exactly_the_situations_that_the_box_has(box: Box) -> None:
    def step_of_situation(name: str) -> tuple[str, str, str]:
        situation = box.situation(name)
        return situation["run_id"], situation["workflow"], situation["step"]

    found = {(each.check, each.run, each.workflow, each.step) for each in findings(box)}
    assert found == {
        ("stale-claim", *step_of_situation("stale-claim")),
        ("zombie-run", *step_of_situation("zombie")),
        ("waiting-for-verify", *step_of_situation("verify-waiting")),
        ("missing-crons", None, "orchard", None),
        ("orphaned-crons", None, "meadow", None),
    }
    assert len(findings(box)) == len(found)


def test_the_crons_that_are_orphaned_and_missing(box: Box) -> None:
    state = read_box(box)
    judgement, _ = judge(state, box.taken_at)
    names = {each.id: each.name for each in state.crons.jobs}
    assert sorted(names[each] for each in judgement.orphans) == box.situation("orphaned-crons")["crons"]
    assert set(judgement.orphans.values()) == {"no-active-run"}
    assert judgement.missing_crons == (MissingCron("orchard", "packer"),)
    (orphaned,) = (each for each in judgement.findings if each.check == "orphaned-crons")
    assert "48 calls an hour" in orphaned.message
    assert judgement.not_checked == ()


def test_the_stale_claim_is_two_hours_old(box: Box) -> None:
    (stale,) = (each for each in findings(box) if each.check == "stale-claim")
    assert stale.since == box.taken_at.replace(microsecond=0) - timedelta(hours=2)
    assert stale.fix is not None
    assert stale.fix.argv == ("farm", "reset", box.situation("stale-claim")["run_id"], "build")


@pytest.mark.parametrize(
    ("situation", "word"),
    [("missing-cron", "missing"), ("disabled-cron", "disabled"), ("two-pending", "failing")],
)
def test_steps_starve_a_few_minutes_later(box: Box, situation: str, word: str) -> None:
    run = box.situation(situation)["run_id"]
    (starving,) = (each for each in findings(box, 3 * MINUTE) if each.run == run)
    assert starving.check == "starving-step"
    assert word in starving.message


def test_a_step_behind_a_busy_agent_is_a_queue(box: Box) -> None:
    queued = box.situation("missing-key")["run_id"]
    assert [each for each in findings(box, 3 * MINUTE) if each.run == queued] == []


def test_lanes(box: Box) -> None:
    judgement, _ = judge(read_box(box), box.taken_at)
    lanes = {
        name: judgement.lanes[situation["run_id"]]
        for name, situation in box.snapshot["situations"].items()
        if "run_id" in situation
    }
    lanes.pop("cancelled-in-loop", None)  # only one of the boxes has it
    assert lanes == {
        "completed-by-polls": Lane.DONE,
        "completed-loop": Lane.DONE,
        "big-output": Lane.DONE,
        "failed-retries": Lane.HUMAN,
        "failed-verify": Lane.HUMAN,
        "cancelled": Lane.CANCELLED,
        "zombie": Lane.RUNNING,
        "running-now": Lane.RUNNING,
        "stale-claim": Lane.RUNNING,
        "missing-cron": Lane.PENDING,
        "loop-middle": Lane.RUNNING,
        "disabled-cron": Lane.PENDING,
        "missing-key": Lane.PENDING,
        "two-pending": Lane.PENDING,
        "verify-waiting": Lane.RUNNING,
        "fresh": Lane.PENDING,
    }
    escalated = [(each.run, each.step) for each in judgement.escalations]
    assert escalated == [
        (box.situation(name)["run_id"], box.situation(name)["step"])
        for name in ("failed-retries", "failed-verify")
    ]
