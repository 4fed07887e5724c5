"""Farm states built by hand: runs, steps, jobs and workflows with as little said as each test needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from farmtui.paths import locate
from farmtui.state import (
    AgentSpec,
    CronJob,
    CronListing,
    CronSource,
    FarmState,
    LoopConfig,
    Run,
    Step,
    StepSpec,
    Story,
    Workflow,
)

NOW = datetime(2026, 2, 15, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
VERIFIED = LoopConfig(verify_each=True, verify_step="verify")
PATHS = locate(state_dir=Path("/farm/.openclaw"), environ={}, home=Path("/farm"))


def ago(age: timedelta | None) -> datetime | None:
    """That long before NOW; None stays None."""
    return None if age is None else NOW - age


def step(
    name: str,
    status: str = "waiting",
    age: timedelta | None = MINUTE,
    *,
    agent: str | None = None,
    **other: Any,
) -> Step:
    """A step of relay, last changed `age` before NOW; its agent is named like it. `run` puts it in place."""
    values: dict[str, Any] = {
        "rowid": 0,
        "id": f"id-{name}",
        "run_id": "",
        "name": name,
        "agent_id": f"relay_{agent or name}",
        "index": 0,
        "type": "loop" if "loop" in other else "single",
        "status": status,
        "retry_count": 0,
        "max_retries": 2,
        "abandoned_count": 0,
        "current_story_id": None,
        "loop": None,
        "created_at": NOW - timedelta(days=1),
        "updated_at": ago(age),
    }
    return Step(**{**values, **other})


def story(name: str, status: str = "pending", age: timedelta | None = MINUTE) -> Story:
    """A story whose row id is ``id-<name>``, last changed `age` before NOW."""
    return Story(
        rowid=0,
        id=f"id-{name}",
        run_id="",
        index=0,
        story_id=name,
        title=f"Story {name}",
        status=status,
        retry_count=0,
        max_retries=2,
        created_at=NOW - timedelta(days=1),
        updated_at=ago(age),
    )


def run(
    *steps: Step,
    status: str = "running",
    workflow: str = "relay",
    number: int = 1,
    age: timedelta | None = MINUTE,
    created: timedelta | None = timedelta(days=1),
    stories: Iterable[Story] = (),
    **other: Any,
) -> Run:
    """A run with these steps, in order, each with an id of its own; `age` since its row changed."""
    identity = f"run-{number:04d}"
    placed = tuple(
        replace(each, run_id=identity, index=index, id=f"{identity}-{each.name}")
        for index, each in enumerate(steps)
    )
    return Run(
        rowid=number,
        id=identity,
        number=number,
        workflow=workflow,
        task=f"Task {number}",
        status=status,
        created_at=ago(created),
        updated_at=ago(age),
        steps=placed,
        stories=tuple(stories),
        **other,
    )


def spec(name: str, policy: str = "", *, verify: str | None = None, agent: str | None = None) -> StepSpec:
    """A step of a workflow.yml; a `policy` makes it escalate."""
    return StepSpec(
        id=name,
        agent=agent or name,
        type="loop" if verify else "single",
        input="",
        expects=None,
        verify_each=verify is not None,
        verify_step=verify,
        max_retries=None,
        escalates=bool(policy),
        policy=policy,
    )


def workflow(
    *specs: StepSpec, name: str = "relay", timeouts: Mapping[str, int] | None = None, **other: Any
) -> Workflow:
    """A workflow; `timeouts` are its agents' timeoutSeconds."""
    agents = tuple(AgentSpec(agent, None, seconds, None) for agent, seconds in (timeouts or {}).items())
    return Workflow(id=name, name=name, path=f"/{name}/workflow.yml", agents=agents, steps=specs, **other)


def job(agent: str, *, of: str = "relay", number: int = 1, **other: Any) -> CronJob:
    """A healthy job ``antfarm/<of>/<agent>`` that polls every 5 min."""
    values: dict[str, Any] = {
        "id": f"job-{of}-{agent}-{number}",
        "name": f"antfarm/{of}/{agent}",
        "workflow": of,
        "agent": agent,
        "agent_id": f"{of}_{agent}",
        "enabled": True,
        "schedule": "every 5m",
        "every_ms": 300_000,
        "next_run_at": None,
        "last_run_at": NOW - MINUTE,
        "last_status": "ok",
        "last_error": None,
        "consecutive_errors": 0,
        "running_since": None,
    }
    return CronJob(**{**values, **other})


def crons(*jobs: CronJob, source: CronSource = CronSource.WEBSOCKET) -> CronListing:
    """A listing of these jobs."""
    return CronListing(source, jobs, read_at=NOW)


def state(*runs: Run, jobs: Iterable[CronJob] | None = None, **other: Any) -> FarmState:
    """A farm of these runs, with relay installed and a healthy cron for every agent of every run.

    Args:
        jobs: in place of those crons.
    """
    if jobs is None:
        agents = {(each.workflow, one.agent_id.split("_", 1)[-1]) for each in runs for one in each.steps}
        jobs = [job(agent, of=name) for name, agent in sorted(agents)]
    values: dict[str, Any] = {
        "seq": 1,
        "paths": PATHS,
        "host": "box",
        "runs": runs,
        "workflows": {"relay": workflow()},
        "crons": crons(*jobs),
    }
    return FarmState(**{**values, **other})
