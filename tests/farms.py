"""Small real farms built by hand, for tests that need no shared/.

``Farmyard(tmp_path)`` makes ``<tmp_path>/.openclaw`` with a WAL database in the schema of Antfarm 0.5.1,
an (absent) event log, and places for workflows and OpenClaw's config. Ages count back from `NOW`, so
judge with ``FixedClock(NOW)``:

    yard = Farmyard(tmp_path)
    run = yard.add_run("relay", "Add a button", steps=[
        StepRow("plan", status="done"),
        StepRow("implement", agent="developer", status="running", current_story="S-1", age=42 * MINUTE,
                loop={"over": "stories", "verifyEach": True, "verifyStep": "verify"}),
        StepRow("verify", agent="verifier"),
    ], stories=[StoryRow("S-1", status="running"), StoryRow("S-2")])
    yard.execute("UPDATE steps SET status = 'done' WHERE id = ?", yard.step_id(run, "plan"))
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from farmtui.clock import iso, sqlite_now
from farmtui.paths import FarmPaths, locate

NOW = datetime(2026, 2, 15, 12, 0, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

VERSIONS = ("0.1", "0.2.0", "0.2.1", "0.3.0", "0.5.1", "fork")

_TABLES = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL, task TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'running',
  context TEXT NOT NULL DEFAULT '{}', created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE steps (
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), step_id TEXT NOT NULL,
  agent_id TEXT NOT NULL, step_index INTEGER NOT NULL, input_template TEXT NOT NULL, expects TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'waiting', output TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 2, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE stories (
  id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id), story_index INTEGER NOT NULL,
  story_id TEXT NOT NULL, title TEXT NOT NULL, description TEXT NOT NULL, acceptance_criteria TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending', output TEXT, retry_count INTEGER DEFAULT 0,
  max_retries INTEGER DEFAULT 2, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
"""

# What each version adds, the way it adds it: by ALTER TABLE, so at the end of the row.
_ADDED: Mapping[str, tuple[str, ...]] = {
    "0.2.0": (
        "ALTER TABLE steps ADD COLUMN type TEXT NOT NULL DEFAULT 'single'",
        "ALTER TABLE steps ADD COLUMN loop_config TEXT",
        "ALTER TABLE steps ADD COLUMN current_story_id TEXT",
    ),
    "0.2.1": ("ALTER TABLE runs ADD COLUMN notify_url TEXT",),
    "0.3.0": ("ALTER TABLE steps ADD COLUMN abandoned_count INTEGER DEFAULT 0",),
    "0.5.1": ("ALTER TABLE runs ADD COLUMN run_number INTEGER",),
    "fork": (
        "ALTER TABLE runs ADD COLUMN project_id TEXT",
        "ALTER TABLE runs ADD COLUMN archived_at TEXT",
        "ALTER TABLE steps ADD COLUMN session_key TEXT",
        "ALTER TABLE steps ADD COLUMN claimed_at TEXT",
        "ALTER TABLE steps ADD COLUMN depends_on TEXT",
        "ALTER TABLE steps ADD COLUMN timeout_minutes INTEGER",
        "CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT)",
        "CREATE TABLE medic_checks (id TEXT PRIMARY KEY, checked_at TEXT, details TEXT)",
    ),
}
_AGENT_SEPARATOR = {"0.1": "/", "0.2.0": "/", "0.2.1": "/", "0.3.0": "-", "0.5.1": "_", "fork": "_"}


@dataclass(frozen=True)
class StepRow:
    """A step to be inserted.

    Attributes:
        name: `steps.step_id`, its name in the YAML.
        agent: the short name; the step's name where None. `agent_id` becomes ``<workflow>_<agent>``.
        loop: `loop_config` as Antfarm writes it (camelCase); implies ``type="loop"``.
        current_story: the story's "S-1": the row's id is put in.
        age: how long before NOW it was last updated.
        extra: further columns by name, or other values for those above.
    """

    name: str
    agent: str | None = None
    status: str = "waiting"
    type: str = "single"
    loop: Mapping[str, Any] | None = None
    current_story: str | None = None
    input: str = "Do this: {{task}}"
    expects: str = "STATUS: done"
    output: str | None = None
    retry_count: int = 0
    max_retries: int = 2
    abandoned_count: int = 0
    age: timedelta = MINUTE
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoryRow:
    """A story to be inserted; `age` is how long before NOW it was last updated."""

    story_id: str
    title: str = ""
    status: str = "pending"
    output: str | None = None
    retry_count: int = 0
    max_retries: int = 2
    age: timedelta = MINUTE
    extra: Mapping[str, Any] = field(default_factory=dict)


