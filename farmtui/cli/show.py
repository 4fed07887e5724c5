"""`farm show`: one run with everything that is kept of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Unread
from farmtui.cli.naming import find_run
from farmtui.cli.runs import summary
from farmtui.cli.show_text import show_lines
from farmtui.clock import iso, seconds_since
from farmtui.state import Event, Lane, RunDetail, Step, Story, Workflow
from farmtui.text import mask_context

if TYPE_CHECKING:
    from farmtui.farm import View

RUN_HELP = "A run's number, its id, or the first 4 characters of it or more."


def show(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)],
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show secrets in the run's context; the gateway's never are.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Long texts whole (--json always has them).")] = False,
) -> Answer:
    """Show one run: steps, stories, context, events and progress."""
    call: Call = ctx.obj
    call.begin("show", run=None, steps=[], stories=[], events=[], progress=None)
    view = call.look()
    found = find_run(view.state.runs, run)
    from farmtui.antfarm.schema import Unreadable

    try:
        detail = call.farm.detail(found.id)
    except Unreadable as error:
        raise Unread(str(error)) from None
    if not reveal:
        call.hide_secrets_in(detail.context)
    troubles = (detail.context_error, detail.progress_error)
    return Answer(
        "show",
        run_data(view, detail, reveal=reveal),
        lambda data, screen: show_lines(data, screen, full=full),
        Exit.FINE,
        (*call.source_errors(), *(trouble for trouble in troubles if trouble is not None)),
        revealed=reveal,
    )


def run_data(view: View, detail: RunDetail, *, reveal: bool) -> dict[str, Any]:
    """A run for scripts; its inputs are resolved against the masked context, unless revealed."""
    run = detail.run
    workflow = view.state.workflows.get(run.workflow)
    lane = view.judgement.lanes.get(run.id, Lane.OTHER)
    context = dict(detail.context) if reveal else mask_context(detail.context)
    progress = detail.progress
    return {
        "run": {**summary(run, lane, workflow), "context": context},
        "steps": [_step(detail, step, workflow, view.judgement.at, context=context) for step in run.steps],
        "stories": [_story(story, detail) for story in run.stories],
        "events": [_event(event, run.workflow) for event in detail.events],
        "progress": None if progress is None else {"path": progress.path, "text": progress.text},
    }


def _step(
    detail: RunDetail,
    step: Step,
    workflow: Workflow | None,
    now: datetime,
    *,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    from farmtui.antfarm.templates import missing_keys, step_input
    from farmtui.antfarm.workflows import short_agent
    from farmtui.medic.look import timeout_of
    from farmtui.medic.steps import awaited_verify, claimed_at

    texts = detail.step_texts.get(step.id)
    running = step.status == "running"
    in_hand = running and awaited_verify(detail.run, step) is None
    claimed = claimed_at(detail.run, step) if in_hand else None
    age = seconds_since(claimed, now)
    story = next((story for story in detail.run.stories if story.id == step.current_story_id), None)
    output = texts.output if texts is not None else None
    return {
        "id": step.id,
        "step_name": step.name,
        "agent": short_agent(step.agent_id, detail.run.workflow),
        "agent_id": step.agent_id,
        "index": step.index,
        "type": step.type,
        "status": step.status,
        "retry_count": step.retry_count,
        "max_retries": step.max_retries,
        "abandoned_count": step.abandoned_count,
        "current_story": story.story_id if story is not None else step.current_story_id,
        "current_story_id": step.current_story_id,
        "updated_at": iso(step.updated_at),
        "claimed_at": iso(claimed),
        "claim_age_s": None if age is None else round(age),
        "timeout_s": timeout_of(step, workflow) if running else None,
        "expects": texts.expects if texts is not None else None,
        "input": step_input(detail, step, context).text,
        "missing_keys": list(missing_keys(detail, step)),
        "output": output,
    }


def _story(story: Story, detail: RunDetail) -> dict[str, Any]:
    output = detail.story_outputs.get(story.id)
    return {
        "id": story.id,
        "story_id": story.story_id,
        "index": story.index,
        "title": story.title,
        "status": story.status,
        "retry_count": story.retry_count,
        "max_retries": story.max_retries,
        "output": output,
        "updated_at": iso(story.updated_at),
    }


def _event(event: Event, workflow: str) -> dict[str, Any]:
    from farmtui.antfarm.workflows import short_agent

    return {
        "ts": iso(event.ts),
        "event": event.event,
        "run": event.run_id,
        "workflow": event.workflow,
        "step": event.step,
        "agent": None if event.agent_id is None else short_agent(event.agent_id, workflow),
        "agent_id": event.agent_id,
        "story": event.story,
        "story_title": event.story_title,
        "detail": event.detail,
    }
