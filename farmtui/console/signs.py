"""Signs: what a state looks like in one cell, always with a word beside it; and their ASCII stand-ins.

Everything draws the Unicode signs. Where the terminal cannot show them, `AsciiFilter` replaces them as
lines leave for the terminal, so no widget needs to know.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from farmtui.state import Lane
from farmtui.text import cells

UNKNOWN = "?"
# Statuses of runs, steps and stories, and the tones that stand for them.
SIGNS: Mapping[str, str] = {
    "done": "●",
    "completed": "●",
    "running": "◐",
    "pending": "◌",
    "waiting": "○",
    "failed": "✗",
    "human": "‼",
    "cancelled": "⊘",
    "skipped": "⊘",
}
LANE_SIGNS: Mapping[Lane, str] = {
    Lane.PENDING: "◌",
    Lane.RUNNING: "▶",
    Lane.HUMAN: "‼",
    Lane.FAILED: "✗",
    Lane.DONE: "✓",
    Lane.CANCELLED: "⊘",
    Lane.OTHER: "?",
}
LANE_WORDS: Mapping[Lane, str] = {
    Lane.PENDING: "Pending",
    Lane.RUNNING: "Running",
    Lane.HUMAN: "Needs a human",
    Lane.FAILED: "Failed",
    Lane.DONE: "Done",
    Lane.CANCELLED: "Cancelled",
    Lane.OTHER: "Other",
}

_ASCII: Mapping[str, str] = {
    "●": "*",
    "◐": "~",
    "◌": ".",
    "○": "-",
    "✗": "x",
    "‼": "!",
    "⊘": "/",
    "✓": "v",
    "▶": ">",
    "▲": "^",
    "▼": "v",
    "⚕": "+",
    "◆": "#",
    "▌": ">",
    "…": ".",
    "·": "-",
    "•": "*",
    "›": ">",
    "‹": "<",
    "→": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "×": "x",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
    "⏎": "|",
    "⇥": " ",
    "␛": "^",
}


def sign(status: str) -> str:
    """The sign of a status; ``?`` for one that Antfarm does not know."""
    return SIGNS.get(status, UNKNOWN)


def wants_ascii(environ: Mapping[str, str]) -> bool:
    """Whether the locale promises no UTF-8, told as tmux tells it: LC_ALL, else LC_CTYPE, else LANG.

    `FARM_ASCII` set to 1 or 0 decides it otherwise.
    """
    if wanted := environ.get("FARM_ASCII"):
        return wanted != "0"
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if value := environ.get(name):
            return "UTF-8" not in value.upper().replace("UTF8", "UTF-8")
    return True


def to_ascii(text: str) -> str:
    """Safe text in ASCII, every character as wide as it was."""
    return text if text.isascii() else "".join(_ascii(character) for character in text)


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if (known := _ASCII.get(character)) is not None:
        return known
    code = ord(character)
    if 0x2500 <= code < 0x2580:
        return "-" if character in "─━┄┈╌═" else "|" if character in "│┃┆┊╎║" else "+"
    if 0x2580 <= code < 0x25A0:
        return ":" if character in "░▒" else "#"
    base = unicodedata.normalize("NFKD", character)[0]
    width = cells(character)
    return base if base.isascii() and base.isprintable() and width == 1 else UNKNOWN * width


class AsciiFilter(LineFilter):
    """Replaces whatever is not ASCII in each line that leaves for the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment(to_ascii(segment.text), *segment[1:])
            for segment in segments
        ]
