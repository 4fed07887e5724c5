"""`farm crons`: Antfarm's cron jobs in OpenClaw, what they cost, and which are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, pairs, table
from farmtui.clock import iso
from farmtui.state import CronJob
from farmtui.text import safe_line

_ERROR_CELLS = 200


def crons(ctx: typer.Context) -> Answer | None:
    """List Antfarm's cron jobs and what they cost, or delete them."""
    if ctx.invoked_subcommand is not None:
        return None
    call: Call = ctx.obj
    call.begin("crons", source="none", crons=[], missing=[])
    view = call.look(crons=True, needed=False)
    listing, judgement = view.state.crons, view.judgement
    database_error = view.state.sources["database"].error
    return Answer(
        "crons",
        {
            "source": str(listing.source),
            "crons": [cron_data(job, judgement.orphans.get(job.id)) for job in listing.jobs],
            "missing": [{"workflow": each.workflow, "agent": each.agent} for each in judgement.missing_crons],
        },
        lambda data, screen: _lines(data, screen, note=listing.note, others=listing.others),
        # Without the database nobody can say which of them are orphaned.
        Exit.FINE if listing.known and database_error is None else Exit.UNREAD,
        call.source_errors(),
    )


def cron_data(job: CronJob, orphan: str | None) -> dict[str, Any]:
    """A job for scripts."""
    return {
        "id": job.id,
        "name": job.name,
        "workflow": job.workflow,
        "agent": job.agent,
        "enabled": job.enabled,
        "schedule": job.schedule,
        "every_ms": job.every_ms,
        "next_run_at": iso(job.next_run_at),
        "last_run_at": iso(job.last_run_at),
        "last_status": job.last_status,
        "last_error": job.last_error,
        "consecutive_errors": job.consecutive_errors,
        "running_since": iso(job.running_since),
        "orphan_reason": orphan,
        "calls_per_hour": calls_per_hour(job),
    }


def calls_per_hour(job: CronJob) -> float | None:
    """Model calls an hour, one a poll: 0 for a job that is off, None for one without an interval."""
    if not job.enabled:
        return 0
    if not job.every_ms:
        return None
    calls = round(3_600_000 / job.every_ms, 2)
    return int(calls) if calls.is_integer() else calls


def _lines(data: Mapping[str, Any], screen: Screen, *, note: str | None, others: int) -> Iterator[str]:
    jobs, missing = data["crons"], data["missing"]
    if data["source"] == "none":
        yield "The crons could not be listed."
        return
    yield from pairs([("source", data["source"]), ("note", note)], screen)
    yield ""
    if jobs:
        yield from table(
            [
                Column("CRON"),
                Column("STATE", state=True),
                Column("SCHEDULE"),
                Column("NEXT", right=True),
                Column("LAST", right=True),
                Column("CALLS/H", right=True),
                Column("ORPHAN"),
                Column("ID"),
                Column("ERROR", flexible=True),
            ],
            [
                (
                    f"{job['workflow']}/{job['agent']}",
                    _state(job),
                    job["schedule"],
                    screen.until(job["next_run_at"]) if job["enabled"] else None,
                    screen.age(job["last_run_at"]),
                    None if job["calls_per_hour"] is None else f"{job['calls_per_hour']:g}",
                    job["orphan_reason"],
                    job["id"][:8],
                    _error(job),
                )
                for job in jobs
            ],
            screen,
        )
        calls = sum(job["calls_per_hour"] or 0 for job in jobs)
        idle = sum(job["calls_per_hour"] or 0 for job in jobs if job["orphan_reason"])
        yield ""
        cost = f"{calls:g} calls an hour, {idle:g} for nothing"
        yield f"{len(jobs)} of Antfarm's, {others} others not shown; {cost}"
    else:
        yield f"No crons of Antfarm's; {others} others not shown"
    for each in missing:
        yield safe_line(f"missing: no cron wakes {each['workflow']}/{each['agent']}")
    if any(job["orphan_reason"] for job in jobs):
        yield "farm crons delete --orphaned deletes the orphaned ones"


def _state(job: Mapping[str, Any]) -> str:
    if not job["enabled"]:
        return "off"
    return "running" if job["running_since"] else job["last_status"] or "new"


def _error(job: Mapping[str, Any]) -> str | None:
    if not job["last_error"] or not (job["consecutive_errors"] or job["last_status"] == "error"):
        return None
    times = f"{job['consecutive_errors']}x: " if job["consecutive_errors"] else ""
    return f"{times}{job['last_error']}"
