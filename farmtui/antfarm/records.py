"""Rows of runs, steps and stories → records: which small columns are read, and what odd cells become.

A raw row is a tuple that begins with the rowid; a column that a schema lacks is NULL in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from farmtui.antfarm.rows import Row, RunRows
from farmtui.antfarm.schema import cell, int_of, selection, text_of
from farmtui.clock import parse_time
from farmtui.state import LoopConfig, Run, Step, Story, Tally

Raw = tuple[Any, ...]

# Cards and tables show one line of a task; the whole of it is in the context, read when looked at.
TASK_CHARACTERS = 2_000
TITLE_CHARACTERS = 500
DEFAULT_MAX_RETRIES = 2

_RUN = ("id", "workflow_id", "task", "status", "created_at", "updated_at", "run_number")
_STEP = (
    *("id", "run_id", "step_id", "agent_id", "step_index", "status", "retry_count", "max_retries"),
    *("created_at", "updated_at", "type", "loop_config", "current_story_id", "abandoned_count"),
)
_STORY = (
    *("id", "run_id", "story_index", "story_id", "title", "status", "retry_count", "max_retries"),
    *("created_at", "updated_at"),
)
# Forks' words for a run's end.
_NORMAL = {"done": "completed", "canceled": "cancelled"}

RUN_ID = 1  # the place of id in a raw row
PARENT = 2  # of run_id in a raw step or story
INDEX = 5  # of step_index in a raw step
_SEPARATOR, _FIELD = "\x1e", "\x1f"


def run_selection(columns: frozenset[str]) -> str:
    """The column list that `run_of` understands."""
    return "rowid, " + selection(columns, _RUN, {"task": TASK_CHARACTERS})


def step_selection(columns: frozenset[str]) -> str:
    """The column list that `step_of` understands."""
    return "rowid, " + selection(columns, _STEP)


def story_selection(columns: frozenset[str]) -> str:
    """The column list that `story_of` understands."""
    return "rowid, " + selection(columns, _STORY, {"title": TITLE_CHARACTERS})


def run_of(raw: Raw) -> Run:
    """A raw run as a record, its status normalised, without steps, stories and tally."""
    rowid, row_id, workflow, task, status, created_at, updated_at, number = raw
    word = text_of(status)
    return Run(
        rowid,
        text_of(row_id),
        _number(number),
        text_of(workflow),
        text_of(task),
        _NORMAL.get(word, word),
        parse_time(cell(created_at)),
        parse_time(cell(updated_at)),
    )


def run_with_children(rows: RunRows) -> Run:
    """A run's exact rows as a record with its steps and stories; rowids are not kept."""
    steps = tuple(step_of(_raw(row, _STEP)) for row in rows.steps)
    stories = tuple(story_of(_raw(row, _STORY)) for row in rows.stories)
    return with_children(run_of(_raw(rows.run, _RUN)), steps, stories, None)


def _raw(row: Row, names: tuple[str, ...]) -> Raw:
    return (0, *(row.get(name) for name in names))


def with_children(run: Run, steps: tuple[Step, ...], stories: tuple[Story, ...], tally: Tally | None) -> Run:
    """The run with other steps, stories and tally. `dataclasses.replace` takes four times as long."""
    return Run(
        run.rowid,
        run.id,
        run.number,
        run.workflow,
        run.task,
        run.status,
        run.created_at,
        run.updated_at,
        steps,
        stories,
        tally,
    )


def step_of(raw: Raw) -> Step:
    """A raw step as a record."""
    (
        rowid, row_id, run_id, name, agent, index, status, retries, max_retries, created_at, updated_at,
        kind, loop, story, abandoned,
    ) = raw  # fmt: skip
    return Step(
        rowid=rowid,
        id=text_of(row_id),
        run_id=text_of(run_id),
        name=text_of(name),
        agent_id=text_of(agent),
        index=int_of(index),
        type=text_of(kind) or "single",
        status=text_of(status),
        retry_count=int_of(retries),
        max_retries=int_of(max_retries, DEFAULT_MAX_RETRIES),
        abandoned_count=int_of(abandoned),
        current_story_id=text_of(story) or None,
        loop=None if loop is None else loop_of(text_of(loop)),
        created_at=parse_time(cell(created_at)),
        updated_at=parse_time(cell(updated_at)),
    )


def story_of(raw: Raw) -> Story:
    """A raw story as a record."""
    rowid, row_id, run_id, index, name, title, status, retries, max_retries, created_at, updated_at = raw
    return Story(
        rowid=rowid,
        id=text_of(row_id),
        run_id=text_of(run_id),
        index=int_of(index),
        story_id=text_of(name),
        title=text_of(title),
        status=text_of(status),
        retry_count=int_of(retries),
        max_retries=int_of(max_retries, DEFAULT_MAX_RETRIES),
        created_at=parse_time(cell(created_at)),
        updated_at=parse_time(cell(updated_at)),
    )


@lru_cache(maxsize=256)
def loop_of(text: str) -> LoopConfig | None:
    """`steps.loop_config`; None where it is no JSON object."""
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    verify = loaded.get("verifyStep")
    return LoopConfig(bool(loaded.get("verifyEach")), verify if isinstance(verify, str) and verify else None)


def tally_of(steps: Iterable[Step], stories: Iterable[Story]) -> Tally:
    """The aggregate of a run whose steps and stories are at hand, the steps in order."""
    listed, told = tuple(steps), tuple(stories)
    statuses = tuple(step.status for step in listed)
    return Tally(
        steps_done=statuses.count("done"),
        steps_total=len(statuses),
        stories_done=sum(story.status == "done" for story in told),
        stories_total=len(told),
        statuses=statuses,
        failed_steps=tuple(step.name for step in listed if step.status == "failed"),
    )


def steps_aggregate(columns: frozenset[str]) -> str:
    """An SQL expression that gathers a group's steps into one text for `tally_from`.

    It takes only columns that stand before `output` in the row: behind it, long outputs have to be
    walked through.
    """
    index = "ifnull(step_index, 0)" if "step_index" in columns else "rowid"
    name = "ifnull(step_id, '')" if "step_id" in columns else "''"
    return (
        f"group_concat({index} || char(31) || ifnull(status, '')"
        f" || CASE status WHEN 'failed' THEN char(31) || {name} ELSE '' END, char(30))"
    )


@lru_cache(maxsize=4096)
def tally_from(steps: str, stories_done: int, stories_total: int) -> Tally:
    """A Tally from what `steps_aggregate` gathered. Most ended runs look alike and share one."""
    gathered = sorted((item.split(_FIELD) for item in steps.split(_SEPARATOR)), key=_index) if steps else []
    statuses = tuple(item[1] for item in gathered if len(item) > 1)
    return Tally(
        steps_done=statuses.count("done"),
        steps_total=len(statuses),
        stories_done=stories_done,
        stories_total=stories_total,
        statuses=statuses,
        failed_steps=tuple(item[2] for item in gathered if len(item) > 2),
    )


def _index(item: list[str]) -> int:
    return int_of(item[0])


def _number(value: object) -> int | None:
    if isinstance(value, int):
        return value
    digits = text_of(value)
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else None
