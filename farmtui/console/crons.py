"""The Crons screen: who is woken when, how that goes, and what it costs for nothing."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult

from farmtui.console.actions import CRONS, Target
from farmtui.console.cron_rows import CronRow, calls_per_hour, cron_rows, describe, next_and_last, summary
from farmtui.console.lineview import LineView
from farmtui.console.longtext import LongText
from farmtui.console.screen import FarmScreen
from farmtui.console.signs import sign
from farmtui.console.table import Cell, Column, LineTable
from farmtui.text import mask_text, safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("sign", "", 1),
    Column("workflow", "workflow", 11),
    Column("agent", "agent", 12),
    Column("state", "state", 15, grows=True),
    Column("next", "next", 9, align="right", priority=2),
    Column("last", "last", 9, align="right", priority=3),
    Column("every", "schedule", 9, priority=4),
    Column("cost", "calls/h", 7, align="right", priority=1),
)
_LINES_ALWAYS = 2  # summary, rule
_LEAST_TEXT = 6


class CronsScreen(FarmScreen):
    """Every antfarm job and every missing one; Space marks, X deletes."""

    NAME: ClassVar[str] = CRONS

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, CronRow] = {}

    def compose_body(self) -> ComposeResult:
        yield LineView("crons-summary")
        yield LineTable("crons-table", COLUMNS, markable=True)
        yield LineView("crons-rule", rule=True)
        yield LongText("crons-text")

    @property
    def _table(self) -> LineTable:
        return self.query_one(LineTable)

    @property
    def _row(self) -> CronRow | None:
        return self._rows.get(self._table.selected or "")

    def target(self) -> Target:
        marked = tuple(key for key in self._table.marked if self._rows[key].job is not None)
        if marked:
            return Target(f"{len(marked)} marked crons", crons=marked, texts={"cron ids": "\n".join(marked)})
        row = self._row
        if row is None or row.job is None:
            return Target()
        texts = {"cron id": row.job.id, "name": row.job.name}
        if row.job.last_error:
            texts["last error"] = row.job.last_error
        return Target(f"{row.workflow}/{row.agent}", crons=(row.job.id,), texts=texts)

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        listing, judgement = view.state.crons, view.judgement
        self._rows = {row.key: row for row in cron_rows(listing, judgement, now)}
        words = safe_line(summary(listing, judgement.orphans, now))
        self.query_one("#crons-summary", LineView).show(
            [(f" {words}", "strong" if listing.known else "alarm")]
        )
        self._table.show_ids(tuple(self._rows), lambda key: _cells(self._rows[key], now))
        self._share_height()
        self._show_text(view, now)

    def _share_height(self) -> None:
        self._table.display = bool(self._rows)
        room = self.query_one("#body").size.height - _LINES_ALWAYS
        self._table.styles.height = min(len(self._rows) + 1, max(4, room - _LEAST_TEXT))

    def on_resize(self) -> None:
        self.call_after_refresh(self._share_height)

    def _show_text(self, view: View, now: datetime) -> None:
        row, listing = self._row, view.state.crons
        rule, text = self.query_one("#crons-rule", LineView), self.query_one(LongText)
        if row is None:
            rule.show([])
            if listing.known:
                text.notice("No antfarm crons: nobody is woken. Starting a run creates them.")
            else:
                text.notice(f"{listing.note or 'no answer yet'}\n\nThat is not the same as none.", alarm=True)
            return
        rule.show([(f" {safe_line(row.workflow)}/{safe_line(row.agent)}", "head")])
        text.show(describe(row, now), key=row.key)

    def on_row_list_moved(self) -> None:
        if self.farm_app.view is not None:
            self._show_text(self.farm_app.view, self.farm_app.clock.now())
        self.selection_changed()

    def do_mark(self) -> None:
        """Mark or unmark the job at the cursor."""
        self._table.toggle_mark()

    def do_back(self) -> None:
        """Unmark, else out of the screen."""
        if not self._table.clear_marks():
            self.farm_app.do_back()


def _cells(row: CronRow, now: datetime) -> tuple[Cell, ...]:
    following, last = next_and_last(row, now)
    cost = f"{calls_per_hour(row.job):.0f}" if row.job is not None else ""
    words = row.words
    if row.job is not None and row.job.last_error and row.status == "failed":
        words = f"{words}: {mask_text(row.job.last_error)}"
    tone = "alarm" if row.job is None else "warning" if row.orphan else row.status
    return (
        (sign(row.status), tone),
        (safe_line(row.workflow), ""),
        (safe_line(row.agent), "strong"),
        (safe_line(words), tone),
        (following, ""),
        (last, ""),
        (safe_line(row.job.schedule) if row.job is not None else "", "muted"),
        (cost, "warning" if row.orphan else ""),
    )
