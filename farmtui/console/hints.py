"""The line at the bottom: what the keys do for the selection just now, or a message.

Textual's own Footer keeps every key that it ever showed (textual #6666); this is one line that is drawn
again only where it differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from farmtui.console.actions import Action, Target, action_for, actions_on
from farmtui.console.line import Line
from farmtui.console.tones import Piece
from farmtui.text import cells

if TYPE_CHECKING:
    from farmtui.farm import View


def hint_pieces(
    screen: str, view: View | None, target: Target, readonly: bool, width: int
) -> tuple[Piece, ...]:
    """The keys that do something here, by rank; what does not fit is left out, `? help` never."""
    chosen = [
        action
        for action in sorted(
            (action for action in actions_on(screen) if action.rank is not None),
            key=lambda action: action.rank or 0,
        )
        if action.id != screen
        and action_for(action.key, screen, view, target, readonly) is action
        and action.why_disabled(view, target, readonly) is None
    ]
    last = [action for action in chosen if action.id in ("help", "quit")]
    left = width - sum(map(_width, last))
    shown: list[Action] = []
    for action in (action for action in chosen if action not in last):
        left -= _width(action)
        if left < 0:
            break
        shown.append(action)
    pieces: list[Piece] = []
    for action in [*shown, *last]:
        pieces += [(" ", ""), (action.shown_key, "key"), (f" {action.hint} ", "")]
    return tuple(pieces)


def _width(action: Action) -> int:
    return cells(action.shown_key) + cells(action.hint) + 3


class Hints(Line):
    """Shows the hints or, while there is one, a message."""

    DEFAULT_CSS = """
    Hints { dock: bottom; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__("hints")
