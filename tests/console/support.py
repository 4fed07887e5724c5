"""For tests of the console: a farm that publishes what it is given, and the screen as plain text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from farmtui.antfarm.workflows import parse_workflow
from farmtui.clock import FixedClock
from farmtui.console.app import FarmApp
from farmtui.farm import View
from farmtui.medic.judge import judge
from farmtui.paths import FarmPaths, locate
from farmtui.state import (
    CronJob,
    CronListing,
    CronSource,
    FarmState,
    LoopConfig,
    Run,
    RunDetail,
    SourceStatus,
    Step,
    Story,
    Tally,
    Workflow,
)
from tests.farms import NOW

GOLDENS = Path(__file__).parent / "goldens"
ENVIRON = {"LANG": "C.UTF-8", "TERM": "xterm-256color"}
SIZES = ((80, 24), (60, 20), (160, 45))

RELAY = parse_workflow(
    """
id: relay
agents:
  - {id: planner}
  - {id: developer}
  - {id: verifier}
  - {id: tester}
steps:
  - {id: plan, agent: planner, input: "{{task}}", on_fail: {escalate_to: human}}
  - {id: implement, agent: developer, input: "{{task}}", type: loop,
     loop: {over: stories, verify_each: true, verify_step: verify}}
  - {id: verify, agent: verifier, input: "{{task}}", on_fail: {escalate_to: human}}
  - {id: test, agent: tester, input: "{{task}}"}
""",
    "relay/workflow.yml",
    "relay",
)


class FakeFarm:
    """Stands for `Farm`: publishes Views when told to, from the caller's thread."""

    def __init__(self, view: View | None = None) -> None:
        self.first = view
        self.publish: Callable[[View], None] | None = None
        self.refreshed = 0
        self.stopped = False
        self.details: dict[str, RunDetail] = {}
        self.desk: Any = None

    def start(self, publish: Callable[[View], None]) -> None:
        self.publish = publish
        if self.first is not None:
            publish(self.first)

    def refresh(self) -> None:
        self.refreshed += 1

    def stop(self) -> None:
        self.stopped = True

    def detail(self, run_id: str) -> RunDetail:
        return self.details[run_id]


# ---------------------------------------------------------------- Views by hand


def ago(**span: float) -> datetime:
    """A moment before NOW."""
    return NOW - timedelta(**span)


def a_step(
    run_id: str,
    name: str,
    status: str = "waiting",
    *,
    agent: str | None = None,
    index: int = 0,
    at: datetime | None = None,
    story: str | None = None,
    verify: str | None = None,
    retries: int = 0,
    abandoned: int = 0,
) -> Step:
    """A step row; `verify` makes it a loop that is verified by that step."""
    loop = LoopConfig(True, verify) if verify else None
    return Step(
        rowid=1,
        id=f"{run_id}-{name}",
        run_id=run_id,
        name=name,
        agent_id=f"relay_{agent or name}",
        index=index,
        type="loop" if verify else "single",
        status=status,
        retry_count=retries,
        max_retries=2,
        abandoned_count=abandoned,
        current_story_id=story,
        loop=loop,
        created_at=ago(hours=3),
        updated_at=at or ago(minutes=5),
    )


def a_story(
    run_id: str,
    number: int,
    title: str,
    status: str = "pending",
    retries: int = 0,
    at: datetime | None = None,
) -> Story:
    """A story row S-<number>."""
    return Story(
        rowid=number,
        id=f"{run_id}-s{number}",
        run_id=run_id,
        index=number,
        story_id=f"S-{number}",
        title=title,
        status=status,
        retry_count=retries,
        max_retries=2,
        created_at=ago(hours=3),
        updated_at=at or ago(hours=2, minutes=4),
    )


def a_run(
    number: int,
    task: str,
    *,
    status: str = "running",
    workflow: str = "relay",
    steps: Sequence[Step] = (),
    stories: Sequence[Story] = (),
    tally: Tally | None = None,
    began: datetime | None = None,
    changed: datetime | None = None,
) -> Run:
    """A run whose id is ``run-<number>``."""
    return Run(
        rowid=number,
        id=f"run-{number}",
        number=number,
        workflow=workflow,
        task=task,
        status=status,
        created_at=began or ago(hours=1),
        updated_at=changed or ago(minutes=5),
        steps=tuple(steps),
        stories=tuple(stories),
        tally=tally,
    )


def relay_run(
    number: int,
    task: str,
    at: int,
    status: str,
    *,
    moment: datetime,
    began: datetime | None = None,
    **extra: Any,
) -> Run:
    """A running relay run that stands at its step `at` with `status`."""
    run_id = f"run-{number}"
    names = (("plan", "planner"), ("implement", "developer"), ("verify", "verifier"), ("test", "tester"))
    stories = extra.pop("stories", ())
    steps = []
    for index, (name, agent) in enumerate(names):
        here = index == at
        steps.append(
            a_step(
                run_id,
                name,
                status if here else "done" if index < at else "waiting",
                agent=agent,
                index=index,
                at=moment if here else ago(hours=2),
                verify="verify" if name == "implement" else None,
                story=f"{run_id}-s2" if here and name == "implement" and stories else None,
                **(extra if here else {}),
            )
        )
    return a_run(number, task, steps=steps, stories=stories, began=began or ago(hours=3))