class Farmyard:
    """A state folder under `tmp` with a real database.

    Args:
        tmp: an existing folder; ``.openclaw`` is made in it.
        schema: one of `VERSIONS`: an older Antfarm's, or a fork's with more columns and tables.
        database: False leaves the database out (a farm before its first run).
    """

    def __init__(self, tmp: Path, *, schema: str = "0.5.1", database: bool = True) -> None:
        self.home = tmp
        self.schema = schema
        self.state_dir = tmp / ".openclaw"
        self.database = self.state_dir / "antfarm" / "antfarm.db"
        self.events = self.database.parent / "events.jsonl"
        self.workflows = self.database.parent / "workflows"
        self.config = self.state_dir / "openclaw.json"
        self._made = 0
        self.database.parent.mkdir(parents=True, exist_ok=True)
        if database:
            self.create_database()

    @property
    def paths(self) -> FarmPaths:
        """The farm's places, as ``--state-dir`` would find them."""
        return locate(state_dir=self.state_dir, environ={}, home=self.home)

    # ------------------------------------------------------------ the database

    def create_database(self) -> None:
        """Make the database with its tables and no rows."""
        with closing(self.connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            create_tables(connection, self.schema)

    def connect(self) -> sqlite3.Connection:
        """A connection that writes, in autocommit and without a busy time-out, as Antfarm's is."""
        connection = sqlite3.connect(self.database, isolation_level=None, timeout=0)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement, committed at once; returns its rows."""
        with closing(self.connect()) as connection:
            return connection.execute(statement, parameters).fetchall()

    def row(self, table: str, row_id: str) -> dict[str, Any]:
        """One row by its id, every column by name."""
        with closing(self.connect()) as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute(f"SELECT * FROM {table} WHERE id = ?", (row_id,)).fetchone()  # noqa: S608
            return dict(found)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of the three tables, to compare before and after."""
        with closing(self.connect()) as connection:
            return {
                table: connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()  # noqa: S608
                for table in ("runs", "steps", "stories")
            }

    def add_run(
        self,
        workflow: str,
        task: str = "Do something",
        *,
        status: str = "running",
        number: int | None = None,
        context: Mapping[str, Any] | str | None = None,
        steps: Sequence[StepRow] = (),
        stories: Sequence[StoryRow] = (),
        age: timedelta = MINUTE,
        created: timedelta | None = None,
        run_id: str | None = None,
        notify_url: str | None = None,
    ) -> str:
        """Insert a run with its steps and stories; returns the run's id.

        Args:
            number: counts up from 1 where None. `run_id`: made up, the same in each test, where None.
            context: as JSON where a mapping (with `task` added as Antfarm does), as it is where text.
            age: how long before NOW its row was last updated.
            created: how long before NOW it began; an hour more than `age` where None.
        """
        run_id = run_id or self._new_id()
        if not isinstance(context, str):
            context = json.dumps({"task": task, **(context or {})}, ensure_ascii=False)
        began = created if created is not None else age + timedelta(hours=1)
        story_ids = {story.story_id: self._new_id() for story in stories}
        with closing(self.connect()) as connection:
            connection.execute("BEGIN")
            if number is None:
                (number,) = connection.execute("SELECT count(*) + 1 FROM runs").fetchone()
            values = {
                "id": run_id,
                "workflow_id": workflow,
                "task": task,
                "status": status,
                "context": context,
                **_times(began, age),
                "notify_url": notify_url,
                "run_number": number,
            }
            _insert(connection, "runs", values)
            for index, step in enumerate(steps):
                _insert(connection, "steps", self._step(run_id, workflow, index, step, story_ids, began))
            for index, story in enumerate(stories):
                _insert(connection, "stories", _story(run_id, story_ids[story.story_id], index, story, began))
            connection.execute("COMMIT")
        return run_id

    def step_id(self, run_id: str, name: str) -> str:
        """The row id of a run's step."""
        found = self.execute("SELECT id FROM steps WHERE run_id = ? AND step_id = ?", run_id, name)
        return str(found[0][0])

    def story_id(self, run_id: str, story: str) -> str:
        """The row id of a run's story "S-1"."""
        found = self.execute("SELECT id FROM stories WHERE run_id = ? AND story_id = ?", run_id, story)
        return str(found[0][0])

    # ------------------------------------------------------------ files

    def add_events(self, *events: Mapping[str, Any], age: timedelta = MINUTE) -> None:
        """Append lines to events.jsonl; `ts` is NOW less `age` where an event names none."""
        with self.events.open("a", encoding="utf-8") as file:
            for event in events:
                line = {"ts": iso(NOW - age), **event}
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")

    def write_workflow(self, text: str, workflow: str = "relay") -> Path:
        """Install a workflow.yml; returns its path."""
        path = self.workflows / workflow / "workflow.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write openclaw.json."""
        self.config.write_text(json.dumps(config, indent=2), encoding="utf-8")

    def workspace(self, workflow: str, agent: str) -> Path:
        """The agent's workspace folder, where Antfarm puts it; made if absent."""
        path = self.state_dir / "workspaces" / "workflows" / workflow / "agents" / agent
        path.mkdir(parents=True, exist_ok=True)
        return path

    # ------------------------------------------------------------ rows

    def _new_id(self) -> str:
        self._made += 1
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"farmyard/{self._made}"))

    def _step(
        self,
        run_id: str,
        workflow: str,
        index: int,
        step: StepRow,
        story_ids: Mapping[str, str],
        began: timedelta,
    ) -> dict[str, Any]:
        story = step.current_story
        return {
            "id": self._new_id(),
            "run_id": run_id,
            "step_id": step.name,
            "agent_id": f"{workflow}{_AGENT_SEPARATOR[self.schema]}{step.agent or step.name}",
            "step_index": index,
            "input_template": step.input,
            "expects": step.expects,
            "status": step.status,
            "output": step.output,
            "retry_count": step.retry_count,
            "max_retries": step.max_retries,
            **_times(began, step.age),
            "type": "loop" if step.loop is not None else step.type,
            "loop_config": None if step.loop is None else json.dumps(step.loop),
            "current_story_id": None if story is None else story_ids.get(story, story),
            "abandoned_count": step.abandoned_count,
            **step.extra,
        }


