"""The Runs screen: every run in a table that sorts and filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult

from farmtui.clock import age
from farmtui.console.actions import RUNS, Target
from farmtui.console.cards import SEVERITY_TONES, current_step_name, is_young, matches
from farmtui.console.filterbar import FilterBar
from farmtui.console.screen import FarmScreen
from farmtui.console.signs import LANE_SIGNS
from farmtui.console.table import Cell, Column, LineTable
from farmtui.console.targets import Index
from farmtui.medic.lanes import run_tally
from farmtui.state import Lane, Run
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("number", "run", 6),
    Column("state", "state", 11),
    Column("workflow", "workflow", 14, priority=2),
    Column("task", "task", 14, grows=True),
    Column("step", "step", 11, priority=4),
    Column("steps", "steps", 5, align="right", priority=6),
    Column("stories", "stories", 7, align="right", priority=7),
    Column("trouble", "what is wrong", 18, priority=3),
    Column("began", "began", 7, align="right", priority=5),
    Column("changed", "changed", 7, align="right", priority=1),
)
_NEVER = datetime.min.replace(tzinfo=UTC)
_LANE_ORDER = (Lane.HUMAN, Lane.FAILED, Lane.OTHER, Lane.RUNNING, Lane.PENDING, Lane.CANCELLED, Lane.DONE)
_TONES = {Lane.HUMAN: "human", Lane.OTHER: "warning", Lane.CANCELLED: "muted"}

# By these `s` sorts in turn; True: the greatest first. "number" is the order in which runs began.
ORDERS: tuple[tuple[str, bool], ...] = (
    ("number", True),
    ("state", False),
    ("workflow", False),
    ("trouble", True),
    ("changed", True),
)


def sort_runs(runs: Sequence[Run], index: Index, key: str, descending: bool) -> list[Run]:
    """Runs (newest first) in the order of a column; equal ones stay newest first."""
    if key == "number":
        return list(runs) if descending else list(reversed(runs))
    keys: dict[str, Callable[[Run], Any]] = {
        "state": lambda run: _LANE_ORDER.index(index.lane(run.id)),
        "workflow": lambda run: run.workflow,
        "trouble": lambda run: len(index.findings(run.id)),
        "changed": lambda run: run.updated_at or _NEVER,
    }
    return sorted(runs, key=keys[key], reverse=descending)


class RunsScreen(FarmScreen):
    """A table of all runs: `s` sorts by the next column, `o` turns the order round, `/` filters."""

    NAME: ClassVar[str] = RUNS
    NEEDS_RUNS = True

    def __init__(self) -> None:
        super().__init__()
        self._view: View | None = None
        self._index: Index | None = None
        self._now = _NEVER
        self._order, self._descending = ORDERS[0]

    def compose_body(self) -> ComposeResult:
        yield LineTable("runs-table", COLUMNS)
        yield FilterBar()

    def on_mount(self) -> None:
        self.set_focus(self.query_one(LineTable), scroll_visible=False)

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        self._now = now
        if view is not self._view:
            self._view, self._index = view, Index(view, self._index)
            self._arrange()
        else:
            self.query_one(LineTable).redraw_changed()
        self.lively = any(is_young(run, now) for run in view.state.runs if run.active)

    def _arrange(self) -> None:
        view, index = self._view, self._index
        if view is None or index is None:
            return
        bar, table = self.query_one(FilterBar), self.query_one(LineTable)
        runs: Sequence[Run] = view.state.runs
        if pattern := bar.pattern:
            runs = [run for run in runs if matches(run, index.lane(run.id), pattern)]
        ordered = sort_runs(runs, index, self._order, self._descending)
        table.show_order(self._order, self._descending)
        table.show_ids([run.id for run in ordered], self._cells)
        bar.say(len(ordered), len(view.state.runs))

    def _cells(self, run_id: str) -> tuple[Cell, ...]:
        assert self._index is not None
        run, lane = self._index.run(run_id), self._index.lane(run_id)
        tally = run_tally(run)
        findings = self._index.findings(run_id)
        trouble: Cell = ("", "")
        if findings:
            trouble = (findings[0].check, SEVERITY_TONES[findings[0].severity])
        word = safe_line(run.status) if lane is Lane.OTHER else str(lane)
        return (
            (run.label, "strong"),
            (f"{LANE_SIGNS[lane]} {word}", _TONES.get(lane, lane)),
            (safe_line(run.workflow), ""),
            (safe_line(run.task, 200), ""),
            (safe_line(current_step_name(run)), ""),
            (f"{tally.steps_done}/{tally.steps_total}" if tally.steps_total else "", ""),
            (f"{tally.stories_done}/{tally.stories_total}" if tally.stories_total else "", ""),
            trouble,
            (age(run.created_at, self._now), "muted"),
            (age(run.updated_at, self._now), "muted"),
        )

    # ------------------------------------------------------------ the selection

    def target(self) -> Target:
        selected = self.query_one(LineTable).selected
        if selected is None or self._index is None or selected not in self._index:
            return Target()
        return self._index.target(selected, current_step_name(self._index.run(selected)))

    def on_row_list_moved(self) -> None:
        self.selection_changed()

    def on_row_list_chosen(self) -> None:
        self.do_open()

    # ------------------------------------------------------------ keys

    def do_open(self) -> None:
        """Go into the chosen run."""
        target = self.target()
        if target.run is not None:
            self.farm_app.open_run(target.run)

    def do_sort(self) -> None:
        """By the next column."""
        at = [key for key, _ in ORDERS].index(self._order)
        self._order, self._descending = ORDERS[(at + 1) % len(ORDERS)]
        self._arrange()

    def do_reverse(self) -> None:
        """The order turned round."""
        self._descending = not self._descending
        self._arrange()

    def do_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).edit()

    def do_back(self) -> None:
        """Filter no more; else back."""
        if not self.query_one(FilterBar).clear():
            self.farm_app.do_back()

    def on_filter_bar_changed(self) -> None:
        self._arrange()
        self.selection_changed()
