"""A widget of one line."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from farmtui.console.tones import Piece, strip_of, tones_of


class Line(Widget):
    """One line of pieces, drawn again only where it differs."""

    DEFAULT_CSS = """
    Line { height: 1; }
    """

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._pieces: tuple[Piece, ...] = ()

    @property
    def line(self) -> str:
        """What is shown, as plain text."""
        return "".join(text for text, _ in self._pieces)

    def show(self, pieces: tuple[Piece, ...]) -> None:
        """Draw these, if they differ from what is there."""
        if pieces != self._pieces:
            self._pieces = pieces
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return strip_of(self._pieces, self.size.width, tones_of(self), self.rich_style)
