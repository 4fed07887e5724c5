"""Cron jobs as OpenClaw gives them: which are Antfarm's, what they say, and what adding one again takes.

A job's keys differ by version and by channel (WebSocket, CLI, store), so each is looked for and none
is relied on. Antfarm's jobs are named ``antfarm/<workflow>/<agent>``; newer gateways list jobs of
their own beside them, and ``antfarm/medic`` is Antfarm's watchdog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from farmtui.clock import parse_time
from farmtui.state import CronJob, CronListing, CronSource

WATCHDOG = "antfarm/medic"
_NAME = re.compile(r"antfarm/([^/]+)/([^/]+)")
# All that `cron.add` takes: its parameters are closed, and one that is unknown refuses the whole call.
_ADDED = ("name", "enabled", "schedule", "sessionTarget", "wakeMode", "agentId", "payload", "delivery")
# What each version measured knows inside them; newer ones also list keys that older ones refuse.
_KNOWN_BY_ALL: Mapping[str, tuple[str, ...]] = {
    "schedule": ("kind", "everyMs", "anchorMs", "expr", "tz", "at"),
    "payload": ("kind", "message", "model", "timeoutSeconds"),
    "delivery": ("mode",),
}
_LIVE = re.compile(r"state|status|configRevision|updatedAtMs|(?:next|last|running|consecutive)[A-Z]\w*")
_SPANS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))


def antfarm_name(name: object) -> tuple[str, str] | None:
    """Workflow and agent of a job named ``antfarm/<workflow>/<agent>``; None for every other name."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return (found[1], found[2]) if found else None


def parse_job(raw: Mapping[str, Any]) -> CronJob | None:
    """One job as a record; None where it is not Antfarm's or has no id. Never raises."""
    parts, job_id = antfarm_name(raw.get("name")), job_id_of(raw)
    if parts is None or job_id is None:
        return None
    state = _mapping(raw.get("state"))
    schedule = raw.get("schedule")
    return CronJob(
        id=job_id,
        name=str(raw["name"]),
        workflow=parts[0],
        agent=parts[1],
        agent_id=_text(raw.get("agentId")) or _text(raw.get("effectiveAgentId")),
        enabled=raw.get("enabled", True) not in (False, 0),
        schedule=schedule_words(schedule),
        every_ms=_every_ms(schedule),
        next_run_at=_moment(state, raw, "nextRunAtMs"),
        last_run_at=_moment(state, raw, "lastRunAtMs"),
        last_status=_first_text(state, raw, "lastRunStatus", "lastStatus"),
        last_error=_first_text(state, raw, "lastError", "lastRunError"),
        consecutive_errors=_count(state.get("consecutiveErrors", raw.get("consecutiveErrors"))),
        running_since=_moment(state, raw, "runningAtMs"),
        definition={key: value for key, value in raw.items() if not _LIVE.fullmatch(str(key))},
    )


def job_id_of(raw: Mapping[str, Any]) -> str | None:
    """A job's id, whichever key it stands under."""
    return _text(raw.get("id")) or _text(raw.get("jobId"))


def listing_of(
    raws: Iterable[object],
    source: CronSource,
    read_at: datetime,
    *,
    note: str | None = None,
    version: str | None = None,
) -> CronListing:
    """Jobs as they came → the listing: Antfarm's, by name; the others only counted."""
    jobs: dict[str, CronJob] = {}
    others, watchdog = 0, False
    for raw in raws:
        job = parse_job(raw) if isinstance(raw, Mapping) else None
        if job is not None:
            jobs[job.id] = job
        elif isinstance(raw, Mapping) and raw.get("name") == WATCHDOG:
            watchdog = True
        else:
            others += 1
    ordered = tuple(sorted(jobs.values(), key=lambda job: (job.workflow, job.agent, job.id)))
    return CronListing(
        source, ordered, others, read_at=read_at, note=note, version=version, watchdog=watchdog
    )


def schedule_words(schedule: object) -> str:
    """A schedule for people: ``every 5m``, ``cron 0 * * * *``, ``at 2026-12-01T00:00:00Z``, else ``?``."""
    every = _every_ms(schedule)
    if every is not None:
        return f"every {span(every)}"
    if isinstance(schedule, str) and schedule:
        return schedule
    parts = _mapping(schedule)
    kind = _text(parts.get("kind"))
    if kind == "cron" and (expression := _text(parts.get("expr")) or _text(parts.get("cron"))):
        zone = _text(parts.get("tz"))
        return f"cron {expression} ({zone})" if zone else f"cron {expression}"
    if kind == "at":
        moment = parse_time(parts.get("atMs", parts.get("at")))
        return f"at {moment:%Y-%m-%dT%H:%M:%SZ}" if moment else "at ?"
    return kind or "?"


def span(milliseconds: int) -> str:
    """Milliseconds exactly, without units that are nought: ``5m``, ``1h 30m``, ``1m 30s 500ms``."""
    words = []
    for unit, size in _SPANS_MS:
        count, milliseconds = divmod(milliseconds, size)
        if count:
            words.append(f"{count}{unit}")
    return " ".join(words)


def add_params(definition: Mapping[str, Any]) -> dict[str, Any]:
    """A job's definition as `cron.add` takes it, as kept: what a gateway listed, it mostly accepts."""
    return {key: definition[key] for key in _ADDED if definition.get(key) is not None}


def least_params(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with only what every version knows: for a gateway that refused a property."""
    params = add_params(definition)
    for key, known in _KNOWN_BY_ALL.items():
        if isinstance(inner := params.get(key), Mapping):
            params[key] = {name: inner[name] for name in known if name in inner}
    return params


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _first_text(state: Mapping[str, Any], raw: Mapping[str, Any], *keys: str) -> str | None:
    return next((text for part in (state, raw) for key in keys if (text := _text(part.get(key)))), None)


def _moment(state: Mapping[str, Any], raw: Mapping[str, Any], key: str) -> datetime | None:
    return parse_time(state.get(key, raw.get(key)))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _every_ms(schedule: object) -> int | None:
    value = _mapping(schedule).get("everyMs")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
