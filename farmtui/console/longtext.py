"""A widget for long text from outside: it wraps, searches, follows, and reads no more than it shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from farmtui.console.textflow import Found, TextFlow
from farmtui.console.tones import Piece
from farmtui.text import cells, safe_line

_SIDEWAYS = 8


class LongText(Widget, can_focus=True):
    """Text from outside, drawn a screenful at a time from an offset.

    It keeps its own place as (offset of a piece, row within it) instead of a virtual size: to know the
    height of 10 MB one would have to lay all of it out.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("pagedown,space,ctrl+d", "page(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
        Binding("g,home", "top", show=False),
        Binding("G,end", "bottom", show=False),
        Binding("h,left", "sideways(-1)", show=False),
        Binding("l,right", "sideways(1)", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "longtext--match",
        "longtext--current",
        "longtext--mark",
        "longtext--notice",
        "longtext--alarm",
    }
    DEFAULT_CSS = """
    LongText { height: 1fr; padding: 0 1; }
    LongText > .longtext--match { text-style: underline; color: $warning; }
    LongText > .longtext--current { text-style: reverse bold; color: $warning; }
    LongText > .longtext--mark { text-style: bold; color: $error; }
    LongText > .longtext--notice { color: $tone-muted; }
    LongText > .longtext--alarm { color: $error; }
    """

    wrap: reactive[bool] = reactive(True)
    follow: reactive[bool] = reactive(False)

    class Moved(Message):
        """The place, the search or a mode changed: `status_text` says otherwise than before."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._flow = TextFlow("")
        self._key: object = None
        self._marks: tuple[str, ...] = ()
        self._hang = 0
        self._tone = ""
        self._top = (0, 0)
        self._left = 0
        self._found = Found()
        self._current: int | None = None
        self._page: list[tuple[Piece, ...]] | None = None

    # ------------------------------------------------------------ what is shown

    @property
    def text(self) -> str:
        """The text as it came from outside, or the notice."""
        return self._flow.text

    def show(self, text: str, *, key: object = None, marks: Sequence[str] = (), hang: int = 0) -> None:
        """Show a text. The place is kept while `key` stays the same, else it opens at its beginning.

        Args:
            marks: literal texts in it that are marked, e.g. ``[missing: repo]``.
            hang: cells by which the wrapped rest of a line is indented.
        """
        self._hang = hang
        self._set(text, key, tuple(marks), "")

    def notice(self, text: str, *, alarm: bool = False) -> None:
        """Say that there is no text, and why: "loading …", "no output yet", the reason of a failure."""
        self._hang = 0
        self._set(text, None, (), "alarm" if alarm else "notice")

    def _set(self, text: str, key: object, marks: tuple[str, ...], tone: str) -> None:
        same = key == self._key and tone == self._tone
        if same and marks == self._marks and (text is self._flow.text or text == self._flow.text):
            return
        at_end = self.follow and not tone
        self._flow, self._key, self._marks, self._tone = TextFlow(text), key, marks, tone
        if not same:
            self._top, self._left, self._current = (0, 0), 0, None
        self._found = Found() if tone else self._flow.search(self._found.pattern)
        if self._current is not None and self._current >= len(self._found.spans):
            self._current = None
        self._top = (self._flow.start_of(self._top[0]), self._top[1]) if text else (0, 0)
        if at_end:
            self._top = self._bottom()
        self._clamp()
        self._changed()

    # ------------------------------------------------------------ search

    @property
    def pattern(self) -> str:
        """What is searched for, "" for nothing."""
        return self._found.pattern

    def search(self, pattern: str) -> None:
        """Mark every place of `pattern` and go to the first at or below the top of the screen."""
        self._found = self._flow.search(pattern)
        self._current = None
        if self._found.spans:
            self._go_to(bisect_left(self._found.spans, (self._top[0], 0)) % len(self._found.spans))
        self._changed()

    def next_match(self, direction: int) -> None:
        """Go to the next (1) or previous (-1) match, beginning anew at the end."""
        count = len(self._found.spans)
        if not count:
            return
        if self._current is None:
            after = bisect_left(self._found.spans, (self._top[0], 0))
            at = after if direction > 0 else after - 1
        else:
            at = self._current + direction
        self._go_to(at % count)
        self._changed()

    def _go_to(self, index: int) -> None:
        self._current = index
        self.follow = False
        first, _ = self._found.spans[index]
        start = self._flow.start_of(first)
        rows = self._rows(start)
        row = next((at for at, row in enumerate(rows) if any(tone == "current" for _, tone in row)), 0)
        shown = self._visible_starts()
        if (start, row) not in shown:
            self._top = (start, row)
            self._step(-(self._height // 3))
        if not self._wraps:
            self._show_column(rows[0])

    def _show_column(self, row: Sequence[Piece]) -> None:
        before = 0
        for text, tone in row:
            if tone == "current":
                if not self._left <= before <= self._left + self._width - cells(text):
                    self._left = max(0, before - self._width // 2)
                return
            before += cells(text)

    # ------------------------------------------------------------ status

    @property
    def status_text(self) -> str:
        """The place in words: ``3 of 17 “mite” · 42% · follows``."""
        parts = []
        if self._found.pattern:
            count, pattern = len(self._found.spans), safe_line(self._found.pattern, 20)
            total = f"{count}+" if self._found.cut else str(count)
            if not count:
                parts.append(f"no “{pattern}”")
            elif self._current is None:
                parts.append(f"{total} × “{pattern}”")
            else:
                parts.append(f"{self._current + 1} of {total} “{pattern}”")
        if not self._tone and self._flow.text:
            parts.append(self._place())
        if not self.wrap:
            parts.append("no wrap")
        if self.follow:
            parts.append("follows")
        return " · ".join(parts)

    def _place(self) -> str:
        if self._top == (0, 0) and self._last_shown() is None:
            return "all"
        if self._last_shown() is None:
            return "end"
        if self._top == (0, 0):
            return "top"
        return f"{min(99, self._top[0] * 100 // max(1, len(self._flow.text)))}%"

    def _last_shown(self) -> int | None:
        """The start of the first piece below the screen; None where the end is on it."""
        shown = self._visible_starts()
        if not shown:
            return None
        start, row = shown[-1]
        if row + 1 < len(self._rows(start)):
            return start
        return self._flow.after(start)

    # ------------------------------------------------------------ moving

    def action_move(self, rows: int) -> None:
        self._scroll(rows)

    def action_page(self, pages: int) -> None:
        self._scroll(pages * max(1, self._height - 1))

    def action_top(self) -> None:
        self.follow = False
        self._top = (0, 0)
        self._changed()

    def action_bottom(self) -> None:
        self._top = self._bottom()
        self._changed()

    def action_sideways(self, direction: int) -> None:
        if not self._wraps:
            self._left = max(0, self._left + direction * _SIDEWAYS)
            self._changed()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def on_resize(self) -> None:
        self._clamp()
        self._changed()

    def watch_wrap(self) -> None:
        self._top, self._left = (self._top[0], 0), 0
        self._clamp()
        self._changed()

    def watch_follow(self) -> None:
        if self.follow and not self._tone:
            self._top = self._bottom()
        self._changed()

    def _scroll(self, rows: int) -> None:
        if rows < 0:
            self.follow = False
        self._step(rows)
        self._clamp()
        self._changed()

    def _step(self, rows: int) -> None:
        """Move the top by so many rows, no farther than the text goes."""
        start, row = self._top
        while rows > 0:
            here = len(self._rows(start)) - row - 1
            if rows <= here:
                row, rows = row + rows, 0
                continue
            following = self._flow.after(start)
            if following is None:
                row, rows = row + here, 0
            else:
                start, row, rows = following, 0, rows - here - 1
        while rows < 0:
            if -rows <= row:
                row, rows = row + rows, 0
                continue
            previous = self._flow.before(start)
            if previous is None:
                row, rows = 0, 0
            else:
                start, rows = previous, rows + row + 1
                row = len(self._rows(start)) - 1
        self._top = (start, row)

    def _bottom(self) -> tuple[int, int]:
        """The place at which the end is on the last row."""
        kept = self._top
        last = self._flow.last()
        self._top = (last, len(self._rows(last)) - 1)
        self._step(-(self._height - 1))
        bottom, self._top = self._top, kept
        return bottom

    def _clamp(self) -> None:
        start, row = self._top
        self._top = (start, min(row, len(self._rows(start)) - 1))
        if self._height > 1:
            self._top = min(self._top, self._bottom())

    # ------------------------------------------------------------ drawing

    @property
    def _width(self) -> int:
        return max(1, self.size.width)

    @property
    def _height(self) -> int:
        return max(1, self.size.height)

    @property
    def _wraps(self) -> bool:
        return self.wrap or bool(self._tone)

    def _rows(self, start: int) -> tuple[tuple[Piece, ...], ...]:
        spans = self._found.spans
        current = spans[self._current] if self._current is not None else None
        stop = self._flow.stop_of(start)
        near = spans[max(0, bisect_left(spans, (start, 0)) - 1) : bisect_left(spans, (stop, 0))]
        width = self._width if self._wraps else None
        return self._flow.rows(start, width, near, current, self._marks, self._hang)

    def _visible_starts(self) -> list[tuple[int, int]]:
        """(piece, row) of every row on the screen."""
        shown: list[tuple[int, int]] = []
        start: int | None = self._top[0]
        row = self._top[1]
        while start is not None and len(shown) < self._height:
            shown.extend((start, at) for at in range(row, len(self._rows(start))))
            start, row = self._flow.after(start), 0
        return shown[: self._height]

    def _changed(self) -> None:
        self._page = None
        self.refresh()
        if self.is_attached:
            self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        if self._page is None:
            self._page = [self._rows(start)[row] for start, row in self._visible_starts()]
        base = self.rich_style
        if y >= len(self._page):
            return Strip.blank(self._width, base)
        segments = [Segment(text, base + self._style(tone or self._tone)) for text, tone in self._page[y]]
        strip = Strip(segments)
        if not self._wraps and self._left:
            strip = strip.crop(self._left, self._left + self._width)
        return strip.adjust_cell_length(self._width, base)

    def _style(self, tone: str) -> Style:
        return self.get_component_rich_style(f"longtext--{tone}", partial=True) if tone else self.rich_style
