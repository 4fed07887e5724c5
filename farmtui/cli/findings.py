"""What Medic found, for scripts and for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from farmtui.cli.exits import Exit
from farmtui.cli.runs import label
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, pairs, table
from farmtui.clock import iso
from farmtui.state import Finding, Fix, Judgement
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View


def findings_data(view: View, where: tuple[str, ...]) -> dict[str, Any]:
    """Findings and the checks not made, for scripts.

    Args:
        where: the options that name this farm, added to each proposed command line.
    """
    judgement = view.judgement
    return {
        "findings": [_finding(finding, where) for finding in judgement.findings],
        "not_checked": [{"check": each.check, "reason": each.reason} for each in judgement.not_checked],
    }


def medic_code(judgement: Judgement) -> Exit:
    """1 where something is wrong, acknowledged or not; else 3 where a check could not be made; else 0."""
    if judgement.findings:
        return Exit.FOUND
    return Exit.UNREAD if judgement.not_checked else Exit.FINE


def _finding(finding: Finding, where: tuple[str, ...]) -> dict[str, Any]:
    return {
        "id": finding.id,
        "check": finding.check,
        "severity": str(finding.severity),
        "run": finding.run,
        "run_number": finding.run_number,
        "step": finding.step,
        "story": finding.story,
        "workflow": finding.workflow,
        "crons": list(finding.crons),
        "since": iso(finding.since),
        "message": finding.message,
        "evidence": list(finding.evidence),
        "acknowledged": finding.acknowledged,
        "fix": _fix(finding.fix, where),
    }


def _fix(fix: Fix | None, where: tuple[str, ...]) -> dict[str, Any] | None:
    return None if fix is None else {"action": fix.action, "argv": [*fix.argv, *where]}


def medic_lines(data: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """Findings with their evidence, then what was not checked. "All clear" only where all was checked."""
    findings, unchecked = data["findings"], data["not_checked"]
    if findings:
        yield from table(
            [
                Column("SEVERITY", state=True),
                Column("CHECK"),
                Column("SUBJECT"),
                Column("SINCE", right=True),
                Column("WHAT", flexible=True),
            ],
            [
                (
                    each["severity"],
                    each["check"],
                    _subject(each),
                    screen.age(each["since"]),
                    each["message"] + (" (acknowledged)" if each["acknowledged"] else ""),
                )
                for each in findings
            ],
            screen,
        )
    for each in findings:
        yield ""
        yield screen.strong(safe_line(f"{each['check']}  {_subject(each)}"))
        mend = " ".join(map(shlex.quote, each["fix"]["argv"])) if each["fix"] else None
        yield from pairs(
            [("what", each["message"]), *(("", line) for line in each["evidence"]), ("mend", mend)],
            screen,
            indent=2,
        )
    if unchecked:
        yield ""
    for each in unchecked:
        yield safe_line(f"not checked: {each['check']}: {each['reason']}")
    if not findings:
        yield "Nothing found, but not everything was checked." if unchecked else "All clear."


def _subject(finding: Mapping[str, Any]) -> str:
    if finding["run"] is None:
        return finding["workflow"] or ""
    parts = (label(finding["run_number"], finding["run"]), finding["step"], finding["story"])
    return " ".join(part for part in parts if part)
