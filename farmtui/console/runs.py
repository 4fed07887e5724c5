"""The Runs screen: every run in a table that sorts and filters."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult

from farmtui.console.actions import RUNS, Target
from farmtui.console.screen import FarmScreen
from farmtui.console.table import Cell, Column, LineTable

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("number", "run", 6),
    Column("lane", "state", 15, priority=1),
    Column("workflow", "workflow", 18, priority=2),
    Column("task", "task", 16, grows=True),
)


class RunsScreen(FarmScreen):
    """A table of all runs."""

    NAME: ClassVar[str] = RUNS

    def compose_body(self) -> ComposeResult:
        yield LineTable("runs-table", COLUMNS)

    def show(self, view: View, now: datetime) -> None:
        runs = {run.id: run for run in view.state.runs}

        def cells(run_id: str) -> tuple[Cell, ...]:
            run = runs[run_id]
            return ((run.label, "strong"), (run.status, run.status), (run.workflow, ""), (run.task, ""))

        self.query_one(LineTable).show_ids(tuple(runs), cells)

    def target(self) -> Target:
        selected = self.query_one(LineTable).selected
        return Target() if selected is None else Target(run=selected)

    def on_row_list_moved(self) -> None:
        self.selection_changed()
