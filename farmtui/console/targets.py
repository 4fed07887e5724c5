"""What the screens look up in a View, gathered once a View: runs, findings and reasons by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farmtui.console.actions import Target
from farmtui.console.cards import CardFacts
from farmtui.state import Finding, Lane, Run
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.farm import View


class Index:
    """One View's runs by id, with what is known about each.

    Args:
        before: the index of an earlier View: what it gathered of the same runs is taken over.
    """

    def __init__(self, view: View, before: Index | None = None) -> None:
        self._view = view
        same = before is not None and before._view.state.runs is view.state.runs
        self._runs: dict[str, Run] = (
            before._runs if same and before is not None else {run.id: run for run in view.state.runs}
        )
        self._findings: dict[str, list[Finding]] = {}
        for finding in view.judgement.findings:
            if finding.run is not None:
                self._findings.setdefault(finding.run, []).append(finding)
        self._reasons = {escalation.run: escalation.reason for escalation in view.judgement.escalations}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def run(self, run_id: str) -> Run:
        """The run of that id.

        Raises:
            KeyError: there is none.
        """
        return self._runs[run_id]

    def lane(self, run_id: str) -> Lane:
        """Where the run stands."""
        return self._view.judgement.lanes.get(run_id, Lane.OTHER)

    def findings(self, run_id: str) -> tuple[Finding, ...]:
        """What is wrong with the run, the worst first."""
        return tuple(self._findings.get(run_id, ()))

    def facts(self, run_id: str) -> CardFacts:
        """What a card shows of the run."""
        run = self._runs[run_id]
        return CardFacts(
            run,
            self.lane(run_id),
            self._view.state.workflows.get(run.workflow),
            self.findings(run_id),
            self._reasons.get(run_id),
        )

    def target(self, run_id: str, step: str | None = None) -> Target:
        """The run, and the step that an action would be about: the one that is wrong, else `step`."""
        run = self._runs[run_id]
        finding = next(iter(self._findings.get(run_id, ())), None)
        name = (finding.step if finding is not None else None) or step or None
        texts = {"run id": run.id}
        row = next((row for row in run.steps if row.name == name), None)
        if row is not None:
            texts["step id"] = row.id
        texts["task"] = run.task
        label = safe_line(f"{run.label} {name}" if name else run.label)
        return Target(
            label=label,
            run=run.id,
            step=name,
            finding=finding.id if finding is not None else None,
            texts=texts,
        )
