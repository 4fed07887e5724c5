"""What the Medic screen lists: findings worst first, and the checks that could not be made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from farmtui.clock import age
from farmtui.medic.judge import CHECKS
from farmtui.state import Finding, Judgement, NotChecked, Severity

# Signs of severity, each with its word in the column beside it.
SEVERITY_SIGNS = {Severity.CRITICAL: "!!", Severity.WARNING: " !", Severity.INFO: " ·"}
_ORDER = {severity: rank for rank, severity in enumerate(Severity)}
_CAUSES = {name: rank for rank, (name, _) in enumerate(CHECKS)}


@dataclass(frozen=True, slots=True)
class MedicRow:
    """A line of the list: a finding, or a check that could not be made.

    Attributes:
        count: how many findings of its kind there are; 0 on all but the first of them.
    """

    key: str
    check: str
    count: int
    finding: Finding | None = None
    not_checked: NotChecked | None = None


def medic_rows(judgement: Judgement) -> tuple[MedicRow, ...]:
    """Findings by kind, the worst kind and the oldest finding first; then what was not checked."""
    counts = Counter(finding.check for finding in judgement.findings)
    worst = {
        check: min(_ORDER[finding.severity] for finding in judgement.findings if finding.check == check)
        for check in counts
    }
    ordered = sorted(
        judgement.findings,
        key=lambda finding: (
            worst[finding.check],
            _CAUSES.get(finding.check, len(_CAUSES)),
            finding.check,
            _ORDER[finding.severity],
            finding.since.timestamp() if finding.since else float("inf"),
            finding.id,
        ),
    )
    rows: list[MedicRow] = []
    for finding in ordered:
        first = not rows or rows[-1].check != finding.check
        rows.append(MedicRow(finding.id, finding.check, counts[finding.check] if first else 0, finding))
    rows += [
        MedicRow(f"not-checked:{missed.check}", missed.check, 0, not_checked=missed)
        for missed in judgement.not_checked
    ]
    return tuple(rows)


def summary(judgement: Judgement, checks: int, now: datetime) -> str:
    """The line above the list. "All clear" only where every check was made and none found anything."""
    looked = f"looked {age(judgement.at, now)} ago"
    missed = len(judgement.not_checked)
    found = len(judgement.findings)
    if not found and not missed:
        return f"All clear: {checks} checks, {looked}"
    parts = [f"{found} finding{'s' * (found != 1)}" if found else "Nothing found"]
    if missed:
        parts.append(f"{missed} of {checks} checks could not be made")
    return " · ".join([*parts, looked])


def subject(finding: Finding) -> str:
    """What it is about in few words: ``#214 implement``, else the workflow."""
    if finding.run is None:
        return finding.workflow or ""
    label = f"#{finding.run_number}" if finding.run_number is not None else finding.run[:8]
    return " ".join(part for part in (label, finding.step, finding.story) if part)


def evidence(row: MedicRow, way_out: str) -> str:
    """What stands below the list for the chosen row. `way_out` says which key mends it, or why none does."""
    if row.not_checked is not None:
        return f"{row.check} could not be checked: {row.not_checked.reason}"
    if row.finding is None:
        return ""
    lines = [row.finding.message, "", *row.finding.evidence]
    if row.finding.acknowledged:
        lines.append("acknowledged")
    return "\n".join([*lines, "", way_out])
