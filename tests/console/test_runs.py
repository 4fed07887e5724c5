"""The Runs screen: sorting, filtering, and the selection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farmtui.console.cards import matches
from farmtui.console.runs import ORDERS, sort_runs
from farmtui.console.table import LineTable
from farmtui.console.targets import Index
from farmtui.state import Lane
from tests.console.support import (
    SIZES,
    a_run,
    a_view,
    busy_view,
    check_golden,
    press,
    relay_run,
    settled,
    shown,
    text_of,
    until,
)
from tests.farms import NOW


@pytest.mark.parametrize("size", SIZES)
async def test_runs(size: tuple[int, int]) -> None:
    async with shown(busy_view(), size) as (app, _, pilot):
        await press(app, pilot, "2")
        check_golden(f"runs-{size[0]}x{size[1]}", text_of(app))


def test_every_order_sorts() -> None:
    view = busy_view()
    index = Index(view)
    numbers = {
        key: [run.number for run in sort_runs(view.state.runs, index, key, descending)]
        for key, descending in ORDERS
    }
    assert numbers["number"] == [218, 214, 213, 209, 208, 207, 206, 205]
    assert numbers["state"] == [209, 208, 214, 213, 218, 206, 207, 205]
    assert numbers["trouble"][0] == 214
    assert numbers["changed"][-1] == 205
    assert numbers["workflow"] == numbers["number"]


def test_runs_without_times_or_numbers_sort_too() -> None:
    runs = [replace(a_run(1, "x"), number=None, updated_at=None), a_run(2, "y", status="odd")]
    view = a_view(runs)
    for key, descending in ORDERS:
        assert len(sort_runs(view.state.runs, Index(view), key, descending)) == 2


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("#214", True),
        ("214", True),
        ("run-21", True),
        ("relay", True),
        ("oauth login", True),
        ("login oauth", True),
        ("running", True),
        ("human", False),
        ("oauth billing", False),
    ],
)
def test_a_filter_looks_at_number_id_workflow_task_status_and_lane(pattern: str, found: bool) -> None:
    run = relay_run(214, "Add OAuth Login", 1, "running", moment=NOW)
    assert matches(run, Lane.RUNNING, pattern) is found


async def test_sorting_keeps_the_selection() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "2", "j", "j", "s")
        table = app.screen.query_one(LineTable)
        assert table.selected == "run-213"
        assert "state ▲" in text_of(app)
        assert table.ids[0] == "run-209"
        await press(app, pilot, "o")
        assert table.ids[-1] == "run-209"
        assert "state ▼" in text_of(app)
        assert table.selected == "run-213"
        await press(app, pilot, *["s"] * (len(ORDERS) - 1))
        assert "run ▼" in text_of(app)


async def test_the_filter_is_shown_and_escape_clears_it_before_it_goes_back() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "2", "slash", *"failed", "enter")
        assert app.screen.query_one(LineTable).ids == ("run-209", "run-208")
        assert "filter / failed" in text_of(app)
        assert "2 of 8 · Esc clears" in text_of(app)
        await press(app, pilot, "escape")
        assert len(app.screen.query_one(LineTable).ids) == 8
        assert app.room is not None
        assert app.room.NAME == "runs"
        await press(app, pilot, "escape")
        assert app.room.NAME == "board"


async def test_the_place_is_kept_when_coming_back() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "2", "G")
        await press(app, pilot, "1")
        await press(app, pilot, "2")
        assert app.screen.query_one(LineTable).selected == "run-205"


async def test_a_publication_keeps_selection_filter_and_order() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "2", "s", "slash", *"relay", "enter", "G")
        view = a_view([a_run(300, "Something else", workflow="other"), *busy_view().state.runs])
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await settled(app)
        table = app.screen.query_one(LineTable)
        assert table.selected == "run-205"
        assert "run-300" not in table.ids
        assert "8 of 9" in text_of(app)
