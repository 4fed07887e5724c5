"""When a run's steps and stories were worked on, from its events, where these agree with the rows.

Antfarm's event log is a help, not the truth: rows are. A step whose events are missing, or tell of
another ending than its row does, has spans that are not known, and is drawn so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from farmtui.state import Event, Run, Step, Story

# Rows keep whole seconds, and an event is written some moments after its row.
TOLERANCE = timedelta(seconds=5)

_WORKED_AGAIN = "step.running"
_STEP_ENDS = frozenset({"step.done", "step.failed", "step.timeout", "step.pending"})
_VERDICTS = frozenset({"story.verified", "story.retry", "story.failed"})
_RUN_ENDS = frozenset({"run.failed", "run.completed"})


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in which a step or story was worked on. `end` is None while it goes on."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Spans:
    """All stretches of one step or story, oldest first.

    Attributes:
        known: the events agree with the row. Otherwise `spans` is at most one stretch taken from the
            rows, within which the work was done, nobody knows when.
    """

    spans: tuple[Span, ...]
    known: bool

    def worked(self, now: datetime) -> timedelta | None:
        """The stretches' sum, None where it is not known."""
        if not self.known or not self.spans:
            return None
        return sum(((span.end or now) - span.start for span in self.spans), timedelta())


def step_spans(run: Run, events: Sequence[Event], step: Step) -> Spans:
    """When `step` was claimed and given back. `events` are the run's, oldest first."""
    spans = _walk(events, step)
    if not spans and step.status == "failed" and run.status == "cancelled":
        # Stopping a run fails the steps that nobody ever claimed.
        return Spans((), known=True)
    if _step_agrees(spans, step):
        return Spans(spans, known=True)
    return Spans(_from_row(run, step), known=False)


def story_spans(events: Sequence[Event], story: Story) -> Spans:
    """When `story` was worked on, in whichever loop."""
    spans: list[Span] = []
    for event in events:
        if event.ts is None:
            continue
        ours = event.story == story.story_id
        if ours and event.event == "story.started":
            _close(spans, event.ts)
            spans.append(Span(event.ts, None))
        elif (ours and event.event == "story.done") or event.event in _RUN_ENDS:
            _close(spans, event.ts)
        elif event.event in {"step.timeout", "step.failed"} or (
            event.event == "story.started" and event.story != story.story_id
        ):
            # Neither names the story: whichever is open has been given up.
            _close(spans, event.ts)
    found = tuple(spans)
    if _story_agrees(found, story):
        return Spans(found, known=True)
    if story.status == "running" and story.updated_at is not None:
        return Spans((Span(story.updated_at, None),), known=False)
    return Spans((), known=False)


def run_bounds(run: Run, now: datetime) -> tuple[datetime, datetime]:
    """From when to when the time axis goes: an ended run's stops where it ended."""
    start = run.created_at or run.updated_at or now
    end = now if run.active else (run.updated_at or now)
    return start, max(end, start)


def _walk(events: Sequence[Event], step: Step) -> tuple[Span, ...]:
    names = {step.name, step.id}
    spans: list[Span] = []
    for event in events:
        if event.ts is None:
            continue
        ours = event.step in names
        if ours and event.event == _WORKED_AGAIN:
            # No event tells of a failed try that may be repeated: the next claim ends the last one.
            _close(spans, event.ts)
            spans.append(Span(event.ts, None))
        elif (ours and event.event in _STEP_ENDS | _VERDICTS | {"story.done"}) or event.event in _RUN_ENDS:
            _close(spans, event.ts)
    return tuple(spans)


def _close(spans: list[Span], moment: datetime) -> None:
    if spans and spans[-1].end is None:
        spans[-1] = Span(spans[-1].start, max(moment, spans[-1].start))


def _step_agrees(spans: tuple[Span, ...], step: Step) -> bool:
    last = spans[-1] if spans else None
    going = last is not None and last.end is None
    if step.status == "running":
        if last is None:
            return False
        # A loop between its stories is running while nobody works on it.
        idle_loop = step.type == "loop" and step.current_story_id is None
        return idle_loop or (going and _near(last.start, step.updated_at))
    if going:
        return False
    if step.status in {"done", "failed"}:
        return last is not None and last.end is not None and _ended_by(last.end, step)
    return True


def _ended_by(end: datetime, step: Step) -> bool:
    if step.updated_at is None:
        return False
    # A loop's row is written once more when its verify step has passed the last story.
    if step.type == "loop":
        return end - step.updated_at <= TOLERANCE
    return _near(end, step.updated_at)


def _story_agrees(spans: tuple[Span, ...], story: Story) -> bool:
    last = spans[-1] if spans else None
    going = last is not None and last.end is None
    if story.status == "running":
        return last is not None and going and _near(last.start, story.updated_at)
    if story.status in {"done", "failed"}:
        return last is not None and not going
    return not going


def _near(one: datetime, other: datetime | None) -> bool:
    return other is not None and abs(one - other) <= TOLERANCE


def _from_row(run: Run, step: Step) -> tuple[Span, ...]:
    """The stretch that the rows leave for a step: a claim's age is true, an ended step's beginning is not."""
    if step.updated_at is None:
        return ()
    if step.status == "running":
        return (Span(step.updated_at, None),)
    if step.status not in {"done", "failed"}:
        return ()
    before = _latest(other.updated_at for other in run.steps if other.index < step.index)
    start = before or run.created_at or step.updated_at
    return (Span(min(start, step.updated_at), step.updated_at),)


def _latest(moments: Iterable[datetime | None]) -> datetime | None:
    return max((moment for moment in moments if moment is not None), default=None)
