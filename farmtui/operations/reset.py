"""Reset: an abandoned step goes back to pending, so that its agent can claim it again.

It is what Antfarm's own clean-up does (which only runs when an agent claims something), with two
differences: it never fails a run, since a counter at its limit stays there, and it counts against the
agent's own time-out where the workflow sets one. A retry of the agent's is never used up.
"""

from __future__ import annotations

from farmtui.antfarm.rows import Row
from farmtui.clock import age
from farmtui.medic.claims import claimed_at, timeout_of
from farmtui.medic.look import limit_words
from farmtui.medic.steps import awaited_verify
from farmtui.operations.facts import Changes, Facts, find_step, status_guards
from farmtui.operations.plan import Plan, Refused
from farmtui.state import Run, Step
from farmtui.text import safe_line

# Antfarm fails the step when it counts up to this; a reset counts up to it and fails nothing.
ABANDON_LIMIT = 5
_NEXT_TIME = "abandoned once more, Antfarm's own clean-up fails the run"


def plan_reset(found: Facts, name: str, *, force: bool = False) -> Plan:
    """Plan the reset of a step.

    Args:
        name: the step's name or id.
        force: also where the claim is not stale yet.

    Raises:
        Refused: the step is not running, only waits for its verify step, or is not stale.
    """
    step, run = find_step(found, name), found.run
    _refuse_unless_running(found, step)
    verify = awaited_verify(run, step)
    if verify is not None:
        raise Refused(
            f"{step.name} of {run.label} only waits for {verify.name}, which is {verify.status}: a reset "
            f"would start the next story with this one unverified; see to {verify.name} instead"
        )
    claimed = claimed_at(run, step)
    held = age(claimed, found.now)
    limit = limit_words(step, found.workflow)
    stale = claimed is not None and (found.now - claimed).total_seconds() > timeout_of(step, found.workflow)
    if not stale and not force:
        raise Refused(
            f"{step.name} of {run.label} is not stale: running {held}, {limit}; an agent may be at work on "
            "it (--force resets it all the same)"
        )
    changes, counted, notes = _changes(found, step)
    if not stale:
        notes.append(f"it is not stale: if {found.agent(step)} is still at work, the step will be done twice")
    made = changes.all()
    return Plan(
        operation="reset",
        title=f"Reset {'the stale claim' if stale else 'the claim'} of {run.label} {step.name}",
        reason=f"running {held} {'without a word' if stale else '(forced)'}; {limit}",
        run=run.id,
        run_number=run.number,
        step=step.name,
        workflow=run.workflow,
        guards=status_guards(found.rows, made),
        changes=made,
        events=(
            {
                "event": "step.timeout",
                "runId": run.id,
                "workflowId": run.workflow,
                "stepId": step.name,
                "detail": f"Reset by farm to pending ({counted})",
            },
        ),
        notes=(*notes, *changes.lacking, found.cron_words(step)),
        irreversible=("the event step.timeout stays in Antfarm's log",),
    )


def _refuse_unless_running(found: Facts, step: Step) -> None:
    run = found.run
    if run.status == "failed":
        raise Refused(f"{run.label} has failed: give it back to its agents (farm resolve {run.id} --retry)")
    if run.status != "running":
        raise Refused(f"{run.label} is {safe_line(run.status, 40)}: no agent would claim a step of it")
    if step.status != "running":
        raise Refused(
            f"{step.name} of {run.label} is {safe_line(step.status, 40)}, not running: nothing to reset"
        )


def _changes(found: Facts, step: Step) -> tuple[Changes, str, list[str]]:
    """The changes, the counter in words for the event, and what should be known."""
    changes, subject = Changes(found.rows), f"step {step.name}"
    row = _row(found.rows.steps, step.id)
    changes.set("steps", row, subject, "status", "pending")
    story = _row_or_none(found.rows.stories, step.current_story_id if step.type == "loop" else None)
    if step.current_story_id is not None:
        shown = story["story_id"] if story is not None else "a story that is gone"
        changes.set("steps", row, subject, "current_story_id", None, f"{shown} → none")
    if story is not None and story["status"] in ("running", "pending"):
        counted, notes = _reset_story(changes, story, found.run)
    else:
        counted, notes = _count_abandoned(changes, row, step)
    left = [each for each in found.run.stories if each.status == "running" and each.id != _id(story)]
    if left and step.type == "loop":
        notes.append(f"{', '.join(each.story_id for each in left)} is running beside it and stays so")
    return changes, counted, notes


def _reset_story(changes: Changes, story: Row, run: Run) -> tuple[str, list[str]]:
    record = next(each for each in run.stories if each.id == story["id"])
    subject, limit = f"story {record.story_id}", record.max_retries
    changes.set("stories", story, subject, "status", "pending")
    tries = record.retry_count + 1
    if tries > limit:
        note = (
            f"{record.story_id} has used up its {limit} retries: the count stays, the next failure fails it"
        )
        return f"story {record.story_id}, retry {record.retry_count} of {limit}", [note]
    changes.set("stories", story, subject, "retry_count", tries, f"{record.retry_count} → {tries} of {limit}")
    return f"story {record.story_id}, retry {tries} of {limit}", []


def _count_abandoned(changes: Changes, row: Row, step: Step) -> tuple[str, list[str]]:
    count = step.abandoned_count + 1
    if count > ABANDON_LIMIT:
        note = f"it was abandoned {step.abandoned_count} times: the count stays; {_NEXT_TIME}"
        return f"abandon {step.abandoned_count}/{ABANDON_LIMIT}", [note]
    says = f"{step.abandoned_count} → {count} of {ABANDON_LIMIT}"
    changes.set("steps", row, f"step {step.name}", "abandoned_count", count, says)
    return f"abandon {count}/{ABANDON_LIMIT}", [_NEXT_TIME] if count + 1 >= ABANDON_LIMIT else []


def _row(rows: tuple[Row, ...], row_id: str) -> Row:
    return next(row for row in rows if row["id"] == row_id)


def _row_or_none(rows: tuple[Row, ...], row_id: str | None) -> Row | None:
    return next((row for row in rows if row["id"] == row_id), None) if row_id is not None else None


def _id(row: Row | None) -> object:
    return row["id"] if row is not None else None
