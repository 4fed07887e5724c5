"""A stand-in for Antfarm 0.5.1: the rules of `farmtui.antfarm.engine`, applied to a real antfarm.db.

As in Antfarm every statement commits by itself, so a reader meets the same half-way states as on a
real farm; rows are inserted with one time format and updated with the other; events go to
events.jsonl as they do there. It never cleans up: an abandoned step stays for somebody to find.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farmtui.antfarm import engine
from farmtui.antfarm.rows import RunRows, rows_in
from farmtui.antfarm.schema import SqlValue
from farmtui.clock import Clock, iso, sqlite_now

# Above this Antfarm renames the event log to events.jsonl.1 and begins anew.
EVENTS_LIMIT = 10 * 1024 * 1024

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, task TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'running',
  context TEXT NOT NULL DEFAULT '{}', created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  notify_url TEXT, run_number INTEGER);
CREATE TABLE IF NOT EXISTS steps (
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), step_id TEXT NOT NULL,
  agent_id TEXT NOT NULL, step_index INTEGER NOT NULL, input_template TEXT NOT NULL, expects TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'waiting', output TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 2, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  type TEXT NOT NULL DEFAULT 'single', loop_config TEXT, current_story_id TEXT,
  abandoned_count INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS stories (
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), story_index INTEGER NOT NULL,
  story_id TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, acceptance_criteria TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending', output TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 2, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
"""


class CronKeeper(Protocol):
    """Who makes and removes the crons of a workflow as its runs come and go."""

    def ensure(self, spec: Mapping[str, Any]) -> None:
        """One cron per agent, unless any of that workflow is there."""

    def remove(self, workflow: str) -> None:
        """All crons of that workflow."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent is given: a step of a run, its resolved input, and in a loop the story.

    Attributes:
        updated_at: the step's cell as the claim left it: another text there means that the claim is lost.
        tries: how often the step, in a loop the story, was tried before.
    """

    step_id: str
    run_id: str
    workflow: str
    step: str
    agent_id: str
    input: str
    story: str | None
    tries: int
    updated_at: str
    context: Mapping[str, Any]


