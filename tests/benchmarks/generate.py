"""Make a big farm: ``python -m tests.benchmarks.generate DIR [--runs 10000]``.

The state folder is ``DIR/.openclaw``, laid out as by `Farmyard`: seven steps a run, contexts of 2 kB, outputs
90 % 1–4 kB, 9 % to 40 kB, 1 % 200 kB, stories in a third of the runs, forty active runs.
The same seed makes the same farm.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from farmtui.clock import iso, sqlite_now
from tests.farms import NOW, Farmyard

ACTIVE = 40
STEPS = ("plan", "setup", "implement", "verify", "test", "pr", "review")
WORKFLOWS = ("feature-dev", "bug-fix", "security-audit", "docs", "refactor")
_LOOP = json.dumps({"over": "stories", "completion": "all_done", "verifyEach": True, "verifyStep": "verify"})
_INPUT = "Do the {step} step of this task:\n{{{{task}}}}\n\nReply with:\nSTATUS: done\n" + "Guidance. " * 60

_RUN = (
    "INSERT INTO runs (id, workflow_id, task, status, context, created_at, updated_at, run_number)"
    " VALUES (?,?,?,?,?,?,?,?)"
)
_STEP = (
    "INSERT INTO steps (id, run_id, step_id, agent_id, step_index, input_template, expects, status, output,"
    " created_at, updated_at, type, loop_config, current_story_id) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)
_STORY = (
    "INSERT INTO stories (id, run_id, story_index, story_id, title, description, acceptance_criteria, status,"
    " output, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)


def generate(folder: Path, runs: int = 10_000, active: int = ACTIVE, seed: int = 1) -> Farmyard:
    """Make the farm under `folder`, which must hold none yet; the newest `active` runs are running."""
    yard = Farmyard(folder)
    with closing(sqlite3.connect(yard.database, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        maker = _Maker(random.Random(seed), runs, active)
        for number in range(1, runs + 1):
            run, steps, stories = maker.run(number)
            connection.execute(_RUN, run)
            connection.executemany(_STEP, steps)
            connection.executemany(_STORY, stories)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for workflow in WORKFLOWS:
        yard.write_workflow(_workflow(workflow), workflow)
    yard.write_config({"agents": {"list": [_agent(yard, agent) for agent in _agents()]}})
    with yard.events.open("w", encoding="utf-8") as log:
        log.writelines(maker.events)
    return yard


class _Maker:
    def __init__(self, chance: random.Random, runs: int, active: int) -> None:
        self.events: list[str] = []
        self._chance = chance
        self._runs = runs
        self._active = active
        self._prose = "".join(chance.choice("abcdefghijklmnopqrst     \n") for _ in range(400_000))

    def run(self, number: int) -> tuple[tuple[Any, ...], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        chance = self._chance
        run_id, workflow = self._id(), WORKFLOWS[number % len(WORKFLOWS)]
        active = number > self._runs - self._active
        began = NOW - (timedelta(minutes=3) * (self._runs - number) + timedelta(minutes=50))
        status = "running" if active else chance.choices(("completed", "failed", "cancelled"), (88, 9, 3))[0]
        reached = chance.randrange(len(STEPS)) if active or status != "completed" else len(STEPS)
        stories = self._stories(run_id, number, reached, active, began)
        running = next((story[0] for story in stories if story[7] == "running"), None)
        task = f"Task {number}: {self._text(90)}".replace("\n", " ")
        context = json.dumps({"task": task, "repo": "/srv/repo", "plan": self._text(1900)})
        updated = began + timedelta(minutes=1 + 6 * reached)
        run = (
            run_id, workflow, task, status, context, iso(began), sqlite_now(min(updated, NOW)), number,
        )  # fmt: skip
        steps = [
            self._step(run_id, workflow, index, reached, status, began, running)
            for index in range(len(STEPS))
        ]
        if active:
            self._log(run_id, workflow, reached, began)
        return run, steps, stories

    def _step(
        self,
        run_id: str,
        workflow: str,
        index: int,
        reached: int,
        run: str,
        began: datetime,
        story: str | None,
    ) -> tuple[Any, ...]:
        name = STEPS[index]
        if index < reached:
            status = "done"
        elif index > reached:
            status = "failed" if run == "cancelled" else "waiting"
        else:
            status = {"running": self._chance.choice(("running", "pending"))}.get(run, "failed")
        loop = name == "implement"
        return (
            self._id(), run_id, name, f"{workflow}_{name}", index, _INPUT.format(step=name), "STATUS: done",
            status, self._output() if status == "done" else None, iso(began),
            sqlite_now(min(NOW, began + timedelta(minutes=6 * min(index, reached)))),
            "loop" if loop else "single", _LOOP if loop else None,
            story if loop and status == "running" else None,
        )  # fmt: skip

    def _stories(
        self, run_id: str, number: int, reached: int, active: bool, began: datetime
    ) -> list[tuple[Any, ...]]:
        if number % 3 or reached < 2:
            return []
        done = 5 if reached > 2 else 2
        made = []
        for index in range(5):
            status = "done" if index < done else "running" if index == done and active else "pending"
            output = self._text(600) if status == "done" else None
            story = (
                self._id(), run_id, index, f"US-{index + 1:03}", f"Story {index + 1}", self._text(200),
                '["It works"]', status, output, iso(began), sqlite_now(began),
            )  # fmt: skip
            made.append(story)
        return made

    def _log(self, run_id: str, workflow: str, reached: int, began: datetime) -> None:
        for index, name in enumerate(STEPS[: reached + 1]):
            at = began + timedelta(minutes=6 * index)
            common = {"runId": run_id, "workflowId": workflow, "stepId": name}
            for event, more in (("step.running", {"agentId": f"{workflow}_{name}"}), ("step.done", {})):
                if event == "step.done" and index == reached:
                    continue
                self.events.append(json.dumps({"ts": iso(at), "event": event, **common, **more}) + "\n")

    def _output(self) -> str:
        chance = self._chance.random()
        if chance < 0.90:
            return self._text(self._chance.randrange(1_000, 4_000))
        return self._text(self._chance.randrange(4_000, 40_000) if chance < 0.99 else 200_000)

    def _text(self, length: int) -> str:
        start = self._chance.randrange(len(self._prose) - length)
        return self._prose[start : start + length]

    def _id(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))


def _agents() -> Iterator[tuple[str, str]]:
    return ((workflow, step) for workflow in WORKFLOWS for step in STEPS)


def _agent(yard: Farmyard, agent: tuple[str, str]) -> dict[str, str]:
    return {"id": "_".join(agent), "name": agent[1], "workspace": str(yard.workspace(*agent))}


def _workflow(workflow: str) -> str:
    agents = "".join(f"  - id: {step}\n    role: coding\n" for step in STEPS)
    loop = "{over: stories, completion: all_done, verify_each: true, verify_step: verify}"
    steps = ""
    for step in STEPS:
        steps += (
            f"  - id: {step}\n    agent: {step}\n    input: Do it {{{{task}}}}\n    expects: 'STATUS: done'\n"
        )
        if step == "implement":
            steps += f"    type: loop\n    loop: {loop}\n"
        steps += "    on_fail: {escalate_to: human}\n"
    return f"id: {workflow}\nname: {workflow}\nagents:\n{agents}steps:\n{steps}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--active", type=int, default=ACTIVE)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    yard = generate(chosen.folder, chosen.runs, chosen.active)
    print(f"{yard.database}  {yard.database.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
