"""The app: Views from a thread, nothing drawn behind a dialog, going about, copying, and odd terminals."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events

from farmtui.console import clipboard
from farmtui.console.actions import ACTIONS, Target
from farmtui.console.app import FarmApp
from farmtui.console.board import BoardScreen
from farmtui.console.hints import Hints
from farmtui.console.palette import find_actions, find_runs
from farmtui.console.table import LineTable
from farmtui.console.themes import ANSI_DARK, DARK, default_theme
from farmtui.state import SourceStatus
from tests.console.support import (
    ENVIRON,
    a_run,
    a_view,
    ago,
    busy_view,
    check_golden,
    press,
    settled,
    shown,
    text_of,
    until,
)


def message(app: FarmApp) -> str:
    return app.screen.query_one(Hints).line.strip()


# ---------------------------------------------------------------- Views


async def test_views_come_from_a_thread_and_the_newest_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    show = BoardScreen.show
    monkeypatch.setattr(
        BoardScreen, "show", lambda self, view, now: (seen.append(view), show(self, view, now))[1]
    )
    async with shown(busy_view()) as (app, farm, _):
        seen.clear()
        views = [a_view([a_run(number, f"Task {number}")]) for number in range(1, 201)]
        assert farm.publish is not None

        def publish_all() -> None:
            assert farm.publish is not None
            for view in views:
                farm.publish(view)

        thread = threading.Thread(target=publish_all)
        thread.start()
        thread.join()
        await until(lambda: app.view is views[-1])
        await settled(app)
        assert "Task 200" in text_of(app)
        assert len(seen) < 20


async def test_a_view_that_came_before_the_screen_is_shown() -> None:
    async with shown(busy_view()) as (app, _, _):
        assert "#214" in text_of(app)


async def test_nothing_is_drawn_behind_a_dialog(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "question_mark")
        drawn: list[Any] = []
        show = BoardScreen.show
        monkeypatch.setattr(
            BoardScreen, "show", lambda self, view, now: (drawn.append(view), show(self, view, now))[1]
        )
        view = a_view([a_run(77, "Came meanwhile")])
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        app.show_all()
        assert drawn == []
        await press(app, pilot, "escape")
        assert "Came meanwhile" in text_of(app)


async def test_what_does_not_differ_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(busy_view()) as (app, farm, _):
        sent: list[Any] = []
        display = app._display
        monkeypatch.setattr(
            app, "_display", lambda screen, what: (sent.append(what), display(screen, what))[1]
        )
        view = busy_view()
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await settled(app)
        assert sent == []


async def test_a_stale_farm_keeps_its_runs_below_a_banner() -> None:
    async with shown(busy_view()) as (app, farm, _):
        status = SourceStatus("database", ago(minutes=4), "disk I/O error", ago(minutes=2))
        view = busy_view()
        view = replace(view, state=replace(view.state, sources={**view.state.sources, "database": status}))
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await settled(app)
        assert "What you see is 4m old" in text_of(app)
        assert "▲ stale 4m" in text_of(app)
        assert "#214" in text_of(app)
        well = busy_view()
        farm.publish(well)
        await until(lambda: app.view is well)
        await settled(app)
        assert "What you see" not in text_of(app)


async def test_an_absent_database_is_said_and_recovers() -> None:
    status = SourceStatus(
        "database", None, "no database at /home/op/.openclaw/antfarm/antfarm.db", ago(minutes=2)
    )
    absent = a_view([])
    absent = replace(absent, state=replace(absent.state, sources={"database": status}))
    async with shown(absent) as (app, farm, _):
        check_golden("board-absent-80x24", text_of(app))
        view = busy_view()
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await settled(app)
        assert "#209" in text_of(app)
        assert "Is this the gateway box?" not in text_of(app)


# ---------------------------------------------------------------- going about


async def test_number_keys_jump_and_escape_comes_back() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        names = []
        for key in ("2", "3", "4", "5", "1", "2"):
            await press(app, pilot, key)
            assert app.room is not None
            names.append(app.room.NAME)
        assert names == ["runs", "escalations", "medic", "crons", "board", "runs"]
        for name in ("board", "crons", "medic", "escalations"):
            await press(app, pilot, "escape")
            assert app.room is not None
            assert name == app.room.NAME


async def test_enter_opens_a_run_and_escape_comes_back_to_it() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "2", "j", "enter")
        assert app.room is not None
        assert app.room.NAME == "run"
        assert "#214" in text_of(app)
        await press(app, pilot, "escape")
        assert app.room.NAME == "runs"
        assert app.room.target().run == "run-214"


async def test_q_quits_and_the_farm_is_stopped() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await pilot.press("q")
        await until(lambda: app._exit)
        assert not farm.stopped
    assert farm.stopped
    assert app.return_code == 0


async def test_ctrl_r_reads_again() -> None:
    async with shown(busy_view()) as (app, farm, pilot):
        await press(app, pilot, "ctrl+r")
        assert farm.refreshed == 1
        assert "reading everything again" in message(app)


# ---------------------------------------------------------------- acting and saying


async def test_a_disabled_action_says_why() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "h", "j", "R")
        assert message(app).startswith("R reset: no stale claim here")
        await press(app, pilot, "j")
        assert message(app).startswith("R reset: no stale claim here")


async def test_readonly_is_shown_and_refuses() -> None:
    async with shown(busy_view(), readonly=True) as (app, _, pilot):
        assert "READ-ONLY" in text_of(app)
        await press(app, pilot, "R")
        assert "read-only" in message(app)


async def test_a_farm_that_is_readonly_makes_the_console_so() -> None:
    async with shown(busy_view(readonly=True)) as (app, _, _):
        assert app.readonly
        assert "READ-ONLY" in text_of(app)


async def test_the_target_is_the_row_the_action_was_opened_on() -> None:
    done: list[tuple[str, Target]] = []

    class Recorder:
        def perform(self, action_id: str, target: Target) -> None:
            done.append((action_id, target))

    async with shown(busy_view()) as (app, farm, pilot):
        app._acting_kept = Recorder()
        await press(app, pilot, "h")
        await press(app, pilot, "colon", *"reset")
        view = a_view([a_run(300, "Came meanwhile"), *busy_view().state.runs])
        assert farm.publish is not None
        farm.publish(view)
        await until(lambda: app.view is view)
        await press(app, pilot, "enter")
        await until(lambda: bool(done))
        assert done[0][0] == "reset"
        assert (done[0][1].run, done[0][1].step) == ("run-214", "implement")


async def test_a_message_that_stays_outlives_the_next_key() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        app.say("waiting for developer to claim implement", stays=True)
        await press(app, pilot, "2")
        assert "waiting for developer" in message(app)
        app.say("")
        assert "help" in message(app)


# ---------------------------------------------------------------- palette and help


def test_the_palette_finds_actions_and_says_which_are_not_possible() -> None:
    found = find_actions("reset", "board", busy_view(), Target(run="run-213"), False)
    assert [(action.id, reason is None) for action, reason in found] == [("reset", False)]
    names = [action.id for action, _ in find_actions("", "board", busy_view(), Target(), False)]
    assert set(names) == {action.id for action in ACTIONS if action.on("board")}


def test_the_palette_finds_runs_by_number_id_and_words() -> None:
    runs = busy_view().state.runs
    assert [run.number for run in find_runs("#214", runs)] == [214]
    assert [run.number for run in find_runs("run-20", runs)] == [209, 208, 207, 206, 205]
    assert [run.number for run in find_runs("relay flaky", runs)] == [209]
    assert find_runs("", runs) == []


async def test_the_palette_goes_to_a_run() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "colon", *"208")
        check_golden("palette-80x24", text_of(app))
        await press(app, pilot, "enter")
        await until(lambda: app.room is not None and app.room.NAME == "run")
        await settled(app)
        assert "#208" in text_of(app)
        await press(app, pilot, "ctrl+p", *"medic", "enter")
        await until(lambda: app.room is not None and app.room.NAME == "medic")


async def test_the_palette_is_one_instance_and_empty_each_time() -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, "colon", *"zzz")
        first = app.screen
        assert app.screen.query_one(LineTable).ids == ()
        await press(app, pilot, "enter")
        assert app.screen is first
        await press(app, pilot, "escape", "colon")
        assert app.screen is first
        assert len(app.screen.query_one(LineTable).ids) > 10


async def test_help_is_about_where_we_are() -> None:
    async with shown(busy_view(), (80, 50)) as (app, _, pilot):
        await press(app, pilot, "question_mark")
        check_golden("help-board-80x50", text_of(app))
        await press(app, pilot, "escape", "2", "question_mark")
        assert "sort by the next column" in text_of(app)
        await press(app, pilot, "q")
        assert app.room is not None
        assert app.room.NAME == "runs"


# ---------------------------------------------------------------- copying


async def test_y_copies_one_thing_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shown(busy_view()) as (app, _, pilot):
        copied: list[str] = []
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        await press(app, pilot, "h", "y")
        await until(lambda: len(copied) == 1)
        await settled(app)
        assert "copied run id (OSC 52) · y again: step id · run-214" in message(app)
        await press(app, pilot, "y")
        await until(lambda: len(copied) == 2)
        await press(app, pilot, "j", "y")
        await until(lambda: len(copied) == 3)
        assert copied == ["run-214", "run-214-implement", "run-213"]


@pytest.fixture
def fake_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tmux that writes down what it is given."""
    program = tmp_path / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args\ncat > {tmp_path}/buffer\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return tmp_path