def create_tables(connection: sqlite3.Connection, schema: str = "0.5.1") -> None:
    """The tables of one of `VERSIONS`."""
    connection.executescript(_TABLES)
    for version in VERSIONS[1 : VERSIONS.index(schema) + 1]:
        for statement in _ADDED[version]:
            connection.execute(statement)


def _story(run_id: str, row_id: str, index: int, story: StoryRow, began: timedelta) -> dict[str, Any]:
    return {
        "id": row_id,
        "run_id": run_id,
        "story_index": index,
        "story_id": story.story_id,
        "title": story.title or f"Story {story.story_id}",
        "description": f"What {story.story_id} is about",
        "acceptance_criteria": json.dumps(["It works"]),
        "status": story.status,
        "output": story.output,
        "retry_count": story.retry_count,
        "max_retries": story.max_retries,
        **_times(began, story.age),
        **story.extra,
    }


def _times(began: timedelta, age: timedelta) -> dict[str, str | None]:
    """Inserted in ISO form, updated in SQLite's, as Antfarm leaves them."""
    return {"created_at": iso(NOW - max(began, age)), "updated_at": sqlite_now(NOW - age)}


def _insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> None:
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    kept = {name: value for name, value in values.items() if name in there}
    names, marks = ", ".join(kept), ", ".join("?" * len(kept))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(kept.values()))  # noqa: S608
