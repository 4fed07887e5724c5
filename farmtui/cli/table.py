"""Aligned tables of text from outside: safe, measured in cells, cropped on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farmtui.cli.screen import Screen
from farmtui.text import cells, pad, safe_line

GAP = 2
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: its heading.
        right: numbers stand to the right.
        state: its words are words of state, and coloured so.
        flexible: gives way first where the terminal is too narrow.
    """

    title: str
    right: bool = False
    state: bool = False
    flexible: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]], screen: Screen) -> Iterator[str]:
    """The lines of a table: the headings, then a line for each row. None is an empty cell.

    Columns that are empty in every row are left out.
    """
    shown = [["" if cell is None else safe_line(str(cell)) for cell in row] for row in rows]
    kept = [at for at in range(len(columns)) if any(row[at] for row in shown) or columns[at].flexible]
    columns = [columns[at] for at in kept]
    shown = [[row[at] for at in kept] for row in shown]
    widths = [
        max([len(column.title), *(cells(row[at]) for row in shown)]) for at, column in enumerate(columns)
    ]
    if screen.width is not None:
        _narrow(widths, columns, screen.width)
    yield screen.strong(_line([_cell(c.title, c, w) for c, w in zip(columns, widths, strict=True)]))
    for row in shown:
        yield _line(
            [
                screen.state(text, _cell(text, column, width)) if column.state else _cell(text, column, width)
                for text, column, width in zip(row, columns, widths, strict=True)
            ]
        )


def pairs(rows: Sequence[tuple[str, object]], screen: Screen, indent: int = 0) -> Iterator[str]:
    """Lines of ``label  text``: labels aligned and not repeated; rows without text are left out."""
    told = [(label, safe_line(str(text))) for label, text in rows if text not in (None, "")]
    width = max((cells(label) for label, _ in told), default=0)
    before = None
    for label, text in told:
        yield " " * indent + pad(label if label != before else "", width) + " " * GAP + text
        before = label


def _cell(text: str, column: Column, width: int) -> str:
    return pad(text, width, "right" if column.right else "left")


def _line(parts: Sequence[str]) -> str:
    return (" " * GAP).join(parts).rstrip(" ")


def _narrow(widths: list[int], columns: Sequence[Column], width: int) -> None:
    """Take cells from the flexible columns, then from the widest, until a line fits."""
    excess = sum(widths) + GAP * (len(widths) - 1) - width
    for at, column in enumerate(columns):
        if column.flexible and excess > 0:
            taken = min(excess, max(0, widths[at] - _LEAST))
            widths[at] -= taken
            excess -= taken
    while excess > 0 and max(widths, default=0) > 3:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        excess -= 1
