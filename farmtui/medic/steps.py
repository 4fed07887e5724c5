"""What a run's steps say: which story is in hand, who waits for whom, since when a step is claimed."""

from __future__ import annotations

from datetime import datetime

from farmtui.state import Run, Step, Story

FINISHED = frozenset({"done", "skipped"})  # forks write `skipped`
OPEN = frozenset({"waiting", "pending", "running"})


def step_named(run: Run, name: str | None) -> Step | None:
    """The run's step of that name; the first where several have it."""
    return next((step for step in run.steps if step.name == name), None)


def current_story(run: Run, step: Step) -> Story | None:
    """The story that a loop step has in hand; None between stories, and for other steps."""
    if step.type != "loop" or step.current_story_id is None:
        return None
    return next((story for story in run.stories if story.id == step.current_story_id), None)


def verify_step(run: Run, step: Step) -> Step | None:
    """The step that verifies each story of this loop; None where none does."""
    if step.type != "loop" or step.loop is None or not step.loop.verify_each:
        return None
    return step_named(run, step.loop.verify_step)


def awaited_verify(run: Run, step: Step) -> Step | None:
    """The verify step that a running loop without a story waits for, pending or running; else None.

    Such a loop has nothing in hand: it is neither stale nor to be reset.
    """
    if step.status != "running" or step.current_story_id is not None:
        return None
    verify = verify_step(run, step)
    return verify if verify is not None and verify.status in ("pending", "running") else None


def claimed_at(run: Run, step: Step) -> datetime | None:
    """Since when a running step is claimed: its last change or, in a loop, its story's if that is later."""
    story = current_story(run, step)
    times = [at for at in (step.updated_at, story.updated_at if story else None) if at is not None]
    return max(times, default=None)


def changed_at(run: Run) -> datetime | None:
    """When any of the run's rows last changed; None where no time in them can be read."""
    times = [run.updated_at, *(step.updated_at for step in run.steps)]
    times += [story.updated_at for story in run.stories]
    return max((at for at in times if at is not None), default=None)


def active_step(run: Run) -> Step | None:
    """The step that a run stands at: at work, else to be claimed, else failed, else the first not done.

    A loop that waits for its verify step gives way to it. None where all are done or no steps are kept.
    """
    running = [step for step in run.steps if step.status == "running"]
    groups = (
        [step for step in running if awaited_verify(run, step) is None],
        [step for step in run.steps if step.status == "pending"],
        running,
        [step for step in run.steps if step.status == "failed"],
        [step for step in run.steps if step.status not in FINISHED],
    )
    return next((step for group in groups for step in group), None)