class Ants:
    """Antfarm's operations on one state folder, for one thread at a time.

    Args:
        antfarm_dir: the folder of antfarm.db and events.jsonl; the database is made if absent.
        workflows: each workflow.yml as parsed, by id.
        workspaces: the folder in which each agent's workspace is ``<workflow>/agents/<agent>``.
        clock: the time that is written.
        crons: told when a workflow's crons are due or to go.
        new_id: makes row ids.
        first_number: the first run's number.
    """

    def __init__(
        self,
        antfarm_dir: Path,
        workflows: Mapping[str, Mapping[str, Any]],
        workspaces: Path,
        *,
        clock: Clock,
        crons: CronKeeper,
        new_id: Callable[[], str],
        first_number: int = 1,
    ) -> None:
        self._first_number = first_number
        self.workflows = workflows
        self._database = antfarm_dir / "antfarm.db"
        self._events = antfarm_dir / "events.jsonl"
        self._workspaces = workspaces
        self._clock = clock
        self._crons = crons
        self._new_id = new_id
        self._held_events: list[str] | None = None
        # Antfarm itself waits for no lock; but agents of a demo that failed by chance would be a puzzle.
        self.connection = sqlite3.connect(
            self._database, isolation_level=None, timeout=1.0, check_same_thread=False
        )
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.executescript(_SCHEMA)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Everything inside is written in one go, events in the order of their times: for making a past."""
        self._held_events = []
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")
            # Each line begins with its `ts`, always of the same length.
            lines, self._held_events = sorted(self._held_events, key=lambda line: line[:33]), None
            self._append(lines)

    # ------------------------------------------------------------ Antfarm's operations

    def start_run(self, workflow: str, task: str) -> str:
        """Start a run; returns its id. Its crons are made if the workflow has none."""
        (number,) = self.connection.execute(
            "SELECT coalesce(max(run_number) + 1, ?) FROM runs", (self._first_number,)
        ).fetchone()
        move = engine.start(self.workflows[workflow], task, int(number), self._new_id)
        self._apply(move)
        self._crons.ensure(self.workflows[workflow])
        return str(move.answer["runId"])

    def peek(self, agent_id: str) -> bool:
        """Whether that agent has a pending or waiting step in a running run."""
        found = self.connection.execute(
            "SELECT 1 FROM steps s JOIN runs r ON r.id = s.run_id WHERE s.agent_id = ? "
            "AND s.status IN ('pending', 'waiting') AND r.status = 'running' LIMIT 1",
            (agent_id,),
        )
        return found.fetchone() is not None

    def claim(self, agent_id: str, run_id: str | None = None) -> Claim | None:
        """Give the agent its oldest pending step (of one run only, where named); None where it has none."""
        found = self.connection.execute(
            "SELECT s.id, s.run_id FROM steps s JOIN runs r ON r.id = s.run_id WHERE s.agent_id = ? "
            "AND s.status = 'pending' AND r.status NOT IN ('failed', 'cancelled') "
            "AND coalesce(?, r.id) = r.id ORDER BY s.rowid LIMIT 1",
            (agent_id, run_id),
        ).fetchone()
        if found is None:
            return None
        step_id, run_id = found
        claimed = engine.claim(self.rows(run_id), step_id, self._read_progress(run_id))
        self._finish(run_id, claimed.move)
        if claimed.input is None:
            return None
        rows = self.rows(run_id)
        step = rows.step(step_id)
        assert step is not None
        story = rows.story(str(step["current_story_id"]))
        return Claim(
            step_id=step_id,
            run_id=run_id,
            workflow=str(rows.run["workflow_id"]),
            step=str(step["step_id"]),
            agent_id=agent_id,
            input=claimed.input,
            story=None if story is None else str(story["story_id"]),
            tries=int((story or step)["retry_count"] or 0),
            updated_at=str(step["updated_at"]),
            context=json.loads(str(rows.run["context"])),
        )

    def complete(self, step_id: str, output: str) -> Mapping[str, Any]:
        """The agent hands in its output; returns Antfarm's answer.

        Raises:
            engine.NotAllowed, engine.BadStories: the report is refused, nothing is written.
        """
        rows = self._rows_of_step(step_id)
        return self._finish(str(rows.run["id"]), engine.complete(rows, step_id, output, self._new_id))

    def holds(self, claim: Claim) -> bool:
        """Whether the step is still claimed as it was: nobody reset it, reported on it or ended its run."""
        found = self.connection.execute(
            "SELECT 1 FROM steps s JOIN runs r ON r.id = s.run_id WHERE s.id = ? AND s.status = 'running' "
            "AND s.updated_at = ? AND r.status = 'running'",
            (claim.step_id, claim.updated_at),
        )
        return found.fetchone() is not None

    def fail(self, step_id: str, reason: str) -> Mapping[str, Any]:
        """The agent gives up on its step; returns Antfarm's answer.

        Raises:
            engine.NotAllowed: the report is refused, nothing is written.
        """
        rows = self._rows_of_step(step_id)
        return self._finish(str(rows.run["id"]), engine.fail(rows, step_id, reason))

    def stop(self, run_id: str) -> None:
        """Somebody stops the run: it is cancelled, its open steps fail, stories stay as they are."""
        rows = self.rows(run_id)
        writes = [engine.RowWrite("runs", run_id, {"status": "cancelled"})]
        writes += [
            engine.RowWrite("steps", str(step["id"]), {"status": "failed", "output": "Cancelled by user"})
            for step in rows.steps
            if step["status"] in ("waiting", "pending", "running")
        ]
        event = {
            "event": "run.failed",
            "runId": run_id,
            "workflowId": rows.run["workflow_id"],
            "detail": "Cancelled by user",
        }
        self._finish(run_id, engine.Move(tuple(writes), (event,), ended=True))

    # ------------------------------------------------------------ rows and files

    def rows(self, run_id: str) -> RunRows:
        """The run's rows as they stand."""
        return rows_in(self.connection, self._database, run_id)

    def progress_file(self, run_id: str) -> Path | None:
        """Where the run's progress file is to be: with the agent of its first loop; None without a loop."""
        found = self.connection.execute(
            "SELECT r.workflow_id, s.agent_id FROM steps s JOIN runs r ON r.id = s.run_id "
            "WHERE s.run_id = ? AND s.type = 'loop' ORDER BY s.step_index LIMIT 1",
            (run_id,),
        ).fetchone()
        if found is None:
            return None
        workflow, agent_id = str(found[0]), str(found[1])
        agent = agent_id.removeprefix(f"{workflow}_")
        return self._workspaces / workflow / "agents" / agent / f"progress-{run_id}.txt"

    def forget(self, keep: int) -> None:
        """Delete the oldest ended runs, with their archived progress, until only `keep` of them are left."""
        ended = self.connection.execute(
            "SELECT id FROM runs WHERE status <> 'running' ORDER BY rowid DESC LIMIT -1 OFFSET ?", (keep,)
        ).fetchall()
        for (run_id,) in ended:
            progress = self.progress_file(run_id)
            for table, column in (("stories", "run_id"), ("steps", "run_id"), ("runs", "id")):
                self.connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (run_id,))  # noqa: S608
            if progress is not None:
                progress.unlink(missing_ok=True)
                archived = progress.parent / "archive" / run_id
                (archived / "progress.txt").unlink(missing_ok=True)
                if archived.is_dir():
                    archived.rmdir()

    def _rows_of_step(self, step_id: str) -> RunRows:
        found = self.connection.execute("SELECT run_id FROM steps WHERE id = ?", (step_id,)).fetchone()
        if found is None:
            raise engine.NotAllowed(f"Step not found: {step_id}")
        return self.rows(found[0])

    def _finish(self, run_id: str, move: engine.Move) -> Mapping[str, Any]:
        """Apply a move; when it ended the run, archive its progress and take an idle workflow's crons."""
        self._apply(move)
        if move.ended:
            (workflow, status) = self.connection.execute(
                "SELECT workflow_id, status FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if status == "completed":
                self._archive_progress(run_id)
            running = self.connection.execute(
                "SELECT 1 FROM runs WHERE workflow_id = ? AND status = 'running'", (workflow,)
            ).fetchone()
            if running is None:
                self._crons.remove(workflow)
        return move.answer

    def _apply(self, move: engine.Move) -> None:
        now = self._clock.now()
        for write in move.writes:
            values: dict[str, SqlValue] = dict(write.values)
            if write.insert:
                values["created_at"] = values["updated_at"] = iso(now)
                names, marks = ", ".join(values), ", ".join("?" * len(values))
                statement = f"INSERT INTO {write.table} ({names}) VALUES ({marks})"  # noqa: S608
                self.connection.execute(statement, tuple(values.values()))
            else:
                values["updated_at"] = sqlite_now(now)
                assignments = ", ".join(f"{name} = ?" for name in values)
                statement = f"UPDATE {write.table} SET {assignments} WHERE id = ?"  # noqa: S608
                self.connection.execute(statement, (*values.values(), write.row))
        lines = [
            json.dumps({"ts": iso(now), **event}, ensure_ascii=False, separators=(",", ":"))
            for event in move.events
        ]
        if self._held_events is None:
            self._append(lines)
        else:
            self._held_events += lines

    def _append(self, lines: list[str]) -> None:
        if not lines:
            return
        if self._events.exists() and self._events.stat().st_size > EVENTS_LIMIT:
            self._events.replace(self._events.with_name("events.jsonl.1"))
        with self._events.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def _read_progress(self, run_id: str) -> str | None:
        path = self.progress_file(run_id)
        return path.read_text(encoding="utf-8") if path is not None and path.exists() else None

    def _archive_progress(self, run_id: str) -> None:
        path = self.progress_file(run_id)
        if path is not None and path.exists():
            archived = path.parent / "archive" / run_id
            archived.mkdir(parents=True, exist_ok=True)
            path.replace(archived / "progress.txt")
