"""One look at a FarmState: what several checks ask of it, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age, duration
from farmtui.medic.steps import awaited_verify, claimed_at
from farmtui.state import CronJob, CronSource, FarmState, Run, Step, Workflow

CLEANUP_S = 35 * 60  # Antfarm's own limit, for every role
GRACE_S = 5 * 60
DEFAULT_POLL_MS = 300_000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class CronHealth(StrEnum):
    """How the cron that wakes an agent does."""

    FINE = "fine"
    MISSING = "missing"
    DISABLED = "disabled"
    FAILING = "failing"
    UNKNOWN = "unknown"

    @property
    def broken(self) -> bool:
        """Whether nobody can be expected to poll."""
        return self in (CronHealth.MISSING, CronHealth.DISABLED, CronHealth.FAILING)


def timeout_of(step: Step, workflow: Workflow | None) -> int:
    """Seconds after which a claim of this step is stale: 35 min, or its agent's `timeoutSeconds` + 5 min."""
    own = own_timeout(step, workflow)
    return CLEANUP_S if own is None else own + GRACE_S


def own_timeout(step: Step, workflow: Workflow | None) -> int | None:
    """The `timeoutSeconds` that the workflow sets for the step's agent; None where it sets none."""
    if workflow is None:
        return None
    agent = workflow.agent(short_agent(step.agent_id, workflow.id))
    return agent.timeout_s if agent is not None else None


