"""The engine and the stand-in that applies it, held to what Antfarm 0.5.1 did, operation by operation.

Each scenario is played until it meets an operation that is not theirs (clean-up, medic, resume, stop).
Where the engine is better on purpose, `BETTER` names the scenario, the operation and the outcome.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from farmtui.antfarm import engine
from farmtui.demo.ants import Ants
from tests.boxes import SHARED

FOLDER = SHARED / "conformance"
SCENARIOS = sorted(path.stem for path in FOLDER.glob("*.json")) if FOLDER.is_dir() else []
PLAYED = {"run", "peek", "claim", "complete", "fail", "set", "age", "progress"}

# scenario → (the operation's number, what the engine answers instead); it is played no further than that.
BETTER = {
    "complete-twice": (3, "step scout is done, not at work: it was reported before"),
    "stories-duplicate-id": (2, 'STORIES_JSON has duplicate story id "S-1"'),
    "stories-missing-field": (
        2,
        "STORIES_JSON story at index 0 missing required fields (id, title, description, acceptanceCriteria)",
    ),
    "stories-not-array": (2, "STORIES_JSON must be an array"),
    "stories-not-json": (2, "Failed to parse STORIES_JSON: "),
    "stories-too-many": (2, "STORIES_JSON has 21 stories, max is 20"),
}


class Ticking:
    """A clock that moves on with each look, so that no two stories are done in one second."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 2, 15, 12, 0, 0, 123000, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=2)
        return self.moment


class NamedCrons:
    """Only the names of the crons, as in the recordings."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def ensure(self, spec: Mapping[str, Any]) -> None:
        prefix = f"antfarm/{spec['id']}/"
        if not any(name.startswith(prefix) for name in self.names):
            self.names |= {prefix + agent["id"] for agent in spec["agents"]}

    def remove(self, workflow: str) -> None:
        self.names = {name for name in self.names if not name.startswith(f"antfarm/{workflow}/")}


class Stage:
    """An empty farm on which a scenario is played, telling rows by the recordings' names."""

    def __init__(self, folder: Path) -> None:
        specs = [yaml.safe_load(path.read_text()) for path in sorted((FOLDER / "workflows").glob("*.yml"))]
        self.workspaces = folder / "workspaces"
        self.crons = NamedCrons()
        self.events = folder / "events.jsonl"
        self.ants = Ants(
            folder,
            {spec["id"]: spec for spec in specs},
            self.workspaces,
            clock=Ticking(),
            crons=self.crons,
            new_id=_ids(),
        )
        self._read = 0

    def names(self) -> dict[str, str]:
        """Row id → the name that it has in the recordings."""
        names = {}
        for number, (run,) in enumerate(self.query("SELECT id FROM runs ORDER BY rowid"), 1):
            names[run] = f"run{number}"
            for row, step in self.query("SELECT id, step_id FROM steps WHERE run_id = ?", run):
                names[row] = f"run{number}.{step}"
            for row, story in self.query("SELECT id, story_id FROM stories WHERE run_id = ?", run):
                names[row] = f"run{number}/{story}"
        return names

    def id_of(self, name: str) -> str:
        return next((row for row, known in self.names().items() if known == name), name)

    def query(self, statement: str, *parameters: Any) -> list[Any]:
        return self.ants.connection.execute(statement, parameters).fetchall()

    def play(self, op: list[Any]) -> Any:
        """One operation; its answer as the recordings write it, an error as its text."""
        match op:
            case ["run", workflow, task]:
                run = self.ants.start_run(workflow, task)
                [(status, number)] = self.query("SELECT status, run_number FROM runs WHERE id = ?", run)
                return {"status": status, "run_number": number}
            case ["peek", agent]:
                return "HAS_WORK" if self.ants.peek(agent) else "NO_WORK"
            case ["claim", agent]:
                claimed = self.ants.claim(agent)
                if claimed is None:
                    return "NO_WORK"
                return {"step": claimed.step_id, "run": claimed.run_id, "input": claimed.input}
            case ["complete", step, output]:
                return dict(self.ants.complete(self.id_of(step), output))
            case ["fail", step, reason]:
                return dict(self.ants.fail(self.id_of(step), reason))
            case ["set", table, row, column, value]:
                assert table in ("runs", "steps", "stories")
                self.query(f"UPDATE {table} SET {column} = ? WHERE id = ?", value, self.id_of(row))  # noqa: S608
            case ["progress", workflow, agent, name, text]:
                [(run,)] = self.query("SELECT id FROM runs")
                path = self.workspaces / workflow / "agents" / agent / name.replace("RUN", run)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return None

    def state(self) -> dict[str, Any]:
        columns = "id, run_id, agent_id, step_index, type, status, output, retry_count, max_retries, "
        columns += "abandoned_count, current_story_id, updated_at"
        return {
            "runs": [
                {
                    "id": run,
                    "run_number": number,
                    "workflow_id": workflow,
                    "status": status,
                    "context": json.loads(context),
                    "updated_format": _format(updated),
                }
                for run, number, workflow, status, context, updated in self.query(
                    "SELECT id, run_number, workflow_id, status, context, updated_at FROM runs ORDER BY rowid"
                )
            ],
            "steps": [
                {
                    "id": row[0],
                    "agent_id": row[2],
                    "index": row[3],
                    "type": row[4],
                    "status": row[5],
                    "output": row[6],
                    "retry_count": row[7],
                    "max_retries": row[8],
                    "abandoned_count": row[9],
                    "current_story": row[10],
                    "updated_format": _format(row[11]),
                }
                for row in self.query(f"SELECT {columns} FROM steps ORDER BY rowid")  # noqa: S608
            ],
            "stories": [
                dict(
                    zip(
                        ("id", "index", "title", "status", "output", "retry_count", "max_retries"),
                        row,
                        strict=True,
                    )
                )
                for row in self.query(
                    "SELECT id, story_index, title, status, output, retry_count, max_retries "
                    "FROM stories ORDER BY rowid"
                )
            ],
            "crons": sorted(self.crons.names),
        }

    def new_events(self) -> list[dict[str, Any]]:
        lines = self.events.read_text().splitlines() if self.events.exists() else []
        fresh, self._read = lines[self._read :], len(lines)
        return [{key: value for key, value in json.loads(line).items() if key != "ts"} for line in fresh]

    def named(self, value: Any) -> Any:
        """The same value with every row id replaced by its name."""
        text = json.dumps(value, ensure_ascii=False)
        for row, name in self.names().items():
            text = text.replace(row, name)
        return json.loads(text)


