"""The Medic screen: what is wrong, worst first, the evidence of the chosen finding, and what mends it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from farmtui.clock import age
from farmtui.console.actions import ACTIONS, MEDIC, Action, Target
from farmtui.console.cards import SEVERITY_TONES
from farmtui.console.listscreen import ListScreen
from farmtui.console.medic_rows import SEVERITY_SIGNS, MedicRow, evidence, medic_rows, subject, summary
from farmtui.console.table import Cell, Column
from farmtui.console.tones import Piece
from farmtui.medic.judge import CHECKS
from farmtui.state import Finding
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

COLUMNS = (
    Column("severity", "", 2),
    Column("check", "check", 21),
    Column("since", "since", 7, align="right", priority=2),
    Column("subject", "what", 16),
    Column("message", "", 12, grows=True, priority=4),
    Column("fix", "mends it", 8, priority=1),
)
_HANG = 22


class MedicScreen(ListScreen[MedicRow]):
    """Findings and the checks that could not be made."""

    NAME: ClassVar[str] = MEDIC
    COLUMNS = COLUMNS

    def target(self) -> Target:
        row = self.chosen
        if row is None or row.finding is None:
            return Target()
        found = row.finding
        return Target(
            safe_line(subject(found) or found.check),
            found.run,
            found.step,
            crons=found.crons,
            workflow=found.workflow if found.run is None else None,
            finding=found.id,
            texts=_texts(found),
        )

    def gather(self, view: View, now: datetime) -> dict[str, MedicRow]:
        self.lively = (now - view.judgement.at).total_seconds() < 60
        return {row.key: row for row in medic_rows(view.judgement)}

    def summary(self, view: View, now: datetime) -> list[Piece]:
        judgement = view.judgement
        clear = not judgement.findings and not judgement.not_checked
        return [(f" {summary(judgement, len(CHECKS), now)}", "done" if clear else "strong")]

    def cells(self, row: MedicRow, now: datetime) -> tuple[Cell, ...]:
        return _cells(row, now)

    def show_chosen(self, view: View, now: datetime) -> None:
        row = self.chosen
        if row is None:
            self.rule.show([(" what is checked", "head")])
            checks = "\n".join(f"{name:<{_HANG}}{words}" for name, words in CHECKS)
            self.text.show(checks, key="checks", hang=_HANG)
            return
        what = subject(row.finding) if row.finding is not None else "not checked"
        self.rule.show([(f" {row.check}  {safe_line(what)}", "head")])
        self.text.show(evidence(row, way_out(row.finding)), key=row.key)


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
    tone = SEVERITY_TONES[found.severity]
    action = _fix_action(found)
    fix = f"{action.shown_key} {action.id.split('_')[0]}" if action is not None else ""
    return (
        (SEVERITY_SIGNS[found.severity], tone),
        name if row.count else (f"  {row.check}", "muted"),
        (age(found.since, now) if found.since is not None else "", ""),
        (safe_line(subject(found)), "strong"),
        (safe_line(found.message), ""),
        (fix, "key"),
    )
