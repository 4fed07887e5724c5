"""stale-claim, waiting-for-verify and starving-step, on both sides of every limit."""

from __future__ import annotations

from datetime import timedelta

import pytest

from farmtui.medic.judge import judge
from farmtui.state import CronListing, CronSource, FarmState, Finding, Fix, Severity, SourceStatus
from tests.medic.states import MINUTE, NOW, SECOND, VERIFIED, ago, job, run, state, step, story, workflow


def found(farm: FarmState) -> list[tuple[str, str | None]]:
    """The checks that found something in a run, with the step concerned."""
    return [(each.check, each.step) for each in judge(farm, NOW)[0].findings if each.run]


def only(farm: FarmState) -> Finding:
    """The one finding about a run."""
    (finding,) = [each for each in judge(farm, NOW)[0].findings if each.run]
    return finding


# ---------------------------------------------------------------- stale-claim


def test_a_claim_is_stale_after_35_minutes() -> None:
    at_limit = run(step("build", "running", 35 * MINUTE))
    assert found(state(at_limit)) == []
    past = run(step("build", "running", 35 * MINUTE + SECOND), step("close"))
    finding = only(state(past))
    assert (finding.check, finding.step, finding.severity) == ("stale-claim", "build", Severity.CRITICAL)
    assert finding.since == ago(35 * MINUTE + SECOND)
    assert finding.fix == Fix("reset", ("farm", "reset", "run-0001", "build"))
    assert finding.id == "stale-claim:run-0001:build"


@pytest.mark.parametrize("separator", ["_", "-", "/"])
def test_an_agent_s_own_time_out_counts_where_the_workflow_sets_one(separator: str) -> None:
    relay = {"relay": workflow(timeouts={"builder": 3600})}
    agent = f"relay{separator}builder"
    within = run(step("build", "running", 65 * MINUTE, agent_id=agent))
    assert found(state(within, jobs=[job("builder")], workflows=relay)) == []
    past = run(step("build", "running", 65 * MINUTE + SECOND, agent_id=agent))
    finding = only(state(past, jobs=[job("builder")], workflows=relay))
    assert finding.check == "stale-claim"
    assert "builder's limit is 1h 00m (+5m)" in finding.message
    short = {"relay": workflow(timeouts={"builder": 600})}
    sooner = run(step("build", "running", 15 * MINUTE + SECOND, agent_id=agent))
    assert found(state(sooner, jobs=[job("builder")], workflows=short)) == [("stale-claim", "build")]


def test_a_story_s_claim_is_the_later_of_the_two_times() -> None:
    loop = step("grow", "running", 40 * MINUTE, loop=VERIFIED, current_story_id="id-S-2")
    fresh = run(loop, step("verify"), stories=[story("S-1", "done"), story("S-2", "running", 5 * MINUTE)])
    assert found(state(fresh)) == []
    old = run(loop, step("verify"), stories=[story("S-2", "running", 39 * MINUTE)])
    finding = only(state(old))
    assert (finding.check, finding.story, finding.since) == ("stale-claim", "S-2", ago(39 * MINUTE))


@pytest.mark.parametrize("verify", ["pending", "running"])
def test_a_loop_that_waits_for_its_verify_step_is_never_stale(verify: str) -> None:
    waits = run(step("grow", "running", 9 * 60 * MINUTE, loop=VERIFIED), step("verify", verify, MINUTE))
    assert found(state(waits)) == []


def test_a_loop_with_a_story_in_hand_waits_for_nobody() -> None:
    loop = step("grow", "running", 40 * MINUTE, loop=VERIFIED, current_story_id="id-S-2")
    stories = [story("S-2", "running", 40 * MINUTE)]
    assert found(state(run(loop, step("verify", "pending"), stories=stories))) == [("stale-claim", "grow")]


@pytest.mark.parametrize("verify", ["waiting", "failed", "done"])
def test_a_loop_without_story_and_without_verify_step_at_work_is_stale(verify: str) -> None:
    dead = run(step("grow", "running", 40 * MINUTE, loop=VERIFIED), step("verify", verify, 40 * MINUTE))
    assert found(state(dead)) == [("stale-claim", "grow")]


def test_a_verify_step_s_own_claim_goes_stale() -> None:
    stale = run(step("grow", "running", 40 * MINUTE, loop=VERIFIED), step("verify", "running", 40 * MINUTE))
    assert found(state(stale)) == [("stale-claim", "verify")]


def test_a_step_whose_times_cannot_be_read_is_not_called_stale() -> None:
    assert found(state(run(step("build", "running", None)))) == []


@pytest.mark.parametrize("status", ["paused", "failed", "completed"])
def test_only_running_runs_are_looked_at(status: str) -> None:
    assert found(state(run(step("build", "running", 99 * MINUTE), status=status))) == []


# ---------------------------------------------------------------- waiting-for-verify


def waiting(age: timedelta, number: int = 1) -> FarmState:
    loop = step("grow", "running", age, loop=VERIFIED)
    return state(run(loop, step("verify", "pending", age), step("close"), number=number, age=age))


def test_verify_pending_for_more_than_two_polls() -> None:
    assert found(waiting(10 * MINUTE)) == []
    finding = only(waiting(10 * MINUTE + SECOND))
    assert (finding.check, finding.step, finding.fix) == ("waiting-for-verify", "verify", None)
    assert "its cron is fine" in finding.message
    assert finding.crons == ("job-relay-verify-1",)


