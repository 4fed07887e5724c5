"""A run as a card on the board, drawn to a width. Pure: text from outside is made safe here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from farmtui.clock import age, duration, seconds_since
from farmtui.console.signs import sign
from farmtui.console.tones import Piece
from farmtui.medic.lanes import active_step, run_tally
from farmtui.medic.look import timeout_of
from farmtui.medic.steps import claimed_at
from farmtui.state import Finding, Lane, Run, Severity, Step, Workflow
from farmtui.text import cells, safe_line

Lines = tuple[tuple[Piece, ...], ...]

# Lanes of runs that need nobody any more: a card there is its head and its task.
QUIET = frozenset({Lane.DONE, Lane.CANCELLED})
SEVERITY_TONES = {Severity.CRITICAL: "alarm", Severity.WARNING: "warning", Severity.INFO: "muted"}
_MARKS = {Severity.CRITICAL: "!!", Severity.WARNING: "!", Severity.INFO: "·"}
YOUNG_S = 60
_OPEN_LANES = frozenset({Lane.PENDING, Lane.RUNNING, Lane.OTHER})


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card shows of a run beside its rows.

    Attributes:
        findings: those about the run, the worst first.
        reason: why it needs a human; None where it does not.
    """

    run: Run
    lane: Lane
    workflow: Workflow | None
    findings: tuple[Finding, ...] = ()
    reason: str | None = None


def card_height(lane: Lane) -> int:
    """Lines of a card: head, task, steps, how it stands; a quiet one has the first two."""
    return 2 if lane in QUIET else 4


def card_lines(facts: CardFacts, now: datetime, width: int) -> Lines:
    """The card in `width` cells."""
    task = safe_line(facts.run.task, max(1, width - 1))
    quiet = "muted" if facts.lane is Lane.CANCELLED else ""
    head, body = _head(facts, now, width), ((task, quiet or "task"),)
    if facts.lane in QUIET:
        return head, body
    return head, body, _steps(facts, width), _state(facts, now)


def run_age(run: Run, lane: Lane, now: datetime) -> float | None:
    """Seconds that a card's head tells: since it began, or since it ended."""
    return seconds_since(run.created_at if lane in _OPEN_LANES else run.updated_at, now)


def _head(facts: CardFacts, now: datetime, width: int) -> tuple[Piece, ...]:
    run, lane = facts.run, facts.lane
    cancelled = lane is Lane.CANCELLED
    label = f"{sign('cancelled')} {run.label}" if cancelled else run.label
    since = duration(run_age(run, lane, now))
    left = width - cells(label) - cells(since) - 2
    workflow = safe_line(run.workflow, max(0, left))
    gap = " " * max(1, width - 1 - cells(label) - 1 - cells(workflow) - cells(since))
    strong, plain = ("muted", "muted") if cancelled else ("strong", "")
    return (label, strong), (" ", ""), (workflow, plain), (gap, ""), (since, "muted")


def glyphs(statuses: tuple[str, ...], room: int) -> tuple[Piece, ...]:
    """The steps as signs in at most `room` cells; what does not fit is counted."""
    if len(statuses) > room:
        keep = max(1, room - 3)
        return (*_glyphs(statuses[:keep]), (f"+{len(statuses) - keep}", "muted"))
    return _glyphs(statuses)


def _glyphs(statuses: tuple[str, ...]) -> tuple[Piece, ...]:
    return tuple((sign(status), status) for status in statuses)


def _steps(facts: CardFacts, width: int) -> tuple[Piece, ...]:
    tally = run_tally(facts.run)
    stories = f"{tally.stories_done}/{tally.stories_total}" if tally.stories_total else ""
    shown = glyphs(tally.statuses, max(4, width // 2))
    step = current_step_name(facts.run)
    left = width - 1 - sum(cells(text) for text, _ in shown) - (len(stories) + 1 if stories else 0) - 1
    name = safe_line(step, max(0, left)) if step else ""
    gap = " " * max(1, left - cells(name) + 1)
    return (*shown, (" ", ""), (name, ""), (gap, ""), (stories, ""))


def current_step_name(run: Run) -> str:
    """The step that a run stands at, or that it failed at; "" where that is not known."""
    step = active_step(run)
    if step is not None:
        return step.name
    failed = run_tally(run).failed_steps
    return failed[0] if failed else ""


def _state(facts: CardFacts, now: datetime) -> tuple[Piece, ...]:
    if facts.findings:
        worst = facts.findings[0]
        since = f" {age(worst.since, now)}" if worst.since else ""
        more = f" +{len(facts.findings) - 1}" if len(facts.findings) > 1 else ""
        return ((f"{_MARKS[worst.severity]} {worst.check}{since}{more}", SEVERITY_TONES[worst.severity]),)
    if facts.lane is Lane.HUMAN:
        return (("‼ ", "warning"), (safe_line(facts.reason or "failed"), "human"))
    if facts.lane is Lane.FAILED:
        return (("failed", "failed"),)
    if facts.lane is Lane.OTHER:
        return ((f"? {safe_line(facts.run.status)}", "warning"),)
    step = active_step(facts.run)
    return step_words(facts.run, step, facts.workflow, now) if step is not None else ()


def step_words(run: Run, step: Step, workflow: Workflow | None, now: datetime) -> tuple[Piece, ...]:
    """How the step at hand stands: ``claimed 12m of 35m · 2nd try``."""
    if step.status == "running":
        text = f"claimed {age(claimed_at(run, step), now)} of {duration(timeout_of(step, workflow))}"
    elif step.status == "pending":
        text = f"pending {age(step.updated_at, now)}"
    else:
        text = f"{safe_line(step.status)} {age(step.updated_at, now)}"
    tries = tries_words(step)
    return ((text, step.status), (f" · {tries}" if tries else "", "warning"))


def tries_words(step: Step) -> str:
    """``retry 1 of 2``, ``abandoned 2×``; "" at the first try."""
    words = []
    if step.retry_count:
        words.append(f"retry {step.retry_count} of {step.max_retries}")
    if step.abandoned_count:
        words.append(f"abandoned {step.abandoned_count}×")
    return ", ".join(words)


def matches(run: Run, lane: Lane, pattern: str) -> bool:
    """Whether every word of a lower-case filter is in number, id, workflow, task, status or lane."""
    text = f"{run.label} {run.id} {run.workflow} {run.task} {run.status} {lane}".lower()
    return all(word in text for word in pattern.split())


def is_young(run: Run, now: datetime) -> bool:
    """Whether an age on its card is below a minute, so that it is drawn every second."""
    moments = (run.created_at, run.updated_at, *(step.updated_at for step in run.steps))
    return any(moment is not None and (now - moment).total_seconds() < YOUNG_S for moment in moments)
