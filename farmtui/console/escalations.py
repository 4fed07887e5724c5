"""The Escalations screen: an inbox of runs that wait for a person, oldest first."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from farmtui.clock import age
from farmtui.console.actions import ESCALATIONS, Target
from farmtui.console.background import Answered, Asker
from farmtui.console.escalation_text import HANG, as_text, facts, history, retry_rows
from farmtui.console.header import was_read
from farmtui.console.listscreen import ListScreen
from farmtui.console.table import Cell, Column
from farmtui.console.tones import Piece
from farmtui.operations.plan import Plan, Refused
from farmtui.state import Escalation, Run, RunDetail
from farmtui.text import safe_line, secret_values, without

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
_LAST = datetime.max.replace(tzinfo=UTC)


class EscalationsScreen(ListScreen[Escalation]):
    """The inbox; the story of the chosen one stands below, read in a thread."""

    NAME: ClassVar[str] = ESCALATIONS
    COLUMNS = COLUMNS
    TABLE_SHARE = 35

    def __init__(self) -> None:
        super().__init__()
        self._details = Asker(self, "detail")
        self._previews = Asker(self, "preview")
        self._read_for: Run | None = None
        self._detail: RunDetail | None = None
        self._error: str | None = None
        self._previewed_for: object = None
        self._preview: Plan | str | None = None

    def target(self) -> Target:
        chosen = self.chosen
        if chosen is None:
            return Target()
        texts = {"run id": chosen.run, "reason": chosen.reason}
        return Target(_label(chosen), chosen.run, chosen.step, texts=texts)

    # ------------------------------------------------------------ drawing

    def gather(self, view: View, now: datetime) -> dict[str, Escalation]:
        found = sorted(
            view.judgement.escalations, key=lambda each: (each.acknowledged, each.since or _LAST, each.run)
        )
        return {each.run: each for each in found}

    def summary(self, view: View, now: datetime) -> list[Piece]:
        if not was_read(view.state):
            return [(" Not known who waits for a human: the database was not read", "warning")]
        found = view.judgement.escalations
        waiting = sum(not each.acknowledged for each in found)
        words = (
            f"{waiting} wait{'s' * (waiting == 1)} for a human" if waiting else "Nothing waits for a human"
        )
        seen = f" · {len(found) - waiting} acknowledged" if len(found) > waiting else ""
        return [(f" {words}{seen}", "human" if waiting else "done")]

    def cells(self, row: Escalation, now: datetime) -> tuple[Cell, ...]:
        return _cells(row, now)

    def show_chosen(self, view: View, now: datetime) -> None:
        chosen = self.chosen
        if chosen is None:
            self.rule.show([])
            self.text.notice(
                "Failed runs whose workflow names a human come here: R gives one back to its agents, "
                "a acknowledges it."
            )
            return
        self._look(view, chosen)
        self.rule.show(
            [(f" {_label(chosen)} {safe_line(chosen.workflow)}  {safe_line(chosen.task)}", "head")]
        )
        rows = facts(chosen, view.state.acknowledgements.get(chosen.run), now)
        secrets: frozenset[str] = frozenset()
        if self._error is not None:
            rows.append(("tried", f"could not be read: {self._error}"))
        elif self._detail is None or self._detail.run.id != chosen.run:
            rows.append(("tried", "reading …"))
        else:
            rows += history(chosen, self._detail, now)
            secrets = secret_values(self._detail.context)
        rows += self._retry_rows()
        # Outputs and feedback repeat what an agent was given.
        self.text.show(without(secrets, as_text(rows)), key=chosen.run, hang=HANG)

    def _retry_rows(self) -> list[tuple[str, str]]:
        if self._preview is None:
            return [("retry", "looking at what it would do …")]
        if isinstance(self._preview, Plan):
            return retry_rows(self._preview)
        return [("retry", f"not possible: {self._preview}")]

    # ------------------------------------------------------------ reading

    def _look(self, view: View, chosen: Escalation) -> None:
        """Read the chosen run, and what a retry would do, where it is another or something differs."""
        run = view.state.run(chosen.run)
        if run is None:
            return
        if run is not self._read_for:
            self._read_for, self._error = run, None
            self._details.ask(run.id, partial(self.farm_app.farm.detail, run.id))
        # What a retry would do hangs on which crons there are, too.
        crons = view.state.crons
        basis = (run, crons.source, tuple(job.id for job in crons.jobs))
        if basis != self._previewed_for:
            self._previewed_for, self._preview = basis, None
            self._previews.ask(run.id, partial(self._preview_of, run.id))

    def _preview_of(self, run_id: str) -> Plan | str:
        try:
            return self.farm_app.farm.desk.retry(run_id, None)
        except Refused as refused:
            return str(refused)

    def on_answered(self, message: Answered) -> None:
        chosen = self.chosen
        if chosen is None or message.key != chosen.run:
            return
        if message.topic == "preview":
            self._preview = message.value if message.error is None else message.error
        else:
            self._detail, self._error = message.value, message.error
        self.farm_app.show_all()


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
