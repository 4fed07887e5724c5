"""Deleting crons that poll for nothing: single ones, marked ones, or all orphaned ones of a workflow.

Only jobs named ``antfarm/<workflow>/<agent>``, never ``antfarm/medic``, and none that an active run needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from farmtui.clock import age
from farmtui.medic.crons import AGENT_UNKNOWN, DUPLICATE, NO_ACTIVE_RUN, UNINSTALLED, calls_per_hour
from farmtui.openclaw.jobs import add_params
from farmtui.operations.plan import CronAction, CronCall, Plan, Refused
from farmtui.paths import FarmPaths
from farmtui.state import CronJob, CronListing, CronSource, Run
from farmtui.text import safe_line

_WHY = {
    NO_ACTIVE_RUN: "no run of its workflow is active",
    UNINSTALLED: "its workflow is not installed",
    AGENT_UNKNOWN: "openclaw.json has no such agent",
    DUPLICATE: "a second job of the same name",
}


@dataclass(frozen=True, slots=True)
class CronFacts:
    """What a deletion is planned from, read just now.

    Attributes:
        active: the runs that have not ended.
        orphans: by cron id, why it polls for nothing, as Medic judges it.
    """

    crons: CronListing
    active: tuple[Run, ...]
    orphans: Mapping[str, str]
    now: datetime


def refuse_unless_deletable(paths: FarmPaths, crons: CronListing | None) -> None:
    """Whether crons may be deleted by this farm at all.

    Raises:
        Refused: database and gateway may not belong together, or the gateway cannot be asked.
    """
    if paths.split:
        raise Refused(
            f"the database was named by --db, the gateway of {paths.state_dir.path} was not: they may not "
            "belong together, so no cron is deleted; name the state folder with --state-dir as well"
        )
    if crons is not None and crons.source not in (CronSource.WEBSOCKET, CronSource.CLI):
        raise Refused(f"the gateway cannot be asked to delete crons: {crons.note or 'no answer'}")


def plan_orphans(found: CronFacts, workflow: str | None) -> Plan:
    """Plan to delete all orphaned crons, of one workflow or of all.

    Raises:
        Refused: there are none.
    """
    jobs = [
        job
        for job in found.crons.jobs
        if job.id in found.orphans and (workflow is None or job.workflow == workflow)
    ]
    if not jobs:
        of = f" of {safe_line(workflow, 60)}" if workflow is not None else ""
        raise Refused(f"no orphaned crons{of}: nothing to delete")
    return _plan(found, jobs, ())


def plan_deletion(found: CronFacts, job_ids: Sequence[str]) -> Plan:
    """Plan to delete these crons.

    Raises:
        Refused: one of them is needed by an active run, or none of them is there.
    """
    listed = {job.id: job for job in found.crons.jobs}
    wanted = list(dict.fromkeys(job_ids))
    jobs = [listed[job_id] for job_id in wanted if job_id in listed]
    gone = [job_id for job_id in wanted if job_id not in listed]
    if not jobs:
        named = ", ".join(safe_line(job_id, 60) for job_id in gone) or "none was named"
        raise Refused(f"no such cron of Antfarm's is listed ({named}): it is gone, or another program's")
    for job in jobs:
        _refuse_if_needed(found, job, jobs)
    return _plan(found, jobs, gone)


def _refuse_if_needed(found: CronFacts, job: CronJob, jobs: Sequence[CronJob]) -> None:
    needing = [run for run in found.active if run.workflow == job.workflow]
    if not needing or found.orphans.get(job.id) == AGENT_UNKNOWN or _twin(found, job, jobs) is not None:
        return
    runs = ", ".join(run.label for run in needing[:5])
    raise Refused(
        f"{job.name} is needed: {runs} of {job.workflow} is {needing[0].status}; without it nobody would do "
        f"{job.agent}'s steps"
    )


def _twin(found: CronFacts, job: CronJob, leaving: Iterable[CronJob]) -> CronJob | None:
    """A job of the same name that stays and does at least as much."""
    gone = {each.id for each in leaving}
    staying = [each for each in found.crons.jobs if each.name == job.name and each.id not in gone]
    return next((each for each in staying if each.enabled or not job.enabled), None)


def _plan(found: CronFacts, jobs: Sequence[CronJob], gone: Sequence[str]) -> Plan:
    busy = {run.workflow for run in found.active}
    workflows = sorted({job.workflow for job in jobs})
    calls = sum(map(calls_per_hour, jobs))
    reasons = dict.fromkeys(found.orphans.get(job.id, DUPLICATE) for job in jobs)
    notes = [f"saves {calls:g} model calls an hour"] if calls else []
    notes += [
        f"{job.name} is running just now, for {age(job.running_since, found.now)}: its session is cut off"
        for job in jobs
        if job.running_since is not None
    ]
    notes += [f"{safe_line(job_id, 60)} is not listed: gone already" for job_id in gone]
    return Plan(
        operation="delete-crons",
        title=_title(jobs, workflows),
        reason="; ".join(_WHY[reason] for reason in reasons),
        workflow=workflows[0] if len(workflows) == 1 else None,
        idle_workflows=tuple(name for name in workflows if name not in busy),
        crons=tuple(_removal(found, job, jobs) for job in jobs),
        notes=tuple(notes),
        irreversible=("undo adds the jobs again with new ids; their histories are not brought back",),
    )


def _title(jobs: Sequence[CronJob], workflows: Sequence[str]) -> str:
    if len(jobs) == 1:
        return f"Delete the cron {jobs[0].name}"
    of = workflows[0] if len(workflows) == 1 else f"{len(workflows)} workflows"
    return f"Delete {len(jobs)} crons of {of}"


def _removal(found: CronFacts, job: CronJob, jobs: Sequence[CronJob]) -> CronCall:
    busy = any(run.workflow == job.workflow for run in found.active)
    twin = _twin(found, job, jobs) if busy and found.orphans.get(job.id) != AGENT_UNKNOWN else None
    return CronCall(
        action=CronAction.REMOVE,
        name=job.name,
        job_id=job.id,
        definition=add_params(job.definition),
        twin=twin.id if twin is not None else None,
    )
