"""The Run screen: readable at every size, its texts read in a thread, and each picture unlike the others."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from farmtui.antfarm.schema import Unreadable
from farmtui.console.app import FarmApp
from farmtui.console.longtext import LongText
from farmtui.console.timeline_view import TimelineView
from farmtui.state import RunDetail, StepText
from tests.console.details import HOSTILE, RAW, detail_of
from tests.console.support import (
    SIZES,
    FakeFarm,
    busy_view,
    check_golden,
    press,
    settled,
    shown,
    text_of,
    until,
)

STORY = ("run-214-implement", "run-214-s2")


@asynccontextmanager
async def run_screen(
    size: tuple[int, int] = (80, 24), detail: RunDetail | None = None, run: str = "run-214", **kwargs: bool
) -> AsyncIterator[tuple[FarmApp, FakeFarm, Pilot[int]]]:
    """The Run screen of run 214, its detail read."""
    view = busy_view()
    async with shown(view, size, **kwargs) as (app, farm, pilot):
        farm.details["run-214"] = detail or detail_of(view)
        app.open_run(run)
        await until(lambda: app.room is not None and app.room.NAME == "run")
        await until(lambda: "reading" not in text_of(app))
        await settled(app)
        yield app, farm, pilot


def longtext(app: FarmApp) -> LongText:
    return app.screen.query_one(LongText)


@pytest.mark.parametrize("size", SIZES)
async def test_run(size: tuple[int, int]) -> None:
    async with run_screen(size) as (app, _, _):
        check_golden(f"run-{size[0]}x{size[1]}", text_of(app))


@pytest.mark.parametrize("tab", ["input", "context", "progress", "events"])
async def test_each_tab(tab: str) -> None:
    async with run_screen() as (app, _, pilot):
        await press(app, pilot, *["tab"] * (["output", "input", "context", "progress", "events"].index(tab)))
        check_golden(f"run-{tab}-80x24", text_of(app))


async def test_tabs_go_round_both_ways() -> None:
    async with run_screen() as (app, _, pilot):
        await press(app, pilot, "[")
        assert "[Events]" in text_of(app)
        await press(app, pilot, "]")
        assert "[Output]" in text_of(app)


async def test_the_finding_and_its_key_are_on_the_screen() -> None:
    async with run_screen() as (app, _, _):
        assert "stale-claim" in text_of(app)
        assert "R reset" in text_of(app)
        assert app.room is not None
        assert app.room.target().label == "#214 implement"


async def test_choosing_a_step_drives_the_tabs() -> None:
    async with run_screen() as (app, _, pilot):
        assert app.screen.query_one(TimelineView).chosen is not None
        assert "developer claimed it" in text_of(app)
        await press(app, pilot, "g")
        assert "REPO: /srv/shop" in text_of(app)
        assert "hunter2" not in text_of(app)
        await press(app, pilot, "j", "j")
        assert "The users table is there." in text_of(app)


async def test_the_choice_survives_a_refresh() -> None:
    async with run_screen() as (app, farm, pilot):
        await press(app, pilot, "g")
        assert farm.publish is not None
        fresh = busy_view()
        farm.publish(fresh)
        await until(lambda: app.view is fresh)
        await settled(app)
        chosen = app.screen.query_one(TimelineView).chosen
        assert chosen is not None
        assert chosen.step.name == "plan"


async def test_while_the_detail_is_read_the_screen_says_so_and_is_not_held_up() -> None:
    view = busy_view()
    gate = threading.Event()

    class Slow(FakeFarm):
        def detail(self, run_id: str) -> RunDetail:
            gate.wait(10)
            return detail_of(view)

    async with shown(view) as (app, _, pilot):
        app.farm = Slow()
        app.open_run("run-214")
        await until(lambda: "reading …" in text_of(app))
        await press(app, pilot, "g", "tab")
        assert "[Input]" in text_of(app)
        gate.set()
        await until(lambda: "reading …" not in text_of(app))


async def test_a_failure_says_why_and_goes_when_it_is_cured() -> None:
    view = busy_view()

    class Broken(FakeFarm):
        cured = False

        def detail(self, run_id: str) -> RunDetail:
            if not self.cured:
                raise Unreadable("antfarm.db: disk I/O error")
            return detail_of(view)

    async with shown(view) as (app, _, _):
        farm = Broken()
        app.farm = farm
        app.open_run("run-214")
        await until(lambda: "could not be read: antfarm.db: disk I/O error" in text_of(app))
        farm.cured = True
        await until(lambda: "developer claimed it" in text_of(app))


async def test_what_was_read_stays_when_it_can_no_longer_be_read() -> None:
    async with run_screen() as (app, farm, pilot):
        await press(app, pilot, "g")
        farm.details.clear()
        assert farm.publish is not None
        farm.publish(busy_view())
        await until(lambda: "▲ not readable" in text_of(app))
        assert "REPO: /srv/shop" in text_of(app)


async def test_a_run_that_is_gone_says_so() -> None:
    view = busy_view()
    async with shown(view) as (app, _, _):
        app.open_run("run-999")
        await until(lambda: "not in the database" in text_of(app))


async def test_search_goes_through_the_text() -> None:
    text = "\n".join("a mite" if number % 10 == 0 else f"leaf {number}" for number in range(1, 171))
    view = busy_view()
    found = detail_of(view)
    found = replace(found, step_texts={**found.step_texts, "run-214-plan": StepText("", "", text)})
    async with run_screen(detail=found) as (app, _, pilot):
        await press(app, pilot, "g", "/", *"mite", "enter")
        assert "1 of 17 “mite”" in text_of(app)
        await press(app, pilot, "n", "n")
        assert "3 of 17 “mite”" in text_of(app)
        await press(app, pilot, "N")
        assert "2 of 17 “mite”" in text_of(app)
        await press(app, pilot, "escape")
        assert "mite”" not in text_of(app)
        assert app.room is not None
        assert app.room.NAME == "run"


async def test_keys_typed_into_the_search_act_on_nothing() -> None:
    async with run_screen() as (app, _, pilot):
        await press(app, pilot, "/", *"RqaX12")
        assert app.room is not None
        assert app.room.NAME == "run"
        await press(app, pilot, "escape")
        assert "[Output]" in text_of(app)


async def test_enter_gives_the_text_the_screen_and_escape_gives_it_back() -> None:
    async with run_screen() as (app, _, pilot):
        await press(app, pilot, "g", "enter")
        assert not app.screen.query_one(TimelineView).display
        assert longtext(app).has_focus
        await press(app, pilot, "escape")
        assert app.screen.query_one(TimelineView).has_focus
        await press(app, pilot, "escape")
        assert app.room is not None
        assert app.room.NAME == "board"


async def test_follow_reads_the_progress_file_as_it_grows() -> None:
    async with run_screen() as (app, farm, pilot):
        await press(app, pilot, "tab", "tab", "tab", "f")
        assert "follows" in text_of(app)
        found = farm.details["run-214"]
        assert found.progress is not None
        longer = "".join(f"11:{number:02d} did {number}\n" for number in range(60))
        farm.details["run-214"] = replace(found, progress=replace(found.progress, text=longer))
        await until(lambda: "did 59" in text_of(app))


async def test_hostile_text_never_reaches_the_terminal_raw() -> None:
    view = busy_view()
    found = detail_of(view)
    found = replace(
        found,
        run=replace(found.run, task=HOSTILE),
        context={"task": HOSTILE, HOSTILE: HOSTILE},
        step_texts={key: StepText(HOSTILE, HOSTILE, HOSTILE) for key in found.step_texts},
        events=tuple(replace(event, detail=HOSTILE, story_title=HOSTILE) for event in found.events),
        progress=replace(found.progress, text=HOSTILE, path=HOSTILE) if found.progress else None,
    )
    async with run_screen((120, 40), detail=found) as (app, _, pilot):
        await press(app, pilot, "g")
        for _ in range(5):
            shown_text = text_of(app)
            assert not any(char in shown_text for char in RAW)
            assert "[bold]b[/bold]" in shown_text
            await press(app, pilot, "tab")


async def test_a_secret_of_the_context_is_shown_nowhere_it_is_repeated() -> None:
    found = detail_of(busy_view())
    leaked = "pushed with hunter2hunter2 as agreed"
    found = replace(
        found,
        context={**found.context, "deploy_password": "hunter2hunter2"},
        step_texts={key: StepText(leaked, leaked, leaked) for key in found.step_texts},
        events=tuple(replace(event, detail=leaked) for event in found.events),
        progress=replace(found.progress, text=leaked) if found.progress else None,
    )
    async with run_screen((120, 40), detail=found) as (app, _, pilot):
        await press(app, pilot, "g")
        assert "pushed with •••" in text_of(app)
        for _ in range(5):
            assert "hunter2" not in text_of(app)
            await press(app, pilot, "tab")


async def test_ten_megabytes_of_output_open_and_scroll() -> None:
    view = busy_view()
    found = detail_of(view)
    text = "".join(f"line {number} of what the planner left behind\n" for number in range(240_000))
    found = replace(found, step_texts={**found.step_texts, "run-214-plan": StepText("", "", text)})
    async with run_screen(detail=found) as (app, _, pilot):
        await press(app, pilot, "g", "enter", "G")
        assert "line 239999" in text_of(app)
        assert len(list(app.screen.walk_children())) < 30


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_what_a_search_found_does_not_cover_the_tabs(width: int) -> None:
    async with run_screen((width, 24)) as (app, _, pilot):
        await press(app, pilot, "slash", *"nowhere", "enter")
        (tabs,) = (line for line in text_of(app).splitlines() if "Context" in line)
        assert "Events" in tabs
        assert "no “nowhere”" in tabs


async def test_a_disabled_action_says_why() -> None:
    async with run_screen() as (app, _, pilot):
        await press(app, pilot, "g", "R")
        assert "the stale claim is implement's, not plan's" in text_of(app)


async def test_copying_begins_with_the_steps_uuid() -> None:
    async with run_screen() as (app, _, _):
        assert app.room is not None
        assert next(iter(app.room.target().texts.values())) == "run-214-implement"
