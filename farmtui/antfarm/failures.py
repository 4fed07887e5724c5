"""What failed runs said last, for many runs in one look: the inbox of escalations needs no more of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from farmtui.antfarm.schema import connect_ro, readable, schema_of, selection, snapshot, text_of


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of a failed run.

    Attributes:
        story: "S-1" of the story at which a loop failed.
        output: the last that was handed in: the failed story's, else the failed step's; None if nothing was.
    """

    story: str | None
    output: str | None


def read_failures(path: Path, run_ids: Collection[str]) -> Mapping[str, Failure]:
    """How these runs failed, by run id; runs without a failed step or story have an empty one.

    Both tables are gone through once, however many runs are asked for: run_id has no index.

    Raises:
        Unreadable: the database cannot be read.
    """
    if not run_ids:
        return {}
    wanted = frozenset(run_ids)
    with readable(path), closing(connect_ro(path)) as connection, snapshot(connection):
        columns = schema_of(connection, path)
        steps: dict[str, tuple[str | None, bool]] = {}
        stories: dict[str, tuple[str, str | None]] = {}
        if {"run_id", "status"} <= columns["steps"]:
            listed = selection(columns["steps"], ("run_id", "output", "type", "step_index"))
            query = f"SELECT {listed} FROM steps WHERE status = 'failed' ORDER BY step_index DESC"  # noqa: S608
            for run_id, output, kind, _ in connection.execute(query):
                if run_id in wanted:
                    steps[run_id] = (_maybe(output), kind == "loop")
        if {"run_id", "status", "story_id"} <= columns["stories"]:
            listed = selection(columns["stories"], ("run_id", "story_id", "output", "story_index"))
            query = f"SELECT {listed} FROM stories WHERE status = 'failed' ORDER BY story_index DESC"  # noqa: S608
            for run_id, story, output, _ in connection.execute(query):
                if run_id in wanted:
                    stories[run_id] = (text_of(story), _maybe(output))
    return {run_id: _failure(steps.get(run_id), stories.get(run_id)) for run_id in wanted}


def _failure(step: tuple[str | None, bool] | None, story: tuple[str, str | None] | None) -> Failure:
    step_output, in_loop = step if step is not None else (None, False)
    if story is None or not in_loop:
        return Failure(None, step_output)
    name, output = story
    return Failure(name, output or step_output)


def _maybe(value: object) -> str | None:
    return None if value is None else text_of(value)
