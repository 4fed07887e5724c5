"""Checks on how a run flows: zombie-run, stuck-between-steps, stalled-run."""

from __future__ import annotations

from datetime import datetime

from farmtui.clock import age, iso
from farmtui.medic.findings import run_finding
from farmtui.medic.look import Look
from farmtui.medic.steps import FINISHED, OPEN, changed_at
from farmtui.state import Finding, Run, Severity

STALLED_S = 70 * 60


def zombie_run(look: Look, run: Run) -> Finding | None:
    """The run says running, and no step of it can ever move again.

    That is so where every step is done, failed or of an unknown status (Antfarm's `dead_runs`), and where a
    step failed while none is pending or running.
    """
    statuses = {step.status for step in run.steps}
    if not statuses or statuses & {"pending", "running"}:
        return None
    failed = next((step for step in run.steps if step.status == "failed"), None)
    if failed is None and statuses & OPEN:
        return None
    if failed is not None:
        what = f"{failed.name} failed"
    elif statuses <= FINISHED:
        what = f"all {len(run.steps)} steps are done"
    else:
        what = "no step is waiting, pending or running"
    return run_finding(
        "zombie-run",
        run,
        failed,
        Severity.CRITICAL,
        f"{what}, yet the run still says running: nothing is left that could move it",
        since=_last_change(run),
        evidence=(_statuses(run), f"run updated {iso(run.updated_at)}", *_kept_awake(look, run)),
    )


def stuck_between_steps(look: Look, run: Run) -> Finding | None:
    """Nothing is pending or running, and a step waits although all before it are done."""
    if any(step.status in ("pending", "running", "failed") for step in run.steps):
        return None
    at, step = next(((at, s) for at, s in enumerate(run.steps) if s.status == "waiting"), (0, None))
    if step is None or any(before.status not in FINISHED for before in run.steps[:at]):
        return None
    return run_finding(
        "stuck-between-steps",
        run,
        step,
        Severity.WARNING,
        f"{step.name} still waits although every step before it is done: nothing will make it pending",
        since=_last_change(run),
        evidence=(_statuses(run), f"last step changed {iso(_last_change(run))}"),
    )


def stalled_run(look: Look, run: Run) -> Finding | None:
    """Nothing in the run has changed for 70 min, and no agent is within the time that it may take."""
    changed = changed_at(run)
    if not look.older_than(changed, STALLED_S) or any(look.at_work(run, step) for step in run.steps):
        return None
    return run_finding(
        "stalled-run",
        run,
        None,
        Severity.WARNING,
        f"nothing in this run has changed for {age(changed, look.now)}",
        since=changed,
        evidence=(_statuses(run), f"last change {iso(changed)}"),
    )


def _last_change(run: Run) -> datetime | None:
    return max((step.updated_at for step in run.steps if step.updated_at is not None), default=None)


def _statuses(run: Run) -> str:
    return "steps: " + ", ".join(f"{step.name} {step.status}" for step in run.steps)


def _kept_awake(look: Look, run: Run) -> tuple[str, ...]:
    jobs = [job for job in look.state.crons.jobs if job.workflow == run.workflow and job.enabled]
    if look.crons_error is not None or not jobs:
        return ()
    return (f"{len(jobs)} crons of {run.workflow} poll on while it says running",)