def a_cron(workflow: str, agent: str, *, minutes: int = 5) -> CronJob:
    """A cron job that ran a minute ago and was fine."""
    return CronJob(
        id=f"cron-{workflow}-{agent}",
        name=f"antfarm/{workflow}/{agent}",
        workflow=workflow,
        agent=agent,
        agent_id=f"{workflow}_{agent}",
        enabled=True,
        schedule=f"every {minutes}m",
        every_ms=minutes * 60_000,
        next_run_at=NOW + timedelta(minutes=4),
        last_run_at=ago(minutes=1),
        last_status="ok",
        last_error=None,
        consecutive_errors=0,
        running_since=None,
    )


RELAY_CRONS = tuple(a_cron("relay", agent) for agent in ("planner", "developer", "verifier", "tester"))


def paths_of(state_dir: str = "/home/op/.openclaw") -> FarmPaths:
    """Places that need not exist."""
    return locate(state_dir=Path(state_dir), environ={}, home=Path("/home/op"))


def a_view(
    runs: Sequence[Run],
    *,
    crons: Sequence[CronJob] | None = RELAY_CRONS,
    workflows: Sequence[Workflow] = (RELAY,),
    now: datetime = NOW,
    **changes: Any,
) -> View:
    """A judged View; `crons` None: the gateway did not answer."""
    listing = (
        CronListing(CronSource.NONE, note="connection refused")
        if crons is None
        else CronListing(CronSource.WEBSOCKET, tuple(crons), read_at=ago(seconds=3), version="2026.9.6")
    )
    sources = {
        "database": SourceStatus("database", ago(seconds=1)),
        "crons": SourceStatus("crons", ago(seconds=3))
        if crons is not None
        else SourceStatus("crons", None, "connection refused", ago(minutes=2)),
    }
    state = FarmState(
        seq=1,
        paths=paths_of(),
        host="gw-box",
        runs=tuple(runs),
        tallied=True,
        workflows={workflow.id: workflow for workflow in workflows},
        crons=listing,
        sources=sources,
    )
    state = replace(state, **changes)
    judgement, _ = judge(state, now, None)
    return View(state, judgement)


def busy_view(**changes: Any) -> View:
    """A farm with something in every lane, a stale claim, an escalation and orphaned crons."""
    done = Tally(4, 4, 3, 3, ("done",) * 4)
    stories = (
        a_story("run-214", 1, "users table", "done"),
        a_story("run-214", 2, "login form", "running", retries=1),
        a_story("run-214", 3, "log out everywhere"),
    )
    runs = [
        relay_run(218, "Crash on empty cart", 0, "pending", moment=ago(minutes=2), began=ago(minutes=2)),
        relay_run(
            214,
            "Add OAuth login to the web shop, with sessions that survive a restart",
            1,
            "running",
            moment=ago(hours=2, minutes=4),
            stories=stories,
            retries=1,
        ),
        relay_run(213, "Audit the payment stub", 3, "running", moment=ago(minutes=12)),
        a_run(
            209,
            "Fix flaky checkout test",
            status="failed",
            tally=Tally(2, 4, 1, 3, ("done", "done", "failed", "failed"), ("verify",)),
            changed=ago(minutes=34),
        ),
        a_run(
            208,
            "Rename the tables",
            status="failed",
            tally=Tally(3, 4, 3, 3, ("done", "done", "done", "failed"), ("test",)),
            changed=ago(hours=5),
        ),
        a_run(207, "Update the dependencies", status="completed", tally=done, changed=ago(hours=6)),
        a_run(
            206,
            "Try the other library",
            status="cancelled",
            tally=Tally(1, 4, 0, 0, ("done", "failed", "failed", "failed")),
            changed=ago(hours=8),
        ),
        a_run(205, "Write the changelog", status="completed", tally=done, changed=ago(days=1)),
    ]
    crons = (*RELAY_CRONS, *(a_cron("meadow", agent) for agent in ("scout", "builder", "closer")))
    return a_view(runs, crons=changes.pop("crons", crons), **changes)


# ---------------------------------------------------------------- the screen


def text_of(app: FarmApp) -> str:
    """What is on the screen, as plain text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines) + "\n"


@asynccontextmanager
async def shown(
    view: View | None, size: tuple[int, int] = (80, 24), **kwargs: Any
) -> AsyncIterator[tuple[FarmApp, FakeFarm, Pilot[int]]]:
    """The app with a View on its screen, at a clock that stands still."""
    farm = FakeFarm(view)
    kwargs.setdefault("environ", ENVIRON)
    app = FarmApp(farm, clock=FixedClock(NOW), **kwargs)
    async with app.run_test(size=size) as pilot:
        await until(lambda: app.view is view and app.screen.is_mounted)
        await settled(app)
        yield app, farm, pilot


async def until(predicate: Callable[[], bool], timeout: float = 10.0) -> None:
    """Wait for something to become true; a pause alone may return early on a loaded machine."""
    async with asyncio.timeout(timeout):
        while not predicate():
            await asyncio.sleep(0.01)


async def settled(app: FarmApp) -> None:
    """Wait until the screen no longer changes."""
    before = ""
    for _ in range(200):
        await asyncio.sleep(0.02)
        after = text_of(app)
        if after == before and after.strip():
            return
        before = after
    raise AssertionError(f"the screen does not come to rest:\n{before}")


async def press(app: FarmApp, pilot: Pilot[int], *keys: str) -> None:
    """Press keys and wait for what they do."""
    await pilot.press(*keys)
    await pilot.pause()
    await settled(app)


def check_golden(name: str, text: str) -> None:
    """Compare with tests/console/goldens/<name>.txt; ``GOLDENS=update`` writes it."""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("GOLDENS") == "update":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; GOLDENS=update writes it anew"
