"""The widget that draws a timeline and lets a step or story be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from textual import events as textual_events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from farmtui.console.signs import sign
from farmtui.console.timeline import Entry, Key, Row, draw, draw_axis, entries, fold, layout
from farmtui.console.tones import strip_of, tones_of
from farmtui.state import Event, Run


class TimelineView(Widget, can_focus=True):
    """A run's steps and stories with their bars; folds when short of room, then scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("g,home", "move(-100000)", show=False),
        Binding("G,end", "move(100000)", show=False),
        Binding("pagedown,space,ctrl+d", "screen.page_text(1)", show=False),
        Binding("pageup,ctrl+u", "screen.page_text(-1)", show=False),
        Binding("enter", "screen.zoom", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"timeline--chosen"}
    DEFAULT_CSS = """
    TimelineView { height: auto; }
    TimelineView > .timeline--chosen { background: $cursor-blurred; text-style: bold; }
    TimelineView:focus > .timeline--chosen { background: $cursor; text-style: bold; }
    """

    class Chosen(Message):
        """Another step or story was chosen."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._run: Run | None = None
        self._now: datetime | None = None
        self._entries: tuple[Entry, ...] = ()
        self._key: Key | None = None
        self._rows: tuple[Row, ...] = ()
        self._top = 0
        self._lines: list[Strip] | None = None

    # ------------------------------------------------------------ what is shown

    def show(
        self, run: Run, events: Sequence[Event] | None, now: datetime, timeouts: Mapping[str, float]
    ) -> None:
        """Show a run as it is; the chosen entry stays chosen, and at first it is where the run stands."""
        other = self._run is None or self._run.id != run.id
        self._run, self._now = run, now
        self._entries = entries(run, events, now, timeouts)
        if other:
            self._key = None
        if self.chosen is None and self._entries:
            self._key = _where_it_stands(self._entries).key
            self.post_message(self.Chosen(self.chosen or self._entries[0]))
        self._arrange()

    @property
    def chosen(self) -> Entry | None:
        """The chosen step or story."""
        return next((entry for entry in self._entries if entry.key == self._key), None)

    @property
    def wanted_height(self) -> int:
        """Lines that it would take with nothing folded."""
        return len(self._entries) + 1

    def choose(self, key: Key) -> None:
        """Choose an entry by what names it."""
        if key != self._key and any(entry.key == key for entry in self._entries):
            self._key = key
            self._arrange()
            if self.chosen is not None:
                self.post_message(self.Chosen(self.chosen))

    # ------------------------------------------------------------ moving

    def action_move(self, rows: int) -> None:
        keys = [entry.key for entry in self._entries]
        if self._key in keys:
            at = keys.index(self._key) + rows
            self.choose(keys[max(0, min(at, len(keys) - 1))])

    def on_click(self, event: textual_events.Click) -> None:
        at = self._top + event.y - 1
        if event.y >= 1 and at < len(self._rows):
            self.choose(self._rows[at].entries[0].key)

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

    def on_resize(self) -> None:
        self._arrange()

    # ------------------------------------------------------------ drawing

    def _arrange(self) -> None:
        room = max(1, self.size.height - 1)
        self._rows = fold(self._entries, room, self._key)
        at = next((at for at, row in enumerate(self._rows) if row.entries[0].key == self._key), 0)
        self._top = max(0, min(self._top, at, len(self._rows) - room))
        self._top = max(self._top, at - room + 1)
        self._lines = None
        self.refresh()

    def _draw(self) -> list[Strip]:
        if self._run is None or self._now is None:
            return []
        width = self.size.width
        columns = layout(self._entries, width - 2)
        tones, base = tones_of(self), self.rich_style
        head = [(" ", ""), *draw_axis(self._run, self._now, columns)]
        lines = [strip_of(head, width, tones, base)]
        for row in self._rows[self._top :]:
            chosen = any(entry.key == self._key for entry in row.entries)
            style = base + self.get_component_rich_style("timeline--chosen", partial=True) if chosen else base
            pieces = draw(row, self._run, self._now, columns, sign(row.entries[0].status))
            mark = ("▌", "accent") if chosen else (" ", "")
            lines.append(strip_of([mark, *pieces], width, tones, style))
        return lines

    def render_line(self, y: int) -> Strip:
        if self._lines is None:
            self._lines = self._draw()
        if y < len(self._lines):
            return self._lines[y]
        return Strip.blank(self.size.width, self.rich_style)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lines = None


def _where_it_stands(found: Sequence[Entry]) -> Entry:
    """The entry that one looks for first: what is at work or failed, else what is pending, else the last."""
    for story in (True, False):
        for status in ("running", "failed"):
            for entry in found:
                if entry.status == status and (entry.story is not None) == story:
                    return entry
    pending = [entry for entry in found if entry.status == "pending" and entry.story is None]
    return pending[0] if pending else found[-1]
