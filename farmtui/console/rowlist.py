"""A scrolling list drawn line by line: the cursor is an id, and only lines that differ are drawn again.

Rows are drawn when they come into sight, so ten thousand cost no more than a screenful.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from farmtui.console.tones import Piece, strip_of, tones_of

_WHEEL_ROWS = 3
# Beside the cursor's colour, so that it is seen without colours.
CURSOR = "▌"


class RowList(ScrollView, can_focus=True):
    """Rows of `row_height` lines each below `head_height` lines that stay.

    A subclass gives `draw_row` and `draw_head`, and calls `set_ids` when the rows may have changed.
    """

    row_height = 1
    head_height = 0
    # Whether the cursor is shown while the focus is elsewhere.
    shows_blurred = True
    # Whether it is shown as in focus while an input beside it has the keys.
    led = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("pagedown,ctrl+d,ctrl+f", "page(1)", show=False),
        Binding("pageup,ctrl+u,ctrl+b", "page(-1)", show=False),
        Binding("g,home", "first", show=False),
        Binding("G,end", "last", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"rowlist--cursor", "rowlist--cursor-blurred"}
    DEFAULT_CSS = """
    RowList { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    RowList > .rowlist--cursor { background: $cursor; text-style: $cursor-text-style; }
    RowList > .rowlist--cursor-blurred { background: $cursor-blurred; }
    """

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            return self.rows

    class Chosen(Message):
        """A row was clicked on while the cursor stood on it."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            return self.rows

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._ids: Sequence[str] = ()
        self._cursor = 0
        self._cursor_id: str | None = None
        self._drawn: dict[str, tuple[tuple[Piece, ...], ...]] = {}
        self._drawn_head: tuple[tuple[Piece, ...], ...] = ()
        self._base = Style.null()

    # ------------------------------------------------------------ what a subclass gives

    def draw_row(self, row_id: str, width: int) -> tuple[tuple[Piece, ...], ...]:
        """The `row_height` lines of a row; before them one cell is left for the cursor's mark."""
        raise NotImplementedError

    def draw_head(self, width: int) -> tuple[tuple[Piece, ...], ...]:
        """The `head_height` lines that stay above the rows."""
        return ()

    def head_style(self) -> Style:
        """What lies under the head's pieces."""
        return Style.null()

    # ------------------------------------------------------------ rows

    @property
    def ids(self) -> Sequence[str]:
        """The rows' ids, in order."""
        return self._ids

    @property
    def selected(self) -> str | None:
        """The id of the row that the cursor stands on."""
        return self._cursor_id

    def set_ids(self, ids: Sequence[str]) -> None:
        """Take these rows and draw again what differs.

        The cursor stays on its row wherever that went, and in its place on the screen; where the row is
        gone it stays in its place among the others.
        """
        ids = tuple(ids)
        moved = ids != self._ids
        if moved:
            before = self._cursor
            self._ids = ids
            self._place_cursor()
            self.virtual_size = self.virtual_size_for(len(ids))
            if self.is_mounted:
                # At the top it stays at the top, so that what is new is seen.
                if self._cursor != before and self.scroll_offset.y:
                    self.scroll_relative(y=(self._cursor - before) * self.row_height, animate=False)
                self._show_cursor()
            self.redraw_all()
            return
        self.redraw_changed()

    def virtual_size_for(self, rows: int) -> Size:
        """The size of so many rows with their head."""
        return Size(0, rows * self.row_height + self.head_height)

    def redraw_all(self) -> None:
        """Draw everything again, whatever it looked like."""
        self._drawn.clear()
        self._drawn_head = ()
        self.refresh()

    def redraw_changed(self) -> None:
        """Draw again the lines in sight that no longer look as they were drawn."""
        if not self.is_mounted or not self.size.width:
            return
        width = self.content_width
        for y, was in enumerate(self._drawn_head):
            now = self.draw_head(width)
            if now[y] != was:
                self.refresh(Region(0, y, width, 1))
        for row_id, was_rows in list(self._drawn.items()):
            drawn = self.draw_row(row_id, width - 1)
            if drawn == was_rows:
                continue
            self._drawn[row_id] = drawn
            top = self._top_of(self._index(row_id))
            for line, (one, other) in enumerate(zip(drawn, was_rows, strict=True)):
                if one != other:
                    self.refresh(Region(0, top + line, width, 1))

    def select(self, row_id: str) -> bool:
        """Put the cursor on a row; False where there is none of that id."""
        try:
            index = self._ids.index(row_id)
        except ValueError:
            return False
        self._move_to(index)
        return True

    def _index(self, row_id: str) -> int:
        if row_id == self._cursor_id:
            return self._cursor
        return self._ids.index(row_id)

    def _place_cursor(self) -> None:
        if not self._ids:
            self._cursor, self._cursor_id = 0, None
            return
        if self._cursor_id is not None:
            try:
                self._cursor = self._ids.index(self._cursor_id)
            except ValueError:
                self._cursor = min(self._cursor, len(self._ids) - 1)
        else:
            self._cursor = 0
        if self._ids[self._cursor] != self._cursor_id:
            self._cursor_id = self._ids[self._cursor]
            self.post_message(self.Moved(self))

    # ------------------------------------------------------------ moving

    def action_move(self, rows: int) -> None:
        self._move_to(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        self._move_to(self._cursor + pages * max(1, self._rows_in_sight - 1))

    def action_first(self) -> None:
        self._move_to(0)

    def action_last(self) -> None:
        self._move_to(len(self._ids) - 1)

    def _move_to(self, index: int) -> None:
        if not self._ids:
            return
        index = max(0, min(index, len(self._ids) - 1))
        if index == self._cursor and self._ids[index] == self._cursor_id:
            return
        before = self._cursor
        self._cursor, self._cursor_id = index, self._ids[index]
        self._refresh_row(before)
        self._refresh_row(index)
        self._refresh_head()
        self._show_cursor()
        self.post_message(self.Moved(self))

    def _refresh_row(self, index: int) -> None:
        self.refresh(Region(0, self._top_of(index), self.size.width, self.row_height))

    def _refresh_head(self) -> None:
        if self.head_height:
            self.refresh(Region(0, 0, self.size.width, self.head_height))

    def _top_of(self, index: int) -> int:
        """The line on the widget where a row begins, scrolling counted."""
        return self.head_height + index * self.row_height - self.scroll_offset.y

    @property
    def content_width(self) -> int:
        """Cells that a line has beside the scrollbar, where there is one."""
        return self.scrollable_content_region.width

    @property
    def _rows_in_sight(self) -> int:
        return max(1, (self.size.height - self.head_height) // self.row_height)

    def _show_cursor(self) -> None:
        top = self._cursor * self.row_height
        height = max(self.row_height, self.size.height - self.head_height)
        at = self.scroll_offset.y
        if top < at:
            self.scroll_to(y=top, animate=False)
        elif top + self.row_height > at + height:
            self.scroll_to(y=top + self.row_height - height, animate=False)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_relative(y=_WHEEL_ROWS * self.row_height, animate=False)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()
        self.scroll_relative(y=-_WHEEL_ROWS * self.row_height, animate=False)

    def on_click(self, event: events.Click) -> None:
        y = event.y - self.head_height
        if y < 0:
            return
        index = (y + self.scroll_offset.y) // self.row_height
        if index >= len(self._ids):
            return
        if index == self._cursor and self.has_focus:
            self.post_message(self.Chosen(self))
        self._move_to(index)

    # ------------------------------------------------------------ drawing

    def on_resize(self) -> None:
        self.redraw_all()
        if self._ids:
            self._show_cursor()

    def on_focus(self) -> None:
        self._refresh_row(self._cursor)
        self._refresh_head()

    def on_blur(self) -> None:
        self._refresh_row(self._cursor)
        self._refresh_head()

    def render_lines(self, crop: Region) -> list[Strip]:
        # Once for all lines: asking for it walks up the tree.
        self._base = self.rich_style
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.content_width
        tones = tones_of(self)
        base = self._base
        if y < self.head_height:
            self._drawn_head = self.draw_head(width)
            return strip_of(self._drawn_head[y], width, tones, base + self.head_style())
        index, line = divmod(y - self.head_height + self.scroll_offset.y, self.row_height)
        if index >= len(self._ids):
            return Strip.blank(width, base)
        pieces = self._lines(self._ids[index], width)[line]
        mark: Piece = (" ", "")
        if index == self._cursor and pieces and (self.has_focus or self.shows_blurred):
            focused = self.has_focus or self.led
            name = "rowlist--cursor" if focused else "rowlist--cursor-blurred"
            base = base + self.get_component_rich_style(name, partial=True)
            mark = (CURSOR, "accent" if focused else "muted")
        return strip_of((mark, *pieces), width, tones, base)

    def _lines(self, row_id: str, width: int) -> tuple[tuple[Piece, ...], ...]:
        lines = self._drawn.get(row_id)
        if lines is None:
            if len(self._drawn) > 4 * self._rows_in_sight:
                self._forget_out_of_sight()
            lines = self._drawn[row_id] = self.draw_row(row_id, width - 1)
        return lines

    def _forget_out_of_sight(self) -> None:
        first = self.scroll_offset.y // self.row_height
        kept = self._ids[first : first + self._rows_in_sight + 2]
        self._drawn = {row_id: self._drawn[row_id] for row_id in kept if row_id in self._drawn}
