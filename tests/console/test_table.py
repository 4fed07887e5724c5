"""The line-based list and table: columns, cursor, marks, and what is drawn again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from farmtui.console.rowlist import CURSOR
from farmtui.console.table import Cell, Column, LineTable, fit
from farmtui.console.themes import DARK, THEMES

COLUMNS = (
    Column("number", "run", 6),
    Column("task", "task", 10, grows=True),
    Column("step", "step", 8, priority=2),
    Column("age", "age", 5, align="right", priority=1),
)


def test_columns_drop_out_by_priority() -> None:
    assert [at for at, _ in fit(COLUMNS, 40)] == [0, 1, 2, 3]
    assert [at for at, _ in fit(COLUMNS, 30)] == [0, 1, 3]
    assert [at for at, _ in fit(COLUMNS, 20)] == [0, 1]


@given(st.integers(min_value=17, max_value=300))
def test_columns_fill_the_width(width: int) -> None:
    found = fit(COLUMNS, width)
    assert sum(room + 1 for _, room in found) - 1 == width


class Shell(App[None]):
    """A table of its own."""

    def __init__(self, count: int) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK
        self.table = LineTable("table", COLUMNS, markable=True)
        self.words = [f"word {number}" for number in range(count)]
        self.asked = 0

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.show(range(len(self.words)))
        self.table.focus()

    def show(self, numbers: range | list[int]) -> None:
        self.table.show_ids([str(number) for number in numbers], self.cells)

    def cells(self, row_id: str) -> tuple[Cell, ...]:
        self.asked += 1
        return ((f"#{row_id}", "strong"), (self.words[int(row_id)], ""), ("build", ""), ("2m", "muted"))


def lines(app: App[None]) -> list[str]:
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


async def cursor_line(app: Shell, pilot: Pilot[None]) -> str:
    await pilot.pause()
    return next(line for line in lines(app) if line.startswith(CURSOR))


async def test_keys_move_the_cursor_and_it_stays_in_sight() -> None:
    app = Shell(100)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert "run" in lines(app)[0]
        for keys, row in (
            (("j", "down"), "#2"),
            (("k",), "#1"),
            (("G",), "#99"),
            (("pageup",), "#91"),
            (("g",), "#0"),
            (("pagedown",), "#8"),
            (("up",), "#7"),
        ):
            await pilot.press(*keys)
            assert row in await cursor_line(app, pilot)
            assert app.table.selected == row[1:]


async def test_the_cursor_stays_on_its_row_through_a_refresh() -> None:
    app = Shell(60)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press(*["j"] * 20)
        await pilot.pause()
        place = [line.startswith(CURSOR) for line in lines(app)].index(True)
        app.show([*range(50, 60), *range(50)])
        assert app.table.selected == "20"
        assert "#20" in await cursor_line(app, pilot)
        assert [line.startswith(CURSOR) for line in lines(app)].index(True) == place


async def test_a_row_that_goes_leaves_the_cursor_in_its_place() -> None:
    app = Shell(10)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.press("j", "j", "j")
        app.show([0, 1, 2, 4, 5, 6])
        assert app.table.selected == "4"
        app.show([])
        assert app.table.selected is None
        app.show([7])
        assert app.table.selected == "7"


async def test_at_the_top_new_rows_are_seen() -> None:
    app = Shell(40)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        app.show([39, *range(39)])
        await pilot.pause()
        assert "#39" in lines(app)[1]
        assert app.table.selected == "0"


async def test_ten_thousand_rows_cost_a_screenful() -> None:
    app = Shell(10_000)
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        assert app.asked < 100
        await pilot.press("G")
        await pilot.pause()
        assert "#9999" in "\n".join(lines(app))
        assert app.asked < 300


async def test_only_what_differs_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Shell(30)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        drawn: list[int] = []
        render = app.table.render_line
        monkeypatch.setattr(app.table, "render_line", lambda y: (drawn.append(y), render(y))[1])
        app.show(range(30))
        await pilot.pause()
        assert drawn == []
        app.words[3] = "other words"
        app.show(range(30))
        await pilot.pause()
        assert set(drawn) == {4}
        assert "other words" in lines(app)[4]


async def test_marks_are_kept_by_row() -> None:
    app = Shell(10)
    async with app.run_test(size=(40, 10)) as pilot:
        app.table.toggle_mark()
        app.table.toggle_mark()
        assert app.table.marked == ("0", "1")
        await pilot.pause()
        assert "◆" in lines(app)[1]
        app.show([1, 2, 3])
        assert app.table.marked == ("1",)
        assert app.table.clear_marks()
        assert app.table.marked == ()
        assert not app.table.clear_marks()


async def test_a_click_puts_the_cursor_there_and_a_second_one_chooses() -> None:
    chosen: list[str | None] = []

    class Clicked(Shell):
        def on_row_list_chosen(self) -> None:
            chosen.append(self.table.selected)

    app = Clicked(10)
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.click("#table", offset=(5, 4))
        assert "#3" in await cursor_line(app, pilot)
        assert chosen == []
        await pilot.click("#table", offset=(5, 4))
        await pilot.pause()
        assert chosen == ["3"]
        await pilot.click("#table", offset=(5, 0))
        assert app.table.selected == "3"


async def test_the_order_is_shown_in_the_head() -> None:
    app = Shell(3)
    async with app.run_test(size=(40, 10)) as pilot:
        app.table.show_order("task", True)
        await pilot.pause()
        assert "task ▼" in lines(app)[0]
        app.table.show_order("task", False)
        await pilot.pause()
        assert "task ▲" in lines(app)[0]
