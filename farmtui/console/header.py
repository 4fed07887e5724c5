"""The header: one line that is always true, and a banner below it when something cannot be read."""

from __future__ import annotations

from textual.strip import Strip
from textual.widget import Widget

from farmtui.console.tones import Piece, strip_of, tones_of


class _Line(Widget):
    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._pieces: tuple[Piece, ...] = ()

    def show(self, pieces: tuple[Piece, ...]) -> None:
        """Draw these, if they differ from what is there."""
        if pieces != self._pieces:
            self._pieces = pieces
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return strip_of(self._pieces, self.size.width, tones_of(self), self.rich_style)


class Header(_Line):
    """Host, farm, live or stale, humans, findings, runs by lane, gateway."""

    DEFAULT_CSS = """
    Header { height: 1; dock: top; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__("header")


class Banner(_Line):
    """Says what is wrong with a source; takes no room while all is well."""

    DEFAULT_CSS = """
    Banner { height: 1; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("banner")

    def show(self, pieces: tuple[Piece, ...]) -> None:
        if self.display != bool(pieces):
            self.display = bool(pieces)
        super().show(pieces)
