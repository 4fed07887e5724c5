"""What Medic, Escalations and Crons have in common: a list, and below it the chosen row in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.app import ComposeResult

from farmtui.console.filterbar import FilterBar
from farmtui.console.lineview import LineView
from farmtui.console.longtext import LongText
from farmtui.console.screen import FarmScreen
from farmtui.console.table import Cell, Column, LineTable
from farmtui.console.tones import Piece

if TYPE_CHECKING:
    from farmtui.farm import View

RowT = TypeVar("RowT")
_LINES_ALWAYS = 2  # the summary, and the rule above the text


class ListScreen(FarmScreen, Generic[RowT]):
    """A summary, a table that filters, a rule that names the chosen row, and its text.

    A subclass gives `COLUMNS`, `gather`, `summary`, `cells` and `show_chosen`.
    """

    COLUMNS: ClassVar[tuple[Column, ...]]
    MARKABLE: ClassVar[bool] = False
    # The part of the screen that the table takes at most, in hundredths.
    TABLE_SHARE: ClassVar[int] = 50

    def __init__(self) -> None:
        super().__init__()
        self._rows: Mapping[str, RowT] = {}
        self._view: View | None = None
        self._now: datetime | None = None

    # ------------------------------------------------------------ what a subclass gives

    def gather(self, view: View, now: datetime) -> Mapping[str, RowT]:
        """The rows by id, in order."""
        raise NotImplementedError

    def summary(self, view: View, now: datetime) -> Sequence[Piece]:
        """The line above the table."""
        raise NotImplementedError

    def cells(self, row: RowT, now: datetime) -> tuple[Cell, ...]:
        """A row's cells, one a column."""
        raise NotImplementedError

    def show_chosen(self, view: View, now: datetime) -> None:
        """Draw the rule and the text for the chosen row, or say why there is none."""
        raise NotImplementedError

    # ------------------------------------------------------------ what is on it

    def compose_body(self) -> ComposeResult:
        yield LineView("list-summary")
        yield LineTable("list-table", self.COLUMNS, markable=self.MARKABLE)
        yield LineView("list-rule", rule=True)
        yield LongText("list-text")
        yield FilterBar()

    def on_mount(self) -> None:
        self.table.focus(scroll_visible=False)

    @property
    def table(self) -> LineTable:
        """The list."""
        return self.query_one(LineTable)

    @property
    def text(self) -> LongText:
        """What stands below it."""
        return self.query_one(LongText)

    @property
    def rule(self) -> LineView:
        """The line between them."""
        return self.query_one("#list-rule", LineView)

    @property
    def chosen(self) -> RowT | None:
        """The row at the cursor."""
        return self._rows.get(self.table.selected or "")

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        self._view, self._now = view, now
        self._arrange(view, now)
        self.query_one("#list-summary", LineView).show(self.summary(view, now))
        self.show_chosen(view, now)

    def _arrange(self, view: View, now: datetime) -> None:
        self._rows = self.gather(view, now)
        bar = self.query_one(FilterBar)
        ids = list(self._rows)
        if pattern := bar.pattern:
            ids = [key for key in ids if pattern in self._words(key, now)]
        bar.say(len(ids), len(self._rows))
        self.table.show_ids(ids, lambda key: self.cells(self._rows[key], now))
        self.table.display = bool(self._rows)
        self._share_height()

    def _words(self, key: str, now: datetime) -> str:
        return " ".join(text for text, _ in self.cells(self._rows[key], now)).lower()

    def _share_height(self) -> None:
        room = self.query_one("#body").size.height - _LINES_ALWAYS
        height = min(len(self._rows) + 1, max(4, room * self.TABLE_SHARE // 100))
        current = self.table.styles.height
        if current is None or current.value != height:
            self.table.styles.height = height

    def on_resize(self) -> None:
        self.call_after_refresh(self._share_height)

    # ------------------------------------------------------------ keys

    def on_row_list_moved(self) -> None:
        if self._view is not None and self._now is not None:
            self.show_chosen(self._view, self._now)
        self.selection_changed()

    def on_row_list_chosen(self) -> None:
        self.do_open()

    def do_open(self) -> None:
        """Go into the run of the chosen row."""
        target = self.target()
        if target.run is not None:
            self.farm_app.open_run(target.run)

    def do_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).edit()

    def do_back(self) -> None:
        """Filter no more, else back."""
        if self.query_one(FilterBar).clear():
            self.table.focus(scroll_visible=False)
        else:
            self.farm_app.do_back()

    def on_filter_bar_changed(self) -> None:
        if self._view is not None and self._now is not None:
            self.show(self._view, self._now)
        self.selection_changed()

    def on_filter_bar_done(self) -> None:
        self.table.focus(scroll_visible=False)
