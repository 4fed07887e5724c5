"""Help for where you are: every key of the screen, and why one does nothing just now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from farmtui.console.actions import SCREENS, Action, Target, actions_on, shown_key
from farmtui.console.table import Column, LineTable, Row
from farmtui.console.wrap import wrap

if TYPE_CHECKING:
    from farmtui.farm import View

_SIGNS = (
    "● done   ◐ running   ◌ pending   ○ waiting   ✗ failed",
    "‼ needs a human   ⊘ cancelled or skipped   ? unknown",
    "!! critical   ! warning   · to know   ▲ stale",
)
_KEY_CELLS = 11
_MOVING = (
    ("↑ ↓ j k", "up and down"),
    ("← → h l", "lanes; in long texts without wrap: sideways"),
    ("PgUp PgDn", "a page"),
    ("g G", "first and last"),
)


def help_rows(screen: str, view: View | None, target: Target, readonly: bool, width: int) -> tuple[Row, ...]:
    """The screen's keys: what changes the farm first, then what looks, then where to go, then the signs.

    Args:
        width: cells for the words beside the keys.
    """
    actions = actions_on(screen)
    going = [action for action in actions if action.id in SCREENS]
    changing = [action for action in actions if action.danger]
    looking = [action for action in actions if action not in going and action not in changing]
    rows: list[Row] = []

    def head(text: str) -> None:
        if rows:
            rows.append(Row(f"gap-{len(rows)}", (("", ""), ("", ""))))
        rows.append(Row(text, (("", ""), (text, "head"))))

    def keys(found: list[Action]) -> None:
        for action in found:
            reason = action.why_disabled(view, target, readonly)
            shown = " ".join(shown_key(key) for key in (action.key, *action.keys[:1]))
            lines = [(line, "" if reason is None else "muted") for line in wrap(action.words, width, 3)]
            if reason is not None:
                lines += [(f"  {line}", "muted") for line in wrap(f"not now: {reason}", width - 2, 3)]
            for place, line in enumerate(lines):
                name = f"{action.id}-{action.key}-{place}"
                rows.append(Row(name, ((shown if place == 0 else "", "key"), line)))

    head("Changes the farm (asks first, is journalled)")
    keys(changing)
    head("Looks")
    keys(looking)
    rows += [Row(shown, ((shown, "key"), (words, ""))) for shown, words in _MOVING]
    head("Goes to")
    keys(going)
    head("Signs")
    rows += [Row(signs, (("", ""), (signs, ""))) for signs in _SIGNS]
    return tuple(rows)


class HelpScreen(ModalScreen[None]):
    """One instance, loaded again each time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "dismiss(None)", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen #help-box { width: 96%; max-width: 110; height: 92%; max-height: 44; border: round $accent;
        padding: 0 1; background: $surface; }
    HelpScreen LineTable { background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="help")
        self._about: tuple[str, View | None, Target, bool] = ("", None, Target(), False)

    def load(self, screen: str, view: View | None, target: Target, readonly: bool) -> None:
        """What to show when it is pushed next."""
        self._about = (screen, view, target, readonly)

    def compose(self) -> ComposeResult:
        with Vertical(id="help-box"):
            table = LineTable(
                "help-table", (Column("key", "", _KEY_CELLS), Column("words", "", 20, grows=True))
            )
            table.head_height = 0
            yield table

    def on_screen_resume(self) -> None:
        self.query_one("#help-box").border_title = f"Keys on {self._about[0].capitalize()} · Esc closes"
        self.query_one(LineTable).focus(scroll_visible=False)
        self._fill()
        self.query_one(LineTable).action_first()

    def on_resize(self) -> None:
        self._fill()

    def _fill(self) -> None:
        table = self.query_one(LineTable)
        table.show_rows(help_rows(*self._about, width=max(20, table.size.width - _KEY_CELLS - 3)))
