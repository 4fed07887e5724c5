"""A long text as pieces that are found from an offset, so that 10 MB open without being split.

A piece is a line, or `PIECE` characters of a line that is longer. Nothing here walks the whole text:
a piece's neighbours are found by looking for the nearest line ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from farmtui.console.tones import Piece
from farmtui.text import MASK, cells, mask_text, safe_text

PIECE = 2000
MOST_MATCHES = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """Where a pattern occurs: spans of offsets, in order. `cut` where there are more than are kept."""

    pattern: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    cut: bool = False


class TextFlow:
    """The pieces of one text. Offsets are into the text as it came; what is drawn is made safe per piece."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._end = len(text) - 1 if text.endswith("\n") else len(text)

    def start_of(self, offset: int) -> int:
        """The start of the piece that holds the character at `offset`."""
        offset = max(0, min(offset, self._end))
        line = self.text.rfind("\n", 0, offset) + 1
        inside = offset - line
        if inside and inside % PIECE == 0 and (offset >= self._end or self.text[offset] == "\n"):
            inside -= 1  # the line end right after a full piece belongs to it
        return line + inside // PIECE * PIECE

    def stop_of(self, start: int) -> int:
        """Where the piece that begins at `start` stops, its line end not counted."""
        found = self.text.find("\n", start, start + PIECE + 1)
        return found if found >= 0 else min(start + PIECE, len(self.text))

    def after(self, start: int) -> int | None:
        """The next piece's start; None behind the last."""
        stop = self.stop_of(start)
        if stop < len(self.text) and self.text[stop] == "\n":
            stop += 1
        return stop if stop < len(self.text) else None

    def before(self, start: int) -> int | None:
        """The previous piece's start; None before the first."""
        return self.start_of(start - 1) if start > 0 else None

    def last(self) -> int:
        """The last piece's start."""
        return self.start_of(self._end)

    def line_number(self, start: int) -> int:
        """The number of the line that holds `start`, from 1."""
        return self.text.count("\n", 0, start) + 1

    def search(self, pattern: str) -> Found:
        """All places of a literal pattern; upper and lower case are one unless it has a capital."""
        if not pattern:
            return Found()
        flags = re.NOFLAG if any(char.isupper() for char in pattern) else re.IGNORECASE
        spans: list[tuple[int, int]] = []
        for match in re.finditer(re.escape(pattern), self.text, flags):
            if len(spans) == MOST_MATCHES:
                return Found(pattern, tuple(spans), cut=True)
            spans.append(match.span())
        return Found(pattern, tuple(spans))

    def rows(
        self,
        start: int,
        width: int | None,
        found: Sequence[tuple[int, int]] = (),
        current: tuple[int, int] | None = None,
        marks: Sequence[str] = (),
        hang: int = 0,
    ) -> tuple[tuple[Piece, ...], ...]:
        """The piece at `start` as safe rows; at least one.

        Args:
            width: cells to wrap at; None keeps the piece on one row.
            found: spans of matches, in order, of which those inside the piece are marked.
            current: the match that the reader stands on.
            marks: literal texts that are marked wherever they occur.
            hang: cells by which rows after the first are indented.
        """
        raw = self._raw(start)
        masked = mask_text(raw) if not self._goes_on_secret(start) else MASK
        if masked != raw:
            pieces: list[Piece] = [(safe_text(masked), "")]
        else:
            pieces = [
                (safe_text(raw[first:last]), tone)
                for first, last, tone in _tones(raw, start, found, current, marks)
            ]
        return _wrapped(tuple(pieces), width, min(hang, width // 2)) if width else (tuple(pieces),)

    def _raw(self, start: int) -> str:
        stop = self.stop_of(start)
        raw = self.text[start:stop]
        return raw.removesuffix("\r") if self.text[stop : stop + 1] == "\n" else raw

    def _goes_on_secret(self, start: int) -> bool:
        """Whether the piece continues a line whose secret value began in its first piece."""
        line = self.text.rfind("\n", 0, start) + 1
        return line < start and mask_text(self.text[line : line + PIECE]).endswith(MASK)


def _tones(
    raw: str,
    start: int,
    found: Sequence[tuple[int, int]],
    current: tuple[int, int] | None,
    marks: Sequence[str],
) -> list[tuple[int, int, str]]:
    """Cut a piece where its meaning changes: (first, stop, tone), in order and without gaps."""
    stop = start + len(raw)
    wanted = [
        (
            max(first, start) - start,
            min(last, stop) - start,
            "current" if (first, last) == current else "match",
        )
        for first, last in found
        if first < stop and last > start
    ]
    if marks:
        pattern = "|".join(re.escape(mark) for mark in marks)
        wanted += [(*match.span(), "mark") for match in re.finditer(pattern, raw)]
    cut: list[tuple[int, int, str]] = []
    at = 0
    for first, last, tone in sorted(wanted):
        if first < at:
            continue
        cut += [(at, first, ""), (first, last, tone)]
        at = last
    cut.append((at, len(raw), ""))
    return [(first, last, tone) for first, last, tone in cut if last > first] or [(0, 0, "")]


@lru_cache(maxsize=512)
def _wrapped(pieces: tuple[Piece, ...], width: int, hang: int) -> tuple[tuple[Piece, ...], ...]:
    text = "".join(part for part, _ in pieces)
    tones = [tone for part, tone in pieces for _ in part]
    rows: list[tuple[Piece, ...]] = []
    at = 0
    while at < len(text):
        indent = hang if rows else 0
        stop = _break(text, at, width - indent)
        row = _joined(text, tones, at, stop)
        rows.append(((" " * indent, ""), *row) if indent else row)
        at = stop
        if at < len(text) and text[at] == " " and text[at - 1] != " ":
            at += 1
    return tuple(rows) or (((("", "")),),)


def _break(text: str, at: int, width: int) -> int:
    """Where a row that begins at `at` stops: behind the last blank that fits, else where the room ends."""
    room = width
    stop = at
    blank = None
    while stop < len(text):
        taken = cells(text[stop])
        if taken > room:
            break
        if text[stop] == " ":
            blank = stop
        room -= taken
        stop += 1
    if stop == len(text) or text[stop] == " ":
        return max(stop, at + 1)
    if blank is not None and blank > at and text[at:blank].strip():
        return blank
    return max(stop, at + 1)


def _joined(text: str, tones: Sequence[str], at: int, stop: int) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    first = at
    for index in range(at + 1, stop + 1):
        if index == stop or tones[index] != tones[first]:
            pieces.append((text[first:index], tones[first]))
            first = index
    return tuple(pieces)
