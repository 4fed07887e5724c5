"""`farm show`: one run with everything that is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from farmtui.text import MASK, is_secret_key, mask_context

if TYPE_CHECKING:
    from farmtui.farm import View

RUN_HELP = "A run's number, its id, or the first 4 characters of it or more."
# A secret value shorter than this is in too many words to be looked for in texts.
_LEAST_SECRET = 6


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
    """A run for scripts. What its context holds in secret is masked in every text, unless revealed."""
    run = detail.run
    workflow = view.state.workflows.get(run.workflow)
    lane = view.judgement.lanes.get(run.id, Lane.OTHER)
    context = dict(detail.context) if reveal else mask_context(detail.context)
    hide = _nothing if reveal else _hider(detail.context)
    progress = detail.progress
    return {
        "run": {**summary(run, lane, workflow), "context": context},
        "steps": [
            _step(detail, step, workflow, view.judgement.at, context=context, hide=hide) for step in run.steps
        ],
        "stories": [_story(story, detail, hide) for story in run.stories],
        "events": [_event(event, run.workflow, hide) for event in detail.events],
        "progress": None if progress is None else {"path": progress.path, "text": hide(progress.text)},
    }


def _step(
    detail: RunDetail,
    step: Step,
    workflow: Workflow | None,
    now: datetime,
    *,
    context: Mapping[str, Any],
    hide: Callable[[str], str],
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
        "input": hide(step_input(detail, step, context).text),
        "missing_keys": list(missing_keys(detail, step)),
        "output": None if output is None else hide(output),
    }


def _story(story: Story, detail: RunDetail, hide: Callable[[str], str]) -> dict[str, Any]:
    output = detail.story_outputs.get(story.id)
    return {
        "id": story.id,
        "story_id": story.story_id,
        "index": story.index,
        "title": story.title,
        "status": story.status,
        "retry_count": story.retry_count,
        "max_retries": story.max_retries,
        "output": None if output is None else hide(output),
        "updated_at": iso(story.updated_at),
    }


def _event(event: Event, workflow: str, hide: Callable[[str], str]) -> dict[str, Any]:
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
        "detail": None if event.detail is None else hide(event.detail),
    }


def _nothing(text: str) -> str:
    return text


def _hider(context: Mapping[str, Any]) -> Callable[[str], str]:
    """Masks the secret values of a context wherever an agent repeated them."""
    secrets = sorted(set(_secret_values(context, secret=False)), key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, MASK)
        return text

    return hide


def _secret_values(value: object, *, secret: bool) -> list[str]:
    if isinstance(value, Mapping):
        return [
            found
            for key, held in value.items()
            for found in _secret_values(held, secret=secret or is_secret_key(str(key)))
        ]
    if isinstance(value, list):
        return [found for held in value for found in _secret_values(held, secret=secret)]
    if secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value)
        return [text] if len(text) >= _LEAST_SECRET else []
    return []
