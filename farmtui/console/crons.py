"""The Crons screen: who is woken when, how that goes, and what it costs for nothing."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from farmtui.console.actions import CRONS, Target
from farmtui.console.cron_rows import CronRow, calls_per_hour, cron_rows, describe, next_and_last, summary
from farmtui.console.listscreen import ListScreen
from farmtui.console.signs import sign
from farmtui.console.table import Cell, Column
from farmtui.console.tones import Piece
from farmtui.text import mask_text, safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("sign", "", 1),
    Column("workflow", "workflow", 11, grows=True),
    Column("agent", "agent", 12, grows=True),
    Column("state", "state", 22, grows=True),
    Column("next", "next", 9, align="right", priority=2),
    Column("last", "last", 9, align="right", priority=3),
    Column("every", "schedule", 9, priority=4),
    Column("cost", "calls/h", 7, align="right", priority=1),
)


class CronsScreen(ListScreen[CronRow]):
    """Every antfarm job and every missing one; Space marks, X deletes."""

    NAME: ClassVar[str] = CRONS
    COLUMNS = COLUMNS
    MARKABLE = True
    TABLE_SHARE = 70

    def target(self) -> Target:
        marked = tuple(key for key in self.table.marked if self._rows[key].job is not None)
        if marked:
            return Target(f"{len(marked)} marked crons", crons=marked, texts={"cron ids": "\n".join(marked)})
        row = self.chosen
        if row is None or row.job is None:
            return Target()
        texts = {"cron id": row.job.id, "name": row.job.name}
        if row.job.last_error:
            texts["last error"] = row.job.last_error
        return Target(safe_line(f"{row.workflow}/{row.agent}"), crons=(row.job.id,), texts=texts)

    def gather(self, view: View, now: datetime) -> dict[str, CronRow]:
        return {row.key: row for row in cron_rows(view.state.crons, view.judgement, now)}

    def summary(self, view: View, now: datetime) -> list[Piece]:
        listing = view.state.crons
        words = safe_line(summary(listing, view.judgement.orphans, now))
        return [(f" {words}", "strong" if listing.known else "alarm")]

    def cells(self, row: CronRow, now: datetime) -> tuple[Cell, ...]:
        return _cells(row, now)

    def show_chosen(self, view: View, now: datetime) -> None:
        row, listing = self.chosen, view.state.crons
        if row is not None:
            self.rule.show([(f" {safe_line(row.workflow)}/{safe_line(row.agent)}", "head")])
            self.text.show(describe(row, now), key=row.key)
            return
        self.rule.show([])
        if listing.known:
            self.text.notice("No antfarm crons: nobody is woken. Starting a run creates them.")
        else:
            self.text.notice(
                f"{listing.note or 'no answer yet'}\n\nThat is not the same as none.", alarm=True
            )

    def do_mark(self) -> None:
        """Mark or unmark the job at the cursor."""
        self.table.toggle_mark()

    def do_mark_orphans(self) -> None:
        """Mark all orphans; unmark all where they are marked already."""
        orphans = [key for key, row in self._rows.items() if row.orphan is not None]
        if not orphans:
            self.farm_app.say("no cron is orphaned")
        self.table.mark(() if set(orphans) == set(self.table.marked) else orphans)

    def do_back(self) -> None:
        """Unmark, else as everywhere."""
        if not self.table.clear_marks():
            super().do_back()


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
