"""What stands in place of the runs while there are none to show: loading, empty, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip
from textual.widget import Widget

from farmtui.console.header import short_path
from farmtui.console.tones import Piece, strip_of, tones_of
from farmtui.console.wrap import wrap
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

_Lines = tuple[tuple[Piece, ...], ...]

LOADING: Piece = ("◌ Reading the farm …", "muted")
# How `antfarm.schema` begins to say that there is no file.
ABSENT = "no database at"


def notice_lines(view: View | None, width: int) -> _Lines:
    """The picture to show instead of runs; () where there are runs.

    Loading, empty and failed never look alike; a stale farm shows its runs, below a banner.
    """
    said = _said(view)
    return tuple(((line, tone),) for text, tone in said for line in (wrap(text, width, 4) or [""]))


def _said(view: View | None) -> tuple[Piece, ...]:
    if view is None or view.state.sources.get("database") is None:
        return (LOADING,)
    if view.state.runs:
        return ()
    status = view.state.sources["database"]
    place = view.state.paths.database
    file = short_path(place.path)
    if status.read_at is not None:
        return (
            ("No runs yet.", "strong"),
            ("", ""),
            ('antfarm workflow run feature-dev "…" starts one; farm demo shows a busy farm.', ""),
            ("", ""),
            (f"{file} ({place.origin}) was read, and holds no runs.", "muted"),
        )
    absent = (status.error or "").startswith(ABSENT)
    first = (
        f"✗ No antfarm.db under {short_path(place.path.parent)}. Is this the gateway box?"
        if absent
        else f"✗ {file} cannot be read."
    )
    return (
        (first, "alarm"),
        ("", ""),
        ("" if absent else safe_line(status.error or ""), ""),
        (
            f"It comes from {place.origin}. --state-dir or --db name another; farm doctor tells more.",
            "",
        ),
        ("", ""),
        ("It is tried again every second.", "muted"),
    )


class Notice(Widget):
    """A few lines in the middle of the screen's body; takes no room while there is nothing to say."""

    DEFAULT_CSS = """
    Notice { height: 1fr; display: none; padding: 1 2; }
    """

    def __init__(self) -> None:
        super().__init__(id="notice")
        self._lines: _Lines = ()

    def show(self, lines: _Lines) -> None:
        """Draw these, if they differ from what is there."""
        if lines != self._lines:
            self._lines = lines
            self.refresh()
        if self.display != bool(lines):
            self.display = bool(lines)

    def render_line(self, y: int) -> Strip:
        pieces = self._lines[y] if y < len(self._lines) else ()
        return strip_of(pieces, self.size.width, tones_of(self), self.rich_style)
