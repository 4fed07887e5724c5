"""What a rule answers: the writes and events of one move, and the steps that every move is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farmtui.antfarm.rows import Row, RunRows
from farmtui.antfarm.schema import SqlValue


class NotAllowed(Exception):
    """The run or step is not in a state for this move. The message says in which it is."""


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row to be inserted (`insert`), or its named columns set.

    `updated_at`, and `created_at` of an insert, are whoever writes it to add: they are the moment of writing.
    """

    table: str
    row: str
    values: Mapping[str, SqlValue]
    insert: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """Everything one operation does to one run.

    Attributes:
        writes: in order.
        events: lines for events.jsonl, in order, without `ts`.
        answer: what the operation tells its caller, as Antfarm's CLI prints it.
        ended: the run ended by it: its crons go unless another run of the workflow is running.
    """

    writes: tuple[RowWrite, ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)
    ended: bool = False


class MoveBuilder:
    """Collects the writes and events of one move on one run."""

    def __init__(self, rows: RunRows) -> None:
        self.rows = rows
        self.context = context_of(rows)
        self._writes: list[RowWrite] = []
        self._events: list[Mapping[str, Any]] = []
        self._ended = False

    def set_step(self, step: Row, **values: SqlValue) -> None:
        self._writes.append(RowWrite("steps", str(step["id"]), values))

    def set_story(self, story: Row, **values: SqlValue) -> None:
        self._writes.append(RowWrite("stories", str(story["id"]), values))

    def insert(self, table: str, row: str, **values: SqlValue) -> None:
        self._writes.append(RowWrite(table, row, {"id": row, **values}, insert=True))

    def save_context(self) -> None:
        """Write the context as it stands in `self.context`."""
        self._set_run(context=json.dumps(self.context, ensure_ascii=False, separators=(",", ":")))

    def event(self, name: str, step: SqlValue = None, **more: SqlValue) -> None:
        """An event of this run; `step` is the step's name, or its id where Antfarm writes that."""
        line: dict[str, Any] = {
            "event": name,
            "runId": self.rows.run["id"],
            "workflowId": self.rows.run["workflow_id"],
        }
        if step is not None:
            line["stepId"] = step
        line.update({key: value for key, value in more.items() if value is not None})
        self._events.append(line)

    def fail_run(self, detail: str) -> None:
        self._set_run(status="failed")
        self.event("run.failed", detail=detail)
        self._ended = True

    def advance(self, done: tuple[Row, ...]) -> tuple[bool, bool]:
        """Move the run on after `done` steps got done: (the next one is pending, the run is completed).

        The next waiting step becomes pending, whatever else is active; with none left and none failed or
        active the run is completed.
        """
        finished = {step["id"] for step in done}
        others = [step for step in self.rows.steps if step["id"] not in finished]
        waiting = next((step for step in others if step["status"] == "waiting"), None)
        if waiting is not None:
            self.event("pipeline.advanced", waiting["step_id"])
            self.set_step(waiting, status="pending")
            self.event("step.pending", waiting["step_id"])
            return True, False
        if any(step["status"] in ("failed", "pending", "running") for step in others):
            return False, False
        self._set_run(status="completed")
        self.event("run.completed")
        self._ended = True
        return False, True

    def move(self, answer: Mapping[str, Any]) -> Move:
        return Move(tuple(self._writes), tuple(self._events), answer, self._ended)

    def _set_run(self, **values: SqlValue) -> None:
        self._writes.append(RowWrite("runs", str(self.rows.run["id"]), values))


def context_of(rows: RunRows) -> dict[str, Any]:
    """The run's context; {} where the cell holds no JSON object."""
    try:
        context = json.loads(str(rows.run["context"]))
    except ValueError:
        return {}
    return context if isinstance(context, dict) else {}


def loop_of(step: Row) -> Mapping[str, Any]:
    """A step's `loop_config`; {} where it has none."""
    try:
        loop = json.loads(str(step.get("loop_config") or "{}"))
    except ValueError:
        return {}
    return loop if isinstance(loop, dict) else {}


def count(value: SqlValue) -> int:
    """A counter's cell as a number; 0 where it is none."""
    return int(value) if isinstance(value, int | float) else 0
