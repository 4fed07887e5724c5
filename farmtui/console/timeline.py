"""A run's timeline as data: one entry a step and a story, folded to a height and drawn to a width.

Pure: what it shows follows from the run, its events, `now` and the size. Texts from outside have
passed through `farmtui.text` when they leave this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import age, duration
from farmtui.console.spans import Span, Spans, run_bounds, step_spans, story_spans
from farmtui.console.tones import Piece
from farmtui.state import Event, Run, Step, Story
from farmtui.text import cells, pad, safe_line

# What names an entry whatever refreshes: the step's id, and the story's where it is one.
Key = tuple[str, str | None]


_NO_SPANS = Spans((), known=True)
_TICKS = (
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    900,
    1200,
    1800,
    3600,
    7200,
    14400,
    21600,
    43200,
    86400,
    172800,
    604800,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One step or story of the timeline.

    Attributes:
        name, who, note: safe text; `note` says in words how it stands.
        alarm: its claim is older than the agent's time-out.
    """

    step: Step
    story: Story | None
    name: str
    who: str
    spans: Spans
    note: str
    alarm: bool = False

    @property
    def key(self) -> Key:
        """What names this entry whatever refreshes."""
        return self.step.id, self.story.id if self.story else None

    @property
    def status(self) -> str:
        """The row's status, for the sign before it."""
        return self.story.status if self.story else self.step.status


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the timeline: one entry, or several of the same kind and status folded into it."""

    entries: tuple[Entry, ...]

    @property
    def folded(self) -> bool:
        return len(self.entries) > 1


@dataclass(frozen=True, slots=True)
class Layout:
    """Widths in cells of the timeline's columns; `who` and `bar` are 0 where there is no room for them."""

    name: int
    who: int
    bar: int
    note: int


# ---------------------------------------------------------------- what there is to show


