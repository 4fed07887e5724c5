"""The Medic screen: what is wrong, and never "all clear" while something was not checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farmtui.console.medic import way_out
from tests.console.details import HOSTILE, RAW
from tests.console.support import (
    SIZES,
    a_run,
    a_view,
    busy_view,
    check_golden,
    press,
    shown,
    text_of,
)


@pytest.mark.parametrize("size", SIZES)
async def test_medic(size: tuple[int, int]) -> None:
    async with shown(busy_view(), size) as (app, _, pilot):
        await press(app, pilot, "4")
        check_golden(f"medic-{size[0]}x{size[1]}", text_of(app))


async def test_evidence_and_the_way_out_follow_the_cursor() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "4")
        assert "R  reset the stale claim" in text_of(app)
        assert "farm reset run-214 implement" in text_of(app)
        await press(app, pilot, "G")
        assert "X  delete" in text_of(app)
        assert "meadow" in text_of(app)


async def test_the_target_is_the_chosen_finding() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "4")
        assert app.room is not None
        target = app.room.target()
        assert (target.run, target.step, target.label) == ("run-214", "implement", "#214 implement S-2")
        await press(app, pilot, "G")
        target = app.room.target()
        assert target.run is None
        assert len(target.crons) == 3


async def test_crons_that_are_not_known_leave_no_all_clear() -> None:
    view = a_view([a_run(1, "done", status="completed")], crons=None)
    async with shown(view) as (app, _, pilot):
        await press(app, pilot, "4")
        assert "All clear" not in text_of(app)
        assert "2 of 8 checks could not be made" in text_of(app)
        assert "connection refused" in text_of(app)


async def test_all_clear_names_the_checks() -> None:
    view = a_view([a_run(1, "done", status="completed")], crons=())
    async with shown(view) as (app, _, pilot):
        await press(app, pilot, "4")
        assert "All clear: 8 checks, looked 0s ago" in text_of(app)
        assert "zombie-run" in text_of(app)


async def test_enter_opens_the_run() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "4", "enter")
        assert app.room is not None
        assert app.room.NAME == "run"
        assert "Medic › #214" in text_of(app)


async def test_the_filter_leaves_what_has_the_word() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "4", "/", *"orphan", "enter")
        assert "stale-claim" not in text_of(app)
        assert "1 of" in text_of(app)
        await press(app, pilot, "escape")
        assert "stale-claim" in text_of(app)


async def test_hostile_text_is_shown_as_marks() -> None:
    view = busy_view()
    bad = tuple(
        replace(found, message=HOSTILE, evidence=(HOSTILE,), step=HOSTILE)
        for found in view.judgement.findings
    )
    view = replace(view, judgement=replace(view.judgement, findings=bad))
    async with shown(view, (160, 45)) as (app, _, pilot):
        await press(app, pilot, "4")
        assert not any(char in text_of(app) for char in RAW)
        assert "[bold]b[/bold]" in text_of(app)


def test_a_finding_that_no_key_mends_says_so() -> None:
    assert "No key of farm mends this" in way_out(None)