def test_verify_waits_by_its_cron_s_own_interval() -> None:
    loop = step("grow", "running", 25 * MINUTE, loop=VERIFIED)
    at = run(loop, step("verify", "pending", 25 * MINUTE))
    slow = [job("grow"), job("verify", every_ms=15 * 60_000)]
    assert found(state(at, jobs=slow)) == []
    assert found(state(at, jobs=[job("grow"), job("verify", every_ms=12 * 60_000)])) == [
        ("waiting-for-verify", "verify")
    ]


@pytest.mark.parametrize(
    ("cron", "word"),
    [
        (None, "missing"),
        ({"enabled": False}, "disabled"),
        ({"consecutive_errors": 3}, "failing"),
        ({"last_status": "error"}, "failing"),
    ],
)
def test_a_broken_cron_is_named(cron: dict[str, object] | None, word: str) -> None:
    jobs = [job("grow"), job("close"), *([] if cron is None else [job("verify", **cron)])]
    farm = waiting(20 * MINUTE)
    finding = only(state(*farm.runs, jobs=jobs))
    assert f"its cron is {word}" in finding.message
    assert finding.severity is Severity.CRITICAL


def test_a_verifier_at_work_elsewhere_is_a_queue() -> None:
    queued = waiting(20 * MINUTE).runs[0]
    busy = run(step("verify", "running", 20 * MINUTE), number=2)
    assert found(state(queued, busy)) == []
    stale = run(step("verify", "running", 40 * MINUTE), number=2)
    assert ("waiting-for-verify", "verify") in found(state(queued, stale))


def test_without_crons_verify_is_still_looked_at() -> None:
    farm = state(*waiting(20 * MINUTE).runs, crons=CronListing(CronSource.NONE, note="gateway down"))
    finding = only(farm)
    assert finding.check == "waiting-for-verify"
    assert any("gateway down" in line for line in finding.evidence)


# ---------------------------------------------------------------- starving-step


def test_nobody_claims_a_step_for_two_polls_and_a_minute() -> None:
    assert found(state(run(step("build", "pending", 11 * MINUTE)))) == []
    finding = only(state(run(step("build", "pending", 11 * MINUTE + SECOND))))
    assert (finding.check, finding.step) == ("starving-step", "build")
    assert "has claimed nothing" in finding.message
    assert finding.severity is Severity.WARNING


def test_polls_are_the_job_s_else_the_workflow_s() -> None:
    pending = run(step("build", "pending", 20 * MINUTE))
    assert found(state(pending, jobs=[job("build", every_ms=600_000)])) == []
    slow = {"relay": workflow(cron_interval_ms=600_000)}
    unlisted = CronListing(CronSource.NONE)
    assert found(state(pending, workflows=slow, crons=unlisted)) == []
    assert found(state(pending, crons=unlisted)) == [("starving-step", "build")]
    assert found(state(pending, jobs=[job("build", every_ms=60_000)])) == [("starving-step", "build")]


@pytest.mark.parametrize("word", ["missing", "disabled", "failing"])
def test_a_broken_cron_starves_a_step_even_of_a_busy_agent(word: str) -> None:
    broken = {
        "missing": [],
        "disabled": [job("build", enabled=False)],
        "failing": [job("build", consecutive_errors=2)],
    }
    pending = run(step("build", "pending", 12 * MINUTE))
    busy = run(step("build", "running", 5 * MINUTE), number=2)
    finding = only(state(pending, busy, jobs=broken[word]))
    assert (finding.check, finding.severity) == ("starving-step", Severity.CRITICAL)
    assert f"build's cron is {word}" in finding.message


def test_an_agent_at_work_elsewhere_is_a_queue() -> None:
    pending = run(step("build", "pending", 30 * MINUTE))
    assert found(state(pending, run(step("build", "running", 30 * MINUTE), number=2))) == []
    other_agent = run(step("close", "running", 30 * MINUTE), number=2)
    assert found(state(pending, other_agent)) == [("starving-step", "build")]
    stale = run(step("build", "running", 36 * MINUTE), number=2)
    assert set(found(state(pending, stale))) == {("starving-step", "build"), ("stale-claim", "build")}


def test_an_agent_that_claimed_or_ended_something_lately_is_not_starving_the_step() -> None:
    pending = run(step("build", "pending", 30 * MINUTE))
    lately = {"relay_build": NOW - 10 * MINUTE}
    assert found(state(pending, last_claims=lately)) == []
    long_ago = {"relay_build": NOW - 12 * MINUTE}
    assert found(state(pending, last_claims=long_ago)) == [("starving-step", "build")]
    ended = run(step("build", "done", 2 * MINUTE), step("close", "pending", 2 * MINUTE), number=2)
    assert found(state(pending, ended)) == []
    completed = run(status="completed", number=3, age=2 * MINUTE)
    assert found(state(pending, completed)) == []
    earlier = run(status="completed", number=3, age=7 * MINUTE)
    assert found(state(pending, earlier)) == [("starving-step", "build")]


def test_crons_that_can_no_longer_be_listed_are_not_judged_by() -> None:
    pending = run(step("build", "pending", 30 * MINUTE))
    failing = {"crons": SourceStatus("crons", NOW - MINUTE, "gateway hung", NOW - MINUTE)}
    farm = state(pending, jobs=[], sources=failing, last_claims={"relay_build": NOW - MINUTE})
    assert found(farm) == []
    assert [(each.check, each.reason) for each in judge(farm, NOW)[0].not_checked] == [
        ("missing-crons", "gateway hung"),
        ("orphaned-crons", "gateway hung"),
    ]
