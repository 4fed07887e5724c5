"""Starting a run, and giving a pending step to the agent that asks for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farmtui.antfarm.engine.moves import Move, MoveBuilder, NotAllowed, RowWrite, loop_of
from farmtui.antfarm.rendering import resolve
from farmtui.antfarm.rows import Row, RunRows

_LOOP_KEYS = {
    "over": "over",
    "completion": "completion",
    "fresh_session": "freshSession",
    "verify_each": "verifyEach",
    "verify_step": "verifyStep",
}


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim's move; `input` is None where there was nothing to do after all."""

    move: Move
    input: str | None


def start(spec: Mapping[str, Any], task: str, number: int, new_id: Callable[[], str]) -> Move:
    """A run of a workflow begins: its first step pending, the others waiting.

    Args:
        spec: the workflow.yml as parsed.
        number: the run's number.
        new_id: makes row ids.

    Returns:
        The move; its answer holds the run's id as `runId`.
    """
    run_id, workflow = new_id(), str(spec["id"])
    context = {"task": task, **(spec.get("context") or {})}
    run = {
        "id": run_id,
        "workflow_id": workflow,
        "task": task,
        "status": "running",
        "context": json.dumps(context, ensure_ascii=False, separators=(",", ":")),
        "notify_url": (spec.get("notifications") or {}).get("url"),
        "run_number": number,
    }
    writes = [RowWrite("runs", run_id, run, insert=True)]
    for index, step in enumerate(spec["steps"]):
        row = _new_step(run_id, workflow, index, step, new_id())
        writes.append(RowWrite("steps", str(row["id"]), row, insert=True))
    event = {"event": "run.started", "runId": run_id, "workflowId": workflow}
    return Move(tuple(writes), (event,), {"runId": run_id, "number": number})


def claim(rows: RunRows, step_id: str, progress: str | None) -> Claimed:
    """An agent takes a pending step, in a loop together with its next pending story.

    Args:
        progress: the text of the progress file; None where there is none.

    Raises:
        NotAllowed: the step is not pending, or the run has ended.
    """
    step = rows.step(step_id)
    if step is None or step["status"] != "pending":
        raise NotAllowed(f"step {step_id} is {step['status'] if step else 'gone'}, not pending")
    if rows.run["status"] in ("failed", "cancelled"):
        raise NotAllowed(f"run {rows.run['id']} is {rows.run['status']}")
    build = MoveBuilder(rows)
    # Every claim knows these two; only a loop's claim writes them down.
    build.context |= {"run_id": rows.run["id"], "has_frontend_changes": "false"}
    if step["type"] != "loop":
        build.set_step(step, status="running")
        build.event("step.running", step["step_id"], agentId=step["agent_id"])
        return _claimed(build, step)
    story = next((row for row in rows.stories if row["status"] == "pending"), None)
    if story is None:
        _end_loop(build, step)
        return Claimed(build.move({}), None)
    build.set_story(story, status="running")
    build.set_step(step, status="running", current_story_id=story["id"])
    build.context |= _story_context(rows, story, progress)
    build.context.setdefault("verify_feedback", "")
    build.save_context()
    build.event("step.running", step["step_id"], agentId=step["agent_id"])
    build.event(
        "story.started",
        step["step_id"],
        agentId=step["agent_id"],
        storyId=story["story_id"],
        storyTitle=story["title"],
    )
    return _claimed(build, step)


def _claimed(build: MoveBuilder, step: Row) -> Claimed:
    text = resolve(str(step["input_template"]), build.context).text
    answer = {"stepId": step["id"], "runId": step["run_id"], "input": text}
    return Claimed(build.move(answer), text)


def _end_loop(build: MoveBuilder, step: Row) -> None:
    """A loop without a pending story: failed if a story is, else done and on."""
    if any(story["status"] == "failed" for story in build.rows.stories):
        build.set_step(step, status="failed")
        build.event("step.failed", step["id"])
        build.fail_run("Loop step has failed stories")
        return
    build.set_step(step, status="done")
    build.event("step.done", step["step_id"], agentId=step["agent_id"])
    build.advance((step,))


def _story_context(rows: RunRows, story: Row, progress: str | None) -> dict[str, Any]:
    criteria = json.loads(str(story["acceptance_criteria"]))
    listed = "\n".join(f"  {number}. {text}" for number, text in enumerate(criteria, 1))
    done = [row for row in rows.stories if row["status"] == "done"]
    left = [row for row in rows.stories if row["status"] in ("pending", "running")]
    title = story["title"]
    return {
        "current_story": f"Story {story['story_id']}: {title}\n\n{story['description']}\n\n"
        f"Acceptance Criteria:\n{listed}",
        "current_story_id": story["story_id"],
        "current_story_title": title,
        "completed_stories": "\n".join(f"- {row['story_id']}: {row['title']}" for row in done)
        or "(none yet)",
        "stories_remaining": str(len(left)),
        "progress": "(no progress yet)" if progress is None else progress,
    }


def _new_step(
    run_id: str, workflow: str, index: int, step: Mapping[str, Any], row_id: str
) -> dict[str, str | int | None]:
    on_fail = step.get("on_fail")
    limit = step.get("max_retries", step.get("retries"))
    if limit is None and isinstance(on_fail, Mapping):
        limit = on_fail.get("max_retries")
    loop = step.get("loop")
    config = {ours: loop[theirs] for theirs, ours in _LOOP_KEYS.items() if theirs in loop} if loop else None
    return {
        "id": row_id,
        "run_id": run_id,
        "step_id": step["id"],
        "agent_id": f"{workflow}_{step['agent']}",
        "step_index": index,
        "input_template": step["input"],
        "expects": step.get("expects") or "",
        "status": "pending" if index == 0 else "waiting",
        "max_retries": 2 if limit is None else int(limit),
        "type": step.get("type") or "single",
        "loop_config": None if config is None else json.dumps(config, separators=(",", ":")),
    }


def verify_loop(rows: RunRows, step: Row) -> Row | None:
    """The loop that waits for this step to verify its last story; None where there is none."""
    return next(
        (
            loop
            for loop in rows.steps
            if loop["type"] == "loop"
            and loop["status"] == "running"
            and loop_of(loop).get("verifyEach")
            and loop_of(loop).get("verifyStep") == step["step_id"]
        ),
        None,
    )
