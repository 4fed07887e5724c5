"""Plans, outcomes and journal entries for people and for scripts, secrets masked.

`describe` is what the dialog shows and `--dry-run` prints; its text is safe to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farmtui.antfarm.detail import parse_context
from farmtui.clock import iso
from farmtui.operations.journal import JournalEntry
from farmtui.operations.plan import CronAction, CronCall, Edit, Outcome, Plan, RowChange, SqlValue
from farmtui.operations.undo import refusal
from farmtui.text import cells, mask_text, pad, safe_line, secret_values, without

_SUBJECT_CELLS, _WHAT_CELLS = 24, 17
_VALUE_CELLS = 300


def describe(plan: Plan) -> tuple[tuple[str, str], ...]:
    """A plan as (label, text) rows: why, will, then, undo.

    Each text is one safe line, without the values of secret keys of a context that is changed.
    """
    rows = [("why", _line(plan.reason))]
    rows += [("will", line) for line in _will(plan)]
    rows += [("then", _line(note)) for note in plan.notes]
    rows += [("undo", line) for line in _undo(plan)]
    secrets = frozenset().union(*map(_secrets_in, plan.changes))
    return tuple((label, without(secrets, text)) for label, text in rows)


def _secrets_in(change: RowChange) -> frozenset[str]:
    if (change.table, change.column) != ("runs", "context") or not isinstance(change.before, str):
        return frozenset()
    context, _ = parse_context(change.before)
    return secret_values(context)


def describe_outcome(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    """An outcome as (label, text) rows: its status with what was done, then what did not work."""
    rows = [(outcome.status.value, _line(outcome.detail))]
    return (*rows, *(("but", _line(problem)) for problem in outcome.problems))


def plan_json(plan: Plan) -> dict[str, Any]:
    """A plan as JSON-ready data for scripts. Of long texts only what is edited is in it."""
    return {
        "operation": plan.operation,
        "title": plan.title,
        "reason": plan.reason,
        "run": plan.run,
        "run_number": plan.run_number,
        "step": plan.step,
        "workflow": plan.workflow,
        "changes": [_change_json(change) for change in plan.changes],
        "events": [_masked(event) for event in plan.events],
        "crons": [_call_json(call) for call in plan.crons],
        "acknowledgement": _masked(plan.acknowledgement) if plan.acknowledgement is not None else None,
        "notes": [mask_text(note) for note in plan.notes],
        "irreversible": list(plan.irreversible),
        "undoes": plan.undoes,
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON-ready data for scripts; `after` stands beside it in an answer."""
    return {
        "status": outcome.status.value,
        "detail": mask_text(outcome.detail),
        "problems": [mask_text(problem) for problem in outcome.problems],
    }


def entry_json(entry: JournalEntry) -> dict[str, Any]:
    """A journal entry as JSON-ready data for scripts."""
    return {
        "entry": entry.id,
        "at": iso(entry.at),
        "ended_at": iso(entry.ended_at),
        "user": entry.user,
        "sudo_user": entry.sudo_user,
        "host": entry.host,
        "terminal": entry.terminal,
        "ssh_client": entry.ssh_client,
        "version": entry.version,
        "database": entry.database,
        "operation": entry.operation,
        "title": entry.title,
        "plan": plan_json(entry.plan) if entry.plan is not None else None,
        "problem": entry.problem,
        "outcome": {
            "status": entry.status.value,
            "detail": mask_text(entry.detail),
            "problems": [mask_text(problem) for problem in entry.problems],
        },
        "after": _masked(entry.after),
        "undone_by": entry.undone_by,
        "undoable": refusal(entry) is None,
    }


# ---------------------------------------------------------------- for people


def _will(plan: Plan) -> list[str]:
    shown = [change for change in plan.changes if not change.volatile and change.column != "updated_at"]
    subjects = [safe_line(change.subject) for change in shown]
    wide = min(_SUBJECT_CELLS, max(map(cells, subjects), default=0))
    lines = [
        f"{pad(subject, wide)}  {pad(_line(change.what), _WHAT_CELLS)} {_values(change)}"
        for subject, change in zip(subjects, shown, strict=True)
    ]
    events = ", ".join(str(event.get("event")) for event in plan.events)
    if events:
        lines.append(f"{pad('events', wide)}  + {_line(events)}")
    lines += [_cron_line(call) for call in plan.crons]
    if plan.acknowledgement is not None:
        back = "withdraws" in plan.acknowledgement
        lines.append("take the acknowledgement back" if back else "note that somebody has seen it")
    return lines


def _values(change: RowChange) -> str:
    if change.says is not None:
        return _line(change.says)
    return f"{_value(change.before)} → {_value(change.after)}"


def _value(value: SqlValue) -> str:
    return "none" if value is None else _line(str(value))


def _cron_line(call: CronCall) -> str:
    if call.action is CronAction.ADD:
        return f"create the cron {_line(call.name)}"
    return f"delete the cron {_line(call.name)} ({_line(call.job_id or '?')[:8]})"


def _undo(plan: Plan) -> list[str]:
    lines = []
    if plan.changes:
        lines.append("with u, until an agent claims it or anything else of it moves")
    elif plan.crons or plan.acknowledgement is not None:
        lines.append("with u")
    return [*lines, *(f"but {_line(what)}" for what in plan.irreversible)]


def _line(text: str) -> str:
    return safe_line(mask_text(text), _VALUE_CELLS)


# ---------------------------------------------------------------- for scripts


def _change_json(change: RowChange) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "table": change.table,
        "row": change.row,
        "column": change.column,
        "subject": change.subject,
        "what": change.what,
    }
    if change.edits:
        return {**shown, "edits": [_edit_json(edit) for edit in change.edits]}
    after = "now" if change.volatile and change.after is None else change.after
    return {**shown, "before": _masked(change.before), "after": _masked(after)}


def _edit_json(edit: Edit) -> dict[str, Any]:
    return {
        "key": edit.key or None,
        "start": edit.start,
        "before": mask_text(edit.before),
        "after": mask_text(edit.after),
    }


def _call_json(call: CronCall) -> dict[str, Any]:
    return {"action": call.action.value, "name": call.name, "id": call.job_id}


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _masked(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(held) for held in value]
    return mask_text(value) if isinstance(value, str) else value
