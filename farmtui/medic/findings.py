"""How findings are made and put in order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from farmtui.state import Finding, Fix, Run, Severity, Step

_WORST_FIRST = {severity: place for place, severity in enumerate(Severity)}
_NEVER = datetime.max.replace(tzinfo=UTC)


def run_finding(
    check: str,
    run: Run,
    step: Step | None,
    severity: Severity,
    message: str,
    *,
    since: datetime | None,
    evidence: tuple[str, ...],
    story: str | None = None,
    crons: tuple[str, ...] = (),
    fix: Fix | None = None,
) -> Finding:
    """A finding about one run, its id made of the check, the run and the step."""
    return Finding(
        id=":".join([check, run.id, *([step.name] if step else [])]),
        check=check,
        severity=severity,
        message=message,
        since=since,
        evidence=evidence,
        run=run.id,
        run_number=run.number,
        step=step.name if step else None,
        story=story,
        workflow=run.workflow,
        crons=crons,
        fix=fix,
    )


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, and of those the oldest."""
    return tuple(sorted(findings, key=lambda f: (_WORST_FIRST[f.severity], f.since or _NEVER, f.id)))
