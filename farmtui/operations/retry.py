"""Retry: a failed run is given back to its agents, with the operator's guidance.

Antfarm's own resume leaves the stories' retries and the abandonments as they were, so that the next
hiccup fails the run again; here all counters that stand in the way go to 0. Two more differences: every
failed story goes back to pending (one that stays failed fails its loop in the end), and where the verify
step itself gave up, it is asked again about the story that waited for it, which resume would pass over.
Like resume it logs no event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from farmtui.antfarm.engine import parse_keys
from farmtui.antfarm.rendering import required_keys
from farmtui.antfarm.rows import Row
from farmtui.antfarm.schema import text_of
from farmtui.antfarm.templates import GUIDANCE
from farmtui.medic.steps import FINISHED, verify_step
from farmtui.openclaw.jobs import schedule_words
from farmtui.openclaw.kept import KeptJobs
from farmtui.operations.context_edit import parse_context, set_keys
from farmtui.operations.facts import Changes, Facts, status_guards
from farmtui.operations.missing_crons import additions
from farmtui.operations.plan import CronCall, Edit, Plan, Refused, RowChange
from farmtui.operations.records import edited
from farmtui.state import Run, Step
from farmtui.text import safe_line

FEEDBACK = "verify_feedback"
GUIDANCE_CHARACTERS = 20_000
GUIDANCE_LINE = f"Operator guidance: {{{{{GUIDANCE}}}}}"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OPEN = frozenset({"pending", "running", "failed"})


@dataclass(frozen=True, slots=True)
class _Way:
    """How a failed run goes on.

    Attributes:
        target: the step that will be claimed next.
        loop: the loop that stays running meanwhile, its story waiting for `target` to verify it.
        reason: what failed, for people.
    """

    target: Step
    loop: Step | None
    reason: str


def plan_retry(found: Facts, guidance: str | None, kept: KeptJobs, *, without_crons: bool = False) -> Plan:
    """Plan to give a failed run back to its agents.

    Args:
        guidance: what the operator tells the agent of the step that is retried; None or blank: nothing.
        kept: definitions of crons seen before.
        without_crons: also where crons are missing and cannot be created.

    Raises:
        Refused: the run has not failed, nothing in it can be retried, its context cannot take the
            guidance, or crons are missing and there is nothing to make them from.
    """
    run = found.run
    if run.status != "failed":
        raise Refused(f"{run.label} is {safe_line(run.status, 40)}: only a failed run is given back")
    text = _clean(guidance)
    way = _way(run)
    crons, cron_notes = additions(found, kept, without_crons=without_crons)
    changes, notes = Changes(found.rows), list[str]()
    changes.set("runs", found.rows.run, f"run {run.label}", "status", "running")
    _put_back(found, way, changes, notes)
    notes += _tell(found, way, text, changes)
    made = changes.all()
    return Plan(
        operation="retry",
        title=f"Give {run.label} back to its agents, from {way.target.name}",
        reason=way.reason,
        run=run.id,
        run_number=run.number,
        step=way.target.name,
        workflow=run.workflow,
        guards=status_guards(found.rows, made),
        changes=made,
        crons=crons,
        notes=(*notes, *changes.lacking, *cron_notes, *_poll_words(found, way.target, crons)),
        irreversible=("crons that undo deletes and retry creates again have new ids",) if crons else (),
    )


def _poll_words(found: Facts, step: Step, crons: tuple[CronCall, ...]) -> tuple[str, ...]:
    """When the step will be claimed."""
    if found.crons_unknown is not None:
        return ()
    if found.job(step) is not None:
        return (found.cron_words(step),)
    name = f"antfarm/{found.run.workflow}/{found.agent(step)}"
    made = next((call for call in crons if call.name == name), None)
    if made is None:
        return ()
    return (f"{found.agent(step)}'s new cron polls {schedule_words(made.definition.get('schedule'))}",)


# ---------------------------------------------------------------- where it goes on


def _way(run: Run) -> _Way:
    failed = [step for step in run.steps if step.status == "failed"]
    unfinished = [step for step in run.steps if step.status not in FINISHED]
    if not unfinished:
        raise Refused(f"every step of {run.label} is done: there is nothing to retry")
    at = failed[0] if failed else unfinished[0]
    reason = f"{at.name} failed" if failed else f"{at.name} was never done, and no step failed"
    if not failed and at is run.steps[0] and at.status == "pending":
        reason = "it was never started: setting up its crons failed"
    for loop in run.steps:
        verify = verify_step(run, loop)
        if verify is None or at not in (loop, verify) or loop.status in FINISHED:
            continue
        owes = _owes_verdict(run, verify, at)
        return _Way(verify, loop, f"{reason}, with a story unverified") if owes else _Way(loop, None, reason)
    return _Way(at, None, reason)


def _owes_verdict(run: Run, verify: Step, at: Step) -> bool:
    """Whether the story done last waits for its verdict: the verify step goes back to waiting with each.

    A loop that failed by one of its stories goes on with that story, whatever its verify step says.
    """
    states = {story.status for story in run.stories}
    return verify.status in _OPEN and "done" in states and (at is verify or "failed" not in states)


def _put_back(found: Facts, way: _Way, changes: Changes, notes: list[str]) -> None:
    """The rows of steps and stories, so that `way.target` is what is claimed next."""
    run = found.run
    kept = {way.target.id} | ({way.loop.id} if way.loop is not None else set())
    _set_step(found, changes, way.target, "pending")
    if way.loop is not None:
        _set_step(found, changes, way.loop, "running")
        # Antfarm's medic resets a loop that has not moved for 35 min, though it only waits to be verified.
        changes.touch("steps", _row(found.rows.steps, way.loop.id), f"step {way.loop.name}")
        notes.append(f"{way.target.name} is asked again about the story that waited for it")
    for step in run.steps:
        if step.id not in kept and step.status in _OPEN:
            if step.index > way.target.index:
                _set_step(found, changes, step, "waiting")
                notes.append(f"{step.name} was {step.status} as well: it waits for its turn")
            else:
                notes.append(f"{step.name}, before it, is {step.status} and stays so")
    if any(step.type == "loop" and step.status not in FINISHED for step in run.steps):
        _put_back_stories(found, changes)


def _set_step(found: Facts, changes: Changes, step: Step, status: str) -> None:
    row, subject = _row(found.rows.steps, step.id), f"step {step.name}"
    story = next((each for each in found.run.stories if each.id == step.current_story_id), None)
    changes.set("steps", row, subject, "status", status)
    changes.set("steps", row, subject, "retry_count", 0)
    changes.set("steps", row, subject, "abandoned_count", 0)
    says = f"{story.story_id} → none" if story is not None else None
    changes.set("steps", row, subject, "current_story_id", None, says)


def _put_back_stories(found: Facts, changes: Changes) -> None:
    for story in found.run.stories:
        row, subject = _row(found.rows.stories, story.id), f"story {story.story_id}"
        if story.status in ("failed", "running"):
            changes.set("stories", row, subject, "status", "pending")
        if story.status == "failed":
            changes.set("stories", row, subject, "retry_count", 0)


# ---------------------------------------------------------------- what the agent is told


def _tell(found: Facts, way: _Way, guidance: str | None, changes: Changes) -> list[str]:
    """Put feedback and guidance into the context, and the guidance's line into the step's input."""
    cell = found.rows.run.get("context")
    try:
        if not isinstance(cell, str):
            raise Refused("the run's context is no text, so nothing can be put into it")
        context = parse_context(cell)
    except Refused:
        if guidance is not None:
            raise
        return ["its context is no JSON object: the last feedback is not put into it"]
    feedback = _last_feedback(found, context)
    if guidance is None and feedback is None:
        return []
    values: dict[str, str] = {}
    notes: list[str] = []
    if feedback is not None and context.get(FEEDBACK) != feedback:
        others = _later_readers(found, way.target, FEEDBACK)
        seen = _names(found, way.target, FEEDBACK)
        if seen or way.loop is not None or way.target.type == "loop" or not others:
            values[FEEDBACK] = feedback
        else:
            # A loop's first story would otherwise begin with what was said of another step.
            notes.append(
                f"the last feedback is not put into {FEEDBACK}: {others[0].name} would take it as its own"
            )
        if not seen:
            notes.append(
                f"the input of {way.target.name} does not name {FEEDBACK}: its agent will not see it"
            )
    if guidance is not None:
        values[GUIDANCE] = guidance
        notes += _reader_words(found, way)
        if GUIDANCE in context:
            notes.append("it takes the place of the guidance given before")
        _add_line(found, way.target, changes)
    elif context.get(GUIDANCE):
        notes.append("the guidance given before stays")
    edits = set_keys(cell, values)
    if edits:
        changes.add(_context_change(found, cell, edits, values, context))
    return notes


def _context_change(
    found: Facts, cell: str, edits: tuple[Edit, ...], values: Mapping[str, str], context: Mapping[str, object]
) -> RowChange:
    says = "; ".join(
        f"{key}: {'replaced by' if context.get(key) else 'set to'} “{value}”" for key, value in values.items()
    )
    return RowChange(
        table="runs",
        row=found.run.id,
        column="context",
        before=cell,
        after=edited(cell, edits),
        subject=f"run {found.label}",
        what="context",
        says=says,
        edits=edits,
    )


def _names(found: Facts, step: Step, key: str) -> bool:
    template = text_of(_row(found.rows.steps, step.id).get("input_template"))
    return key in (name.lower() for name in required_keys(template))


def _later_readers(found: Facts, target: Step, key: str) -> list[Step]:
    """The steps still to be done beside the target whose inputs name a key."""
    steps = found.run.steps
    return [
        step
        for step in steps
        if step is not target and step.status not in FINISHED and _names(found, step, key)
    ]


def _reader_words(found: Facts, way: _Way) -> list[str]:
    """Who will read the guidance: the agent of the step that is retried, and of every other that names it."""
    again = ", and with each story after it" if way.target.type == "loop" else ""
    return [
        f"{found.agent(way.target)} reads the guidance when it claims {way.target.name}{again}",
        *(
            f"{found.agent(step)} reads it too when it claims {step.name}, whose input names it already"
            for step in _later_readers(found, way.target, GUIDANCE)
        ),
    ]


def _add_line(found: Facts, step: Step, changes: Changes) -> None:
    row = _row(found.rows.steps, step.id)
    template = row.get("input_template")
    if not isinstance(template, str):
        raise Refused(f"the input of {step.name} is no text: guidance cannot be added to it")
    if _names(found, step, GUIDANCE):
        return
    ended = template.endswith("\n")
    line = f"{GUIDANCE_LINE}\n" if ended else f"\n{GUIDANCE_LINE}" if template else GUIDANCE_LINE
    changes.add(
        RowChange(
            table="steps",
            row=step.id,
            column="input_template",
            before=template,
            after=template + line,
            subject=f"step {step.name}",
            what="input",
            says=f"+ “{GUIDANCE_LINE}”",
            edits=(Edit("", len(template), "", line),),
        )
    )


def _last_feedback(found: Facts, context: Mapping[str, object]) -> str | None:
    """What was said last about the work that failed; None where nothing was.

    After too many refusals Antfarm leaves the last but one in `verify_feedback`: the last is in the
    verify step's own output. Otherwise the failed step's output is the reason it failed with.
    """
    run = found.run
    failed = next((step for step in run.steps if step.status == "failed"), None)
    if failed is None:
        return None
    output = _output(found, failed)
    verify = verify_step(run, failed)
    if verify is not None and _was_refused(found, output):
        verdict = _output(found, verify)
        said = parse_keys(verdict).get("issues") or verdict or _issues(context)
        return said.strip() or None
    return output or None


def _was_refused(found: Facts, loop_output: str) -> bool:
    """Whether the loop failed since its story was refused, not since its agent gave up.

    Giving up writes the reason over the loop's output; a refusal leaves the story's work in both.
    """
    if not loop_output or parse_keys(loop_output).get("status", "").lower() == "done":
        return True
    failed = [row for row in found.rows.stories if row["status"] == "failed"]
    return any(text_of(row.get("output")).strip() == loop_output for row in failed)


def _issues(context: Mapping[str, object]) -> str:
    """What the verifier objected to, as Antfarm put it into the context from its output."""
    said = context.get("issues")
    return said if isinstance(said, str) else ""


def _output(found: Facts, step: Step) -> str:
    return text_of(_row(found.rows.steps, step.id).get("output")).strip()


def _clean(guidance: str | None) -> str | None:
    """The guidance as it can be stored and handed on; None where there is none."""
    if guidance is None:
        return None
    text = guidance.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    text = _CONTROL.sub("", text).strip()
    if len(text) > GUIDANCE_CHARACTERS:
        raise Refused(f"the guidance has {len(text)} characters, at most {GUIDANCE_CHARACTERS} are taken")
    return text or None


def _row(rows: tuple[Row, ...], row_id: str) -> Row:
    return next(row for row in rows if row["id"] == row_id)
