"""What people's output is made for: how wide, in colour or not, and as of when."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

from farmtui.clock import age, parse_time

# Colour means state and nothing else.
_STATES = {
    "running": "36",
    "pending": "33",
    "human": "1;35",
    "failed": "31",
    "error": "31",
    "critical": "1;31",
    "warning": "33",
    "done": "32",
    "completed": "32",
    "ok": "32",
    "applied": "32",
    "cancelled": "2",
    "waiting": "2",
    "info": "2",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """What output for people is made for.

    Attributes:
        now: ages count from here.
        width: cells a line may have; None where it does not go to a terminal, and nothing is cropped.
        colour: whether states are coloured.
    """

    now: datetime
    width: int | None = None
    colour: bool = False

    def state(self, word: str, shown: str | None = None) -> str:
        """A word of state in its colour; `shown` is what is printed instead, such as the padded word."""
        text = word if shown is None else shown
        code = _STATES.get(word)
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code else text

    def strong(self, text: str) -> str:
        """A heading."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour and text else text

    def age(self, time: object) -> str:
        """How long ago an ISO time was, for people; "" where there is none."""
        moment = parse_time(time)
        return "" if moment is None else age(moment, self.now)

    def until(self, time: object) -> str:
        """How long it is until an ISO time; ``due`` once it has come."""
        moment = parse_time(time)
        if moment is None:
            return ""
        return "due" if moment <= self.now else age(self.now, moment)


def screen_for(stream: TextIO, environ: Mapping[str, str], now: datetime) -> Screen:
    """The screen that a stream writes to: width and colours only where that is a terminal."""
    if not is_terminal(stream):
        return Screen(now)
    colour = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size((80, 24)).columns
    with suppress(OSError, ValueError):
        width = os.get_terminal_size(stream.fileno()).columns or width
    return Screen(now, max(20, width), colour)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; one that is closed is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
