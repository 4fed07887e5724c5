"""The dialogs that ask: the safe choice first, the big ones typed, hostile text harmless."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import TextArea

from farmtui.console.input_dialog import InputDialog, Prompt
from farmtui.console.plan_dialog import PlanDialog, Question
from farmtui.console.themes import THEMES

RESET = Question(
    "Reset the stale claim of #214 implement",
    (
        ("why", "running 2h 04m without a word; developer's limit is 30m (+5m)"),
        ("will", "step implement  status  running → pending"),
        ("will", "step implement  current story  S-3 → none"),
        ("will", "story S-3  status  running → pending"),
        ("then", "developer's cron polls in 3m 12s"),
        ("undo", "with u, until an agent claims it"),
    ),
    "Reset",
)
DELETE = Question(
    "Delete 7 crons", tuple(("will", f"delete meadow/agent-{n}") for n in range(40)), "Delete", "delete 7"
)


class Asking(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(THEMES[0])
        self.theme = THEMES[0].name
        self.answers: list[object] = []
        self.plan_dialog = PlanDialog()
        self.input_dialog = InputDialog()

    def on_mount(self) -> None:
        self.install_screen(self.plan_dialog, "plan")
        self.install_screen(self.input_dialog, "input")

    def show(self, question: Question) -> None:
        self.plan_dialog.load(question)
        self.push_screen("plan", self.answers.append)

    def prompt(self, prompt: Prompt) -> None:
        self.input_dialog.load(prompt)
        self.push_screen("input", self.answers.append)


@asynccontextmanager
async def asking(size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Asking, Pilot[None]]]:
    app = Asking()
    async with app.run_test(size=size) as pilot:
        yield app, pilot


def picture(app: App[None]) -> str:
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
async def test_the_whole_plan_is_on_the_screen(size: tuple[int, int]) -> None:
    async with asking(size) as (app, pilot):
        app.show(RESET)
        await pilot.pause()
        shown = picture(app)
        for word in (
            "Reset the stale claim of #214",
            "why",
            "S-3 → none",
            "developer's cron",
            "undo",
            "Cancel",
        ):
            assert word in shown


async def test_enter_cancels_since_cancel_is_focused_first() -> None:
    async with asking() as (app, pilot):
        app.show(RESET)
        await pilot.pause()
        await pilot.press("enter")
        assert app.answers == [False]


@pytest.mark.parametrize("keys", [["y"], ["right", "enter"], ["tab", "enter"]])
async def test_saying_yes(keys: list[str]) -> None:
    async with asking() as (app, pilot):
        app.show(RESET)
        await pilot.pause()
        await pilot.press(*keys)
        assert app.answers == [True]


@pytest.mark.parametrize("key", ["escape", "n", "q"])
async def test_saying_no(key: str) -> None:
    async with asking() as (app, pilot):
        app.show(RESET)
        await pilot.pause()
        await pilot.press(key)
        assert app.answers == [False]


async def test_the_big_ones_ask_for_the_phrase() -> None:
    async with asking() as (app, pilot):
        app.show(DELETE)
        await pilot.pause()
        assert "Type “delete 7”" in picture(app)
        await pilot.press("y", "enter")
        assert app.answers == []
        await pilot.press("backspace", *"delete 7", "enter")
        assert app.answers == [True]


async def test_the_same_dialog_shows_the_next_plan_from_its_beginning() -> None:
    async with asking() as (app, pilot):
        app.show(DELETE)
        await pilot.pause()
        await pilot.press("escape")
        app.show(RESET)
        await pilot.pause()
        shown = picture(app)
        assert "meadow" not in shown
        assert "Type" not in shown
        await pilot.press("enter")
        assert app.answers == [False, False]


async def test_a_plan_longer_than_the_screen_scrolls_and_says_so() -> None:
    async with asking() as (app, pilot):
        app.show(Question("Long", DELETE.rows, "Do it"))
        await pilot.pause()
        assert "more" in picture(app)
        assert "agent-39" not in picture(app)
        await pilot.press(*["space"] * 6)
        await pilot.pause()
        assert "agent-39" in picture(app)
        assert "Cancel" in picture(app)


async def test_hostile_text_in_a_plan_is_shown_as_marks() -> None:
    async with asking() as (app, pilot):
        app.show(
            Question("Retry [bold]#5[/] \x1b[31m", (("why", "[red]x[/red] \x1b]0;t\x07 \u202e"),), "Retry")
        )
        await pilot.pause()
        shown = picture(app)
        assert "[bold]#5[/]" in shown
        assert "[red]x[/red]" in shown
        assert not any(char in shown for char in "\x1b\x07\u202e")


async def test_guidance_of_several_lines_goes_on_with_ctrl_s() -> None:
    async with asking() as (app, pilot):
        app.prompt(Prompt("Retry #209 with guidance", ("fixer reads it",), "Preview"))
        await pilot.pause()
        assert not app.screen.query_one(TextArea).cursor_blink
        await pilot.press(*"use y", "enter", *"q", "ctrl+s")
        assert app.answers == ["use y\nq"]


async def test_guidance_can_be_cancelled_and_is_not_kept() -> None:
    async with asking() as (app, pilot):
        app.prompt(Prompt("Retry", (), "Preview"))
        await pilot.pause()
        await pilot.press(*"some", "escape")
        app.prompt(Prompt("Retry", (), "Preview"))
        await pilot.pause()
        await pilot.press("ctrl+s")
        assert app.answers == [None]
        assert "Write something first" in picture(app)


async def test_an_optional_text_may_be_empty() -> None:
    async with asking() as (app, pilot):
        app.prompt(Prompt("Acknowledge", (), "Preview", optional=True))
        await pilot.pause()
        await pilot.press("ctrl+s")
        assert app.answers == [""]
