"""The Crons screen: how each does, what it costs for nothing, and marks for deleting several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farmtui.state import CronListing, CronSource
from tests.console.details import HOSTILE, RAW, PlayedDesk
from tests.console.support import (
    RELAY_CRONS,
    SIZES,
    a_cron,
    a_run,
    a_view,
    ago,
    busy_view,
    check_golden,
    press,
    shown,
    text_of,
)


@pytest.mark.parametrize("size", SIZES)
async def test_crons(size: tuple[int, int]) -> None:
    failing = replace(
        RELAY_CRONS[3], consecutive_errors=3, last_status="error", last_error="model not allowed: opus"
    )
    crons = (*RELAY_CRONS[:3], failing, *(a_cron("meadow", agent) for agent in ("scout", "builder")))
    async with shown(busy_view(crons=crons), size) as (app, _, pilot):
        await press(app, pilot, "5", "G")
        check_golden(f"crons-{size[0]}x{size[1]}", text_of(app))


async def test_the_summary_counts_what_is_for_nothing() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "5")
        assert "7 of ours" in text_of(app)
        assert "84 calls/h, 36 for nothing" in text_of(app)
        assert "orphan: its workflow" in text_of(app)


async def test_missing_crons_are_listed() -> None:
    async with shown(busy_view(crons=RELAY_CRONS[:1])) as (app, _, pilot):
        await press(app, pilot, "5")
        assert text_of(app).count("missing") >= 3
        assert app.room is not None
        assert app.room.target().crons == ()


async def test_space_marks_and_the_target_is_what_is_marked() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "5")
        assert app.room is not None
        assert app.room.target().crons == ("cron-meadow-builder",)
        await press(app, pilot, "space", "space")
        assert app.room.target().crons == ("cron-meadow-builder", "cron-meadow-closer")
        await press(app, pilot, "escape")
        assert len(app.room.target().crons) == 1


async def test_marks_survive_a_refresh_and_go_with_their_job() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "5", "space", "space")
        assert farm.publish is not None
        farm.publish(busy_view(crons=(*RELAY_CRONS, a_cron("meadow", "closer"))))
        await press(app, pilot)
        assert app.room is not None
        assert app.room.target().crons == ("cron-meadow-closer",)


async def test_x_deletes_the_marked_ones() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        farm.desk = PlayedDesk()
        await press(app, pilot, "5", "space", "space", "X")
        assert farm.desk.asked == [("delete_crons", ("cron-meadow-builder", "cron-meadow-closer"))]


async def test_crons_that_could_not_be_listed_are_not_none() -> None:
    async with shown(busy_view(crons=None)) as (app, _, pilot):
        await press(app, pilot, "5")
        assert "could not be listed: connection refused" in text_of(app)
        assert "not the same as none" in text_of(app)
        await press(app, pilot, "X")
        assert "X delete crons: the crons could not be listed" in text_of(app)


async def test_a_list_from_disk_says_that_nothing_can_be_changed() -> None:
    view = a_view([a_run(1, "x", status="completed")])
    listing = CronListing(CronSource.STORE, RELAY_CRONS, read_at=ago(seconds=3), note="gateway down")
    view = replace(view, state=replace(view.state, crons=listing))
    async with shown(view, (160, 45)) as (app, _, pilot):
        await press(app, pilot, "5")
        assert "read from disk, nothing can be changed" in text_of(app)


async def test_hostile_text_is_shown_as_marks() -> None:
    bad = replace(
        RELAY_CRONS[0],
        workflow=HOSTILE,
        agent=HOSTILE,
        schedule=HOSTILE,
        last_error=HOSTILE,
        consecutive_errors=1,
    )
    async with shown(busy_view(crons=(bad,)), (160, 45)) as (app, _, pilot):
        await press(app, pilot, "5")
        assert "[bold]b[/bold]" in text_of(app)
        assert not any(char in text_of(app) for char in RAW)


async def test_m_marks_all_orphans_and_none_again() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "5", "G", "m")
        assert app.room is not None
        assert app.room.target().crons == tuple(
            f"cron-meadow-{name}" for name in ("builder", "closer", "scout")
        )
        assert app.room.target().label == "3 marked crons"
        await press(app, pilot, "m")
        assert app.room.target().crons == ("cron-relay-verifier",)


async def test_the_cost_stands_beside_the_scrollbar() -> None:
    crons = tuple(a_cron("meadow", f"agent-{number:02d}") for number in range(40))
    async with shown(busy_view(crons=crons)) as (app, _, pilot):
        await press(app, pilot, "5")
        (line,) = [line for line in text_of(app).splitlines() if "agent-03" in line]
        assert " 12" in line[-6:]
