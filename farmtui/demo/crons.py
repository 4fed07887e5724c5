"""The demo's cron jobs: one per agent of a workflow, named and shaped as Antfarm makes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from farmtui.demo.cronbook import CronBook

# Antfarm's own interval, where a workflow.yml names no other.
EVERY_MS = 300_000
_PROMPT = """Is there work for {agent}? Ask, it costs little:
  antfarm step peek "{agent}"
On NO_WORK answer HEARTBEAT_OK and end. On HAS_WORK take it:
  antfarm step claim "{agent}"
and hand the JSON that comes back to a session of its own with sessions_spawn. It reports with
`antfarm step complete` or `antfarm step fail` before it ends."""


def job(spec: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The definition of the cron of the workflow's `index`-th agent."""
    agent = f"{spec['id']}_{spec['agents'][index]['id']}"
    every = (spec.get("cron") or {}).get("interval_ms", EVERY_MS)
    return {
        "agentId": agent,
        "name": f"antfarm/{spec['id']}/{spec['agents'][index]['id']}",
        "enabled": True,
        # Agents wake one after the other, not all at once.
        "schedule": {"kind": "every", "everyMs": every, "anchorMs": index * every // len(spec["agents"])},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "payload": {
            "kind": "agentTurn",
            "message": _PROMPT.format(agent=agent),
            "model": "default",
            "timeoutSeconds": 120,
        },
        "delivery": {"mode": "none"},
    }


def aged(definition: Mapping[str, Any], job_id: str, created: datetime, now: datetime) -> dict[str, Any]:
    """The same job as a gateway lists it that has run it since `created`."""
    every, anchor = definition["schedule"]["everyMs"], definition["schedule"]["anchorMs"]
    now_ms, created_ms = int(now.timestamp() * 1000), int(created.timestamp() * 1000)
    next_ms = anchor + ((now_ms - anchor) // every + 1) * every
    return {
        "id": job_id,
        **definition,
        "createdAtMs": created_ms,
        "updatedAtMs": created_ms,
        "state": {
            "nextRunAtMs": next_ms,
            "lastRunAtMs": next_ms - every,
            "lastStatus": "ok",
            "lastDurationMs": 300,
            "consecutiveErrors": 0,
        },
    }


class Keeper:
    """Makes and removes a workflow's crons in the stand-in gateway as its runs come and go."""

    def __init__(self, book: CronBook) -> None:
        self._book = book

    def names(self) -> frozenset[str]:
        """Names of all jobs."""
        return frozenset(str(listed["name"]) for listed in self._book.jobs)

    def ensure(self, spec: Mapping[str, Any]) -> None:
        """One cron per agent, unless any of that workflow is there."""
        prefix = f"antfarm/{spec['id']}/"
        if not any(name.startswith(prefix) for name in self.names()):
            for index in range(len(spec["agents"])):
                self._book.add(job(spec, index))

    def remove(self, workflow: str) -> None:
        """All crons of that workflow."""
        for listed in self._book.jobs:
            if str(listed["name"]).startswith(f"antfarm/{workflow}/"):
                self._book.remove(listed["id"])


class NoCrons:
    """For making a past: its crons have come and gone."""

    def ensure(self, spec: Mapping[str, Any]) -> None:
        """Nothing to make."""

    def remove(self, workflow: str) -> None:
        """Nothing to remove."""
