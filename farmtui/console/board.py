"""The board: runs by lane, as cards; where it is wide, with a preview of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from farmtui.console.actions import BOARD, Target
from farmtui.console.board_layout import arrange
from farmtui.console.cards import CardFacts, Lines, card_lines, current_step_name, is_young, matches
from farmtui.console.filterbar import FilterBar
from farmtui.console.lane import LaneList
from farmtui.console.preview import Preview, preview_lines
from farmtui.console.rowlist import RowList
from farmtui.console.screen import FarmScreen
from farmtui.console.targets import Index
from farmtui.state import Lane, Run

if TYPE_CHECKING:
    from farmtui.farm import View

LANES = (Lane.PENDING, Lane.RUNNING, Lane.HUMAN, Lane.FAILED, Lane.DONE, Lane.OTHER)
_ALWAYS = LANES[:-1]
_NEVER = datetime.min.replace(tzinfo=UTC)


def lane_orders(view: View) -> dict[Lane, list[Run]]:
    """Every lane's runs in the order of their cards.

    Pending and running: what is wrong first, then the newest. For a human: who waits longest first. Ended:
    the latest first. Cancelled runs are among the done ones.
    """
    by_lane: dict[Lane, list[Run]] = {lane: [] for lane in LANES}
    lanes = view.judgement.lanes
    for run in view.state.runs:
        lane = lanes.get(run.id, Lane.OTHER)
        by_lane[Lane.DONE if lane is Lane.CANCELLED else lane].append(run)
    troubled = _troubled(view)
    for lane in (Lane.PENDING, Lane.RUNNING):
        by_lane[lane].sort(key=lambda run: run.id not in troubled)
    by_lane[Lane.HUMAN].sort(key=_ended)
    for lane in (Lane.FAILED, Lane.DONE):
        by_lane[lane].sort(key=_ended, reverse=True)
    return by_lane


def _same_order(view: View, before: View) -> bool:
    """Whether `lane_orders` would answer as before."""
    return (
        view.state.runs is before.state.runs
        and view.judgement.lanes == before.judgement.lanes
        and _troubled(view) == _troubled(before)
    )


def _troubled(view: View) -> set[str | None]:
    return {finding.run for finding in view.judgement.findings}


def _ended(run: Run) -> datetime:
    return run.updated_at or _NEVER


class BoardScreen(FarmScreen):
    """Lanes side by side. Where not all fit, those that are folded show their number; moving in opens one."""

    NAME: ClassVar[str] = BOARD
    NEEDS_RUNS = True

    DEFAULT_CSS = """
    BoardScreen #lanes { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view: View | None = None
        self._index: Index | None = None
        self._orders: Mapping[Lane, list[Run]] = {}
        self._ids: Mapping[Lane, tuple[str, ...]] = {}
        self._cancelled = 0
        self._focused = Lane.RUNNING
        self._chosen: str | None = None
        self._now = _NEVER
        self._first_look = True

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="lanes"):
            for lane in LANES:
                yield LaneList(lane)
            yield Preview()
        yield FilterBar()

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        self._now = now
        if view is not self._view:
            self._index = Index(view, self._index)
            if self._view is None or not _same_order(view, self._view):
                self._orders = lane_orders(view)
                self._ids = {lane: tuple(run.id for run in runs) for lane, runs in self._orders.items()}
                lanes = view.judgement.lanes
                self._cancelled = sum(lanes.get(run_id) is Lane.CANCELLED for run_id in self._ids[Lane.DONE])
            self._view = view
        self._follow_chosen()
        self._show_lanes()
        self._show_preview()
        active = (run for lane in (Lane.PENDING, Lane.RUNNING, Lane.OTHER) for run in self._orders[lane])
        self.lively = any(is_young(run, now) for run in active) or any(
            is_young(self._orders[lane][0], now)
            for lane in (Lane.HUMAN, Lane.FAILED, Lane.DONE)
            if self._orders[lane]
        )

    def _show_lanes(self) -> None:
        pattern = self.query_one(FilterBar).pattern
        index, shown_all, total_all = self._index, 0, 0
        assert index is not None
        for lane in LANES:
            runs, ids = self._orders[lane], self._ids[lane]
            if pattern:
                ids = tuple(run.id for run in runs if matches(run, index.lane(run.id), pattern))
            aside = f"⊘ {self._cancelled}" if lane is Lane.DONE and self._cancelled else ""
            self._lane(lane).show_cards(ids, self._card, len(runs), aside)
            shown_all, total_all = shown_all + len(ids), total_all + len(runs)
        self.query_one(FilterBar).say(shown_all, total_all)
        self._arrange()

    def _card(self, run_id: str, width: int) -> Lines:
        assert self._index is not None
        return card_lines(self._index.facts(run_id), self._now, width)

    def _show_preview(self) -> None:
        preview = self.query_one(Preview)
        if not preview.display:
            return
        facts = self._facts()
        preview.show(preview_lines(facts, self._now, max(1, preview.size.width)) if facts else ())

    def _facts(self) -> CardFacts | None:
        run_id = self._lane(self._focused).selected
        return self._index.facts(run_id) if self._index is not None and run_id is not None else None

    def _arrange(self) -> None:
        lanes = [lane for lane in LANES if lane in _ALWAYS or self._orders.get(lane)]
        counts = {lane: len(self._orders.get(lane, ())) for lane in lanes}
        shown = {lane: len(self._lane(lane).ids) for lane in lanes}
        found = arrange(lanes, counts, shown, self._focused, self.app.size.width)
        for lane in LANES:
            widget = self._lane(lane)
            width = found.widths.get(lane)
            if widget.display != (width is not None):
                widget.display = width is not None
            if width is not None and widget.set_width != width:
                widget.set_width = width
                widget.styles.width = width
            widget.fold(lane in found.folded)
        preview = self.query_one(Preview)
        if preview.display != bool(found.preview):
            preview.display = bool(found.preview)
        if found.preview and preview.set_width != found.preview:
            preview.set_width = found.preview
            preview.styles.width = found.preview

    def _lane(self, lane: Lane) -> LaneList:
        return self.query_one(f"#lane-{lane}", LaneList)

    # ------------------------------------------------------------ the selection

    def _follow_chosen(self) -> None:
        """The chosen run keeps the cursor, also when it went to another lane."""
        if self._first_look:
            self._first_look = False
            self._focused = self._where_to_begin()
            self.set_focus(self._lane(self._focused), scroll_visible=False)
            return
        if self._chosen is None or self._index is None or self._chosen not in self._index:
            return
        lane = self._index.lane(self._chosen)
        lane = Lane.DONE if lane is Lane.CANCELLED else lane
        if lane is not self._focused:
            self._focused = lane
            self._show_lanes()
            self._lane(lane).select(self._chosen)
            self.set_focus(self._lane(lane), scroll_visible=False)

    def _where_to_begin(self) -> Lane:
        urgent = (Lane.HUMAN, Lane.RUNNING, Lane.PENDING, Lane.FAILED, Lane.DONE)
        return next((lane for lane in urgent if self._orders[lane]), Lane.RUNNING)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, LaneList) and event.widget.lane is not self._focused:
            self._focused = event.widget.lane
            self._arrange()
            self._chosen_changed()

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        if event.rows is self._lane(self._focused):
            self._chosen_changed()

    def on_row_list_chosen(self) -> None:
        self.do_open()

    def on_resize(self) -> None:
        if self._view is not None:
            self._arrange()
            self.call_after_refresh(self._show_preview)

    def _chosen_changed(self) -> None:
        self._chosen = self._lane(self._focused).selected
        self._show_preview()
        self.selection_changed()

    def target(self) -> Target:
        facts = self._facts()
        if facts is None or self._index is None:
            return Target()
        return self._index.target(facts.run.id, current_step_name(facts.run))

    # ------------------------------------------------------------ keys

    def do_open(self) -> None:
        """Go into the chosen run."""
        target = self.target()
        if target.run is not None:
            self.farm_app.open_run(target.run)

    def do_next_tab(self) -> None:
        """The next lane."""
        self._step(1)

    def do_previous_tab(self) -> None:
        """The lane before."""
        self._step(-1)

    def key_l(self) -> None:
        self._step(1, around=False)

    def key_right(self) -> None:
        self._step(1, around=False)

    def key_h(self) -> None:
        self._step(-1, around=False)

    def key_left(self) -> None:
        self._step(-1, around=False)

    def _step(self, by: int, *, around: bool = True) -> None:
        lanes = [lane for lane in LANES if self._lane(lane).display]
        at = lanes.index(self._focused) + by if self._focused in lanes else 0
        if around or 0 <= at < len(lanes):
            self.set_focus(self._lane(lanes[at % len(lanes)]), scroll_visible=False)

    def do_filter(self) -> None:
        """Type a filter."""
        self.query_one(FilterBar).edit()

    def do_back(self) -> None:
        """Filter no more; else back."""
        if self.query_one(FilterBar).clear():
            self.set_focus(self._lane(self._focused), scroll_visible=False)
        else:
            self.farm_app.do_back()

    def on_filter_bar_changed(self) -> None:
        if self._index is not None:
            self._show_lanes()
            self._go_where_found()
            self._show_preview()

    def on_filter_bar_done(self) -> None:
        # The filter may have moved the choice into another lane.
        self.set_focus(self._lane(self._focused), scroll_visible=False)

    def _go_where_found(self) -> None:
        """Where the filter leaves nothing in the lane, the cursor goes to one in which it does."""
        if not self._lane(self._focused).ids:
            found = next((lane for lane in LANES if self._lane(lane).ids), None)
            if found is not None:
                self._focused = found
                self._arrange()
        self._chosen_changed()
