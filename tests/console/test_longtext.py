"""Long texts: opened at once, walked from an offset, searched, followed, and never raw."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from farmtui.console.longtext import LongText
from farmtui.console.textflow import MOST_MATCHES, PIECE, TextFlow
from farmtui.console.themes import THEMES
from farmtui.text import MASK, cells

# ---------------------------------------------------------------- the text as pieces


def starts(flow: TextFlow) -> list[int]:
    found: list[int] = []
    start: int | None = 0
    while start is not None:
        found.append(start)
        start = flow.after(start)
    return found


texts = st.text(alphabet=st.sampled_from("ab \n\r\t林\x1b"), max_size=60) | st.builds(
    lambda head, count, tail: head + "x" * count + tail,
    st.sampled_from(["", "\n", "a\n"]),
    st.integers(PIECE - 2, PIECE * 2 + 2),
    st.sampled_from(["", "\n", "\nb", "\n\n"]),
)


@given(texts)
def test_pieces_are_the_same_forwards_and_backwards(text: str) -> None:
    flow = TextFlow(text)
    forwards = starts(flow)
    backwards = [flow.last()]
    while (before := flow.before(backwards[-1])) is not None:
        backwards.append(before)
    assert backwards[::-1] == forwards
    assert all(flow.start_of(start) == start for start in forwards)


@given(texts)
def test_the_pieces_are_the_whole_text(text: str) -> None:
    flow = TextFlow(text)
    lines = "".join(text[start : flow.stop_of(start)] for start in starts(flow))
    assert lines == text.replace("\n", "")


@given(texts, st.integers(2, 30))
def test_rows_fit_and_lose_nothing_but_blanks_at_a_break(text: str, width: int) -> None:
    flow = TextFlow(text)
    for start in starts(flow):
        rows = flow.rows(start, width)
        assert all(cells("".join(part for part, _ in row)) <= width for row in rows)
        whole = "".join(part for row in flow.rows(start, None) for part, _ in row)
        wrapped = "".join(part for row in rows for part, _ in row)
        assert wrapped.replace(" ", "") == whole.replace(" ", "")


def test_prose_breaks_between_words() -> None:
    rows = TextFlow("the race is in the payment stub").rows(0, 12)
    assert ["".join(part for part, _ in row) for row in rows] == ["the race is", "in the", "payment stub"]


def test_search_takes_either_case_unless_asked_with_a_capital() -> None:
    flow = TextFlow("Mite mite MITE")
    assert len(flow.search("mite").spans) == 3
    assert flow.search("Mite").spans == ((0, 4),)
    assert flow.search("a.b").spans == ()


def test_search_keeps_a_bounded_number_of_places() -> None:
    found = TextFlow("x" * (MOST_MATCHES + 5)).search("x")
    assert found.cut
    assert len(found.spans) == MOST_MATCHES


def test_secrets_are_masked_even_where_their_line_is_longer_than_a_piece() -> None:
    flow = TextFlow("ok\nGITHUB_TOKEN: " + "s3cr3t" * PIECE + "\nend")
    shown = [part for start in starts(flow) for row in flow.rows(start, None) for part, _ in row]
    assert not any("s3cr3t" in part for part in shown)
    assert shown[0] == "ok"
    assert shown[-1] == "end"
    assert any(MASK in part for part in shown)


# ---------------------------------------------------------------- the widget


class Viewer(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS = "LongText { padding: 0; }"

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(THEMES[0])
        self.theme = THEMES[0].name

    def compose(self) -> ComposeResult:
        yield LongText("text")

    @property
    def view(self) -> LongText:
        return self.query_one(LongText)


@asynccontextmanager
async def viewer(text: str, size: tuple[int, int] = (30, 6)) -> AsyncIterator[tuple[Viewer, Pilot[None]]]:
    app = Viewer()
    async with app.run_test(size=size) as pilot:
        app.view.show(text)
        app.view.focus()
        await pilot.pause()
        yield app, pilot


def screen(app: Viewer) -> list[str]:
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def numbered(count: int) -> str:
    return "\n".join(f"line {number}" for number in range(1, count + 1))


async def test_it_scrolls_and_stops_at_both_ends() -> None:
    async with viewer(numbered(20)) as (app, pilot):
        await pilot.press("k")
        assert screen(app)[0] == "line 1"
        await pilot.press("j", "j")
        assert screen(app)[0] == "line 3"
        await pilot.press("pagedown")
        assert screen(app)[0] == "line 8"
        await pilot.press("G", "j", "pagedown")
        assert screen(app) == [f"line {number}" for number in range(15, 21)]
        assert app.view.status_text == "end"
        await pilot.press("g")
        assert screen(app)[0] == "line 1"


async def test_search_steps_through_the_matches_and_says_which() -> None:
    text = "\n".join("a mite" if number % 10 == 0 else "leaf" for number in range(1, 101))
    async with viewer(text) as (app, pilot):
        app.view.search("mite")
        await pilot.pause()
        assert app.view.status_text.startswith("1 of 10 “mite”")
        assert "a mite" in screen(app)
        app.view.next_match(1)
        app.view.next_match(1)
        assert app.view.status_text.startswith("3 of 10")
        app.view.next_match(-1)
        assert app.view.status_text.startswith("2 of 10")
        for _ in range(9):
            app.view.next_match(1)
        assert app.view.status_text.startswith("1 of 10")
        app.view.search("worm")
        assert app.view.status_text.startswith("no “worm”")


async def test_following_stays_at_the_end_until_one_scrolls_up() -> None:
    async with viewer(numbered(10)) as (app, pilot):
        app.view.follow = True
        app.view.show(numbered(30))
        await pilot.pause()
        assert screen(app)[-1] == "line 30"
        await pilot.press("k")
        assert not app.view.follow
        app.view.show(numbered(40))
        await pilot.pause()
        assert screen(app)[-1] == "line 29"


async def test_a_refresh_keeps_the_place_and_another_text_begins_at_its_top() -> None:
    async with viewer(numbered(30)) as (app, pilot):
        app.view.show(numbered(30), key="output")
        await pilot.press("pagedown")
        before = screen(app)
        app.view.show(numbered(50), key="output")
        await pilot.pause()
        assert screen(app) == before
        app.view.show("other\n" + numbered(50), key="input")
        await pilot.pause()
        assert screen(app)[0] == "other"


async def test_wrapping_can_be_switched_off_and_then_it_goes_sideways() -> None:
    async with viewer("word " * 12 + "END\nnext") as (app, pilot):
        assert screen(app)[2].endswith("END")
        app.view.wrap = False
        await pilot.pause()
        assert screen(app)[1] == "next"
        await pilot.press(*["l"] * 5)
        assert "END" in screen(app)[0]
        app.view.wrap = True
        await pilot.pause()
        assert screen(app)[0].startswith("word word")


async def test_ten_megabytes_open_without_being_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {number} of a very long output that an agent left\n" for number in range(220_000))
    assert len(text) > 10_000_000
    read = itertools.count()
    real = TextFlow.rows

    def counted(self: TextFlow, start: int, *more: object) -> object:
        next(read)
        return real(self, start, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(TextFlow, "rows", counted)
    async with viewer(text, size=(80, 24)) as (app, pilot):
        await pilot.press("G")
        assert screen(app)[-1] == "line 219999 of a very long output that an agent left"
        app.view.search("line 110000 ")
        await pilot.pause()
        assert any(line.startswith("line 110000 ") for line in screen(app))
        assert len(app.view.children) == 0
        assert next(read) < 2000


async def test_one_line_of_ten_megabytes_opens_too() -> None:
    async with viewer("x" * 10_000_000, size=(80, 24)) as (app, pilot):
        await pilot.press("G", "pageup", "g", "pagedown")
        assert set(screen(app)) == {"x" * 80}


async def test_hostile_text_is_shown_as_marks() -> None:
    async with viewer("\x1b[31mred\x1b[0m \u202eright\u202c [bold]b[/bold] [red\x07\x9b2J", (60, 4)) as (
        app,
        _,
    ):
        shown = "\n".join(screen(app))
        assert "[bold]b[/bold] [red" in shown
        assert not any(char in shown for char in "\x1b\u202e\u202c\x07\x9b")


async def test_no_text_looks_different_from_a_failure() -> None:
    async with viewer("") as (app, pilot):
        app.view.notice("no output yet")
        await pilot.pause()
        assert screen(app)[0] == "no output yet"
        assert app.view.status_text == ""
        app.view.notice("antfarm.db: disk I/O error", alarm=True)
        await pilot.pause()
        assert screen(app)[0] == "antfarm.db: disk I/O error"
