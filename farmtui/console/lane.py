"""A lane of the board: cards drawn line by line, or folded to its number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from farmtui.console.cards import Lines, card_height
from farmtui.console.rowlist import RowList
from farmtui.console.signs import LANE_SIGNS, LANE_WORDS
from farmtui.console.tones import Piece, strip_of, tones_of
from farmtui.state import Lane
from farmtui.text import pad

LANE_TONES = {
    Lane.PENDING: "strong",
    Lane.RUNNING: "running-head",
    Lane.HUMAN: "human",
    Lane.FAILED: "alarm",
    Lane.DONE: "done-head",
    Lane.OTHER: "warning",
}

# Below a folded lane's number: five cells are all there is.
_SHORT = {
    Lane.PENDING: "pend",
    Lane.RUNNING: "run",
    Lane.HUMAN: "human",
    Lane.FAILED: "fail",
    Lane.DONE: "done",
    Lane.OTHER: "other",
}

_TALL = 30

DrawCard = Callable[[str, int], Lines]


class LaneList(RowList):
    """One lane. Folded it shows its sign and number only, and no cards.

    Attributes:
        set_width: the width that it was last given, border counted.
    """

    head_height = 1
    shows_blurred = False

    COMPONENT_CLASSES: ClassVar[set[str]] = {"lanelist--head-focused"}
    DEFAULT_CSS = """
    LaneList { border-left: solid $panel; }
    LaneList > .lanelist--head-focused { background: $cursor; text-style: $cursor-text-style; }
    """

    def __init__(self, lane: Lane) -> None:
        super().__init__(f"lane-{lane}")
        self.lane = lane
        self._card_height = self.row_height = card_height(lane)
        self.folded = False
        self.set_width = 0
        self._draw: DrawCard = lambda run_id, width: ()
        self._total = 0
        self._aside = ""

    def show_cards(self, ids: Sequence[str], draw: DrawCard, total: int, aside: str = "") -> None:
        """Show these runs; cards are asked for when they come into sight.

        Args:
            total: how many runs are in the lane, shown or not.
            aside: what stands at the end of the head, e.g. how many of them are cancelled.
        """
        self._draw = draw
        if (total, aside) != (self._total, self._aside):
            self._total, self._aside = total, aside
            self._refresh_head()
        self.set_ids(ids)

    def fold(self, folded: bool) -> None:
        """Show the number only, or the cards."""
        if folded != self.folded:
            self.folded = folded
            self.virtual_size = self.virtual_size_for(len(self.ids))
            self.redraw_all()

    def virtual_size_for(self, rows: int) -> Size:
        return Size(0, self.head_height) if self.folded else super().virtual_size_for(rows)

    def draw_head(self, width: int) -> tuple[tuple[Piece, ...], ...]:
        tone = LANE_TONES.get(self.lane, "head")
        mark = LANE_SIGNS[self.lane]
        if self.folded:
            return (((f" {mark}", _sign_tone(tone)), (f" {self._total}", tone)),)
        shown = len(self.ids)
        number = f"{shown}" if shown == self._total else f"{shown} of {self._total}"
        aside = f"{self._aside} " if self._aside else ""
        title = pad(f" {LANE_WORDS[self.lane]} {number}", width - 2 - len(aside))
        return (((f" {mark}", _sign_tone(tone)), (title, tone), (aside, "muted")),)

    def draw_row(self, row_id: str, width: int) -> Lines:
        lines = self._draw(row_id, width)
        return lines if self.row_height == self._card_height else (*lines, ())

    def on_resize(self) -> None:
        # Where it is high, a blank line between the cards.
        height = self._card_height + (1 if self.size.height >= _TALL else 0)
        if height != self.row_height:
            self.row_height = height
            self.virtual_size = self.virtual_size_for(len(self.ids))

    def head_style(self) -> Style:
        if not self.has_focus:
            return Style.null()
        return self.get_component_rich_style("lanelist--head-focused", partial=True)

    def render_line(self, y: int) -> Strip:
        if self.folded and y >= self.head_height:
            pieces: tuple[Piece, ...] = ((f" {_SHORT[self.lane]}", "muted"),) if y == self.head_height else ()
            return strip_of(pieces, self.size.width, tones_of(self), self._base)
        return super().render_line(y)


def _sign_tone(tone: str) -> str:
    """Signs are not bold: few fonts have them so."""
    plain = {"human": "warning", "alarm": "failed", "running-head": "running", "done-head": "done"}
    return plain.get(tone, "")
