"""An agent reports on the step it claimed: done, or failed."""

from __future__ import annotations

import json
from collections.abc import Callable

from farmtui.antfarm.engine.claims import verify_loop
from farmtui.antfarm.engine.moves import Move, MoveBuilder, NotAllowed, count, loop_of
from farmtui.antfarm.engine.outputs import parse_keys, parse_stories
from farmtui.antfarm.rows import Row, RunRows

STORY_RETRIES = 2
_NOTHING = {"advanced": False, "runCompleted": False}


def complete(rows: RunRows, step_id: str, output: str, new_id: Callable[[], str]) -> Move:
    """The agent hands in its output; keys go into the context, stories into their table, the run moves on.

    On a failed run nothing is written and the answer says so, as Antfarm does.

    Args:
        new_id: makes ids for stories.

    Raises:
        NotAllowed: there is no such step, or it is not running.
        BadStories: the list of stories cannot be taken: nothing of the output is.
    """
    step = rows.step(step_id)
    if step is None:
        raise NotAllowed(f"Step not found: {step_id}")
    if rows.run["status"] == "failed":
        return Move(answer=_NOTHING)
    story = rows.story(str(step["current_story_id"]))
    if step["status"] != "running" or (step["type"] == "loop" and story is None):
        raise NotAllowed(f"step {step['step_id']} is {step['status']}, not at work: it was reported before")
    output = output.strip()
    build = MoveBuilder(rows)
    keys, stories = parse_keys(output), parse_stories(output)
    build.context |= keys
    build.save_context()
    for index, new in enumerate(stories, start=len(rows.stories)):
        build.insert(
            "stories",
            new_id(),
            run_id=rows.run["id"],
            story_index=index,
            story_id=new.story_id,
            title=new.title,
            description=new.description,
            acceptance_criteria=json.dumps(new.criteria, ensure_ascii=False),
            status="pending",
            max_retries=STORY_RETRIES,
        )
    if story is not None and step["type"] == "loop":
        return _story_done(build, step, story, output)
    loop = verify_loop(rows, step)
    if loop is not None:
        return _verified(build, step, loop, output, keys)
    build.set_step(step, status="done", output=output)
    build.event("step.done", step["step_id"])
    return _answer(build, *build.advance((step,)))


def fail(rows: RunRows, step_id: str, reason: str) -> Move:
    """The agent gives up: tried again while retries are left, else step and run fail.

    In a loop the story's counter counts. The reason of an attempt that is tried again is kept nowhere.

    Raises:
        NotAllowed: there is no such step, or it is not running.
    """
    step = rows.step(step_id)
    if step is None:
        raise NotAllowed(f"Step not found: {step_id}")
    if step["status"] != "running":
        raise NotAllowed(f"step {step['step_id']} is {step['status']}, not running")
    build = MoveBuilder(rows)
    story = rows.story(str(step["current_story_id"])) if step["type"] == "loop" else None
    counted = step if story is None else story
    tries = count(counted["retry_count"]) + 1
    retrying = tries <= count(counted["max_retries"])
    status = "pending" if retrying else "failed"
    output = {} if retrying else {"output": reason}
    if story is None:
        build.set_step(step, status=status, retry_count=tries, **output)
    else:
        build.set_story(story, status=status, retry_count=tries)
        build.set_step(step, status=status, current_story_id=None, **output)
    if not retrying:
        if story is not None:
            build.event(
                "story.failed",
                step["id"],
                storyId=story["story_id"],
                storyTitle=story["title"],
                detail=reason,
            )
        build.event("step.failed", step["id"], detail=reason)
        build.fail_run("Step retries exhausted" if story is None else "Story retries exhausted")
    return build.move({"retrying": retrying, "runFailed": not retrying})


def _story_done(build: MoveBuilder, step: Row, story: Row, output: str) -> Move:
    build.set_story(story, status="done", output=output)
    build.event("story.done", step["step_id"], storyId=story["story_id"], storyTitle=story["title"])
    build.set_step(step, output=output, current_story_id=None)
    loop = loop_of(step)
    name = loop.get("verifyStep") if loop.get("verifyEach") else None
    verify = next((row for row in build.rows.steps if name and row["step_id"] == name), None)
    if verify is not None:
        build.set_step(verify, status="pending")
        return _answer(build)
    return _next_story(build, step, (step,), tuple(row for row in build.rows.stories if row is not story))


def _verified(build: MoveBuilder, step: Row, loop: Row, output: str, keys: dict[str, str]) -> Move:
    """A verifier's answer: exactly ``STATUS: retry`` sends the story back, anything else passes it."""
    build.set_step(step, status="waiting", output=output)
    if keys.get("status", "").lower() == "retry":
        return _sent_back(build, step, loop, output, keys)
    build.event("story.verified", step["step_id"])
    build.context.pop("verify_feedback", None)
    build.save_context()
    return _next_story(build, loop, (loop, step), build.rows.stories)


def _sent_back(build: MoveBuilder, step: Row, loop: Row, output: str, keys: dict[str, str]) -> Move:
    story = _story_to_verify(build)
    if story is None:
        raise NotAllowed(f"no done story that step {step['step_id']} could send back")
    tries = count(story["retry_count"]) + 1
    if tries > count(story["max_retries"]):
        build.set_story(story, status="failed", retry_count=tries)
        build.set_step(loop, status="failed")
        build.event("story.failed", step["step_id"])
        build.fail_run("Verification retries exhausted")
        return _answer(build)
    feedback = keys.get("issues") or output
    build.set_story(story, status="pending", retry_count=tries)
    build.context["verify_feedback"] = feedback
    build.save_context()
    build.set_step(loop, status="pending")
    build.event("story.retry", step["step_id"], detail=feedback)
    return _answer(build)


def _story_to_verify(build: MoveBuilder) -> Row | None:
    """The done story that the loop's last claim named, else the one that was done last."""
    done = [row for row in build.rows.stories if row["status"] == "done"]
    named = build.context.get("current_story_id")
    last = max(done, key=lambda row: str(row["updated_at"]), default=None)
    return next((row for row in done if row["story_id"] == named), last)


def _next_story(build: MoveBuilder, loop: Row, finished: tuple[Row, ...], stories: tuple[Row, ...]) -> Move:
    """The loop goes on with its next story; with none left `finished` steps are done and the run moves on."""
    if any(story["status"] == "pending" for story in stories):
        build.set_step(loop, status="pending")
        return _answer(build)
    for step in finished:
        build.set_step(step, status="done")
    return _answer(build, *build.advance(finished))


def _answer(build: MoveBuilder, advanced: bool = False, completed: bool = False) -> Move:
    return build.move({"advanced": advanced, "runCompleted": completed})