class Look:
    """A FarmState at one moment, with what the checks share.

    Args:
        active: the state's runs that have not ended.

    Attributes:
        running: the runs whose status is running, with their steps, newest first.
        active_workflows: workflows with a run that has not ended; one of unknown status counts.
        crons_error: why the crons cannot be judged by; None where the list is good.
    """

    def __init__(self, state: FarmState, active: Sequence[Run], now: datetime) -> None:
        self.state = state
        self.now = now
        self.running = tuple(run for run in active if run.status == "running")
        self.active_workflows = frozenset(run.workflow for run in active)
        self.crons_error = _crons_error(state)

    def workflow(self, run: Run) -> Workflow | None:
        """The run's workflow as installed, readable or not."""
        return self.state.workflows.get(run.workflow)

    def older_than(self, moment: datetime | None, seconds: float) -> bool:
        """Whether a moment lies more than so many seconds back; never where it is unknown."""
        return moment is not None and (self.now - moment).total_seconds() > seconds

    def stale(self, run: Run, step: Step) -> bool:
        """Whether a running step has been claimed for longer than its agent may take."""
        if step.status != "running" or awaited_verify(run, step) is not None:
            return False
        return self.older_than(claimed_at(run, step), timeout_of(step, self.workflow(run)))

    def poll_s(self, run: Run, step: Step) -> float:
        """Seconds between two polls of the step's agent: its job's, else its workflow's, else 5 min."""
        job = self.job(run, step)
        if job is not None and job.every_ms:
            return job.every_ms / 1000
        workflow = self.workflow(run)
        return ((workflow.cron_interval_ms if workflow else None) or DEFAULT_POLL_MS) / 1000

    def job(self, run: Run, step: Step) -> CronJob | None:
        """The cron job that wakes the step's agent; None where there is none or the crons are unknown."""
        return self._jobs.get((run.workflow, short_agent(step.agent_id, run.workflow)))

    def health(self, run: Run, step: Step) -> CronHealth:
        """How the cron of the step's agent does."""
        if self.crons_error is not None:
            return CronHealth.UNKNOWN
        job = self.job(run, step)
        if job is None:
            return CronHealth.MISSING
        if not job.enabled:
            return CronHealth.DISABLED
        if job.consecutive_errors > 0 or job.last_status == "error":
            return CronHealth.FAILING
        return CronHealth.FINE

    def cron_words(self, run: Run, step: Step) -> str:
        """The state of the agent's cron in one line, for evidence."""
        name = f"antfarm/{run.workflow}/{short_agent(step.agent_id, run.workflow)}"
        job = self.job(run, step)
        health = self.health(run, step)
        if health is CronHealth.UNKNOWN:
            return f"cron {name}: not known ({self.crons_error})"
        if job is None:
            return f"cron {name}: missing"
        words = f"cron {name}: {'enabled' if job.enabled else 'disabled'}, {job.schedule}"
        if job.last_run_at is not None:
            words += f", last run {age(job.last_run_at, self.now)} ago: {job.last_status or 'unknown'}"
        if job.consecutive_errors:
            words += f", {job.consecutive_errors} failed in a row"
        if job.last_error and health is CronHealth.FAILING:
            words += f": {job.last_error}"
        return words + (" (as OpenClaw's store on disk has it)" if self.from_store else "")

    @property
    def from_store(self) -> bool:
        """Whether the crons come from OpenClaw's store, which may lag behind the gateway."""
        return self.state.crons.source is CronSource.STORE

    def working(self, agent_id: str) -> bool:
        """Whether this agent is at work on a step, of any run, within its time limit."""
        return agent_id in self._working

    def last_seen(self, agent_id: str) -> datetime | None:
        """When the agent last claimed or ended anything that is still known; None if nothing is."""
        return max(
            (at for at in (self.state.last_claims.get(agent_id), self._touched.get(agent_id)) if at),
            default=None,
        )

    def completed_within(self, workflow: str, seconds: float) -> bool:
        """Whether a run of the workflow completed that shortly ago: an agent was at work on it until then."""
        at = self._completed.get(workflow)
        return at is not None and not self.older_than(at, seconds)

    @cached_property
    def _jobs(self) -> Mapping[tuple[str, str], CronJob]:
        if self.crons_error is not None:
            return {}
        jobs: dict[tuple[str, str], CronJob] = {}
        for job in sorted(self.state.crons.jobs, key=rank):
            jobs.setdefault((job.workflow, job.agent), job)
        return jobs

    def at_work(self, run: Run, step: Step) -> bool:
        """Whether the step is claimed and its agent within the time that it may take."""
        if step.status != "running" or awaited_verify(run, step) is not None:
            return False
        return claimed_at(run, step) is not None and not self.stale(run, step)

    @cached_property
    def _working(self) -> frozenset[str]:
        return frozenset(
            step.agent_id for run in self.running for step in run.steps if self.at_work(run, step)
        )

    @cached_property
    def _touched(self) -> Mapping[str, datetime]:
        touched: dict[str, datetime] = {}
        for run in self.running:
            for step in run.steps:
                at = step.updated_at
                if step.status not in ("running", "done", "failed") or at is None:
                    continue
                touched[step.agent_id] = max(at, touched.get(step.agent_id, at))
        return touched

    @cached_property
    def _completed(self) -> Mapping[str, datetime]:
        completed: dict[str, datetime] = {}
        for run in self.state.runs:
            if run.status == "completed" and run.updated_at is not None:
                last = completed.get(run.workflow)
                if last is None or run.updated_at > last:
                    completed[run.workflow] = run.updated_at
        return completed


def rank(job: CronJob) -> tuple[bool, timedelta, str]:
    """Orders jobs of one name: an enabled one before others, then the one that ran last."""
    return (not job.enabled, _LONG_AGO - (job.last_run_at or _LONG_AGO), job.id)


def limit_words(step: Step, workflow: Workflow | None) -> str:
    """The time limit of a step's agent, for people: ``developer's limit is 30m (+5m)``."""
    own = own_timeout(step, workflow)
    if own is None:
        return f"the limit is {duration(CLEANUP_S)}"
    agent = short_agent(step.agent_id, workflow.id) if workflow else step.agent_id
    return f"{agent}'s limit is {duration(own)} (+{duration(GRACE_S)})"


def _crons_error(state: FarmState) -> str | None:
    source = state.sources.get("crons")
    if source is not None and source.error is not None:
        return source.error
    if not state.crons.known:
        return state.crons.note or "the crons could not be listed"
    return None
