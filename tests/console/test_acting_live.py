"""Acting through keys on a real database and a gateway that speaks the real protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from farmtui.clock import SystemClock
from farmtui.console import acting
from farmtui.console.app import FarmApp
from farmtui.console.plan_dialog import PlanDialog
from farmtui.demo.gateway import StandInGateway
from farmtui.farm import Farm
from tests.console.support import ENVIRON, press, settled, text_of, until
from tests.farms import MINUTE, Farmyard, StepRow, StoryRow

AGENTS = ("fixer", "verifier")
WORKFLOW = """
id: mend
agents: [{id: fixer}, {id: verifier}]
steps:
  - {id: fix, agent: fixer, type: loop, input: "Fix {{task}}",
     loop: {over: stories, completion: all_done, verify_each: true, verify_step: verify}}
  - {id: verify, agent: verifier, input: "Verify {{task}}", on_fail: {escalate_to: human}}
"""
LOOP = {"over": "stories", "completion": "all_done", "verifyEach": True, "verifyStep": "verify"}


def job(workflow: str, agent: str) -> dict[str, Any]:
    """A cron job as a gateway lists it."""
    return {
        "id": f"{workflow}-{agent}",
        "agentId": f"{workflow}_{agent}",
        "name": f"antfarm/{workflow}/{agent}",
        "enabled": True,
        "createdAtMs": 1_700_000_000_000,
        "updatedAtMs": 1_700_000_000_000,
        "schedule": {"kind": "every", "everyMs": 300_000},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "payload": {"kind": "agentTurn", "message": "poll", "timeoutSeconds": 120},
        "delivery": {"mode": "none"},
        "state": {},
    }


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    made = Farmyard(tmp_path)
    made.write_workflow(WORKFLOW, "mend")
    return made


def add_stale(yard: Farmyard) -> str:
    """A loop whose claim is two hours old by any clock."""
    return yard.add_run(
        "mend",
        "Mend the fence",
        number=7,
        steps=[
            StepRow("fix", "fixer", "running", loop=LOOP, current_story="S-1", age=120 * MINUTE),
            StepRow("verify", "verifier"),
        ],
        stories=[StoryRow("S-1", "posts", status="running", age=120 * MINUTE)],
        age=120 * MINUTE,
    )


def add_failed(yard: Farmyard) -> str:
    return yard.add_run(
        "mend",
        "Mend the gate",
        number=8,
        status="failed",
        steps=[
            StepRow("fix", "fixer", "failed", loop=LOOP, output="still squeaks", age=30 * MINUTE),
            StepRow("verify", "verifier", age=30 * MINUTE),
        ],
        stories=[StoryRow("S-1", "hinge", status="failed", retry_count=3, age=30 * MINUTE)],
        age=30 * MINUTE,
    )


@asynccontextmanager
async def console(yard: Farmyard, gateway: StandInGateway) -> AsyncIterator[tuple[FarmApp, Pilot[int]]]:
    """The console on a real farm, the first list of crons in."""
    yard.write_config(
        {"gateway": gateway.config(), "agents": {"list": [{"id": f"mend_{a}"} for a in AGENTS]}}
    )
    farm = Farm(yard.paths, environ={})
    app = FarmApp(farm, clock=SystemClock(), environ=ENVIRON)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(lambda: app.view is not None and app.view.state.tallied and app.view.state.crons.known)
        yield app, pilot


async def agree(app: FarmApp, pilot: Pilot[int]) -> str:
    """Say yes to the plan on the screen; gives what it showed."""
    await until(lambda: isinstance(app.screen, PlanDialog))
    await settled(app)
    shown = text_of(app)
    await pilot.press("y")
    return shown


async def test_a_stale_claim_is_reset_claimed_and_told(
    yard: Farmyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "FOLLOW_S", 0.05)
    run = add_stale(yard)
    with StandInGateway(jobs=[job("mend", agent) for agent in AGENTS]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            await press(app, pilot, "4")
            await until(lambda: "stale-claim" in text_of(app))
            await press(app, pilot, "R")
            plan = await agree(app, pilot)
            assert "running → pending" in plan
            await until(lambda: "done:" in text_of(app))
            step = yard.row("steps", yard.step_id(run, "fix"))
            assert (step["status"], step["current_story_id"]) == ("pending", None)
            story = yard.row("stories", yard.story_id(run, "S-1"))
            assert (story["status"], story["retry_count"]) == ("pending", 1)
            assert '"event":"step.timeout"' in yard.events.read_text()

            yard.execute(
                "UPDATE steps SET status = 'running', updated_at = datetime('now') WHERE id = ?", step["id"]
            )
            await until(lambda: "fixer claimed fix" in text_of(app))


async def test_a_reset_is_undone_by_key(yard: Farmyard) -> None:
    run = add_stale(yard)
    before = yard.row("steps", yard.step_id(run, "fix"))
    with StandInGateway(jobs=[job("mend", agent) for agent in AGENTS]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            await press(app, pilot, "4")
            await until(lambda: "stale-claim" in text_of(app))
            await press(app, pilot, "R")
            await agree(app, pilot)
            await until(lambda: "u undoes it" in text_of(app))
            await press(app, pilot, "u")
            shown = await agree(app, pilot)
            assert "pending → running" in shown
            await until(lambda: yard.row("steps", before["id"])["status"] == "running")
            assert yard.row("steps", before["id"])["current_story_id"] == before["current_story_id"]


async def test_what_moves_behind_the_dialog_is_refused_and_nothing_is_written(yard: Farmyard) -> None:
    run = add_stale(yard)
    with StandInGateway(jobs=[job("mend", agent) for agent in AGENTS]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            await press(app, pilot, "4")
            await until(lambda: "stale-claim" in text_of(app))
            await press(app, pilot, "R")
            await until(lambda: isinstance(app.screen, PlanDialog))
            yard.execute(
                "UPDATE steps SET status = 'done', output = 'late' WHERE id = ?", yard.step_id(run, "fix")
            )
            await agree(app, pilot)
            await until(lambda: "refused, nothing was written" in text_of(app))
            assert yard.row("steps", yard.step_id(run, "fix"))["status"] == "done"
            assert yard.row("stories", yard.story_id(run, "S-1"))["status"] == "running"


async def test_an_escalated_run_goes_back_with_guidance_and_its_crons(yard: Farmyard) -> None:
    run = add_failed(yard)
    with StandInGateway(jobs=[job("mend", agent) for agent in AGENTS]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            # The listing above was kept; then the crons go, as Antfarm removes them when a run fails.
            await until(lambda: app.view is not None and len(app.view.state.crons.jobs) == len(AGENTS))
            for agent in AGENTS:
                gateway.book.remove(f"mend-{agent}")
            await press(app, pilot, "3")
            await until(lambda: "still squeaks" in text_of(app))
            await press(app, pilot, "R")
            await until(lambda: "with guidance" in text_of(app))
            await press(app, pilot, *"oil it", "ctrl+s")
            shown = await agree(app, pilot)
            assert "create the cron antfarm/mend/fixer" in shown
            await until(lambda: yard.row("runs", run)["status"] == "running")
            await until(
                lambda: (
                    {entry["name"] for entry in gateway.book.jobs}
                    >= {
                        "antfarm/mend/fixer",
                        "antfarm/mend/verifier",
                    }
                )
            )
            step = yard.row("steps", yard.step_id(run, "fix"))
            assert step["status"] == "pending"
            assert "{{operator_guidance}}" in step["input_template"]
            assert "oil it" in yard.row("runs", run)["context"]


async def test_orphaned_crons_are_deleted_by_key(yard: Farmyard) -> None:
    add_failed(yard)
    with StandInGateway(jobs=[job("mend", agent) for agent in AGENTS]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            await press(app, pilot, "5")
            await until(lambda: "orphan" in text_of(app))
            await press(app, pilot, "space", "space", "X")
            shown = await agree(app, pilot)
            assert "delete the cron antfarm/mend/fixer" in shown
            await until(lambda: not gateway.book.jobs)
            await until(lambda: "done:" in text_of(app) or "Close" in text_of(app))


async def test_an_escalation_is_acknowledged_by_key(yard: Farmyard) -> None:
    run = add_failed(yard)
    with StandInGateway(jobs=[]) as gateway:
        async with console(yard, gateway) as (app, pilot):
            await press(app, pilot, "3", "a")
            await until(lambda: "Signed:" in text_of(app))
            await press(app, pilot, *"on it", "ctrl+s")
            await agree(app, pilot)
            await until(lambda: "1 acknowledged" in text_of(app))
            assert yard.row("runs", run)["status"] == "failed"
