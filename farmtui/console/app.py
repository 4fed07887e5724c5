"""FarmApp: one farm on the screen. It takes Views as they come, and shows the newest to the screen on top."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from textual.app import App
from textual.filter import LineFilter
from textual.message import Message
from textual.screen import Screen

from farmtui.clock import Clock, SystemClock
from farmtui.console.actions import (
    BOARD,
    CRONS,
    ESCALATIONS,
    MEDIC,
    RUN,
    RUNS,
    SCREENS,
    Action,
    Target,
    action_for,
    not_here,
)
from farmtui.console.clipboard import copy
from farmtui.console.hints import Hints, hint_pieces
from farmtui.console.keyqueue import OneKeyAtATime
from farmtui.console.screen import FarmScreen
from farmtui.console.signs import AsciiFilter, wants_ascii
from farmtui.console.terminal import WATCH_S, TerminalDriver, TerminalWatch, on_signals
from farmtui.console.themes import THEMES, default_theme
from farmtui.resources import resource_folder
from farmtui.state import RunDetail
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View
    from farmtui.operations.desk import Desk

DialogType = TypeVar("DialogType", bound=Screen[Any])

TICK_S = 5.0
LIVELY_TICK_S = 1.0
MESSAGE_S = 12.0
NOT_HERE_S = 4.0

# Imported when first gone to: none but the board is needed for the first paint.
_SCREENS: Mapping[str, str] = {
    BOARD: "farmtui.console.board:BoardScreen",
    RUNS: "farmtui.console.runs:RunsScreen",
    RUN: "farmtui.console.run:RunScreen",
    ESCALATIONS: "farmtui.console.escalations:EscalationsScreen",
    MEDIC: "farmtui.console.medic:MedicScreen",
    CRONS: "farmtui.console.crons:CronsScreen",
}


class LiveFarm(Protocol):
    """What the console needs of a farm: `farmtui.farm.Farm`, or a stand-in in tests."""

    @property
    def desk(self) -> Desk: ...

    def start(self, publish: Callable[[View], None]) -> None:
        """Begin to read; `publish` may be called from any thread."""

    def refresh(self) -> None:
        """Read everything again now."""

    def stop(self) -> None:
        """End."""

    def detail(self, run_id: str) -> RunDetail:
        """The long texts of one run. Blocks."""


class FarmApp(OneKeyAtATime, App[int]):
    """The console.

    Args:
        farm: where Views come from.
        clock: the time that ages count to.
        readonly: takes every write away, visibly.
        environ: the environment; os.environ where None.
    """

    TITLE = "farm"
    DEFAULT_MODE = BOARD
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False

    class Published(Message):
        """A newer View lies in the slot."""

    def __init__(
        self,
        farm: LiveFarm,
        *,
        clock: Clock | None = None,
        readonly: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        environ = os.environ if environ is None else environ
        self._ascii = AsciiFilter(enabled=wants_ascii(environ))
        super().__init__(
            driver_class=TerminalDriver, css_path=sorted(resource_folder("styles").glob("*.tcss"))
        )
        self.animation_level = "none"
        self.farm = farm
        self.clock: Clock = clock or SystemClock()
        self.readonly = readonly
        self.view: View | None = None
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = default_theme(environ)
        self._slot: View | None = None
        self._slot_lock = threading.Lock()
        self._listening = False
        self._heard_at = 0.0
        self._begun = False
        self._rooms: dict[str, FarmScreen] = {}
        # A mode each: its screen stays mounted, with its place kept, while another is shown.
        for name in SCREENS:
            self.add_mode(name, partial(self._room, name))
        self._trail: list[str] = []
        self._environ = environ
        self._copied: tuple[Mapping[str, str], int] | None = None
        self._message: tuple[str, str] | None = None
        self._message_stays = False
        self._visits = 0

    # ------------------------------------------------------------ Views

    def begin(self) -> None:
        """Start reading, if that has not been done: it may begin before the terminal is set up."""
        if not self._begun:
            self._begun = True
            self.farm.start(self.publish)

    def publish(self, view: View) -> None:
        """Take a View, from any thread. One that was not shown yet is replaced."""
        with self._slot_lock:
            waiting = self._slot is not None
            self._slot = view
        if self._listening and not waiting:
            self.post_message(self.Published())

    def on_farm_app_published(self) -> None:
        self._take()

    def _take(self) -> None:
        with self._slot_lock:
            view, self._slot = self._slot, None
        if view is not None:
            self.view = view
            self.readonly = self.readonly or view.state.readonly
            self._heard_at = time.monotonic()
            self.show_all()

    def show_all(self) -> None:
        """Draw header, hints and the screen on top; nothing where a dialog covers it."""
        screen = self.room
        if screen is None or not screen.is_mounted or not screen.query(Hints):
            return
        now = self.clock.now()
        silent_s = time.monotonic() - self._heard_at if self.view is not None else 0.0
        screen.show_frame(self.view, now, readonly=self.readonly, silent_s=silent_s)
        if self.view is not None:
            screen.show(self.view, now)
        self.show_hints()

    def on_resize(self) -> None:
        """What was left out or shortened for the former width is chosen anew, once the new one is known."""
        self.call_after_refresh(self.show_all)

    def _tick(self) -> None:
        # Farm publishes as often: what it has just shown is not drawn twice.
        if time.monotonic() - self._heard_at >= TICK_S:
            self.show_all()

    def _lively_tick(self) -> None:
        if self.room is not None and self.room.lively:
            self.show_all()

    # ------------------------------------------------------------ life

    def on_mount(self) -> None:
        self._listening = True
        self.begin()
        self._take()
        self.set_interval(TICK_S, self._tick)
        self.set_interval(LIVELY_TICK_S, self._lively_tick)
        if not self.is_headless and sys.__stdin__ is not None:
            on_signals(self.leave)
            self._terminal = TerminalWatch(sys.__stdin__.fileno())
            self.set_interval(WATCH_S, self._watch_terminal)

    def on_unmount(self) -> None:
        self.farm.stop()

    def leave(self) -> None:
        """End as by `q`, from a signal or where the terminal is gone."""
        self.exit(0)

    @property
    def fault(self) -> Exception | None:
        """What ended the app, where that was an exception that nobody handled."""
        return self._exception

    def _fatal_error(self) -> None:
        # Textual's own would print a traceback with every local variable: the farm's data, secrets and all.
        self._close_messages_no_wait()

    def _watch_terminal(self) -> None:
        if self._terminal.lost:
            self.leave()

    def get_line_filters(self) -> list[LineFilter]:
        filters = list(super().get_line_filters())
        return [*filters, self._ascii] if self._ascii.enabled else filters

    def action_help_quit(self) -> None:
        self.exit(0)

    # ------------------------------------------------------------ going about

    def _room(self, name: str) -> FarmScreen:
        if name not in self._rooms:
            module, _, cls = _SCREENS[name].partition(":")
            self._rooms[name] = getattr(import_module(module), cls)()
        return self._rooms[name]

    @property
    def room(self) -> FarmScreen | None:
        """The screen on top; None while a dialog is, and while the app goes down."""
        stack = self.screen_stack
        return stack[-1] if stack and isinstance(stack[-1], FarmScreen) else None

    def go(self, name: str, *, back: bool = False) -> FarmScreen:
        """Show a screen, its place kept as it was left; Escape comes back to where this was called."""
        here = self.room
        screen = self._room(name)
        if here is None or here is screen:
            return screen
        if not back:
            self._trail = [*(there for there in self._trail if there != here.NAME), here.NAME][-8:]
        self.switch_mode(name)
        return screen

    def open_run(self, run_id: str) -> None:
        """Show the Run screen of a run."""
        screen: Any = self._room(RUN)
        screen.look_at(run_id)
        self.go(RUN)

    def do_back(self) -> None:
        """Back to where we came from; from the first screen nowhere."""
        if self._trail:
            self.go(self._trail.pop(), back=True)
        elif self.room is not None and self.room.NAME != BOARD:
            self.go(BOARD, back=True)

    # ------------------------------------------------------------ acting

    def action_press(self, key: str) -> None:
        """What a key of the registry does here, for what is selected now."""
        room = self.room
        if room is None or not room.is_mounted:
            return
        target = room.target()
        action = action_for(key, room.NAME, self.view, target, self.readonly)
        if action is not None:
            self.run_action_on(action, target)
        elif not self._message_stays:
            self.say(not_here(key), "muted", seconds=NOT_HERE_S)

    def run_action_on(self, action: Action, target: Target) -> None:
        """Do an action for a target, or say why it cannot be done."""
        if not self._message_stays:
            self.say("")
        reason = action.why_disabled(self.view, target, self.readonly)
        if reason is not None:
            self.say(f"{action.shown_key} {action.hint or action.id}: {reason}", "warning")
            return
        if action.danger:
            self._acting.perform(action.id, target)
        elif action.id in SCREENS:
            self.go(action.id)
        else:
            handler = getattr(self.room, f"do_{action.id}", None) or getattr(self, f"do_{action.id}", None)
            if handler is not None:
                handler()

    @property
    def _acting(self) -> Any:
        """`farmtui.console.acting.Acting`, imported when first acted."""
        if not hasattr(self, "_acting_kept"):
            self._acting_kept = import_module("farmtui.console.acting").Acting(self)
        return self._acting_kept

    def do_refresh(self) -> None:
        """Read everything again."""
        self.farm.refresh()
        self.say("reading everything again")

    def do_palette(self) -> None:
        """Choose an action, or a run to open."""
        from farmtui.console.palette import Choice, Palette

        room = self.room
        if room is None:
            return
        palette = self._dialog("palette", Palette)
        palette.load(room.NAME, self.view, target := room.target(), self.readonly)

        def chosen(choice: Choice | None) -> None:
            if choice is not None and choice.run is not None:
                self.open_run(choice.run)
            elif choice is not None and choice.action is not None:
                self.run_action_on(choice.action, target)

        # Not in a worker: keys typed right after `:` must not reach the screen below.
        self.push_screen(palette, chosen)

    def do_help(self) -> None:
        """The keys of where we are."""
        from farmtui.console.helpscreen import HelpScreen

        if (room := self.room) is not None:
            screen = self._dialog("help", HelpScreen)
            screen.load(room.NAME, self.view, room.target(), self.readonly)
            self.push_screen(screen)

    def do_copy(self) -> None:
        """Copy what the selection is known by; pressed again, the next thing that there is to copy."""
        if (room := self.room) is None or not (texts := room.target().texts):
            return
        kinds = list(texts)
        again = self._copied is not None and self._copied[0] == texts
        at = (self._copied[1] + 1) % len(kinds) if again and self._copied is not None else 0
        self._copied = (texts, at)
        self._work(self._copy(kinds[at], texts[kinds[at]], kinds[(at + 1) % len(kinds)]), "copy")

    async def _copy(self, kind: str, text: str, following: str) -> None:
        how = await copy(text, self._environ, self.copy_to_clipboard)
        more = f" · y again: {following}" if following != kind else ""
        self.say(f"copied {kind} ({how}){more} · {safe_line(text, 60)}")

    def _work(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.run_worker(work, name=name, group=name, exclusive=True, exit_on_error=False)

    def _dialog(self, name: str, kind: type[DialogType]) -> DialogType:
        """The one instance of a dialog: dead ones would stay in Textual's caches."""
        if not self.is_screen_installed(name):
            self.install_screen(kind(), name)
        return cast("DialogType", self.get_screen(name))

    def do_quit(self) -> None:
        """Leave."""
        self.exit(0)

    # ------------------------------------------------------------ saying

    def say(
        self, text: str, tone: str = "strong", *, stays: bool = False, seconds: float = MESSAGE_S
    ) -> None:
        """Show one safe line in place of the hints.

        It goes with the next action or after `seconds`; one that `stays` goes only when another is said.
        """
        message = (f" {text} ", tone) if text else None
        if message == self._message:
            return
        self._message, self._message_stays = message, stays and bool(text)
        self._visits += 1
        if text and not stays:
            visit = self._visits
            self.set_timer(seconds, lambda: self._unsay(visit))
        self.show_hints()

    def _unsay(self, visit: int) -> None:
        if visit == self._visits:
            self.say("")

    def show_hints(self) -> None:
        """Draw the hint line of the screen on top."""
        room = self.room
        if room is None or not room.is_mounted or not room.query(Hints):
            return
        hints = room.query_one(Hints)
        if self._message is not None:
            hints.show((self._message,))
        else:
            hints.show(hint_pieces(room.NAME, self.view, room.target(), self.readonly, self.size.width))
