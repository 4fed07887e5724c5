"""What is kept from one state to the next never outlives what it was made of."""

from __future__ import annotations

from dataclasses import replace

from farmtui.medic.board import board_of
from farmtui.state import Acknowledgement, Lane, Tally
from tests.medic.states import MINUTE, NOW, run, spec, state, step, workflow

ESCALATES = {"relay": workflow(spec("plan", "escalate_to: human"))}
FAILED = run(status="failed", tally=Tally(statuses=("failed",), failed_steps=("plan",)))
FARM = state(FAILED, workflows=ESCALATES)
SEEN = Acknowledgement(FAILED.id, "failed", FAILED.updated_at, "seen", "op", NOW, "e1")


def test_the_same_state_has_the_same_board() -> None:
    first = board_of(FARM)
    assert board_of(replace(FARM, seq=2)) is first
    assert first.lanes == {FAILED.id: Lane.HUMAN}


def test_another_acknowledgement_counts() -> None:
    assert board_of(FARM).lanes[FAILED.id] is Lane.HUMAN
    held = board_of(replace(FARM, acknowledgements={FAILED.id: SEEN}))
    assert held.lanes[FAILED.id] is Lane.FAILED
    assert held.escalations[0].acknowledged
    assert board_of(FARM).lanes[FAILED.id] is Lane.HUMAN


def test_another_workflow_counts() -> None:
    assert board_of(FARM).lanes[FAILED.id] is Lane.HUMAN
    changed = replace(FARM, workflows={"relay": workflow(spec("plan"))})
    assert board_of(changed).lanes[FAILED.id] is Lane.FAILED
    assert board_of(replace(FARM, workflows={})).lanes[FAILED.id] is Lane.HUMAN


def test_a_changed_run_counts() -> None:
    held = replace(FARM, acknowledgements={FAILED.id: SEEN})
    assert board_of(held).lanes[FAILED.id] is Lane.FAILED
    later = replace(FAILED, updated_at=NOW)
    assert board_of(replace(held, runs=(later,))).lanes[FAILED.id] is Lane.HUMAN
    back = run(step("plan", "pending", MINUTE))
    moved = board_of(replace(held, runs=(back,)))
    assert moved.lanes == {back.id: Lane.PENDING}
    assert moved.active == (back,)
    assert moved.escalations == ()


def test_a_run_whose_tally_comes_in_is_looked_at_again() -> None:
    mixed = {"relay": workflow(spec("plan", "escalate_to: human"), spec("build"))}
    untold = replace(FAILED, tally=None)
    farm = state(untold, workflows=mixed)
    assert board_of(farm).lanes[FAILED.id] is Lane.FAILED
    assert board_of(replace(farm, runs=(FAILED,))).lanes[FAILED.id] is Lane.HUMAN
