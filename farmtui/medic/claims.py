"""Checks on who has a step in hand: stale-claim, waiting-for-verify, starving-step."""

from __future__ import annotations

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age, duration, iso
from farmtui.medic.findings import run_finding
from farmtui.medic.look import CronHealth, Look, limit_words, timeout_of
from farmtui.medic.steps import awaited_verify, claimed_at, current_story
from farmtui.state import Finding, Fix, Run, Severity, Step, Workflow

__all__ = ["claimed_at", "stale_claim", "starving_step", "timeout_of", "waiting_for_verify"]

CLAIM_SLACK_S = 60


def stale_claim(look: Look, run: Run) -> Finding | None:
    """A step has been running for longer than 35 min, or than its agent's own time-out + 5 min.

    A loop that waits for its verify step has nothing in hand and is not stale.
    """
    step = next((step for step in run.steps if look.stale(run, step)), None)
    if step is None:
        return None
    workflow = look.workflow(run)
    claimed, story = claimed_at(run, step), current_story(run, step)
    evidence = [f"claimed {iso(claimed)} by {step.agent_id}"]
    if story is not None:
        tries = f"retries {story.retry_count} of {story.max_retries}"
        evidence.append(f"story {story.story_id} {story.status}, {tries}")
    elif step.abandoned_count:
        evidence.append(f"abandoned {step.abandoned_count} times before")
    evidence += [_limit_evidence(workflow), look.cron_words(run, step)]
    return run_finding(
        "stale-claim",
        run,
        step,
        Severity.CRITICAL,
        f"{step.name} running {age(claimed, look.now)} without a word; {limit_words(step, workflow)}",
        since=claimed,
        evidence=tuple(line for line in evidence if line),
        story=story.story_id if story else None,
        fix=Fix("reset", ("farm", "reset", run.id, step.name)),
    )


def waiting_for_verify(look: Look, run: Run) -> Finding | None:
    """A loop runs without a story, and its verify step has been pending for more than two polls.

    While the verifying agent is at work on another step this is a queue, unless its cron is broken.
    """
    for loop in run.steps:
        verify = awaited_verify(run, loop)
        if verify is None or verify.status != "pending":
            continue
        since = verify.updated_at or loop.updated_at
        if not look.older_than(since, 2 * look.poll_s(run, verify)):
            continue
        health = look.health(run, verify)
        if not health.broken and look.working(verify.agent_id):
            continue
        why = {
            CronHealth.FINE: "its cron is fine and it was never claimed (Antfarm's main refuses it for ever)",
            CronHealth.UNKNOWN: "whether its cron polls is not known",
        }.get(health, f"its cron is {health}")
        return run_finding(
            "waiting-for-verify",
            run,
            verify,
            Severity.CRITICAL if health.broken else Severity.WARNING,
            f"{loop.name} waits for {verify.name}, pending {age(since, look.now)}; {why}",
            since=since,
            evidence=(
                f"{loop.name} running without a story; {verify.name} pending since {iso(since)}",
                look.cron_words(run, verify),
                _last_claim(look, verify),
            ),
            crons=_job_ids(look, run, verify),
        )
    return None


def starving_step(look: Look, run: Run) -> Finding | None:
    """A step has been pending for more than two polls and a minute, and nobody will, or does, claim it.

    Its agent's cron is missing, disabled or failing, or the agent has claimed nothing in that time. An agent
    at work on another step is a queue, and so is one that only just ended its last work.
    """
    for step in run.steps:
        if step.status != "pending":
            continue
        poll = look.poll_s(run, step)
        window = 2 * poll + CLAIM_SLACK_S
        if not look.older_than(step.updated_at, window):
            continue
        why = _why_unclaimed(look, run, step, window, poll)
        if why is None:
            continue
        health = look.health(run, step)
        return run_finding(
            "starving-step",
            run,
            step,
            Severity.CRITICAL if health.broken else Severity.WARNING,
            f"{step.name} pending {age(step.updated_at, look.now)} and not claimed: {why}",
            since=step.updated_at,
            evidence=(
                f"pending since {iso(step.updated_at)}; polls every {duration(poll)}",
                look.cron_words(run, step),
                _last_claim(look, step),
            ),
            crons=_job_ids(look, run, step),
        )
    return None


def _why_unclaimed(look: Look, run: Run, step: Step, window: float, poll: float) -> str | None:
    agent = short_agent(step.agent_id, run.workflow)
    health = look.health(run, step)
    if health in (CronHealth.MISSING, CronHealth.DISABLED):
        return f"{agent}'s cron is {health}"
    if health is CronHealth.FAILING:
        job = look.job(run, step)
        times = f" ({job.consecutive_errors} in a row)" if job and job.consecutive_errors else ""
        return f"{agent}'s cron is failing{times}"
    if look.working(step.agent_id):
        return None
    seen = look.last_seen(step.agent_id)
    if seen is not None and not look.older_than(seen, window):
        return None
    if look.completed_within(run.workflow, poll + CLAIM_SLACK_S):
        return None
    return f"{agent} has claimed nothing in that time"


def _limit_evidence(workflow: Workflow | None) -> str:
    if workflow is None:
        return "workflow not installed: Antfarm's 35m assumed"
    if workflow.error is not None:
        return f"workflow.yml {workflow.error}: Antfarm's 35m assumed"
    return ""


def _last_claim(look: Look, step: Step) -> str:
    last = look.last_seen(step.agent_id)
    return (
        f"{step.agent_id} last seen at work {iso(last)}"
        if last
        else f"{step.agent_id} was never seen at work"
    )


def _job_ids(look: Look, run: Run, step: Step) -> tuple[str, ...]:
    job = look.job(run, step)
    return (job.id,) if job is not None else ()
