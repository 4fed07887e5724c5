"""What the Crons screen lists: every antfarm job and every missing one, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from farmtui.clock import age, duration
from farmtui.state import CronJob, CronListing, CronSource, Judgement, MissingCron

HOUR_MS = 3_600_000

ORPHAN_WORDS = {
    "no-active-run": "no run is active",
    "workflow-uninstalled": "its workflow is not installed",
    "agent-unknown": "its agent is not in openclaw.json",
    "duplicate": "another job wakes the same agent",
}


@dataclass(frozen=True, slots=True)
class CronRow:
    """A line of the list: a job, or an agent of an active run that no job wakes.

    Attributes:
        status: done, running, failed, pending, cancelled or human, for the sign; `words` beside it.
    """

    key: str
    workflow: str
    agent: str
    status: str
    words: str
    job: CronJob | None = None
    orphan: str | None = None


def cron_rows(listing: CronListing, judgement: Judgement, now: datetime) -> tuple[CronRow, ...]:
    """Jobs by workflow, those with orphans first; missing ones stand with their workflow."""
    rows = [_job_row(job, judgement.orphans.get(job.id), now) for job in listing.jobs]
    rows += [_missing_row(missing) for missing in judgement.missing_crons]
    troubled = {row.workflow for row in rows if row.orphan or row.job is None}
    return tuple(
        sorted(rows, key=lambda row: (row.workflow not in troubled, row.workflow, row.agent, row.key))
    )


def calls_per_hour(job: CronJob) -> float:
    """Model calls an hour, one a poll; 0 for a job that is off or has no interval."""
    return HOUR_MS / job.every_ms if job.enabled and job.every_ms else 0.0


def summary(listing: CronListing, orphans: Mapping[str, str], now: datetime) -> str:
    """Where the list comes from and how old it is, whose jobs are left out, and what all cost."""
    if not listing.known:
        return f"The crons could not be listed: {listing.note or 'no answer'}"
    gateway = f" OpenClaw {listing.version}" if listing.version else ""
    parts = [f"{listing.source}{gateway}, {age(listing.read_at, now)} ago"]
    cost = sum(map(calls_per_hour, listing.jobs))
    wasted = sum(calls_per_hour(job) for job in listing.jobs if job.id in orphans)
    parts.append(f"{cost:.0f} calls/h" + (f", {wasted:.0f} for nothing" if wasted else ""))
    others = f", {listing.others} others hidden" if listing.others else ""
    parts.append(f"{len(listing.jobs)} of ours{others}")
    if listing.source is CronSource.STORE:
        parts.append("read from disk, nothing can be changed")
    return " · ".join(parts)


def describe(row: CronRow, now: datetime) -> str:
    """What stands below the list for the chosen row: schedule, runs, and the last error in full."""
    if row.job is None:
        return (
            f"No cron wakes {row.agent}, though a run of {row.workflow} is active: its steps wait for ever."
        )
    job = row.job
    lines = [f"{job.name}  {job.schedule}{'' if job.enabled else ', switched off'}"]
    if row.orphan:
        cost = calls_per_hour(job)
        lines.append(f"orphan: {ORPHAN_WORDS.get(row.orphan, row.orphan)}; {cost:.0f} calls/h for nothing")
    if job.running_since is not None:
        lines.append(f"running for {age(job.running_since, now)}")
    last = (
        f"last {age(job.last_run_at, now)} ago: {job.last_status or '?'}" if job.last_run_at else "never ran"
    )
    lines.append(f"next {_until(job.next_run_at, now)} · {last}")
    if job.consecutive_errors:
        lines.append(f"{job.consecutive_errors} errors in a row")
    if job.last_error:
        lines += ["", job.last_error]
    return "\n".join([*lines, "", f"id {job.id}"])


def next_and_last(row: CronRow, now: datetime) -> tuple[str, str]:
    """``in 41s`` and ``4m ago``; ``-`` where there is none."""
    if row.job is None:
        return "-", "-"
    last = f"{age(row.job.last_run_at, now)} ago" if row.job.last_run_at else "never"
    return _until(row.job.next_run_at, now), last


def _job_row(job: CronJob, orphan: str | None, now: datetime) -> CronRow:
    if orphan:
        status, words = "cancelled", f"orphan: {ORPHAN_WORDS.get(orphan, orphan)}"
    elif not job.enabled:
        status, words = "waiting", "off"
    elif job.consecutive_errors:
        status, words = "failed", f"failed {job.consecutive_errors}×"
    elif job.running_since is not None:
        status, words = "running", f"running {age(job.running_since, now)}"
    elif job.last_run_at is None:
        status, words = "pending", "not run yet"
    else:
        status, words = "done", job.last_status or "ok"
    return CronRow(job.id, job.workflow, job.agent, status, words, job, orphan)


def _missing_row(missing: MissingCron) -> CronRow:
    key = f"missing:{missing.workflow}/{missing.agent}"
    return CronRow(key, missing.workflow, missing.agent, "failed", "missing")


def _until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "-"
    left = (moment - now).total_seconds()
    return f"in {duration(left)}" if left > 0 else f"due {duration(-left)}"
