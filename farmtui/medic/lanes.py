"""Where a run stands on the board, and whether a failed one waits for a person.

Antfarm stores no escalation: ``escalate_to: human`` does nothing there, the run just becomes failed. So
it is derived from the workflow's policy on whatever failed.
"""

from __future__ import annotations

from farmtui.antfarm.records import tally_of
from farmtui.medic.steps import FINISHED, active_step
from farmtui.state import Acknowledgement, Lane, Run, StepSpec, Tally, Workflow

__all__ = ["acknowledged", "active_step", "escalation_of", "failed_step", "lane_of", "run_tally"]

_ENDED_LANES = {"completed": Lane.DONE, "cancelled": Lane.CANCELLED}


def lane_of(run: Run, workflow: Workflow | None, ack: Acknowledgement | None) -> Lane:
    """The lane of a run.

    Args:
        workflow: None where it is not installed: its policy is not known, so a failed run is for a person.
        ack: the run's latest acknowledgement.
    """
    if (ended := _ENDED_LANES.get(run.status)) is not None:
        return ended
    if run.status == "running":
        statuses = {step.status for step in run.steps}
        return Lane.PENDING if "pending" in statuses and "running" not in statuses else Lane.RUNNING
    if run.status == "failed":
        waits = escalation_of(run, workflow) is not None and not acknowledged(run, ack)
        return Lane.HUMAN if waits else Lane.FAILED
    return Lane.OTHER


def acknowledged(run: Run, ack: Acknowledgement | None) -> bool:
    """Whether the acknowledgement is about the run as it is: it holds until the run changes."""
    return ack is not None and ack.run_status == run.status and ack.run_updated_at == run.updated_at


def escalation_of(run: Run, workflow: Workflow | None) -> str | None:
    """Why a failed run needs a human, in one line; None where it does not, or has not failed.

    The policy is that of the failed step, and of its verify step where that is a loop. Where no step failed
    (setting up the crons failed, Antfarm's medic gave up) it is that of the first step not done. Until the
    aggregates of ended runs are in, a run needs a human only if that is so whichever of its steps failed.
    """
    if run.status != "failed":
        return None
    if workflow is None:
        return f"workflow {run.workflow} is not installed, so its policy is not known"
    if workflow.error is not None:
        return f"workflow.yml of {run.workflow} {workflow.error}, so its policy is not known"
    tally = _tally(run)
    if tally is None:
        sure = bool(workflow.steps) and all(spec.escalates for spec in workflow.steps)
        return f"workflow.yml: {workflow.steps[0].policy}" if sure else None
    for name in _blamed(tally, workflow):
        spec = workflow.step(name)
        if spec is None:
            return f"{name} failed, and workflow.yml no longer has that step"
        for source in _policies(spec, workflow):
            if source.escalates:
                what = f"{name} failed" if name in tally.failed_steps else f"{name} was never done"
                whose = "" if source is spec else f"verify step {source.id}, "
                return f"{what} (workflow.yml: {whose}{source.policy})"
    return None


def failed_step(run: Run, workflow: Workflow | None) -> str | None:
    """The step to look at in a failed run: the first that failed, else the first not done; else None."""
    tally = _tally(run)
    if tally is None:
        return None
    if tally.failed_steps:
        return tally.failed_steps[0]
    return next(iter(_blamed(tally, workflow)), None) if workflow is not None else None


def run_tally(run: Run) -> Tally:
    """A run's steps and stories in aggregate: from its rows where kept, else as read, else zeroes."""
    return _tally(run) or Tally()


def _tally(run: Run) -> Tally | None:
    if not run.steps:
        return run.tally
    return tally_of(run.steps, run.stories)


def _blamed(tally: Tally, workflow: Workflow) -> tuple[str, ...]:
    """Names of the steps whose policy decides: the failed ones, else the first not done, else the last."""
    if tally.failed_steps or not workflow.steps:
        return tally.failed_steps
    undone = (at for at, status in enumerate(tally.statuses) if status not in FINISHED)
    at = min(next(undone, len(workflow.steps) - 1), len(workflow.steps) - 1)
    return (workflow.steps[at].id,)


def _policies(spec: StepSpec, workflow: Workflow) -> tuple[StepSpec, ...]:
    """The step and, for a loop, its verify step: after too many refusals it is the loop that failed."""
    verify = workflow.step(spec.verify_step) if spec.verify_step else None
    return (spec, verify) if verify is not None else (spec,)
