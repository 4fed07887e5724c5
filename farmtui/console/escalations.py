"""The Escalations screen: an inbox of runs that wait for a person, oldest first."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult

from farmtui.clock import age
from farmtui.console.actions import ESCALATIONS, Target
from farmtui.console.background import Answered, Asker
from farmtui.console.escalation_text import HANG, as_text, facts, history, retry_rows
from farmtui.console.lineview import LineView
from farmtui.console.longtext import LongText
from farmtui.console.screen import FarmScreen
from farmtui.console.table import Cell, Column, LineTable
from farmtui.operations.plan import Plan, Refused
from farmtui.state import Escalation, Run, RunDetail
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("sign", "", 1),
    Column("run", "run", 5),
    Column("workflow", "workflow", 14, priority=3),
    Column("where", "step", 16, priority=2),
    Column("task", "task", 12, grows=True, priority=4),
    Column("since", "waits", 8, align="right"),
    Column("seen", "", 12, priority=1),
)
_LINES_ALWAYS = 2  # summary, rule
_LAST = datetime.max.replace(tzinfo=UTC)


class EscalationsScreen(FarmScreen):
    """The inbox; the chosen one's story stands below, read in a thread."""

    NAME: ClassVar[str] = ESCALATIONS

    def __init__(self) -> None:
        super().__init__()
        self._escalations: dict[str, Escalation] = {}
        self._details = Asker(self, "detail")
        self._previews = Asker(self, "preview")
        self._read_for: Run | None = None
        self._detail: RunDetail | None = None
        self._error: str | None = None
        self._preview: Plan | str | None = None

    def compose_body(self) -> ComposeResult:
        yield LineView("escalations-summary")
        yield LineTable("escalations-table", COLUMNS)
        yield LineView("escalations-rule", rule=True)
        yield LongText("escalations-text")

    @property
    def _table(self) -> LineTable:
        return self.query_one(LineTable)

    @property
    def _chosen(self) -> Escalation | None:
        return self._escalations.get(self._table.selected or "")

    def target(self) -> Target:
        chosen = self._chosen
        if chosen is None:
            return Target()
        texts = {"run id": chosen.run, "reason": chosen.reason}
        return Target(_label(chosen), chosen.run, chosen.step, texts=texts)

    # ------------------------------------------------------------ drawing

    def show(self, view: View, now: datetime) -> None:
        ordered = sorted(
            view.judgement.escalations, key=lambda found: (found.acknowledged, found.since or _LAST)
        )
        self._escalations = {found.run: found for found in ordered}
        waiting = sum(not found.acknowledged for found in ordered)
        tone = "human" if waiting else "done"
        seen = f" · {len(ordered) - waiting} acknowledged" if len(ordered) > waiting else ""
        words = (
            f"{waiting} wait{'s' * (waiting == 1)} for a human" if waiting else "Nothing waits for a human"
        )
        self.query_one("#escalations-summary", LineView).show([(f" {words}{seen}", tone)])
        self._table.show_ids(tuple(self._escalations), lambda run_id: _cells(self._escalations[run_id], now))
        self._share_height()
        self._look(view)
        self._show_text(view, now)

    def _share_height(self) -> None:
        self._table.display = bool(self._escalations)
        room = self.query_one("#body").size.height - _LINES_ALWAYS
        self._table.styles.height = min(len(self._escalations) + 1, max(3, room // 3))

    def on_resize(self) -> None:
        self.call_after_refresh(self._share_height)

    def _show_text(self, view: View, now: datetime) -> None:
        chosen, text = self._chosen, self.query_one(LongText)
        rule = self.query_one("#escalations-rule", LineView)
        if chosen is None:
            rule.show([])
            text.notice(
                "Failed runs whose workflow names a human come here. R gives one back, a acknowledges it."
            )
            return
        rule.show([(f" {_label(chosen)} {safe_line(chosen.workflow)}  {safe_line(chosen.task)}", "head")])
        rows = facts(chosen, view.state.acknowledgements.get(chosen.run), now)
        if self._error is not None:
            rows.append(("tried", f"could not be read: {self._error}"))
        elif self._detail is None or self._detail.run.id != chosen.run:
            rows.append(("tried", "reading …"))
        else:
            rows += history(chosen, self._detail, now)
        rows += self._retry_rows()
        text.show(as_text(rows), key=chosen.run, hang=HANG)

    def _retry_rows(self) -> list[tuple[str, str]]:
        if self._preview is None:
            return [("retry", "looking at what it would do …")]
        if isinstance(self._preview, Plan):
            return retry_rows(self._preview)
        return [("retry", f"not possible: {self._preview}")]

    # ------------------------------------------------------------ reading

    def _look(self, view: View) -> None:
        """Read the chosen run, and what a retry would do, where it is another or differs."""
        chosen = self._chosen
        run = view.state.run(chosen.run) if chosen is not None else None
        if run is None or run is self._read_for:
            return
        self._read_for, self._error, self._preview = run, None, None
        self._details.ask(run.id, partial(self.farm_app.farm.detail, run.id))
        self._previews.ask(run.id, partial(self._preview_of, run.id))

    def _preview_of(self, run_id: str) -> Plan | str:
        try:
            return self.farm_app.farm.desk.retry(run_id, None)
        except Refused as refused:
            return str(refused)

    def on_answered(self, message: Answered) -> None:
        chosen = self._chosen
        if chosen is None or message.key != chosen.run:
            return
        if message.topic == "preview":
            self._preview = message.value if message.error is None else message.error
        else:
            self._detail, self._error = message.value, message.error
        self.farm_app.show_all()

    def on_row_list_moved(self) -> None:
        if self.farm_app.view is not None:
            self._look(self.farm_app.view)
            self._show_text(self.farm_app.view, self.farm_app.clock.now())
        self.selection_changed()

    def on_row_list_chosen(self) -> None:
        self.farm_app.action_press("enter")


def _label(found: Escalation) -> str:
    return f"#{found.run_number}" if found.run_number is not None else found.run[:8]


def _cells(found: Escalation, now: datetime) -> tuple[Cell, ...]:
    where = " ".join(part for part in (found.step, found.story) if part)
    return (
        ("‼", "muted" if found.acknowledged else "human"),
        (_label(found), "strong"),
        (safe_line(found.workflow), ""),
        (safe_line(where), ""),
        (safe_line(found.task), ""),
        (age(found.since, now), ""),
        ("acknowledged", "muted") if found.acknowledged else ("for you", "human"),
    )
