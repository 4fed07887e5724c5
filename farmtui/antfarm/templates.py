"""Who gives each context key, and who will need it: asked of one run before its steps are claimed.

Rendering itself is in `rendering`; its names are offered here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from farmtui.antfarm.engine.outputs import parse_keys
from farmtui.antfarm.rendering import Resolved, js_text, missing_mark, name_in, required_keys, resolve
from farmtui.state import RunDetail, Step, Workflow

__all__ = [
    "KeyUse",
    "Resolved",
    "StepInput",
    "awaited_keys",
    "key_table",
    "missing_keys",
    "required_keys",
    "resolve",
    "step_input",
]

PRESENT, MISSING, AWAITED = "present", "missing", "awaited"
CLAIM = "its claim"
CLAIM_KEYS = frozenset({"run_id", "has_frontend_changes"})
LOOP_KEYS = frozenset(
    {
        "current_story",
        "current_story_id",
        "current_story_title",
        "completed_stories",
        "stories_remaining",
        "progress",
        "verify_feedback",
    }
)
GUIDANCE = "operator_guidance"
_FINISHED = frozenset({"done", "skipped"})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A context key of one run.

    Attributes:
        value: as a template would show it; None where it is not in the context.
        given_by: the step (with its story) whose output gave it, or ``run``, ``workflow``, ``operator``; None
            if that cannot be told.
        needed_by: names of the unfinished steps whose templates name it, in order.
        state: present, missing (a step will be claimed without it) or awaited.
        awaited_from: the step expected to give it, or ``its claim``.
    """

    key: str
    value: str | None
    given_by: str | None
    needed_by: tuple[str, ...]
    state: str
    awaited_from: str | None = None


@dataclass(frozen=True, slots=True)
class StepInput:
    """A step's template resolved against today's context.

    Attributes:
        text: missing keys stand in it as ``[missing: key]``, awaited ones as ``[awaited from STEP: key]``.
        awaited: key → where it is awaited from.
    """

    text: str
    missing: tuple[str, ...]
    awaited: Mapping[str, str]


def key_table(detail: RunDetail, workflow: Workflow | None) -> tuple[KeyUse, ...]:
    """Every key of the context, and every key that an unfinished step needs: missing first, then awaited."""
    needs: dict[str, list[tuple[Step, str, str | None]]] = {}
    for step in _to_come(detail):
        for key in _required(detail, step):
            name = name_in(detail.context, key) or key.lower()
            needs.setdefault(name, []).append((step, *_state(detail, step, key)))
    givers = _givers(detail)
    uses = []
    for key in dict.fromkeys([*needs, *detail.context]):
        needing = needs.get(key, [])
        states = {state: source for _, state, source in reversed(needing)}
        state = next((state for state in (MISSING, AWAITED) if state in states), PRESENT)
        uses.append(
            KeyUse(
                key=key,
                value=js_text(detail.context[key]) if key in detail.context else None,
                given_by=_given_by(detail, workflow, key, givers) if key in detail.context else None,
                needed_by=tuple(dict.fromkeys(step.name for step, _, _ in needing)),
                state=state,
                awaited_from=states.get(state) if state == AWAITED else None,
            )
        )
    place = {MISSING: 0, AWAITED: 1, PRESENT: 2}
    return tuple(sorted(uses, key=lambda use: place[use.state]))


def missing_keys(detail: RunDetail, step: Step) -> tuple[str, ...]:
    """The keys, as its template writes them, that the step lacks and that nobody is expected to give.

    For a pending step these are all that would become ``[missing: key]`` at a claim just now.
    """
    return tuple(key for key, state, _ in _needs(detail, step) if state == MISSING)


def awaited_keys(detail: RunDetail, step: Step) -> Mapping[str, str]:
    """The keys that the step lacks and that are still to come: key as written → whence (`KeyUse`)."""
    return {key: source or "" for key, state, source in _needs(detail, step) if state == AWAITED}


def step_input(detail: RunDetail, step: Step, context: Mapping[str, Any] | None = None) -> StepInput:
    """The step's template resolved against today's context, which is not what its agent got or will get.

    Args:
        context: in place of the run's own, e.g. with secrets masked.
    """
    template = _template(detail, step)
    known = {"run_id": detail.run.id, **(detail.context if context is None else context)}
    resolved = resolve(template, known)
    awaited = awaited_keys(detail, step)
    text = resolved.text
    for key in resolved.missing:
        if key in awaited:
            text = text.replace(missing_mark(key), f"[awaited from {awaited[key]}: {key}]")
    return StepInput(text, tuple(key for key in resolved.missing if key not in awaited), awaited)