def _ids() -> Any:
    numbers = iter(range(1, 10_000))
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012d}"


def _format(text: str) -> str:
    return "iso" if "T" in text else "sql"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    if not SCENARIOS:
        pytest.skip("needs shared/conformance, which only the project's own machines have")
    stage = Stage(tmp_path)
    yield stage
    stage.ants.close()


@pytest.mark.parametrize("name", SCENARIOS or ["absent"])
def test_plays_as_antfarm_does(stage: Stage, name: str) -> None:
    scenario = json.loads((FOLDER / f"{name}.json").read_text())
    better = BETTER.get(name)
    for number, recorded in enumerate(scenario["steps"]):
        op = recorded["op"]
        if op[0] not in PLAYED:
            return
        where = f"{name}, operation {number}: {op[:2]}"
        if better is not None and number == better[0]:
            before = stage.state()
            with pytest.raises((engine.NotAllowed, engine.BadStories)) as refused:
                stage.play(op)
            assert str(refused.value).startswith(better[1]), where
            assert stage.state() == before, f"{where}: a refused report leaves no trace"
            return
        if "error" in recorded:
            with pytest.raises(engine.NotAllowed, match=re.escape(recorded["error"])):
                stage.play(op)
            continue
        assert stage.named(stage.play(op)) == recorded.get("result"), where
        assert stage.named(stage.new_events()) == recorded["events"], where
        found, expected = stage.named(stage.state()), recorded["state"]
        for key in ("runs", "steps", "stories", "crons"):
            assert found[key] == expected[key], where


def test_each_statement_commits_by_itself(stage: Stage, tmp_path: Path) -> None:
    """A reader sees the half-way states of a real farm: no transaction hides them."""
    stage.play(["run", "relay", "Look"])
    other = sqlite3.connect(tmp_path / "antfarm.db", isolation_level=None)
    seen = []
    stage.ants.connection.set_trace_callback(
        lambda statement: (
            seen.append(other.execute("SELECT status FROM steps ORDER BY step_index").fetchall())
            if statement.startswith("UPDATE")
            else None
        )
    )
    stage.play(["claim", "relay_scout"])
    stage.play(["complete", "run1.scout", "STATUS: done"])
    stage.ants.connection.set_trace_callback(None)
    other.close()
    assert [("done",), ("waiting",), ("waiting",)] in seen
