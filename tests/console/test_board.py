"""The board: lanes, cards, what is open at which width, and the selection through every refresh."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.console.board import LANES, BoardScreen, lane_orders
from farmtui.console.board_layout import WIDE, arrange
from farmtui.console.cards import CardFacts, card_height, card_lines
from farmtui.console.lane import LaneList
from farmtui.console.rowlist import CURSOR
from farmtui.console.tones import width_of
from farmtui.farm import View
from farmtui.state import Finding, Lane, Run, Severity
from tests.console.support import (
    RELAY,
    SIZES,
    a_run,
    a_story,
    a_view,
    ago,
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

HOSTILE = "\x1b[31m[bold]x[/bold]\n\u202etxt\u200d👩🏽‍🌾 \x07" + "long " * 60


def card_text(facts: CardFacts, width: int = 30) -> list[str]:
    return ["".join(text for text, _ in line) for line in card_lines(facts, NOW, width)]


def selected(screen: object) -> str | None:
    assert isinstance(screen, BoardScreen)
    return screen.target().run


# ---------------------------------------------------------------- cards


def test_a_running_card_says_step_stories_and_claim() -> None:
    stories = (
        a_story("run-7", 1, "one", "done"),
        a_story("run-7", 2, "two", "running", at=ago(minutes=12)),
        a_story("run-7", 3, "three"),
    )
    run = relay_run(7, "Add a login", 1, "running", moment=ago(minutes=12), stories=stories, retries=1)
    lines = card_text(CardFacts(run, Lane.RUNNING, RELAY), 32)
    assert lines[0].startswith("#7 relay")
    assert lines[0].endswith("3h 00m")
    assert lines[1] == "Add a login"
    assert lines[2].startswith("●◐○○ implement")
    assert lines[2].endswith("1/3")
    assert lines[3] == "claimed 12m of 35m · retry 1 of 2"


def test_a_pending_card_says_how_long() -> None:
    run = relay_run(8, "Wait", 2, "pending", moment=ago(minutes=9))
    assert card_text(CardFacts(run, Lane.PENDING, RELAY))[3] == "pending 9m"


def test_what_is_wrong_stands_instead_of_the_claim() -> None:
    run = relay_run(8, "Stuck", 1, "running", moment=ago(hours=2))
    findings = (
        Finding("a", "zombie-run", Severity.CRITICAL, "…", since=ago(hours=2, minutes=4), run=run.id),
        Finding("b", "stale-claim", Severity.WARNING, "…", run=run.id),
    )
    assert card_text(CardFacts(run, Lane.RUNNING, RELAY, findings))[3] == "!! zombie-run 2h 04m +1"


def test_unknown_statuses_are_shown_as_they_are() -> None:
    run = a_run(9, "Fork", status="gate")
    assert card_text(CardFacts(run, Lane.OTHER, None))[3] == "? gate"


@given(st.integers(min_value=18, max_value=80), st.sampled_from(list(Lane)), st.text(max_size=60))
def test_cards_fit_whatever_is_in_them(width: int, lane: Lane, text: str) -> None:
    run = relay_run(123456, HOSTILE + text, 1, "running", moment=ago(minutes=1))
    facts = CardFacts(replace(run, workflow=text or "w"), lane, None, (), HOSTILE)
    lines = card_lines(facts, NOW, width)
    assert len(lines) == card_height(lane)
    for line in lines[:3]:
        assert width_of(line) <= width
    assert "\x1b" not in "".join(piece for line in lines for piece, _ in line)


def test_many_steps_are_counted() -> None:
    run = relay_run(1, "x", 1, "running", moment=NOW)
    steps = tuple(replace(run.steps[0], id=str(n), name=f"s{n}", index=n) for n in range(30))
    line = card_text(CardFacts(replace(run, steps=steps), Lane.RUNNING, None), 24)[2]
    assert "+21" in line


# ---------------------------------------------------------------- lanes


def test_lanes_hold_their_runs_in_a_useful_order() -> None:
    orders = lane_orders(busy_view())
    numbers = {lane: [run.number for run in runs] for lane, runs in orders.items()}
    assert numbers == {
        Lane.PENDING: [218],
        Lane.RUNNING: [214, 213],
        Lane.HUMAN: [209],
        Lane.FAILED: [208],
        Lane.DONE: [207, 206, 205],
        Lane.OTHER: [],
    }


def test_what_is_wrong_comes_first_and_who_waits_longest() -> None:
    runs = [
        relay_run(5, "fine", 1, "running", moment=ago(minutes=1)),
        relay_run(4, "stale", 1, "running", moment=ago(hours=2)),
        a_run(3, "new", status="failed", workflow="gone", changed=ago(minutes=1)),
        a_run(2, "old", status="failed", workflow="gone", changed=ago(hours=9)),
    ]
    orders = lane_orders(a_view(runs))
    assert [run.number for run in orders[Lane.RUNNING]] == [4, 5]
    assert [run.number for run in orders[Lane.HUMAN]] == [2, 3]


@given(
    st.integers(min_value=40, max_value=240),
    st.lists(st.integers(min_value=0, max_value=99_999), min_size=6, max_size=6),
    st.sampled_from(LANES),
    st.booleans(),
)
def test_lanes_fill_the_width(width: int, numbers: list[int], focused: Lane, other: bool) -> None:
    lanes = LANES if other or focused is Lane.OTHER else LANES[:-1]
    counts = dict(zip(LANES, numbers, strict=True))
    found = arrange(lanes, counts, counts, focused, width)
    assert sum(found.widths.values()) + found.preview == width or width < 62
    assert focused not in found.folded
    if width >= WIDE:
        assert not found.folded
        assert found.preview >= 40
    for lane in found.folded:
        assert found.widths[lane] >= len(f"{counts[lane]}") + 4


def test_two_lanes_are_open_at_eighty_columns() -> None:
    counts = dict.fromkeys(LANES, 3)
    lanes = LANES[:-1]
    opened = set(lanes) - arrange(lanes, counts, counts, Lane.DONE, 80).folded
    assert opened == {Lane.DONE, Lane.HUMAN}
    opened = set(lanes) - arrange(lanes, counts, counts, Lane.HUMAN, 80).folded
    assert opened == {Lane.HUMAN, Lane.RUNNING}


# ---------------------------------------------------------------- on the screen


@pytest.mark.parametrize("size", SIZES)
async def test_the_board(size: tuple[int, int]) -> None:
    async with shown(busy_view(), size) as (app, _, _):
        check_golden(f"board-{size[0]}x{size[1]}", text_of(app))


async def test_an_empty_farm() -> None:
    async with shown(a_view([])) as (app, _, _):
        check_golden("board-empty-80x24", text_of(app))


async def test_before_the_first_look() -> None:
    async with shown(None) as (app, _, _):
        check_golden("board-loading-80x24", text_of(app))


async def test_moving_into_a_folded_lane_opens_it() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        assert "Needs a human 1" in text_of(app)
        assert "Done" not in text_of(app)
        await press(app, pilot, "l", "l")
        assert "✓ Done 3" in text_of(app)
        assert "#207 relay" in text_of(app)
        await press(app, pilot, "l")
        assert selected(app.screen) == "run-207"
        await press(app, pilot, "tab")
        assert "◌ Pending 1" in text_of(app)
        await press(app, pilot, "h")
        assert selected(app.screen) == "run-218"


async def test_a_lane_of_unknown_statuses_is_there_only_when_needed() -> None:
    async with shown(busy_view(), (160, 45)) as (app, farm, _):
        assert "Other" not in text_of(app)
        view = a_view([*busy_view().state.runs, a_run(1, "gated", status="gate")])
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await settled(app)
        assert "? Other 1" in text_of(app)


async def republish(app: object, farm: object, view: View) -> None:
    farm.publish(view)  # type: ignore[attr-defined]
    await until(lambda: app.view is view)  # type: ignore[attr-defined]
    await settled(app)  # type: ignore[arg-type]


async def test_the_selection_follows_a_run_into_another_lane() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "h", "j")
        assert selected(app.screen) == "run-213"
        runs = [
            replace(run, status="completed", steps=(), updated_at=NOW) if run.number == 213 else run
            for run in busy_view().state.runs
        ]
        await republish(app, farm, a_view(runs))
        assert selected(app.screen) == "run-213"
        focused = app.focused
        assert isinstance(focused, LaneList)
        assert focused.lane is Lane.DONE
        cursor = next(line for line in text_of(app).splitlines() if CURSOR in line)
        assert "#213" in cursor.split(CURSOR)[1]


async def test_the_selection_survives_runs_that_come_and_go() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "h", "j")
        runs = list(busy_view().state.runs)
        fresh = [relay_run(n, f"New {n}", 1, "running", moment=ago(seconds=5)) for n in range(240, 220, -1)]
        await republish(app, farm, a_view([*fresh, *runs]))
        assert selected(app.screen) == "run-213"
        await republish(app, farm, a_view([run for run in runs if run.number != 213]))
        assert selected(app.screen) == "run-214"


async def test_an_acknowledged_run_leaves_the_human_lane() -> None:
    async with shown(busy_view()) as (app, farm, _):
        view = busy_view()
        lanes = {**view.judgement.lanes, "run-209": Lane.FAILED}
        await republish(app, farm, replace(view, judgement=replace(view.judgement, lanes=lanes)))
        assert "‼ 0 humans" in text_of(app)
        assert selected(app.screen) == "run-209"


async def test_the_filter_narrows_every_lane_and_escape_clears_it() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "slash", *"audit")
        assert "#213" in text_of(app)
        assert "#214" not in text_of(app)
        assert "1 of 8" in text_of(app)
        assert "Running 1 of 2" in text_of(app)
        await press(app, pilot, "enter")
        assert selected(app.screen) == "run-213"
        await press(app, pilot, "escape")
        assert "#214" in text_of(app)
        assert "filter /" not in text_of(app)
        assert selected(app.screen) == "run-213"


async def test_letters_typed_into_the_filter_do_nothing_else() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "slash", "q", "R", "u", "2", "space", "a")
        assert "filter / qRu2 a" in text_of(app)
        assert not farm.stopped
        assert farm.desk is None


async def test_the_preview_shows_the_chosen_run() -> None:
    async with shown(busy_view(), (160, 45)) as (app, _, pilot):
        assert "needs a human 34m" in text_of(app)
        await press(app, pilot, "h")
        text = text_of(app)
        assert "S-2 login form" in text
        assert "implement running 2h 04m without" in text
        assert "retry 1 of 2" in text


async def test_thousands_of_cards_cost_a_screenful() -> None:
    runs = [
        relay_run(number, f"Task {number}", 1, "running", moment=ago(minutes=3))
        for number in range(2000, 0, -1)
    ]
    async with shown(a_view(runs)) as (app, _, pilot):
        lane = app.screen.query_one("#lane-running", LaneList)
        assert len(lane.ids) == 2000
        assert len(lane._drawn) < 40
        await press(app, pilot, "G")
        assert "Task 1\n" in text_of(app).replace(" │", "\n").replace("▌", "\n") or "Task 1 " in text_of(app)
        assert selected(app.screen) == "run-1"
        assert len(lane._drawn) < 40


async def test_text_from_outside_cannot_do_anything() -> None:
    run: Run = replace(
        relay_run(1, HOSTILE, 1, "running", moment=ago(minutes=3)), workflow="[red]w\x1b]0;t\x07[/red]"
    )
    async with shown(a_view([run]), (160, 45)) as (app, _, _):
        text = text_of(app)
        assert not {"\x1b", "\x07", "\u202e", "\u200d"} & set(text)
        assert "[bold]x[/bold]" in text
        for line in app.screen._compositor.render_strips():
            assert line.cell_length == 160


async def test_ages_below_a_minute_are_drawn_every_second() -> None:
    young = relay_run(1, "x", 0, "pending", moment=ago(seconds=3), began=ago(seconds=3))
    async with shown(a_view([young])) as (app, _, _):
        assert app.room is not None
        assert app.room.lively
    old = replace(
        relay_run(1, "x", 1, "running", moment=ago(minutes=3)), updated_at=NOW - timedelta(minutes=3)
    )
    async with shown(a_view([old])) as (app, _, _):
        assert app.room is not None
        assert not app.room.lively