# ---------------------------------------------------------------- who needs


def _to_come(detail: RunDetail) -> tuple[Step, ...]:
    """The steps that may yet be claimed: a completed or cancelled run has none."""
    if detail.run.status in ("completed", "cancelled"):
        return ()
    return tuple(step for step in detail.run.steps if step.status not in _FINISHED)


def _needs(detail: RunDetail, step: Step) -> Iterator[tuple[str, str, str | None]]:
    if step in _to_come(detail):
        for key in _required(detail, step):
            yield (key, *_state(detail, step, key))


def _state(detail: RunDetail, step: Step, key: str) -> tuple[str, str | None]:
    """Whether the step has the key, lacks it, or may expect it from somewhere."""
    if name_in(detail.context, key) is not None:
        return PRESENT, None
    lower = key.lower()
    if lower in CLAIM_KEYS or (lower == "progress" and detail.run.stories):
        return AWAITED, CLAIM
    if lower in LOOP_KEYS:
        if step.type == "loop":
            return AWAITED, CLAIM
        loops = [other for other in _before(detail, step) if other.type == "loop"]
        return (AWAITED, loops[0].name) if loops else (MISSING, None)
    if step.status != "waiting":
        return MISSING, None
    before = _before(detail, step)
    asked = re.compile(rf"(?<![A-Z_]){re.escape(lower.upper())}:")
    named = [other for other in before if asked.search(_asks(detail, other))]
    source = named[0] if named else before[-1] if before else None
    return (AWAITED, source.name) if source is not None else (MISSING, None)


def _before(detail: RunDetail, step: Step) -> list[Step]:
    return [other for other in _to_come(detail) if other.index < step.index]


def _required(detail: RunDetail, step: Step) -> tuple[str, ...]:
    return required_keys(_template(detail, step))


def _template(detail: RunDetail, step: Step) -> str:
    texts = detail.step_texts.get(step.id)
    return texts.input_template if texts is not None else ""


def _asks(detail: RunDetail, step: Step) -> str:
    """What a step is told to hand in."""
    texts = detail.step_texts.get(step.id)
    return f"{texts.input_template}\n{texts.expects}" if texts is not None else ""


# ---------------------------------------------------------------- who gave


@dataclass(frozen=True, slots=True)
class _Giver:
    label: str
    at: datetime
    index: int
    values: Mapping[str, str]


def _givers(detail: RunDetail) -> list[_Giver]:
    """Every output with the keys it gave, the latest first."""
    givers = []
    for step in detail.run.steps:
        texts = detail.step_texts.get(step.id)
        if texts is not None and texts.output:
            at = step.updated_at or _LONG_AGO
            givers.append(_Giver(step.name, at, step.index, parse_keys(texts.output)))
        if step.type == "loop":
            for story in detail.run.stories:
                output = detail.story_outputs.get(story.id)
                if output:
                    label, at = f"{step.name} {story.story_id}", story.updated_at or _LONG_AGO
                    givers.append(_Giver(label, at, step.index, parse_keys(output)))
    return sorted(givers, key=lambda giver: (giver.at, giver.index), reverse=True)


def _given_by(detail: RunDetail, workflow: Workflow | None, key: str, givers: list[_Giver]) -> str | None:
    """The latest output that gave the key this value, else any value; else what is known to set it."""
    named = [giver for giver in givers if key in giver.values]
    same = [giver for giver in named if giver.values[key] == detail.context[key]]
    if named:
        # A loop keeps its last story's output as its own: the story says more.
        best = (same or named)[0]
        story = next((g for g in same if g.label.startswith(f"{best.label} ")), None)
        return (story or best).label
    loop = next((step for step in detail.run.steps if step.type == "loop"), None)
    if key == "verify_feedback" and loop is not None and loop.loop is not None and detail.context[key]:
        return loop.loop.verify_step or loop.name
    if key in LOOP_KEYS or key in CLAIM_KEYS:
        return loop.name if loop is not None else None
    if key == GUIDANCE:
        return "operator"
    if workflow is not None and key in workflow.context_keys:
        return "workflow"
    return "run" if key == "task" else None
