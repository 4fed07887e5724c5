"""The palette: `:` or Ctrl+P. Every action that is there just now, and a way to any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from farmtui.console.actions import Action, Target, actions_on
from farmtui.console.rowlist import RowList
from farmtui.console.table import Column, LineTable, Row
from farmtui.state import Run
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

_RUNS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Choice:
    """What the operator chose: an action, or a run to open."""

    action: Action | None = None
    run: str | None = None


def find_actions(
    pattern: str, screen: str, view: View | None, target: Target, readonly: bool
) -> list[tuple[Action, str | None]]:
    """Actions of the screen with every word of the pattern in their words or command, and why not now.

    What begins with the pattern comes first, what is not possible last.
    """
    words = pattern.split()
    seen: dict[str, tuple[Action, str | None]] = {}
    for action in actions_on(screen):
        text = f"{action.command_name} {action.words}".lower()
        if all(word in text for word in words):
            seen.setdefault(action.id, (action, action.why_disabled(view, target, readonly)))
    return sorted(
        seen.values(), key=lambda found: (found[1] is not None, not found[0].command_name.startswith(pattern))
    )


def find_runs(pattern: str, runs: Sequence[Run]) -> list[Run]:
    """Runs by number, beginning of the id, or words of workflow and task; () for an empty pattern."""
    text = pattern.removeprefix("#")
    if not text:
        return []
    words = text.split()
    exact: list[Run] = []
    others: list[Run] = []
    for run in runs:
        if str(run.number) == text:
            exact.append(run)
        elif len(others) < _RUNS_SHOWN and (
            run.id.startswith(text) or all(word in f"{run.workflow} {run.task}".lower() for word in words)
        ):
            others.append(run)
    return exact + others


class Palette(ModalScreen[Choice | None]):
    """One instance, loaded again each time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("down,ctrl+n", "move(1)", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("pagedown", "move(8)", show=False, priority=True),
        Binding("pageup", "move(-8)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Palette { align: center top; background: $background 60%; }
    Palette #palette-box { width: 92%; max-width: 96; height: 80%; max-height: 24; margin-top: 1;
        border: round $accent; padding: 0 1; background: $surface; }
    Palette Input { height: 1; border: none; padding: 0; background: $surface; }
    Palette Input:focus { border: none; background: $surface; }
    Palette LineTable { background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="palette")
        self._screen = ""
        self._view: View | None = None
        self._target = Target()
        self._readonly = False
        self._choices: dict[str, Choice] = {}

    def load(self, screen: str, view: View | None, target: Target, readonly: bool) -> None:
        """What to choose from when it is pushed next; what the actions are about stays `target`."""
        self._screen, self._view, self._target, self._readonly = screen, view, target, readonly

    def compose(self) -> ComposeResult:
        with Vertical(id="palette-box") as box:
            box.border_title = "commands, or a run: number, id, words"
            field = Input(id="palette-input", compact=True, placeholder="type to find")
            field.cursor_blink = False
            yield field
            table = LineTable(
                "palette-table",
                (
                    Column("key", "", 9),
                    Column("name", "", 14, priority=1),
                    Column("words", "", 20, grows=True),
                ),
            )
            table.head_height = 0
            table.can_focus = False
            table.led = True
            yield table

    def on_screen_resume(self) -> None:
        self.set_focus(self.query_one(Input))
        self._find()

    def on_screen_suspend(self) -> None:
        self.query_one(Input).value = ""

    def on_key(self, event: events.Key) -> None:
        # Typed before the input had the focus.
        field = self.query_one(Input)
        if field.has_focus:
            return
        if event.key == "enter":
            self._choose()
        elif event.is_printable and event.character:
            event.stop()
            field.value += event.character
            field.cursor_position = len(field.value)

    def on_input_changed(self) -> None:
        self._find()

    def on_input_submitted(self) -> None:
        self._choose()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._choose()

    def action_move(self, rows: int) -> None:
        self.query_one(LineTable).action_move(rows)

    def _choose(self) -> None:
        selected = self.query_one(LineTable).selected
        if selected is not None:
            self.dismiss(self._choices[selected])

    def _find(self) -> None:
        pattern = self.query_one(Input).value.strip().lower()
        self._choices = {}
        rows: list[Row] = []
        found = find_runs(pattern, self._view.state.runs if self._view is not None else ())
        for action, reason in find_actions(pattern, self._screen, self._view, self._target, self._readonly):
            words = action.words if reason is None else f"{action.words} (not now: {reason})"
            self._add(rows, action.id, action.shown_key, action.command_name, words, Choice(action))
            if reason is not None:
                rows[-1] = Row(rows[-1].id, tuple((text, "muted") for text, _ in rows[-1].cells))
        for run in found:
            words = safe_line(f"{run.workflow}: {run.task}", 200)
            self._add(rows, run.id, "run", run.label, words, Choice(run=run.id))
        # A number is a run's: then it stands first.
        if pattern.removeprefix("#").isdigit():
            rows.sort(key=lambda row: self._choices[row.id].run is None)
        table = self.query_one(LineTable)
        table.show_rows(rows)
        table.action_first()

    def _add(self, rows: list[Row], key: str, shown: str, name: str, words: str, choice: Choice) -> None:
        self._choices[key] = choice
        rows.append(Row(key, ((shown, "key"), (name, "strong"), (words, ""))))
