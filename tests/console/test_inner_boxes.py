"""The inner screens on state folders that real programs left, hostile texts and all."""

from __future__ import annotations

from pathlib import Path

from farmtui.clock import FixedClock
from farmtui.console.app import FarmApp
from farmtui.console.timeline_view import TimelineView
from farmtui.farm import Farm
from farmtui.paths import locate
from tests.boxes import Box
from tests.console.details import RAW
from tests.console.support import ENVIRON, press, settled, text_of, until


def app_on(box: Box) -> FarmApp:
    clock = FixedClock(box.taken_at)
    paths = locate(state_dir=Path(box.state_dir), environ={}, home=box.home)
    return FarmApp(Farm(paths, clock=clock, environ={}, gateway=False), clock=clock, environ=ENVIRON)


async def read(app: FarmApp, label: str) -> None:
    """Wait for a run's texts."""
    await until(lambda: "reading …" not in text_of(app) and label in text_of(app))


async def test_every_run_shows_its_timeline_and_tabs(box: Box) -> None:
    app = app_on(box)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: app.view is not None and app.view.state.tallied)
        assert app.view is not None
        for run in app.view.state.runs:
            app.open_run(run.id)
            await read(app, run.label)
            for _ in range(5):
                await press(app, pilot, "tab")
                shown = text_of(app)
                assert not any(char in shown for char in RAW)
                assert "could not be read" not in shown


async def test_a_claim_whose_row_and_events_disagree_is_drawn_as_unknown(box: Box) -> None:
    """The stale run's rows were moved back by hand; its events were not."""
    app = app_on(box)
    stale = box.situation("stale-claim")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(lambda: app.view is not None and app.view.state.tallied)
        app.open_run(stale["run_id"])
        await until(lambda: "reading …" not in text_of(app))
        await settled(app)
        await pilot.pause()
        (line,) = [line for line in text_of(app).splitlines() if "claim " in line and "of 35m" in line]
        assert "░" in line
        assert "▇" not in line


async def test_a_finished_run_is_drawn_from_its_events(box: Box) -> None:
    app = app_on(box)
    async with app.run_test(size=(80, 24)):
        await until(lambda: app.view is not None and app.view.state.tallied)
        assert app.view is not None
        done = next(run for run in app.view.state.runs if run.status == "completed" and run.number == 1)
        app.open_run(done.id)
        await until(lambda: "reading …" not in text_of(app))
        await settled(app)
        assert app.screen.query_one(TimelineView).wanted_height == 7
        assert "▇" in text_of(app)
        assert "unknown" not in text_of(app)
