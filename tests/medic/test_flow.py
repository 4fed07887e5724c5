"""zombie-run, stuck-between-steps and stalled-run, and which cause goes before which."""

from __future__ import annotations

import pytest

from farmtui.medic.judge import judge
from farmtui.state import FarmState, Fix
from tests.medic.states import MINUTE, NOW, SECOND, VERIFIED, run, state, step, workflow


def found(farm: FarmState) -> list[str]:
    """The checks that found something in a run."""
    return [each.check for each in judge(farm, NOW)[0].findings if each.run]


@pytest.mark.parametrize(
    "statuses",
    [
        ("done", "done"),
        ("done", "skipped"),
        ("done", "failed"),
        ("failed", "failed"),
        ("done", "gate"),
        ("failed", "waiting"),
    ],
)
def test_nothing_left_that_could_move_the_run(statuses: tuple[str, ...]) -> None:
    steps = [step(f"s{at}", status, MINUTE) for at, status in enumerate(statuses)]
    finding = judge(state(run(*steps)), NOW)[0].findings[0]
    assert finding.check == "zombie-run"
    assert finding.fix is None


@pytest.mark.parametrize("alive", ["pending", "running"])
def test_a_failed_step_beside_one_that_moves_is_no_zombie(alive: str) -> None:
    assert found(state(run(step("plan", "failed"), step("build", alive)))) == []


def test_a_run_without_steps_is_no_zombie() -> None:
    assert found(state(run())) == []


def test_stuck_between_steps() -> None:
    assert found(state(run(step("plan", "done"), step("build"), step("close")))) == ["stuck-between-steps"]
    assert found(state(run(step("plan", "done"), step("build", "skipped"), step("close")))) == [
        "stuck-between-steps"
    ]
    assert found(state(run(step("plan"), step("build")))) == ["stuck-between-steps"]
    assert found(state(run(step("plan", "gate"), step("build")))) == []
    assert found(state(run(step("plan", "done"), step("build", "pending"), step("close")))) == []


def test_nothing_changed_for_70_minutes() -> None:
    gated = [step("plan", "gate", 70 * MINUTE), step("build", "waiting", 99 * MINUTE)]
    assert found(state(run(*gated, age=99 * MINUTE))) == []
    gated = [step("plan", "gate", 70 * MINUTE + SECOND), step("build", "waiting", 99 * MINUTE)]
    assert found(state(run(*gated, age=99 * MINUTE))) == ["stalled-run"]
    assert found(state(run(*gated, age=MINUTE))) == []


def test_a_step_within_its_agent_s_own_time_out_is_not_stalled() -> None:
    long = {"relay": workflow(timeouts={"build": 7200})}
    at_work = run(step("build", "running", 90 * MINUTE), age=90 * MINUTE)
    assert found(state(at_work, workflows=long)) == []
    loop = step("grow", "running", 90 * MINUTE, loop=VERIFIED)
    verifying = run(loop, step("verify", "running", 90 * MINUTE), age=90 * MINUTE)
    assert found(state(verifying, workflows={"relay": workflow(timeouts={"verify": 7200})})) == []


def test_unreadable_times_are_not_judged() -> None:
    assert found(state(run(step("build", "pending", None), age=None))) == []


def test_one_cause_a_run_the_first_in_order() -> None:
    old = 120 * MINUTE
    stale_and_starving = run(step("plan", "running", old), step("build", "pending", old), age=old)
    assert found(state(stale_and_starving)) == ["stale-claim"]
    loop = step("grow", "running", old, loop=VERIFIED)
    verify_and_starving = run(
        step("plan", "pending", old), loop, step("verify", "pending", old), step("close"), age=old
    )
    assert found(state(verify_and_starving)) == ["waiting-for-verify"]
    assert found(state(run(step("build", "pending", old), age=old))) == ["starving-step"]
    assert found(state(run(step("plan", "done", old), step("build", age=old), age=old))) == [
        "stuck-between-steps"
    ]
    assert found(state(run(step("plan", "done", old), age=old))) == ["zombie-run"]


def test_each_stale_run_has_its_own_fix() -> None:
    runs = [run(step("build", "running", 40 * MINUTE), number=number) for number in (1, 2)]
    fixes = {each.run: each.fix for each in judge(state(*runs), NOW)[0].findings}
    assert fixes == {each.id: Fix("reset", ("farm", "reset", each.id, "build")) for each in runs}
