"""The preview beside a wide board: the chosen run's steps and stories, and what is wrong with it."""

from __future__ import annotations

from datetime import datetime

from textual.strip import Strip
from textual.widget import Widget

from farmtui.antfarm.workflows import short_agent
from farmtui.clock import duration
from farmtui.console.cards import SEVERITY_TONES, CardFacts, run_age, step_words
from farmtui.console.signs import LANE_WORDS, sign
from farmtui.console.tones import Piece, strip_of, tones_of
from farmtui.console.wrap import wrap
from farmtui.medic.lanes import run_tally
from farmtui.state import Lane, Story
from farmtui.text import cells, pad, safe_line

_TASK_LINES = 4
_NAME_CELLS = 18
_AGENT_CELLS = 12

_Lines = list[tuple[Piece, ...]]


def preview_lines(facts: CardFacts, now: datetime, width: int) -> tuple[tuple[Piece, ...], ...]:
    """What is known of the run without reading its long texts."""
    run = facts.run
    state = f"{LANE_WORDS[facts.lane].lower()} {duration(run_age(run, facts.lane, now))}"
    head = f"{run.label} {safe_line(run.workflow)}"
    lines: _Lines = [((pad(head, width - cells(state) - 1), "strong"), (f" {state}", "muted"))]
    lines += [((line, ""),) for line in wrap(safe_line(run.task, width * _TASK_LINES), width, _TASK_LINES)]
    if facts.reason is not None and facts.lane is Lane.HUMAN:
        lines += [(), (("‼ needs a human", "human"),), *_indented(facts.reason, width)]
    for finding in facts.findings:
        lines += [
            (),
            ((finding.check, SEVERITY_TONES[finding.severity]),),
            *_indented(finding.message, width),
        ]
    lines.append(())
    lines += _steps(facts, now) if run.steps else _ended_steps(facts)
    return tuple(lines)


def _indented(text: str, width: int) -> _Lines:
    return [((f"  {line}", ""),) for line in wrap(safe_line(text), width - 2, 6)]


def _steps(facts: CardFacts, now: datetime) -> _Lines:
    run = facts.run
    lines: _Lines = []
    stories_shown = False
    for step in run.steps:
        name = pad(safe_line(step.name), _NAME_CELLS)
        agent = pad(safe_line(short_agent(step.agent_id, run.workflow)), _AGENT_CELLS)
        words = step_words(run, step, facts.workflow, now)
        lines.append(
            ((f"{sign(step.status)} ", step.status), (f"{name} ", ""), (f"{agent} ", "muted"), *words)
        )
        if step.type == "loop" and not stories_shown:
            stories_shown = True
            lines += [_story(story) for story in run.stories]
    return lines


def _story(story: Story) -> tuple[Piece, ...]:
    retries = f"  retry {story.retry_count} of {story.max_retries}" if story.retry_count else ""
    return (
        (f"  {sign(story.status)} ", story.status),
        (safe_line(f"{story.story_id} {story.title}"), ""),
        (retries, "warning"),
    )


def _ended_steps(facts: CardFacts) -> _Lines:
    tally = run_tally(facts.run)
    specs = facts.workflow.steps if facts.workflow is not None else ()
    named = len(specs) == len(tally.statuses)
    lines: _Lines = []
    for at, status in enumerate(tally.statuses):
        name = specs[at].id if named else f"step {at + 1}"
        lines.append(
            ((f"{sign(status)} ", status), (f"{pad(safe_line(name), _NAME_CELLS)} ", ""), (status, status))
        )
    if tally.stories_total:
        lines += [(), ((f"{tally.stories_done} of {tally.stories_total} stories done", ""),)]
    return lines


class Preview(Widget):
    """Lines of pieces, drawn again only where they differ."""

    DEFAULT_CSS = """
    Preview { height: 1fr; border-left: solid $panel; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="preview")
        self.set_width = 0
        self._lines: tuple[tuple[Piece, ...], ...] = ()

    def show(self, lines: tuple[tuple[Piece, ...], ...]) -> None:
        """Draw these, if they differ from what is there."""
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render_line(self, y: int) -> Strip:
        pieces = self._lines[y] if y < len(self._lines) else ()
        return strip_of(pieces, self.size.width, tones_of(self), self.rich_style)
