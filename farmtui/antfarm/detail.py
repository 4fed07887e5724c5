"""What is read when someone looks at one run: context, inputs, outputs, events, progress."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from farmtui.antfarm.events import events_of
from farmtui.antfarm.progress import ProgressError, read_progress
from farmtui.antfarm.queries import Queries
from farmtui.antfarm.records import Raw, run_of, step_of, story_of, with_children
from farmtui.antfarm.rows import NoSuchRun
from farmtui.antfarm.schema import (
    Unreadable,
    connect_ro,
    decode,
    readable,
    schema_of,
    selection,
    snapshot,
    text_of,
)
from farmtui.antfarm.workflows import short_agent
from farmtui.paths import FarmPaths
from farmtui.state import Agent, Event, Progress, Run, RunDetail, StepText, Workflow

# No agent writes so much; whoever fills a cell with a gigabyte does not fill our memory too.
LONGEST_TEXT = 16 * 1024 * 1024
_SEPARATORS = "_-/"


def read_detail(
    paths: FarmPaths,
    run: Run,
    agents: Mapping[str, Agent],
    now: datetime,
    workflow: Workflow | None = None,
) -> RunDetail:
    """Read one run as it is now. Blocks, for as long as its texts are.

    Args:
        run: as last read; only its id and what is known of its size are used.
        agents: of openclaw.json, by id: where the workspaces are.
        now: put into `read_at`.
        workflow: as installed: where a workspace is that openclaw.json does not tell.

    Raises:
        NoSuchRun: the run is gone.
        Unreadable: the database cannot be read.
    """
    found, context_text, step_texts, story_outputs = _read_rows(paths.database.path, run)
    context, context_error = parse_context(context_text)
    progress, progress_error = progress_of(found, agents, paths.state_dir.path, workflow)
    return RunDetail(
        run=found,
        context=context,
        context_error=context_error,
        step_texts=step_texts,
        story_outputs=story_outputs,
        events=_events(paths.events.path, found.id),
        progress=progress,
        progress_error=progress_error,
        read_at=now,
    )


def read_contexts(path: Path, run_ids: Iterable[str]) -> tuple[Mapping[str, Any], ...]:
    """The contexts of these runs, as far as there are any.

    Raises:
        Unreadable: the database cannot be read.
    """
    found: list[Mapping[str, Any]] = []
    with readable(path), closing(connect_ro(path)) as connection, snapshot(connection):
        listed = selection(schema_of(connection, path)["runs"], ("context",), {"context": LONGEST_TEXT})
        for run_id in dict.fromkeys(run_ids):
            query = f"SELECT {listed} FROM runs WHERE id = ?"  # noqa: S608 (our own names)
            found += (parse_context(text_of(cell))[0] for (cell,) in connection.execute(query, (run_id,)))
    return tuple(found)


def parse_context(text: str) -> tuple[Mapping[str, Any], str | None]:
    """`runs.context` as a mapping, and why it is empty where it is no JSON object."""
    if not text.strip():
        return MappingProxyType({}), "the context is empty: it should be a JSON object"
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError) as error:
        return MappingProxyType({}), f"the context is no JSON: {error}"
    if not isinstance(loaded, dict):
        return MappingProxyType({}), "the context is no JSON object"
    return loaded, None


def progress_of(
    run: Run, agents: Mapping[str, Agent], state_dir: Path, workflow: Workflow | None
) -> tuple[Progress | None, str | None]:
    """The progress file of a run whose steps are filled in, and why it could not be read."""
    loop = next((step for step in run.steps if step.type == "loop"), None)
    if loop is None:
        return None, None
    agent = agent_of(loop.agent_id, run.workflow, agents)
    told = agent.workspace if agent is not None else None
    workspace = Path(told) if told else _installed_workspace(loop.agent_id, run, state_dir, workflow)
    if workspace is None:
        return None, f"no workspace is known for agent {loop.agent_id}: openclaw.json has none"
    try:
        return read_progress(run.id, workspace), None
    except ProgressError as error:
        return None, str(error)


def _installed_workspace(agent_id: str, run: Run, state_dir: Path, workflow: Workflow | None) -> Path | None:
    """The workspace where Antfarm makes it, for want of a config that tells; None where there is none."""
    name = short_agent(agent_id, run.workflow)
    spec = workflow.agent(name) if workflow is not None else None
    below = Path(run.workflow, spec.base_dir if spec is not None and spec.base_dir else f"agents/{name}")
    if below.is_absolute() or ".." in below.parts or "\0" in str(below):
        return None
    folder = state_dir / "workspaces" / "workflows" / below
    try:
        return folder if folder.is_dir() else None
    except OSError:
        return None


def agent_of(agent_id: str, workflow: str, agents: Mapping[str, Agent]) -> Agent | None:
    """The agent of that id, however the workflow is set apart from the agent's own name in either place."""
    if agent_id in agents:
        return agents[agent_id]
    for separator in _SEPARATORS:
        if agent_id.startswith(workflow + separator):
            name = agent_id[len(workflow) + 1 :]
            spelled = (f"{workflow}{other}{name}" for other in _SEPARATORS)
            return next((agents[other] for other in spelled if other in agents), None)
    return None


