"""What the inbox says of one escalation: why, what was tried, the last words, and what a retry would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age
from farmtui.operations.plan import CronAction, Plan
from farmtui.state import Acknowledgement, Escalation, Event, RunDetail, Step, Story

# Cells of the labels on the left; longer lines go on below their text.
HANG = 10
_COUNTERS = frozenset({"retry_count", "abandoned_count"})
_SENT_BACK = frozenset({"story.retry", "story.failed", "step.failed", "step.timeout"})


def facts(escalation: Escalation, ack: Acknowledgement | None, now: datetime) -> list[tuple[str, str]]:
    """What is known without reading the run's long texts."""
    rows = [("why", escalation.reason)]
    if escalation.since is not None:
        rows.append(("since", f"{age(escalation.since, now)} ago"))
    if ack is not None:
        rows.append(("seen", f"by {ack.by} {age(ack.at, now)} ago: {ack.note or 'without a note'}"))
    return rows


def history(escalation: Escalation, detail: RunDetail, now: datetime) -> list[tuple[str, str]]:
    """What was tried, the last output and the feedback, from the run's detail."""
    step = _failed_step(escalation, detail)
    story = _failed_story(escalation, detail)
    rows: list[tuple[str, str]] = []
    if step is not None:
        rows.append(("where", _where(step, story, detail)))
    tries = _tries(detail.events, now)
    rows += [("tried", line) for line in tries] or [("tried", "no attempt left a word in Antfarm's log")]
    said = _last_output(step, story, detail)
    rows.append(("last", said or "no output was kept"))
    feedback = detail.context.get("verify_feedback") or detail.context.get("issues")
    if feedback:
        rows.append(("feedback", str(feedback)))
    return rows


def retry_rows(plan: Plan) -> list[tuple[str, str]]:
    """The counters that a retry resets, and whether crons exist."""
    counters = [
        f"{change.subject} {change.what} {change.before} → {change.after}"
        for change in plan.changes
        if change.column in _COUNTERS and change.before != change.after
    ]
    created = [call.name.rsplit("/", 1)[-1] for call in plan.crons if call.action is CronAction.ADD]
    crons = (
        f"creates {_counted(len(created), 'missing cron')}: {', '.join(created)}"
        if created
        else "the crons are there"
    )
    resets = f"resets {'; '.join(counters)}" if counters else "no counter stands in the way"
    return [("retry", resets), ("", crons), *(("", note) for note in plan.notes)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def as_text(rows: Iterable[tuple[str, str]]) -> str:
    """Labelled rows as lines; a text of several lines goes on below itself."""
    lines: list[str] = []
    last = ""
    for label, text in rows:
        shown = "" if label == last else label
        first, *rest = text.splitlines() or [""]
        lines.append(f"{shown:<{HANG}}{first}")
        lines += [" " * HANG + line for line in rest]
        last = label or last
    return "\n".join(lines)


def _failed_step(escalation: Escalation, detail: RunDetail) -> Step | None:
    return next((step for step in detail.run.steps if step.name == escalation.step), None)


def _failed_story(escalation: Escalation, detail: RunDetail) -> Story | None:
    named = (story for story in detail.run.stories if story.story_id == escalation.story)
    failed = (story for story in detail.run.stories if story.status == "failed")
    return next(named, None) or next(failed, None)


def _where(step: Step, story: Story | None, detail: RunDetail) -> str:
    who = short_agent(step.agent_id, detail.run.workflow)
    where = f"step {step.name} ({who}), retries {step.retry_count} of {step.max_retries}"
    if step.abandoned_count:
        where += f", abandoned {step.abandoned_count}×"
    if story is not None:
        where += f"\nstory {story.story_id} {story.title}, retries {story.retry_count} of {story.max_retries}"
    return where


def _tries(events: Sequence[Event], now: datetime) -> list[str]:
    found = [event for event in events if event.event in _SENT_BACK]
    return [
        f"{number}  {age(event.ts, now)} ago  {_said(event)}" for number, event in enumerate(found, start=1)
    ]


def _said(event: Event) -> str:
    words = {"story.retry": "sent back", "story.failed": "given up", "step.timeout": "abandoned"}
    what = words.get(event.event, "failed")
    return f"{what}: {event.detail}" if event.detail else what


def _last_output(step: Step | None, story: Story | None, detail: RunDetail) -> str | None:
    if story is not None and detail.story_outputs.get(story.id):
        return detail.story_outputs[story.id]
    if step is None:
        return None
    texts = detail.step_texts.get(step.id)
    return texts.output if texts else None
