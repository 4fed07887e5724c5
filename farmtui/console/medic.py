"""The Medic screen: what is wrong, worst first, the evidence of the chosen finding, and what mends it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult

from farmtui.clock import age
from farmtui.console.actions import ACTIONS, MEDIC, Action, Target
from farmtui.console.lineview import LineView
from farmtui.console.longtext import LongText
from farmtui.console.medic_rows import SEVERITY_SIGNS, MedicRow, evidence, medic_rows, subject, summary
from farmtui.console.screen import FarmScreen
from farmtui.console.table import Cell, Column, LineTable
from farmtui.medic.judge import CHECKS
from farmtui.state import Finding, Severity
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("severity", "", 2),
    Column("check", "check", 22),
    Column("since", "since", 7, align="right", priority=2),
    Column("subject", "what", 18),
    Column("message", "", 12, grows=True, priority=4),
    Column("fix", "mends it", 8, priority=1),
)
_SEVERITY_TONES = {Severity.CRITICAL: "alarm", Severity.WARNING: "warning", Severity.INFO: "muted"}
_LINES_ALWAYS = 2  # summary, rule


class MedicScreen(FarmScreen):
    """Findings and the checks that could not be made."""

    NAME: ClassVar[str] = MEDIC

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, MedicRow] = {}

    def compose_body(self) -> ComposeResult:
        yield LineView("medic-summary")
        yield LineTable("medic-table", COLUMNS)
        yield LineView("medic-rule", rule=True)
        yield LongText("medic-evidence")

    @property
    def _table(self) -> LineTable:
        return self.query_one(LineTable)

    @property
    def _row(self) -> MedicRow | None:
        return self._rows.get(self._table.selected or "")

    def target(self) -> Target:
        row = self._row
        if row is None or row.finding is None:
            return Target()
        found = row.finding
        return Target(
            subject(found) or found.check,
            found.run,
            found.step,
            crons=found.crons,
            workflow=found.workflow if found.run is None else None,
            finding=found.id,
            texts=_texts(found),
        )

    def show(self, view: View, now: datetime) -> None:
        judgement = view.judgement
        self._rows = {row.key: row for row in medic_rows(judgement)}
        clear = not judgement.findings and not judgement.not_checked
        self.lively = (now - judgement.at).total_seconds() < 60
        line = summary(judgement, len(CHECKS), now)
        self.query_one("#medic-summary", LineView).show([(f" {line}", "done" if clear else "strong")])
        self._table.show_ids(tuple(self._rows), lambda key: _cells(self._rows[key], now))
        self._share_height()
        self._show_evidence()

    def _share_height(self) -> None:
        self._table.display = bool(self._rows)
        room = self.query_one("#body").size.height - _LINES_ALWAYS
        self._table.styles.height = min(len(self._rows) + 1, max(3, room // 2))

    def on_resize(self) -> None:
        self.call_after_refresh(self._share_height)

    def _show_evidence(self) -> None:
        row = self._row
        rule, text = self.query_one("#medic-rule", LineView), self.query_one(LongText)
        if row is None:
            rule.show([(" what is checked", "head")])
            checks = "\n".join(f"{name:<22}{words}" for name, words in CHECKS)
            text.show(checks, key="checks", hang=22)
            return
        what = subject(row.finding) if row.finding is not None else "not checked"
        rule.show([(f" {row.check}  {safe_line(what)}", "head")])
        text.show(evidence(row, way_out(row.finding)), key=row.key)

    def on_row_list_moved(self) -> None:
        self._show_evidence()
        self.selection_changed()

    def on_row_list_chosen(self) -> None:
        self.farm_app.action_press("enter")


def way_out(finding: Finding | None) -> str:
    """Which key mends a finding, and the command that does the same; or that none does."""
    action = _fix_action(finding)
    if finding is None or finding.fix is None or action is None:
        return "No key of farm mends this; Enter opens the run."
    return f"{action.shown_key}  {action.words}\n   {' '.join(finding.fix.argv)}"


def _fix_action(finding: Finding | None) -> Action | None:
    if finding is None or finding.fix is None:
        return None
    wanted = finding.fix.action.replace("-", "_")
    return next((action for action in ACTIONS if action.id == wanted and action.on(MEDIC)), None)


def _texts(finding: Finding) -> dict[str, str]:
    texts = {"message": finding.message}
    if finding.run is not None:
        texts["run id"] = finding.run
    if finding.fix is not None:
        texts["command"] = " ".join(finding.fix.argv)
    return texts


def _cells(row: MedicRow, now: datetime) -> tuple[Cell, ...]:
    name = (f"{row.check} ×{row.count}" if row.count > 1 else row.check, "strong")
    if row.finding is None:
        reason = row.not_checked.reason if row.not_checked is not None else ""
        return (
            (" ?", "warning"),
            name,
            ("", ""),
            ("not checked", "warning"),
            (safe_line(reason), ""),
            ("", ""),
        )
    found = row.finding
    tone = _SEVERITY_TONES[found.severity]
    action = _fix_action(found)
    fix = f"{action.shown_key} {action.id.split('_')[0]}" if action is not None else ""
    return (
        (SEVERITY_SIGNS[found.severity], tone),
        name if row.count else (f"  {row.check}", "muted"),
        (age(found.since, now), ""),
        (safe_line(subject(found)), "strong"),
        (safe_line(found.message), ""),
        (fix, "key"),
    )