async def test_in_tmux_the_text_goes_through_tmux(fake_tmux: Path) -> None:
    osc52: list[str] = []
    how = await clipboard.copy("run-214", {"TMUX": "/tmp/x,1,0"}, osc52.append)
    assert how == "tmux"
    assert (fake_tmux / "args").read_text().split() == ["load-buffer", "-w", "-"]
    assert (fake_tmux / "buffer").read_text() == "run-214"
    assert osc52 == []


async def test_without_a_tmux_that_answers_osc_52_is_used(
    fake_tmux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    osc52: list[str] = []
    (fake_tmux / "bin" / "tmux").write_text("#!/bin/sh\nexit 1\n")
    await clipboard.copy("one", {"TMUX": "x"}, osc52.append)
    (fake_tmux / "bin" / "tmux").write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(clipboard, "_TMUX_S", 0.2)
    await clipboard.copy("two", {"TMUX": "x"}, osc52.append)
    monkeypatch.setenv("PATH", str(fake_tmux))
    await clipboard.copy("three", {"TMUX": "x"}, osc52.append)
    await clipboard.copy("four", {}, osc52.append)
    assert osc52 == ["one", "two", "three", "four"]


# ---------------------------------------------------------------- terminals


async def test_an_ascii_terminal_gets_ascii_in_the_same_places() -> None:
    async with shown(busy_view()) as (app, _, _):
        unicode = text_of(app)
    async with shown(busy_view(), environ={**ENVIRON, "LANG": "C"}) as (app, _, _):
        text = text_of(app)
        assert text.isascii()
        assert [len(line) for line in text.splitlines()] == [len(line) for line in unicode.splitlines()]
        check_golden("board-ascii-80x24", text)


async def test_no_color_keeps_the_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(busy_view()) as (app, _, _):
        assert "●◐○○ implement" in text_of(app)
        assert "‼ Needs a human 1" in text_of(app)
        for line in app.screen._compositor.render_strips():
            for segment in line:
                colour = segment.style.color if segment.style else None
                if colour is not None and colour.triplet is not None:
                    red, green, blue = colour.triplet
                    assert max(red, green, blue) - min(red, green, blue) <= 2


async def test_sixteen_colours_use_the_terminals_own() -> None:
    async with shown(busy_view(), environ={"TERM": "screen", "LANG": "C.UTF-8"}) as (app, _, _):
        assert app.theme == ANSI_DARK
        assert "▌#209 relay" in text_of(app)
        colours = {
            segment.style.color.name
            for line in app.screen._compositor.render_strips()
            for segment in line
            if segment.style is not None and segment.style.color is not None
        }
        assert not {name for name in colours if name.startswith("#")}, colours


def test_the_theme_follows_the_terminal_and_the_operator() -> None:
    assert default_theme({"TERM": "xterm-256color"}) == DARK
    assert default_theme({"TERM": "screen", "COLORTERM": "truecolor"}) == DARK
    assert default_theme({"TERM": "screen"}) == ANSI_DARK
    assert default_theme({"TERM": "linux"}) == ANSI_DARK
    assert default_theme({"TERM": "screen", "FARM_THEME": "farm-light"}) == "farm-light"
    assert default_theme({"TERM": "screen", "FARM_THEME": "nonsense"}) == ANSI_DARK


async def test_resizing_rearranges() -> None:
    async with shown(busy_view(), (80, 24)) as (app, _, pilot):
        await pilot.resize_terminal(160, 45)
        await settled(app)
        assert "✓ Done 3" in text_of(app)
        assert "needs a human 34m" in text_of(app)
        await pilot.resize_terminal(60, 20)
        await settled(app)
        assert "▌#209 relay" in text_of(app)


# ---------------------------------------------------------------- fast fingers


def type_at_once(app: FarmApp, *keys: str) -> None:
    """Put keys into the app's queue without waiting in between, as a paste or a slow line does."""
    for key in keys:
        character = key if len(key) == 1 else None
        app.post_message(events.Key({"/": "slash", ":": "colon"}.get(key, key), character))


async def test_what_follows_the_filter_at_once_is_for_the_list() -> None:
    async with shown(busy_view()) as (app, _, _):
        type_at_once(app, "2", "/", *"relay", "enter", "G")
        await until(lambda: app.room is not None and app.room.NAME == "runs" and app.room.is_mounted)
        await until(lambda: app.room is not None and app.room.target().run == "run-205")
        assert "filter / relay" in text_of(app)


async def test_lanes_are_changed_before_the_next_key() -> None:
    async with shown(busy_view()) as (app, _, _):
        type_at_once(app, "h", "j", "l", "l", "l", "j")
        await until(lambda: app.room is not None and app.room.target().run == "run-206")
        type_at_once(app, "h", "h", "h")
        await until(lambda: app.room is not None and app.room.target().run == "run-213")


async def test_what_follows_a_colon_at_once_is_for_the_palette() -> None:
    async with shown(busy_view()) as (app, _, _):
        type_at_once(app, ":", *"quart")
        await until(lambda: not isinstance(app.screen, BoardScreen))
        await settled(app)
        assert "quart" in text_of(app)
        assert not app._exit


async def test_a_resized_header_says_at_once_what_there_is_room_for() -> None:
    async with shown(busy_view(), size=(60, 20)) as (app, _, pilot):
        assert "gateway" not in text_of(app)
        await pilot.resize_terminal(160, 45)
        await settled(app)
        assert "gateway" in text_of(app).splitlines()[0]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("X", "X does nothing here; it is for 4 medic, 5 crons"),
        ("f", "f does nothing here; it is for a run"),
        ("space", "Space does nothing here; it is for 5 crons"),
    ],
)
async def test_a_key_of_other_screens_says_where_it_does_something(key: str, words: str) -> None:
    async with shown(busy_view()) as (app, _, pilot):
        await press(app, pilot, key)
        assert words in text_of(app)
