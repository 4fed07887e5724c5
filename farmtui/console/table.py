"""LineTable: columns that drop out from the right as it narrows, rows drawn line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from farmtui.console.rowlist import RowList
from farmtui.console.tones import Piece
from farmtui.text import pad

# A cell: safe text and its tone.
Cell = Piece


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: what names it; `title` stands above it.
        width: cells; a column that `grows` takes what is left, and has at least this many.
        priority: the highest number drops out first as the table narrows; 0 never does.
    """

    key: str
    title: str
    width: int
    grows: bool = False
    align: Literal["left", "right"] = "left"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A row with its cells, one a column, for tables small enough to draw all of it each time."""

    id: str
    cells: tuple[Cell, ...]


DrawCells = Callable[[str], Sequence[Cell]]


def fit(columns: Sequence[Column], width: int) -> tuple[tuple[int, int], ...]:
    """(index, width) of the columns that have room in `width` cells, one cell between them."""
    kept = list(range(len(columns)))
    while len(kept) > 1 and sum(columns[at].width + 1 for at in kept) - 1 > width:
        droppable = [at for at in kept if columns[at].priority > 0]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda at: (columns[at].priority, at)))
    spare = max(0, width - (sum(columns[at].width + 1 for at in kept) - 1))
    growing = [at for at in kept if columns[at].grows]
    widths = {at: columns[at].width for at in kept}
    for place, at in enumerate(growing):
        widths[at] += spare // len(growing) + (1 if place < spare % len(growing) else 0)
    return tuple((at, widths[at]) for at in kept)


class LineTable(RowList):
    """A table whose rows are known by id; the cell after the cursor's holds a row's mark.

    Args:
        columns: from left to right.
        markable: whether Space marks rows.
    """

    head_height = 1

    def __init__(self, name: str, columns: Sequence[Column], *, markable: bool = False) -> None:
        super().__init__(name)
        self._columns = tuple(columns)
        self._draw: DrawCells = lambda row_id: ()
        self._marked: dict[str, None] = {}
        self.markable = markable
        self._sort: tuple[str, bool] | None = None

    # ------------------------------------------------------------ rows

    def show_ids(self, ids: Sequence[str], draw: DrawCells) -> None:
        """Show rows whose cells are asked for when they come into sight.

        Args:
            draw: a row's cells by its id, one a column: safe text and tone.
        """
        self._draw = draw
        there = set(ids) if self._marked else ()
        self._marked = {row_id: None for row_id in self._marked if row_id in there}
        self.set_ids(ids)

    def show_rows(self, rows: Iterable[Row]) -> None:
        """Show rows whose cells are all at hand."""
        by_id = {row.id: row.cells for row in rows}
        self.show_ids(tuple(by_id), by_id.__getitem__)

    # ------------------------------------------------------------ marks and order

    @property
    def marked(self) -> tuple[str, ...]:
        """Ids of the marked rows, in the order they were marked."""
        return tuple(self._marked)

    def toggle_mark(self) -> None:
        """Mark or unmark the row at the cursor and go to the next."""
        if not self.markable or (row_id := self.selected) is None:
            return
        if row_id in self._marked:
            del self._marked[row_id]
        else:
            self._marked[row_id] = None
        self._drawn.pop(row_id, None)
        self._refresh_row(self._cursor)
        self.action_move(1)
        self.post_message(self.Moved(self))

    def mark(self, row_ids: Iterable[str]) -> None:
        """Mark these rows, and no others."""
        self._marked = dict.fromkeys(row_id for row_id in row_ids if row_id in self._ids)
        self.redraw_changed()
        self.post_message(self.Moved(self))

    def clear_marks(self) -> bool:
        """Unmark all; False where nothing was marked."""
        if not self._marked:
            return False
        self._marked.clear()
        self.redraw_changed()
        self.post_message(self.Moved(self))
        return True

    def show_order(self, key: str, descending: bool) -> None:
        """Point out in the head which column the rows are sorted by."""
        if self._sort != (key, descending):
            self._sort = (key, descending)
            self._refresh_head()

    # ------------------------------------------------------------ drawing

    def draw_head(self, width: int) -> tuple[tuple[Piece, ...], ...]:
        pieces: list[Piece] = [("  ", "")]
        for at, room in fit(self._columns, width - 3):
            column = self._columns[at]
            title = column.title
            if self._sort is not None and self._sort[0] == column.key:
                title += " ▼" if self._sort[1] else " ▲"
            pieces += [(pad(title, room, column.align), "head"), (" ", "")]
        return (tuple(pieces),)

    def draw_row(self, row_id: str, width: int) -> tuple[tuple[Piece, ...], ...]:
        cells = self._draw(row_id)
        pieces: list[Piece] = [("◆" if row_id in self._marked else " ", "accent")]
        for at, room in fit(self._columns, width - 2):
            text, tone = cells[at]
            pieces += [(pad(text, room, self._columns[at].align), tone), (" ", "")]
        return (tuple(pieces),)
