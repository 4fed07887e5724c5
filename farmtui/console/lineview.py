"""A line with two sides."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from farmtui.console.line import Line
from farmtui.console.tones import Piece, strip_of, tones_of, width_of


class LineView(Line):
    """Shows one line; the right side is kept whole, the left is cropped. Takes no room while it is empty.

    With the class ``-rule`` it parts what is above from what is below.
    """

    DEFAULT_CSS = """
    LineView.-rule { background: $surface; }
    """

    def __init__(self, name: str, *, rule: bool = False) -> None:
        super().__init__(name)
        self.set_class(rule, "-rule")
        self._right: tuple[Piece, ...] = ()

    def show(self, pieces: Sequence[Piece], right: Sequence[Piece] = ()) -> None:
        """Show these. Their text is safe already."""
        if tuple(right) != self._right:
            self._right = tuple(right)
            self.refresh()
        super().show(tuple(pieces))
        wanted = bool(self._pieces or self._right)
        if self.display != wanted:
            self.display = wanted

    def render_line(self, y: int) -> Strip:
        tones, base, width = tones_of(self), self.rich_style, self.size.width
        taken = min(width_of(self._right), width)
        left = strip_of(self._pieces, width - taken, tones, base)
        return Strip.join([left, strip_of(self._right, taken, tones, base)])