def entries(
    run: Run, events: Sequence[Event] | None, now: datetime, timeouts: Mapping[str, float]
) -> tuple[Entry, ...]:
    """Steps in order, and the stories below the first loop.

    Args:
        run: with `steps` and `stories`.
        events: the run's, oldest first; None while they are not read, which draws no bars.
        timeouts: seconds after which a claim counts as abandoned, by step id.
    """
    found: list[Entry] = []
    loop = next((step for step in run.steps if step.type == "loop"), None)
    for step in run.steps:
        spans = _NO_SPANS if events is None else step_spans(run, events, step)
        stories = run.stories if step is loop else ()
        found.append(_step_entry(run, step, stories, spans, now, timeouts))
        for story in stories:
            story_bar = _NO_SPANS if events is None else story_spans(events, story)
            found.append(_story_entry(step, story, story_bar, now, timeouts))
    return tuple(found)


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``4th`` …"""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def _step_entry(
    run: Run,
    step: Step,
    stories: Sequence[Story],
    spans: Spans,
    now: datetime,
    timeouts: Mapping[str, float],
) -> Entry:
    note, alarm = _step_note(step, stories, spans, now, timeouts)
    who = safe_line(short_agent(step.agent_id, run.workflow))
    return Entry(step, None, safe_line(step.name), who, spans, note, alarm)


def _step_note(
    step: Step, stories: Sequence[Story], spans: Spans, now: datetime, timeouts: Mapping[str, float]
) -> tuple[str, bool]:
    if stories:
        done = sum(story.status == "done" for story in stories)
        count = f"{done} of {len(stories)} stories"
        if step.status == "running" and step.current_story_id is None:
            return f"{count}, waits for {_verifier(step)}", False
        if step.status in {"running", "done"}:
            return count, False
        return f"{safe_line(step.status)}, {count}", False
    if step.status == "running":
        return _claim(step, now, timeouts)
    tries = _tries(step.status, step.retry_count, step.abandoned_count)
    if step.status == "pending":
        return f"pending {age(step.updated_at, now)}{tries}", False
    if step.status == "done":
        return f"done{_worked(spans, now)}{tries}", False
    return f"{safe_line(step.status)}{tries}", False


def _verifier(step: Step) -> str:
    return safe_line(step.loop.verify_step) if step.loop and step.loop.verify_step else "its next story"


def _story_entry(
    step: Step, story: Story, spans: Spans, now: datetime, timeouts: Mapping[str, float]
) -> Entry:
    name = safe_line(f"{story.story_id} {story.title}")
    if story.status == "running" and step.current_story_id == story.id and step.status == "running":
        note, alarm = _claim(step, now, timeouts, story)
        return Entry(step, story, name, "", spans, note, alarm)
    tries = _tries(story.status, story.retry_count, 0)
    worked = _worked(spans, now) if story.status == "done" else ""
    return Entry(step, story, name, "", spans, f"{safe_line(story.status)}{worked}{tries}")


def _claim(
    step: Step, now: datetime, timeouts: Mapping[str, float], story: Story | None = None
) -> tuple[str, bool]:
    limit = timeouts.get(step.id)
    tries = story.retry_count if story else step.retry_count
    note = f"claim {age(step.updated_at, now)}"
    if limit is not None:
        note += f" of {duration(limit)}"
    if tries:
        note += f", {ordinal(tries + 1)} try"
    late = (
        limit is not None and step.updated_at is not None and (now - step.updated_at).total_seconds() > limit
    )
    return note, late


def _tries(status: str, retries: int, abandoned: int) -> str:
    note = ""
    if status == "failed" and retries:
        note = f" after {retries} tries" if retries > 1 else " after 1 try"
    elif retries:
        note = f", {ordinal(retries + 1)} try"
    return f"{note}, abandoned {abandoned}×" if abandoned else note


def _worked(spans: Spans, now: datetime) -> str:
    worked = spans.worked(now)
    return "" if worked is None else f" {duration(worked)}"


# ---------------------------------------------------------------- folding


def fold(found: Sequence[Entry], height: int, selected: Key | None) -> tuple[Row, ...]:
    """Fold what matters least until the rows fit `height`, and no more; never the selected entry.

    In this order: pending stories, done stories, waiting steps, done steps; of what is done the oldest
    first, of what is to come the latest. What is left may still be higher than `height`: it is scrolled.
    """
    rows = [Row((entry,)) for entry in found]
    for is_story, status in ((True, "pending"), (True, "done"), (False, "waiting"), (False, "done")):
        rows = _fold_kind(rows, height, selected, is_story, status)
    return tuple(rows)


def _fold_kind(
    rows: Sequence[Row], height: int, selected: Key | None, is_story: bool, status: str
) -> list[Row]:
    def foldable(row: Row) -> bool:
        return all(
            (entry.story is not None) == is_story and entry.status == status and entry.key != selected
            for entry in row.entries
        )

    folded: list[Row] = []
    excess = len(rows) - height
    for together, group in groupby(rows, foldable):
        members = list(group)
        if not together or excess <= 0 or len(members) == 1:
            folded.extend(members)
            continue
        count = min(len(members), excess + 1)
        excess -= count - 1
        cut = count if status == "done" else len(members) - count
        head, tail = members[:cut], members[cut:]
        if status == "done":
            folded += [_joined(head), *tail]
        else:
            folded += [*head, _joined(tail)]
    return folded


def _joined(rows: Sequence[Row]) -> Row:
    return Row(tuple(entry for row in rows for entry in row.entries))


# ---------------------------------------------------------------- drawing


def layout(found: Sequence[Entry], width: int) -> Layout:
    """The columns' widths in `width` cells; two cells stand before the name, one between columns."""
    note = min(max((cells(entry.note) for entry in found), default=0), max(20, width // 4))
    who = min(max((cells(entry.who) for entry in found), default=0), 14 if width >= 70 else 0)
    names = max((cells(entry.name) + (2 if entry.story else 0) for entry in found), default=0)
    name = min(names, max(14, (width - note - who) * 2 // 5))
    bar = width - 2 - name - 1 - (who + 1 if who else 0) - note - 1
    if bar < 8:
        return Layout(max(4, width - 3 - note), 0, 0, note)
    return Layout(name, who, bar, note)


def draw_axis(run: Run, now: datetime, columns: Layout) -> tuple[Piece, ...]:
    """The head of the timeline: the columns' names and the run's time at round steps."""
    head = "  " + pad("step", columns.name) + " "
    if columns.who:
        head += pad("agent", columns.who) + " "
    return ((head + pad(_ticks(run, now, columns.bar), columns.bar) + " ", "muted"),)


def draw(
    row: Row, run: Run, now: datetime, columns: Layout, sign: str, blocks: str = "▇░"
) -> tuple[Piece, ...]:
    """One line of the timeline.

    Args:
        sign: one cell for the row's status.
        blocks: the characters of a known and of an unknown stretch.
    """
    first = row.entries[0]
    tone = "alarm" if first.alarm else first.status
    indent = "  " if first.story else ""
    room = columns.name - len(indent)
    pieces: list[Piece] = [(indent + sign, tone)]
    if row.folded and not any(entry.spans.spans for entry in row.entries):
        # Names may lie where no bars do.
        room += sum(width + 1 for width in (columns.who, columns.bar) if width)
        pieces.append((f" {pad(_names(row), room)} ", ""))
    else:
        pieces.append((f" {pad(_names(row), room)} ", ""))
        if columns.who:
            pieces.append((pad("" if row.folded else first.who, columns.who) + " ", "muted"))
        if columns.bar:
            pieces += [(_bar(row, run, now, columns.bar, blocks), tone), (" ", "")]
    note = f"{len(row.entries)} {first.status}" if row.folded else first.note
    pieces.append((pad(note, columns.note), tone))
    return tuple(pieces)


def _names(row: Row) -> str:
    if not row.folded:
        return row.entries[0].name
    if row.entries[0].story:
        stories = [entry.story.story_id for entry in row.entries if entry.story]
        return safe_line(f"{stories[0]} … {stories[-1]}")
    return " · ".join(entry.name for entry in row.entries)


def _bar(row: Row, run: Run, now: datetime, width: int, blocks: str) -> str:
    known = [False] * width
    unknown = [False] * width
    for entry in row.entries:
        for span in entry.spans.spans:
            target = known if entry.spans.known else unknown
            first, last = _cells_of(span, run, now, width)
            target[first : last + 1] = [True] * (last + 1 - first)
    text = "".join(blocks[0] if known[at] else blocks[1] if unknown[at] else " " for at in range(width))
    return _say_unknown(text, blocks[1]) if blocks[1] in text else text


def _say_unknown(text: str, block: str) -> str:
    """Write the word where it covers nothing that is known."""
    word = "unknown"
    first, last = text.index(block), text.rindex(block)
    inside = last + 1 - first - len(word)
    if inside >= 4:
        at = first + inside // 2
    elif not text[last + 1 : last + 2 + len(word)].strip() and last + 2 + len(word) <= len(text):
        at = last + 2
    elif first - 1 - len(word) >= 0 and not text[first - 1 - len(word) : first].strip():
        at = first - 1 - len(word)
    else:
        return text
    return text[:at] + word + text[at + len(word) :]


def _cells_of(span: Span, run: Run, now: datetime, width: int) -> tuple[int, int]:
    """First and last cell of a span; never none, and never outside the axis."""
    start, end = run_bounds(run, now)
    total = max((end - start).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        return min(max((moment - start).total_seconds() / total, 0.0), 1.0) * width

    first = min(int(place(span.start)), width - 1)
    last = max(first, min(round(place(span.end or end)) - 1, width - 1))
    return first, last


def _ticks(run: Run, now: datetime, width: int) -> str:
    if not width:
        return ""
    start, end = run_bounds(run, now)
    total = max((end - start).total_seconds(), 1.0)
    step = next((tick for tick in _TICKS if tick / total * width >= 9), None)
    line = "0m" if total >= 60 else "0s"
    if step is not None:
        moment = step
        while moment < total:
            at = int(moment / total * width)
            label = _tick_label(moment)
            if at + len(label) + 1 > width:
                break
            line = line.ljust(at) + label
            moment += step
    last = duration(timedelta(seconds=total))
    if len(line) + 2 + len(last) <= width:
        line = line.ljust(width - len(last)) + last
    return line


def _tick_label(seconds: int) -> str:
    if seconds >= 86400 and seconds % 86400 == 0:
        return f"{seconds // 86400}d"
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds // 3600}h"
    return duration(seconds)
