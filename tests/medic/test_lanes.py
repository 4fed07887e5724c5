"""Which lane a run stands in, and when a failed one waits for a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from farmtui.medic.lanes import active_step, escalation_of, failed_step, lane_of, run_tally
from farmtui.state import Acknowledgement, Lane, Run, Tally
from tests.medic.states import MINUTE, NOW, VERIFIED, run, spec, step, story, workflow

HUMAN = "escalate_to: human"


def failed(*statuses: str, names: tuple[str, ...] = (), number: int = 1) -> Run:
    """A failed run as FarmState keeps it: no steps, only what they came to."""
    tally = Tally(steps_total=len(statuses), statuses=statuses, failed_steps=names)
    return run(status="failed", number=number, tally=tally)


def standing(at: Run) -> str | None:
    """Name of the step that a run stands at."""
    found = active_step(at)
    return found.name if found else None


def test_running_run_is_pending_only_while_nobody_is_at_work_on_it() -> None:
    assert lane_of(run(step("plan", "done"), step("build", "pending")), None, None) is Lane.PENDING
    assert lane_of(run(step("plan", "running"), step("build")), None, None) is Lane.RUNNING
    assert lane_of(run(step("plan", "running"), step("build", "pending")), None, None) is Lane.RUNNING


def test_zombie_stuck_and_stepless_runs_are_running() -> None:
    assert lane_of(run(step("plan", "done"), step("build", "failed")), None, None) is Lane.RUNNING
    assert lane_of(run(step("plan", "done"), step("build", "waiting")), None, None) is Lane.RUNNING
    assert lane_of(run(), None, None) is Lane.RUNNING


@pytest.mark.parametrize(
    ("status", "lane"),
    [
        ("completed", Lane.DONE),
        ("cancelled", Lane.CANCELLED),
        ("paused", Lane.OTHER),
        ("blocked", Lane.OTHER),
        ("", Lane.OTHER),
    ],
)
def test_other_statuses(status: str, lane: Lane) -> None:
    assert lane_of(run(step("plan", "pending"), status=status), workflow(), None) is lane


def test_failed_run_is_human_where_the_failed_step_s_policy_names_one() -> None:
    relay = workflow(spec("plan", HUMAN), spec("build"))
    assert lane_of(failed("failed", "waiting", names=("plan",)), relay, None) is Lane.HUMAN
    assert lane_of(failed("done", "failed", names=("build",)), relay, None) is Lane.FAILED


def test_verify_exhaustion_is_judged_by_the_loop_and_by_its_verify_step() -> None:
    exhausted = failed("done", "failed", "waiting", names=("grow",))
    by_verifier = workflow(spec("plan"), spec("grow", verify="taste"), spec("taste", "on_exhausted: human"))
    by_loop = workflow(spec("plan"), spec("grow", HUMAN, verify="taste"), spec("taste"))
    neither = workflow(spec("plan", HUMAN), spec("grow", verify="taste"), spec("taste"))
    assert lane_of(exhausted, by_verifier, None) is Lane.HUMAN
    assert "verify step taste, on_exhausted" in (escalation_of(exhausted, by_verifier) or "")
    assert lane_of(exhausted, by_loop, None) is Lane.HUMAN
    assert lane_of(exhausted, neither, None) is Lane.FAILED


def test_unknown_policy_is_for_a_person() -> None:
    gone = failed("failed", names=("plan",))
    assert lane_of(gone, None, None) is Lane.HUMAN
    broken = workflow(error="is not valid YAML: line 3: mapping values are not allowed here")
    assert lane_of(gone, broken, None) is Lane.HUMAN
    assert "line 3" in (escalation_of(gone, broken) or "")
    assert lane_of(gone, workflow(spec("renamed")), None) is Lane.HUMAN


def test_run_that_failed_without_a_failed_step_is_judged_by_the_first_one_not_done() -> None:
    relay = workflow(spec("plan", HUMAN), spec("build"))
    never_started = failed("pending", "waiting")
    assert lane_of(never_started, relay, None) is Lane.HUMAN
    assert failed_step(never_started, relay) == "plan"
    assert "plan was never done" in (escalation_of(never_started, relay) or "")
    assert lane_of(failed("done", "waiting"), relay, None) is Lane.FAILED
    assert lane_of(failed("done", "done"), workflow(spec("plan"), spec("build", HUMAN)), None) is Lane.HUMAN
    assert lane_of(failed("done", "done", "done", "pending"), relay, None) is Lane.FAILED


def test_before_the_tallies_only_what_is_true_of_every_step_counts() -> None:
    untold = run(status="failed")
    assert lane_of(untold, workflow(spec("plan", HUMAN), spec("build", HUMAN)), None) is Lane.HUMAN
    assert lane_of(untold, workflow(spec("plan", HUMAN), spec("build")), None) is Lane.FAILED
    assert lane_of(untold, workflow(), None) is Lane.FAILED
    assert failed_step(untold, workflow(spec("plan", HUMAN))) is None


def test_acknowledged_until_the_run_changes() -> None:
    relay = workflow(spec("plan", HUMAN))
    one = failed("failed", names=("plan",))
    ack = Acknowledgement(one.id, "failed", one.updated_at, "seen", "op", NOW, "e1")
    assert lane_of(one, relay, ack) is Lane.FAILED
    changed = run(status="failed", age=timedelta(0), tally=one.tally)
    assert lane_of(changed, relay, ack) is Lane.HUMAN
    assert lane_of(run(step("plan", "pending")), relay, ack) is Lane.PENDING


def test_only_failed_runs_escalate() -> None:
    relay = workflow(spec("plan", HUMAN))
    assert escalation_of(run(step("plan", "failed")), relay) is None
    assert escalation_of(run(status="cancelled", tally=Tally(failed_steps=("plan",))), relay) is None


def test_tally_counts_kept_rows_else_what_was_read() -> None:
    kept = run(step("plan", "done"), step("build", "failed"), stories=[story("S-1", "done"), story("S-2")])
    assert run_tally(kept) == Tally(1, 2, 1, 2, ("done", "failed"), ("build",))
    read = Tally(3, 3, 0, 0, ("done",) * 3)
    assert run_tally(run(status="completed", tally=read)) is read
    assert run_tally(run(status="completed")) == Tally()


def test_active_step_prefers_who_is_at_work() -> None:
    loop = step("grow", "running", loop=VERIFIED)
    assert standing(run(step("plan", "done"), loop, step("verify", "pending"))) == "verify"
    at_work = step("grow", "running", loop=VERIFIED, current_story_id="id-S-1")
    assert standing(run(step("plan", "pending"), at_work, step("verify"))) == "grow"
    assert standing(run(step("plan", "done"), step("build", "failed"), step("close"))) == "build"
    assert standing(run(step("plan", "done"), step("build", "gate"), step("close"))) == "build"
    assert standing(run(step("plan", "done"), step("build", "skipped"))) is None
    assert standing(run(loop, step("verify", "failed", 2 * MINUTE))) == "grow"
