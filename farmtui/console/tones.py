"""Tones: what a stretch of text means, and the style that the theme gives to it.

Colour means state and nothing else; one accent is for focus. A tone never carries meaning alone: a sign
or a word stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from farmtui.text import cells, crop

# A stretch of a drawn line: safe text and its tone.
Piece = tuple[str, str]

# tone → (theme variable, text style)
_TONES: Mapping[str, tuple[str, str]] = {
    "done": ("success", ""),
    "completed": ("success", ""),
    "running": ("secondary", ""),
    "pending": ("foreground", ""),
    "waiting": ("tone-muted", ""),
    "failed": ("error", ""),
    "human": ("warning", "bold"),
    "warning": ("warning", ""),
    "cancelled": ("tone-muted", ""),
    "skipped": ("tone-muted", ""),
    "alarm": ("error", "bold"),
    "muted": ("tone-muted", ""),
    "strong": ("foreground", "bold"),
    "accent": ("accent", "bold"),
    "head": ("tone-muted", "bold"),
    "key": ("accent", "bold"),
    "running-head": ("secondary", "bold"),
    "done-head": ("success", "bold"),
}


class Tones:
    """The styles of one theme, worked out when first asked for."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._styles: dict[str, Style] = {"": Style.null()}

    def __getitem__(self, tone: str) -> Style:
        style = self._styles.get(tone)
        if style is None:
            style = self._styles[tone] = self._make(tone)
        return style

    def _make(self, tone: str) -> Style:
        variable, attributes = _TONES.get(tone, ("foreground", ""))
        style = Style.parse(attributes) if attributes else Style.null()
        name = self._variables.get(variable) or self._variables.get("foreground")
        if name is None or name == "ansi_default":
            return style
        return style + Style(color=Color.parse(name).rich_color)


_kept: dict[str, Tones] = {}


def tones_of(widget: Widget) -> Tones:
    """The tones of the theme that the widget is shown in."""
    theme = widget.app.theme
    if (tones := _kept.get(theme)) is None:
        tones = _kept[theme] = Tones(widget.app.theme_variables)
    return tones


def strip_of(pieces: Sequence[Piece], width: int, tones: Tones, base: Style) -> Strip:
    """One drawn line in exactly `width` cells, cropped with an ellipsis or filled."""
    segments: list[Segment] = []
    left = width
    for text, tone in pieces:
        used = cells(text)
        if used > left:
            if left > 0:
                segments.append(Segment(crop(text, left), base + tones[tone]))
                left -= cells(segments[-1].text)
            break
        if text:
            segments.append(Segment(text, base + tones[tone]))
            left -= used
    if left > 0:
        segments.append(Segment(" " * left, base))
    return Strip(segments, width)


def width_of(pieces: Sequence[Piece]) -> int:
    """How many cells the pieces take."""
    return sum(cells(text) for text, _ in pieces)
