"""A desk on a farm built by hand, with crons that are only a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from farmtui.antfarm.workflows import read_workflows
from farmtui.clock import FixedClock
from farmtui.openclaw.crons import CronError, Crons, RemoveResult
from farmtui.openclaw.jobs import listing_of
from farmtui.openclaw.kept import KeptJobs
from farmtui.operations.desk import Desk
from farmtui.operations.operator import Operator
from farmtui.operations.plan import Plan, RowChange
from farmtui.paths import FarmPaths
from farmtui.state import CronListing, CronSource
from tests.farms import NOW, Farmyard

ALICE = Operator("farm", "alice", "gw-box", "/dev/pts/3", "192.0.2.7")

RELAY = """
id: relay
agents:
  - {id: scout}
  - {id: builder, timeoutSeconds: 1200}
  - {id: closer}
steps:
  - {id: scout, agent: scout, input: "Look into {{task}}", expects: "STATUS: done"}
  - {id: build, agent: builder, input: "Build in {{repo}}", on_fail: {escalate_to: human}}
  - {id: close, agent: closer, input: "Close {{task}}"}
"""

LOOP = {"over": "stories", "completion": "all_done", "verifyEach": True, "verifyStep": "verify"}


class ListedCrons:
    """Stands where `Crons` stands: the same answers, from a list in memory.

    Attributes:
        jobs: as a gateway lists them.
        source: where the list says it came from.
        refuses: ids and names whose removal or addition fails, with the reason.
        comes_back: names whose jobs come back with another id when they are removed.
        before_remove: called with the id before each removal.
    """

    def __init__(self, jobs: list[dict[str, Any]] | None = None, kept: KeptJobs | None = None) -> None:
        self.jobs = jobs or []
        self.kept = kept
        self.source = CronSource.WEBSOCKET
        self.note: str | None = None
        self.refuses: dict[str, CronError] = {}
        self.comes_back: set[str] = set()
        self.before_remove: Callable[[str], None] = lambda job_id: None
        self._made = 0

    def list(self, timeout: float = 3.0) -> CronListing:
        jobs = self.jobs if self.source is not CronSource.NONE else []
        listing = listing_of(jobs, self.source, NOW, note=self.note)
        if self.kept is not None:
            self.kept.remember(listing.jobs)
        return listing

    def add(self, definition: Mapping[str, Any]) -> str:
        if (error := self.refuses.get(definition["name"])) is not None:
            raise error
        return self._add(definition)

    def remove(self, job_id: str) -> RemoveResult:
        self.before_remove(job_id)
        if (error := self.refuses.get(job_id)) is not None:
            raise error
        found = next((job for job in self.jobs if job["id"] == job_id), None)
        if found is None:
            return RemoveResult(True, "it was gone already")
        self.jobs.remove(found)
        if found["name"] in self.comes_back:
            back = self._add(found)
            return RemoveResult(True, f"removed, but it came back as {back}", (back,))
        return RemoveResult(True)

    def names(self) -> list[str]:
        return sorted(job["name"] for job in self.jobs)

    def _add(self, definition: Mapping[str, Any]) -> str:
        self._made += 1
        self.jobs.append({**definition, "id": f"new-{self._made}"})
        return f"new-{self._made}"


def job(workflow: str, agent: str, job_id: str | None = None, **more: Any) -> dict[str, Any]:
    """A cron job as a gateway lists it."""
    agent_id = f"{workflow}_{agent}"
    return {
        "id": job_id or f"id-{workflow}-{agent}",
        "name": f"antfarm/{workflow}/{agent}",
        "agentId": agent_id,
        "enabled": True,
        "schedule": {"kind": "every", "everyMs": 300_000, "anchorMs": 0},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "payload": {
            "kind": "agentTurn",
            "message": f'Run: antfarm step peek "{agent_id}"',
            "model": "default",
            "timeoutSeconds": 120,
        },
        "delivery": {"mode": "none"},
        "state": {"nextRunAtMs": int(NOW.timestamp() * 1000) + 192_000},
        **more,
    }


def desk_on(
    paths: FarmPaths,
    crons: ListedCrons | None = None,
    *,
    now: datetime = NOW,
    readonly: bool = False,
    operator: Operator = ALICE,
) -> Desk:
    """A desk on a farm; its crons are those of `crons`, none where that is None."""
    crons = crons or ListedCrons()
    crons.kept = crons.kept or KeptJobs(paths.farm_dir)
    return Desk(
        paths=paths,
        crons=cast(Crons, crons),
        clock=FixedClock(now),
        operator=operator,
        readonly=readonly,
        workflows=lambda: read_workflows(paths.workflows.path),
        kept=crons.kept,
    )


def change(plan: Plan, table: str, row: str, column: str) -> RowChange | None:
    """The change of one cell; None where the plan leaves it alone."""
    found = [c for c in plan.changes if (c.table, c.row, c.column) == (table, row, column)]
    assert len(found) <= 1
    return found[0] if found else None


def cells(yard: Farmyard, table: str, row: str, *columns: str) -> tuple[Any, ...]:
    """Some cells of one row."""
    found = yard.row(table, row)
    return tuple(found[column] for column in columns)
