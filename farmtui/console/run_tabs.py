"""What the tabs of the Run screen show, as text: pure, from a run's detail and the chosen step.

The text is as it came from outside: whoever draws it makes it safe. Secret context values are masked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from farmtui.antfarm.rendering import missing_mark
from farmtui.antfarm.templates import KeyUse, missing_keys, step_input
from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age
from farmtui.state import Event, RunDetail, Step, Story
from farmtui.text import cells, mask_context, pad, safe_line

NOT_WHAT_IT_GOT = "resolved against today's context, not what the agent got"


class Tab(StrEnum):
    """The tabs in their order."""

    OUTPUT = "Output"
    INPUT = "Input"
    CONTEXT = "Context"
    PROGRESS = "Progress"
    EVENTS = "Events"


class Tone(StrEnum):
    """What kind of picture: the text itself, a notice in its place, or the reason of a failure."""

    TEXT = "text"
    NOTICE = "notice"
    ALARM = "alarm"


@dataclass(frozen=True, slots=True)
class Picture:
    """What a tab shows.

    Attributes:
        label: one line above the text: whose it is, and what should be known of it.
        marks: literal texts to be marked in it.
    """

    text: str
    label: str = ""
    tone: Tone = Tone.TEXT
    marks: tuple[str, ...] = ()


def output(detail: RunDetail, step: Step, story: Story | None, now: datetime) -> Picture:
    """What the step or the story gave back, or why there is nothing."""
    subject = f"{step.name} / {story.story_id}" if story else step.name
    text = detail.story_outputs.get(story.id) if story else None
    if story is None and (texts := detail.step_texts.get(step.id)) is not None:
        text = texts.output
    if text:
        return Picture(text, f"output of {subject}")
    status, since = (story.status, story.updated_at) if story else (step.status, step.updated_at)
    who = short_agent(step.agent_id, detail.run.workflow)
    waits = {
        "running": f"no output yet: {who} claimed it {age(since, now)} ago",
        "pending": f"no output yet: {who} has not claimed it, pending for {age(since, now)}",
        "waiting": "no output yet: it waits for the steps before it",
    }
    return Picture(
        waits.get(status, f"{status}, and no output was kept"), f"output of {subject}", Tone.NOTICE
    )


def input_of(detail: RunDetail, step: Step) -> Picture:
    """The step's template with today's context put in; missing and awaited keys are marked in it."""
    texts = detail.step_texts.get(step.id)
    if texts is None:
        return Picture("the step's input could not be read", tone=Tone.ALARM)
    resolved = step_input(detail, step, mask_context(detail.context))
    marks = [missing_mark(key) for key in resolved.missing]
    marks += [f"[awaited from {source}: {key}]" for key, source in resolved.awaited.items()]
    lacking = missing_keys(detail, step)
    label = f"MISSING {', '.join(lacking)} · {NOT_WHAT_IT_GOT}" if lacking else NOT_WHAT_IT_GOT
    expects = f"\n\n── expects ──\n{texts.expects}" if texts.expects else ""
    return Picture(f"{resolved.text}{expects}", label, marks=tuple(marks))


def progress(detail: RunDetail, now: datetime) -> Picture:
    """The progress file, named; live or archived."""
    if detail.progress_error is not None:
        return Picture(detail.progress_error, tone=Tone.ALARM)
    found = detail.progress
    if found is None:
        return Picture("no progress file: agents of a loop write one", tone=Tone.NOTICE)
    label = f"{found.path} · written {age(found.modified_at, now)} ago"
    if found.archived:
        label = f"archived · {label}"
    if found.truncated:
        label = f"last {len(found.text) // 1024} of {found.size // 1024} KiB · {label}"
    if not found.text.strip():
        return Picture("the progress file is empty", label, Tone.NOTICE)
    return Picture(found.text, label)


def events(detail: RunDetail) -> Picture:
    """The run's events, oldest first, one a line, with the rest of a detail of several lines below."""
    if not detail.events:
        return Picture("no events of this run in Antfarm's log", tone=Tone.NOTICE)
    names = {step.id: step.name for step in detail.run.steps}
    width = max(cells(event.event) for event in detail.events)
    lines = [line for event in detail.events for line in _event_lines(event, detail, names, width)]
    return Picture("\n".join(lines), f"{len(detail.events)} events, times in UTC")


def context(detail: RunDetail, keys: Sequence[KeyUse], width: int) -> Picture:
    """The context as a table; what is missing stands on top, long values follow in full below."""
    if detail.context_error is not None:
        return Picture(detail.context_error, tone=Tone.ALARM)
    if not keys:
        return Picture("the context is empty", tone=Tone.NOTICE)
    rows = [("key", "given by", "needed by", "value")]
    values = [_value(use) for use in keys]
    rows += [
        (
            safe_line(use.key),
            safe_line(_giver(use)),
            safe_line(", ".join(use.needed_by)),
            safe_line(value),
        )
        for use, value in zip(keys, values, strict=True)
    ]
    fixed = [
        min(max(cells(row[column]) for row in rows), most)
        for column, most in ((0, max(12, width // 4)), (1, max(9, width // 6)), (2, max(9, width // 5)))
    ]
    room = max(8, width - sum(fixed) - 6)
    lines = [
        "  ".join([*(pad(cell, size) for cell, size in zip(row[:3], fixed, strict=True)), pad(row[3], room)])
        for row in rows
    ]
    long = [
        f"── {safe_line(use.key)} ──\n{value}"
        for use, value in zip(keys, values, strict=True)
        if cells(safe_line(value)) > room or "\n" in value
    ]
    missing = [use.key for use in keys if use.state == "missing"]
    label = f"MISSING {', '.join(missing)}" if missing else f"{len(keys)} keys, as the context is now"
    text = "\n".join(line.rstrip() for line in lines)
    marks = ("MISSING",) if missing else ()
    return Picture("\n\n".join([text, *long]), label, marks=marks)


def _value(use: KeyUse) -> str:
    if use.state == "missing":
        return "MISSING"
    if use.state == "awaited":
        return f"awaited from {use.awaited_from or 'an earlier step'}"
    return str(mask_context({use.key: use.value})[use.key])


def _giver(use: KeyUse) -> str:
    return use.given_by or {"missing": "nobody", "awaited": "-"}.get(use.state, "unknown")


def _event_lines(event: Event, detail: RunDetail, names: dict[str, str], width: int) -> list[str]:
    clock = event.ts.astimezone(UTC).strftime("%m-%d %H:%M:%S") if event.ts else "?" * 14
    who = short_agent(event.agent_id, detail.run.workflow) if event.agent_id else ""
    subject = names.get(event.step, event.step) if event.step else ""
    story = " ".join(part for part in (event.story, event.story_title) if part)
    first, *rest = (event.detail or "").splitlines() or [""]
    line = "  ".join(
        part for part in (clock, pad(safe_line(event.event), width), subject, who, story, first) if part
    )
    return [line, *(" " * 16 + more for more in rest)]
