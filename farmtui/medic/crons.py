"""Checks on the gateway's cron jobs: orphaned-crons and missing-crons, one finding a workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import duration, iso
from farmtui.medic.flow import zombie_run
from farmtui.medic.look import CronHealth, Look, rank
from farmtui.medic.steps import OPEN
from farmtui.state import CronJob, Finding, Fix, MissingCron, Severity

NO_ACTIVE_RUN = "no-active-run"
UNINSTALLED = "workflow-uninstalled"
AGENT_UNKNOWN = "agent-unknown"
DUPLICATE = "duplicate"
STARTING_S = 60  # Antfarm creates a run's crons one by one after the run: seconds each on current gateways

_REASONS = {
    NO_ACTIVE_RUN: "no run of {workflow} is active",
    UNINSTALLED: "{workflow} is not installed",
    AGENT_UNKNOWN: "openclaw.json has no such agent",
    DUPLICATE: "a second job of the same name",
}


def orphan_reasons(look: Look) -> Mapping[str, str]:
    """By cron id, why that job polls for nothing; jobs that are of use are left out.

    A run of unknown status counts as active: a fork may yet go on with it. That a workflow or an agent is
    unknown is only said where workflows and config were read well.
    """
    if look.crons_error is not None:
        return {}
    sources, reasons = look.state.sources, {}
    workflows_known = _well(sources.get("workflows"))
    agents_known = _well(sources.get("config")) and bool(look.state.agents)
    named: set[str] = set()
    for job in sorted(look.state.crons.jobs, key=rank):
        if job.workflow not in look.active_workflows:
            installed = job.workflow in look.state.workflows or not workflows_known
            reasons[job.id] = NO_ACTIVE_RUN if installed else UNINSTALLED
        elif job.name in named:
            reasons[job.id] = DUPLICATE
        elif agents_known and job.agent_id is not None and job.agent_id not in look.state.agents:
            reasons[job.id] = AGENT_UNKNOWN
        named.add(job.name)
    return reasons


def calls_per_hour(job: CronJob) -> float:
    """Model calls that the job costs in an hour: each firing is one. 0 where it is off or has no interval."""
    return 3_600_000 / job.every_ms if job.enabled and job.every_ms else 0.0


def orphaned_crons(look: Look, reasons: Mapping[str, str]) -> list[Finding]:
    """A finding for each workflow with orphaned jobs, and what they cost.

    Args:
        reasons: by cron id, as from `orphan_reasons`.
    """
    by_workflow: dict[str, list[CronJob]] = {}
    for job in look.state.crons.jobs:
        if job.id in reasons:
            by_workflow.setdefault(job.workflow, []).append(job)
    return [_orphaned(look, workflow, jobs, reasons) for workflow, jobs in by_workflow.items()]


def _orphaned(look: Look, workflow: str, jobs: list[CronJob], reasons: Mapping[str, str]) -> Finding:
    calls = sum(calls_per_hour(job) for job in jobs)
    kinds = sorted({reasons[job.id] for job in jobs})
    why = "; ".join(_REASONS[kind].format(workflow=workflow) for kind in kinds)
    count = "1 cron" if len(jobs) == 1 else f"{len(jobs)} crons"
    evidence = [f"{job.name}: {reasons[job.id]}, {_costs(job)}" for job in jobs]
    ended = _last_end(look, workflow)
    if ended is not None and workflow not in look.active_workflows:
        evidence.append(f"last run of {workflow} changed {iso(ended)}")
    evidence += _listing_evidence(look)
    ids = tuple(job.id for job in jobs)
    return Finding(
        id=f"orphaned-crons:{workflow}",
        check="orphaned-crons",
        severity=Severity.WARNING if calls else Severity.INFO,
        message=f"{count} of {workflow} poll for nothing, {calls:g} calls an hour: {why}",
        since=ended if NO_ACTIVE_RUN in kinds else None,
        evidence=tuple(evidence),
        workflow=workflow,
        crons=ids,
        # A split pair of database and gateway may not belong together: what is no run here may be one there.
        fix=None if look.state.paths.split else Fix("delete-crons", ("farm", "crons", "delete", *ids)),
    )


@dataclass(frozen=True, slots=True)
class _Unwoken:
    """A step that no cron's agent will come for."""

    workflow: str
    agent: str
    run_label: str
    step: str
    status: str
    since: datetime | None


def missing_crons(look: Look, agents: frozenset[MissingCron] | None = None) -> list[Finding]:
    """A finding for each workflow with agents of unfinished steps that have no cron. A disabled one is there.

    Args:
        agents: only these count; None for all.
    """
    by_workflow: dict[str, list[_Unwoken]] = {}
    for unwoken in _unwoken(look):
        if agents is None or MissingCron(unwoken.workflow, unwoken.agent) in agents:
            by_workflow.setdefault(unwoken.workflow, []).append(unwoken)
    return [_missing(look, workflow, found) for workflow, found in by_workflow.items()]


def missing(look: Look) -> tuple[MissingCron, ...]:
    """The agents of unfinished steps of running runs that no cron wakes, each once."""
    return tuple(dict.fromkeys(MissingCron(unwoken.workflow, unwoken.agent) for unwoken in _unwoken(look)))


def _unwoken(look: Look) -> list[_Unwoken]:
    if look.crons_error is not None:
        return []
    found = []
    for run in look.running:
        if run.created_at is not None and not look.older_than(run.created_at, STARTING_S):
            continue
        if zombie_run(look, run) is not None:
            continue
        found += [
            _Unwoken(
                run.workflow,
                short_agent(step.agent_id, run.workflow),
                run.label,
                step.name,
                step.status,
                step.updated_at,
            )
            for step in run.steps
            if step.status in OPEN and look.health(run, step) is CronHealth.MISSING
        ]
    return found


def _missing(look: Look, workflow: str, found: list[_Unwoken]) -> Finding:
    agents = list(dict.fromkeys(unwoken.agent for unwoken in found))
    due = [unwoken for unwoken in found if unwoken.status == "pending"]
    since = min((unwoken.since for unwoken in due if unwoken.since is not None), default=None)
    listed = sum(job.workflow == workflow for job in look.state.crons.jobs)
    noun = "agent has" if len(agents) == 1 else "agents have"
    return Finding(
        id=f"missing-crons:{workflow}",
        check="missing-crons",
        severity=Severity.CRITICAL if due else Severity.WARNING,
        message=f"{len(agents)} {noun} no cron in {workflow}: {', '.join(agents)}",
        since=since,
        evidence=(
            *(f"{each.run_label} {each.step} {each.status}: {each.agent} has no cron" for each in found[:20]),
            f"{listed} crons of {workflow} are listed",
            *_listing_evidence(look),
        ),
        workflow=workflow,
    )


def _costs(job: CronJob) -> str:
    if not job.enabled:
        return "disabled"
    return f"every {duration(job.every_ms / 1000)}" if job.every_ms else job.schedule


def _last_end(look: Look, workflow: str) -> datetime | None:
    times = (run.updated_at for run in look.state.runs if run.workflow == workflow)
    return max((at for at in times if at is not None), default=None)


def _listing_evidence(look: Look) -> tuple[str, ...]:
    lines = []
    if look.from_store:
        lines.append("listed from OpenClaw's store on disk, which may lag behind the gateway")
    if look.state.paths.split:
        lines.append("the database was named apart from the gateway's folder: they may not belong together")
    return tuple(lines)


def _well(source: object) -> bool:
    return getattr(source, "error", None) is None
