"""Acting: planned from fresh data, shown, asked, applied, told and followed; the target never moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from farmtui.console import acting
from farmtui.console.app import FarmApp
from farmtui.console.plan_dialog import PlanDialog
from farmtui.operations.follow import FollowState, FollowStatus
from farmtui.operations.plan import CronAction, CronCall, Outcome, OutcomeStatus, Refused
from tests.console.details import CLAIMED, HOSTILE, RAW, PlayedDesk, a_plan, detail_of, failed_detail
from tests.console.support import FakeFarm, a_view, busy_view, press, settled, shown, text_of, until


@asynccontextmanager
async def acting_on(
    desk: PlayedDesk, room: str = "4", **kwargs: Any
) -> AsyncIterator[tuple[FarmApp, FakeFarm, Pilot[int]]]:
    """A screen with a desk behind it: Medic with the stale claim chosen, unless another is named."""
    view = busy_view()
    async with shown(view, **kwargs) as (app, farm, pilot):
        farm.desk = desk
        farm.details["run-214"] = detail_of(view)
        farm.details["run-209"] = failed_detail(view)
        await press(app, pilot, room)
        desk.asked.clear()
        yield app, farm, pilot


async def asked(app: FarmApp) -> None:
    await until(lambda: isinstance(app.screen, PlanDialog))
    await settled(app)


def line_of(app: FarmApp) -> str:
    return text_of(app).splitlines()[-1].strip()


def deletion(count: int) -> PlayedDesk:
    calls = tuple(CronCall(CronAction.REMOVE, f"antfarm/meadow/a{n}", f"id-{n}", {}) for n in range(count))
    plan = a_plan(operation="delete-crons", title=f"Delete {count} crons", changes=(), events=(), crons=calls)
    return PlayedDesk(plan=replace(plan, run=None, step=None))


async def test_the_plan_is_shown_applied_told_and_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "FOLLOW_S", 0.01)
    waiting = FollowStatus(FollowState.WAITING, "implement waits for developer, 4s of 11m")
    desk = PlayedDesk(follows=(waiting, waiting, CLAIMED))
    async with acting_on(desk) as (app, farm, pilot):
        await press(app, pilot, "R")
        await asked(app)
        for word in (
            "Reset the stale claim of #214",
            "running → pending",
            "+ step.timeout",
            "cron polls in 3m",
        ):
            assert word in text_of(app)
        await press(app, pilot, "y")
        await until(lambda: "#214: developer claimed implement after 8s" in text_of(app))
        assert desk.asked == [("reset", "run-214", "implement")]
        assert desk.applied == [desk.plan]
        assert farm.refreshed == 1


async def test_what_was_done_is_said_with_the_way_back() -> None:
    follow = FollowStatus(FollowState.WAITING, "waits")
    async with acting_on(PlayedDesk(follows=(follow,))) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: "done: step implement is pending · u undoes it" in text_of(app))


async def test_two_polls_without_a_claim_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "FOLLOW_S", 0.01)
    late = FollowStatus(FollowState.TIMEOUT, "nobody claimed implement in 11m, two polls of developer")
    async with acting_on(PlayedDesk(follows=(late,))) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: "#214: nobody claimed implement in 11m" in text_of(app))


async def test_the_target_stays_whatever_refreshes_behind_the_dialog() -> None:
    desk = PlayedDesk()
    async with acting_on(desk) as (app, farm, pilot):
        await press(app, pilot, "R")
        await asked(app)
        assert farm.publish is not None
        farm.publish(a_view([]))
        await until(lambda: app.view is not None and not app.view.state.runs)
        assert "Reset the stale claim of #214 implement" in text_of(app)
        await press(app, pilot, "y")
        await until(lambda: bool(desk.applied))
        assert desk.applied == [desk.plan]


@pytest.mark.parametrize("keys", [["enter"], ["escape"], ["n"]])
async def test_saying_no_changes_nothing(keys: list[str]) -> None:
    desk = PlayedDesk()
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        await press(app, pilot, *keys)
        await until(lambda: "cancelled: nothing was changed" in text_of(app))
        assert desk.applied == []


async def test_a_plan_that_is_refused_says_why_and_asks_nothing() -> None:
    desk = PlayedDesk(plan=Refused("implement waits for verify: a reset would lose the story"))
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await until(lambda: "not possible: implement waits for verify" in text_of(app))
        assert not isinstance(app.screen, PlanDialog)


async def test_what_moved_in_between_is_said_and_nothing_is_followed() -> None:
    desk = PlayedDesk(outcome=Outcome(OutcomeStatus.REFUSED, "e1", "step implement is done now"))
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: "refused, nothing was written: step implement is done now" in text_of(app))


async def test_what_went_wrong_in_part_is_shown_in_full() -> None:
    desk = deletion(2)
    desk.outcome = Outcome(
        OutcomeStatus.PARTIAL, "e1", "1 of 2 crons deleted", ("antfarm/meadow/a1: permission denied",)
    )
    async with acting_on(desk, "5") as (app, _, pilot):
        await press(app, pilot, "X")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: "permission denied" in text_of(app))
        assert "PARTLY DONE" in text_of(app)
        await press(app, pilot, "enter")
        assert "PARTLY DONE: 1 of 2 crons deleted" in line_of(app)


async def test_a_fault_while_planning_is_said_and_the_next_action_works() -> None:
    class Broken(PlayedDesk):
        def reset(self, run_id: str, step: str, *, force: bool = False) -> Any:
            if not self.asked:
                self.asked.append(("reset",))
                raise OSError("disk I/O error")
            return super().reset(run_id, step)

    async with acting_on(Broken()) as (app, _, pilot):
        await press(app, pilot, "R")
        await until(lambda: "could not be done: disk I/O error" in text_of(app))
        await press(app, pilot, "R")
        await asked(app)


async def test_while_one_is_planned_another_waits_and_says_so() -> None:
    desk = PlayedDesk()
    desk.held.clear()
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await until(lambda: "looking at what it would do" in text_of(app))
        await press(app, pilot, "u")
        assert "one thing at a time" in text_of(app)
        desk.held.set()
        await asked(app)
        assert desk.asked == [("reset", "run-214", "implement")]


async def test_many_crons_ask_for_the_phrase() -> None:
    desk = deletion(7)
    async with acting_on(desk, "5") as (app, _, pilot):
        await press(app, pilot, "X")
        await asked(app)
        assert "Type “delete 7”" in text_of(app)
        await press(app, pilot, "enter")
        assert desk.applied == []
        await press(app, pilot, *"delete 7", "enter")
        await until(lambda: bool(desk.applied))


async def test_orphans_of_a_finding_are_deleted_as_named() -> None:
    desk = deletion(3)
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "G", "X")
        await asked(app)
        ((what, ids),) = desk.asked
        assert what == "delete_crons"
        assert sorted(ids) == [f"cron-meadow-{agent}" for agent in ("builder", "closer", "scout")]


async def test_retry_asks_for_guidance_first_and_keeps_it_until_it_was_used() -> None:
    desk = PlayedDesk(plan=a_plan(operation="retry", title="Retry #209", run="run-209"))
    async with acting_on(desk, "3") as (app, _, pilot):
        await press(app, pilot, "R")
        await until(lambda: "with guidance" in text_of(app))
        await press(app, pilot, *"use the stub", "ctrl+s")
        await asked(app)
        assert desk.asked[-1] == ("retry", "run-209", "use the stub")
        await press(app, pilot, "escape", "R")
        await until(lambda: bool(app.screen.query(TextArea)))
        assert app.screen.query_one(TextArea).text == "use the stub"
        await press(app, pilot, "ctrl+s")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: bool(desk.applied))


async def test_guidance_cancelled_plans_nothing() -> None:
    desk = PlayedDesk()
    async with acting_on(desk, "3") as (app, _, pilot):
        await until(lambda: "looking at what" not in text_of(app))
        desk.asked.clear()
        await press(app, pilot, "R")
        await until(lambda: "with guidance" in text_of(app))
        await press(app, pilot, "escape")
        await until(lambda: "cancelled" in text_of(app))
        assert desk.asked == []


async def test_acknowledging_takes_a_note() -> None:
    desk = PlayedDesk(plan=a_plan(operation="acknowledge", title="Acknowledge #209", changes=(), events=()))
    async with acting_on(desk, "3") as (app, _, pilot):
        await press(app, pilot, "a")
        await until(lambda: "Signed:" in text_of(app))
        await press(app, pilot, *"mine", "ctrl+s")
        await asked(app)
        assert desk.asked[-1] == ("acknowledge", "run-209", "mine")


async def test_undo_is_previewed_too_and_ends_following(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "FOLLOW_S", 0.01)
    waiting = FollowStatus(FollowState.WAITING, "waits")
    desk = PlayedDesk(follows=(waiting,))
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        await press(app, pilot, "y")
        await until(lambda: any(worker.group == "follow-run-214" for worker in app.workers))
        desk.plan = a_plan(operation="undo", title="Undo the reset of #214 implement", undoes="e1")
        await press(app, pilot, "u")
        await asked(app)
        assert "Undo the reset" in text_of(app)
        await press(app, pilot, "y")
        await until(lambda: len(desk.applied) == 2)
        await until(lambda: not any(worker.group == "follow-run-214" for worker in app.workers))
        assert desk.asked[-1] == ("undo", None)


async def test_read_only_takes_every_write_away() -> None:
    desk = PlayedDesk()
    async with acting_on(desk, readonly=True) as (app, _, pilot):
        for key in ("R", "X", "u"):
            await press(app, pilot, key)
            assert "read-only" in line_of(app)
        assert desk.asked == []


async def test_hostile_words_of_a_plan_are_shown_as_marks() -> None:
    desk = PlayedDesk(plan=a_plan(title=HOSTILE, reason=HOSTILE, notes=(HOSTILE,)))
    desk.outcome = Outcome(OutcomeStatus.APPLIED, "e1", HOSTILE)
    desk.follows = (FollowStatus(FollowState.WAITING, "waits"),)
    async with acting_on(desk) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        assert "[bold]b[/bold]" in text_of(app)
        assert not any(char in text_of(app) for char in RAW)
        await press(app, pilot, "y")
        await until(lambda: "done:" in text_of(app))
        assert not any(char in text_of(app) for char in RAW)


@pytest.mark.parametrize("environ", [{"TERM": "screen"}, {"TERM": "xterm", "LANG": "C"}, {"NO_COLOR": "1"}])
async def test_dialogs_can_be_read_on_poor_terminals(environ: dict[str, str]) -> None:
    async with acting_on(PlayedDesk(), environ={"LANG": "C.UTF-8", **environ}) as (app, _, pilot):
        await press(app, pilot, "R")
        await asked(app)
        assert "Reset the stale claim of #214" in text_of(app)
        assert "Cancel" in text_of(app)
