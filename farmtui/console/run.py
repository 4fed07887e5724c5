"""The Run screen: the timeline of one run, and what the chosen step was told, gave and lacks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from farmtui.antfarm.templates import KeyUse, key_table
from farmtui.clock import age
from farmtui.console import run_tabs
from farmtui.console.actions import RUN, Target
from farmtui.console.background import Answered, Asker
from farmtui.console.lineview import LineView
from farmtui.console.longtext import LongText
from farmtui.console.run_tabs import Picture, Tab, Tone
from farmtui.console.screen import FarmScreen
from farmtui.console.signs import LANE_WORDS, sign
from farmtui.console.timeline import Entry
from farmtui.console.timeline_view import TimelineView
from farmtui.console.tones import Piece, width_of
from farmtui.medic.look import timeout_of
from farmtui.state import Finding, Lane, Run, RunDetail, Step
from farmtui.text import cells, crop, safe_line, secret_values, without

if TYPE_CHECKING:
    from farmtui.farm import View

# How often a growing progress file is read while it is on the screen.
PROGRESS_S = 2.0
_TABS = tuple(Tab)
_LINES_ALWAYS = 3  # title, tabs, label
_WIDE = 76  # from here on the tabs' line has room for keys
_TEXT_LINES = 9  # what the text keeps where the timeline could use more


class SearchLine(Input):
    """Where one types what to search the text for; takes no room otherwise."""

    # With priority: a key typed right after Enter is the screen's already.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.find", show=False, priority=True),
        Binding("escape", "screen.leave_search", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__(id="run-search", placeholder="search: Enter finds, n and N step", compact=True)
        self.cursor_blink = False


class RunScreen(FarmScreen):
    """One run. `look_at` says which; its long texts are read in a thread when it is looked at."""

    NAME: ClassVar[str] = RUN
    DEFAULT_CSS = """
    #run-search { height: 1; border: none; padding: 0; display: none; }
    #run-title, #run-tabs { background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._run_id: str | None = None
        self._came_from = "board"
        self._detail: RunDetail | None = None
        self._error: str | None = None
        self._asker = Asker(self, "detail")
        self._read_for: Run | None = None
        self._keys: tuple[KeyUse, ...] = ()
        self._tab = Tab.OUTPUT
        self._now: datetime | None = None

    def look_at(self, run_id: str) -> None:
        """Show another run from here on."""
        if self.farm_app.room is not None and self.farm_app.room is not self:
            self._came_from = self.farm_app.room.NAME
        if run_id != self._run_id:
            self._run_id = run_id
            self._detail, self._error, self._read_for, self._keys = None, None, None, ()

    # ------------------------------------------------------------ what is on it

    def compose_body(self) -> ComposeResult:
        yield LineView("run-title")
        yield LineView("run-finding")
        yield TimelineView("run-timeline")
        yield LineView("run-tabs")
        yield LineView("run-label")
        yield LongText("run-text")
        yield SearchLine()

    def on_mount(self) -> None:
        self.query_one(TimelineView).focus()
        self.set_interval(PROGRESS_S, self._read_progress)

    @property
    def _timeline(self) -> TimelineView:
        return self.query_one(TimelineView)

    @property
    def _text(self) -> LongText:
        return self.query_one(LongText)

    @property
    def _chosen(self) -> Entry | None:
        return self._timeline.chosen

    def target(self) -> Target:
        view, entry = self.farm_app.view, self._chosen
        run = view.state.run(self._run_id) if view is not None and self._run_id is not None else None
        if run is None:
            return Target()
        texts = {"run id": run.id}
        if entry is None:
            return Target(run.label, run.id, texts=texts)
        texts = {"step id": entry.step.id, **texts, "agent": entry.step.agent_id}
        if entry.story is not None:
            texts["story id"] = entry.story.id
        if len(self._text.text) < 100_000:
            texts["shown text"] = self._text.text
        return Target(f"{run.label} {entry.step.name}", run.id, entry.step.name, texts=texts)

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        self._now = now
        run = view.state.run(self._run_id) if self._run_id is not None else None
        if run is None:
            self.query_one("#run-title", LineView).show([(" this run is not in the database", "alarm")])
            self._text.notice("It may have been deleted, or the database replaced. Esc goes back.")
            return
        if run is not self._read_for:
            self._read(run)
        self.lively = any(_is_young(step, now) for step in run.steps)
        lane = view.judgement.lanes.get(run.id)
        self.query_one("#run-title", LineView).show(*self._title(run, lane, now))
        self._show_finding(view, run, now)
        self._show_timeline(view, run, now)
        self._show_tab()

    def _title(self, run: Run, lane: Lane | None, now: datetime) -> tuple[list[Piece], list[Piece]]:
        status = "human" if lane is Lane.HUMAN else run.status
        words = LANE_WORDS[Lane.HUMAN].lower() if lane is Lane.HUMAN else safe_line(run.status)
        since = age(run.created_at, now) if run.active else f"{age(run.updated_at, now)} ago"
        left = [
            (f" {self._came_from.capitalize()} › ", "muted"),
            (f"{run.label} {safe_line(run.workflow)}  ", "strong"),
            (safe_line(run.task, self.size.width), ""),
        ]
        return left, [(f"  {sign(status)} {words} {since} ", status)]

    def _show_finding(self, view: View, run: Run, now: datetime) -> None:
        line = self.query_one("#run-finding", LineView)
        finding = next((found for found in view.judgement.findings if found.run == run.id), None)
        waiting = next((found for found in view.judgement.escalations if found.run == run.id), None)
        if finding is not None:
            line.show(_finding_pieces(finding, now), [(f" {_way_out(finding)} ", "key")])
        elif waiting is not None and not waiting.acknowledged:
            line.show([(" ‼ ", "human"), (safe_line(waiting.reason), "human")], [(" 3 escalations ", "key")])
        else:
            line.show([])

    def _show_timeline(self, view: View, run: Run, now: datetime) -> None:
        detail = self._detail
        shown = run if run.steps or detail is None else detail.run
        workflow = view.state.workflows.get(run.workflow)
        timeouts = {step.id: float(timeout_of(step, workflow)) for step in shown.steps}
        self._timeline.show(shown, detail.events if detail is not None else None, now, timeouts)
        self._share_height()

    def _share_height(self) -> None:
        """Give the timeline what it needs, the text half or enough to read."""
        finding = 1 if self.query_one("#run-finding").display else 0
        room = self.query_one("#body").size.height - _LINES_ALWAYS - finding
        height = min(self._timeline.wanted_height, max(4, room // 2, room - _TEXT_LINES))
        if self._timeline.styles.height is None or self._timeline.styles.height.value != height:
            self._timeline.styles.height = height

    def on_resize(self) -> None:
        if self._run_id is not None:
            self.call_after_refresh(self._after_resize)

    def _after_resize(self) -> None:
        self._share_height()
        self._show_tab()

    def _show_tab(self) -> None:
        picture = self._picture()
        text = self._text
        entry = self._chosen
        if picture.tone is Tone.TEXT:
            key = (self._run_id, entry.key if entry is not None else None, self._tab)
            text.show(picture.text, key=key, marks=picture.marks)
        else:
            text.notice(picture.text, alarm=picture.tone is Tone.ALARM)
        self._show_label(picture)
        self._show_tabs()

    def _picture(self) -> Picture:
        """What the tab shows, without the values of secret context keys wherever they are repeated."""
        picture = self._open_picture()
        if self._detail is None:
            return picture
        return replace(picture, text=without(secret_values(self._detail.context), picture.text))

    def _open_picture(self) -> Picture:
        detail, entry, now = self._detail, self._chosen, self._now
        if detail is None:
            if self._error is not None:
                return Picture(f"could not be read: {self._error}", tone=Tone.ALARM)
            return Picture("reading …", tone=Tone.NOTICE)
        if now is None or entry is None:
            return Picture("this run has no steps", tone=Tone.NOTICE)
        if self._tab is Tab.OUTPUT:
            return run_tabs.output(detail, entry.step, entry.story, now)
        if self._tab is Tab.INPUT:
            return run_tabs.input_of(detail, entry.step)
        if self._tab is Tab.CONTEXT:
            return run_tabs.context(detail, self._keys, self._text.size.width)
        if self._tab is Tab.PROGRESS:
            return run_tabs.progress(detail, now)
        return run_tabs.events(detail)

    def _show_label(self, picture: Picture) -> None:
        line = self.query_one("#run-label", LineView)
        if self._detail is not None and self._error is not None and self._now is not None:
            old = age(self._detail.read_at, self._now)
            line.show([(f" ▲ not readable: {safe_line(self._error)}. What you see is {old} old.", "alarm")])
            return
        tone = "alarm" if picture.label.startswith("MISSING") else "muted"
        line.show([(f" {safe_line(picture.label)}", tone)])

    def _show_tabs(self) -> None:
        pieces = [(f"[{tab}]", "accent") if tab is self._tab else (f" {tab} ", "muted") for tab in _TABS]
        keys = "Tab next · Enter reads" if self._timeline.display else "Tab next · Esc back"
        if self.size.width < _WIDE:
            keys = ""
        right = " · ".join(part for part in (self._text.status_text, keys) if part)
        # The note gives way to the tabs, what the keys do first.
        room = self.size.width - width_of(pieces) - 4
        if cells(right) > room:
            right = crop(self._text.status_text, max(room, 0))
        self.query_one("#run-tabs", LineView).show([(" ", ""), *pieces], [(f"{right} ", "muted")])

    # ------------------------------------------------------------ reading

    def _read(self, run: Run) -> None:
        """Have the long texts read in a thread."""
        self._read_for = run
        self._asker.ask(run.id, partial(self.farm_app.farm.detail, run.id))

    def on_answered(self, message: Answered) -> None:
        if message.key != self._run_id:
            return
        self._error = message.error
        if message.error is None:
            self._detail = message.value
            workflows = self.farm_app.view.state.workflows if self.farm_app.view is not None else {}
            self._keys = key_table(message.value, workflows.get(message.value.run.workflow))
        self.farm_app.show_all()

    def _read_progress(self) -> None:
        """Again while a file that may grow is looked at, or while nothing could be read."""
        run = self._read_for
        if run is None or self.farm_app.room is not self:
            return
        if not self._asker.busy and (self._error or (self._tab is Tab.PROGRESS and run.active)):
            self._read(run)

    # ------------------------------------------------------------ choosing

    def on_timeline_view_chosen(self) -> None:
        self._show_tab()
        self.selection_changed()

    def on_long_text_moved(self) -> None:
        self._show_tabs()

    def do_next_tab(self, by: int = 1) -> None:
        """The tab after this one."""
        self._tab = _TABS[(_TABS.index(self._tab) + by) % len(_TABS)]
        self._show_tab()

    def do_previous_tab(self) -> None:
        """The tab before this one."""
        self.do_next_tab(-1)

    def do_follow(self) -> None:
        """Keep the end of the text in sight, or not."""
        self._text.follow = not self._text.follow

    def do_wrap(self) -> None:
        """Wrap long lines, or not."""
        self._text.wrap = not self._text.wrap

    def action_page_text(self, pages: int) -> None:
        """Scroll the text while the timeline has the keys."""
        self._text.action_page(pages)

    def action_zoom(self) -> None:
        """Give the text the whole screen, and the keys."""
        self._timeline.display = False
        self.set_focus(self._text)
        self._show_tabs()

    def do_back(self) -> None:
        """Out of the search, out of the text, out of the screen."""
        if self._text.pattern:
            self._text.search("")
        elif not self._timeline.display:
            self._timeline.display = True
            self.set_focus(self._timeline)
            self._show_tabs()
        else:
            self.farm_app.do_back()

    # ------------------------------------------------------------ searching

    def do_search(self) -> None:
        """Ask for what to search the text for."""
        search = self.query_one(SearchLine)
        search.value = self._text.pattern
        search.display = True
        self.set_focus(search, scroll_visible=False)

    def action_find(self) -> None:
        """Search for what was typed."""
        self._text.search(self.query_one(SearchLine).value)
        self.action_leave_search()

    def action_leave_search(self) -> None:
        """Give the keys back to what had them."""
        self.set_focus(self._timeline if self._timeline.display else self._text)
        self.query_one(SearchLine).display = False

    def do_next(self) -> None:
        """The next match."""
        self._text.next_match(1)

    def do_previous(self) -> None:
        """The match before."""
        self._text.next_match(-1)


def _is_young(step: Step, now: datetime) -> bool:
    """Whether its age is told in seconds."""
    moment = step.updated_at
    return (
        step.status in ("running", "pending") and moment is not None and (now - moment).total_seconds() < 60
    )


def _finding_pieces(finding: Finding, now: datetime) -> list[Piece]:
    since = f" since {age(finding.since, now)}" if finding.since is not None else ""
    return [(f" !! {finding.check}{since}: ", "alarm"), (safe_line(finding.message), "")]


def _way_out(finding: Finding) -> str:
    return "R reset" if finding.fix is not None and finding.fix.action == "reset" else "4 medic"