def _read_rows(path: Path, run: Run) -> tuple[Run, str, dict[str, StepText], dict[str, str | None]]:
    with readable(path), closing(connect_ro(path)) as connection, snapshot(connection):
        columns = schema_of(connection, path)
        queries = Queries(connection, columns)
        # Long texts are where bad UTF-8 is: no second try, decode at once.
        connection.text_factory = decode
        rows = queries.run_by_id(run.id)
        if not rows:
            raise NoSuchRun(f"no run {run.id} in {path}")
        found = run_of(rows[0])
        steps = queries.steps_of({found.rowid: found.id})
        if run.tally is not None and run.tally.steps_total != len(steps):
            steps = queries.of("steps", [found.id])
        found = with_children(
            found,
            tuple(sorted(map(step_of, steps), key=attrgetter("index", "rowid"))),
            tuple(sorted(map(story_of, queries.of("stories", [found.id])), key=attrgetter("index", "rowid"))),
            run.tally,
        )
        context = _texts(connection, "runs", columns["runs"], ("context",), [found.rowid])
        step_texts = _texts(
            connection,
            "steps",
            columns["steps"],
            ("input_template", "expects", "output"),
            [step.rowid for step in found.steps],
        )
        outputs = _texts(
            connection, "stories", columns["stories"], ("output",), [story.rowid for story in found.stories]
        )
    return (
        found,
        text_of(context[found.rowid][0]),
        {
            step.id: StepText(text_of(given), text_of(expects), _maybe(output))
            for step in found.steps
            for given, expects, output in [step_texts[step.rowid]]
        },
        {story.id: _maybe(outputs[story.rowid][0]) for story in found.stories},
    )


def _texts(
    connection: sqlite3.Connection,
    table: str,
    columns: frozenset[str],
    names: tuple[str, ...],
    rowids: Collection[int],
) -> dict[int, Raw]:
    if not rowids:
        return {}
    listed = selection(columns, names, dict.fromkeys(names, LONGEST_TEXT))
    marks = ",".join(map(str, rowids))
    statement = f"SELECT rowid, {listed} FROM {table} WHERE rowid IN ({marks})"  # noqa: S608 (our own names)
    return {row[0]: row[1:] for row in connection.execute(statement).fetchall()}


def _maybe(value: object) -> str | None:
    return None if value is None else text_of(value)


def _events(path: Path, run_id: str) -> tuple[Event, ...]:
    try:
        return events_of(path, run_id)
    except Unreadable:
        return ()  # the event log is a source of its own, whose state says what is wrong with it
