"""Plans as JSON, to the journal and back.

Of a cell with `edits` (a context, a template) only these and two hash sums go into the journal: the rest
of the text may hold secrets. Undo checks by the sums that it gives back exactly what was there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from farmtui.operations.plan import CronAction, CronCall, Edit, Guard, Plan, RowChange, SqlValue
from farmtui.text import is_secret_key, mask_url


class NotAPlan(ValueError):
    """What stands in the journal cannot be understood as a plan."""


def text_sum(text: str) -> str:
    """The SHA-256 by which a long text is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits made, whose places are counted in it.

    Raises:
        ValueError: an edit does not find the text that it would replace.
    """
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        end = edit.start + len(edit.before)
        if edit.start < done or text[edit.start : end] != edit.before:
            raise ValueError(f"the text is another one at {edit.start}")
        pieces += (text[done : edit.start], edit.after)
        done = end
    return "".join(pieces) + text[done:]


def reversed_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits that lead back, their places counted in the text after."""
    back: list[Edit] = []
    shift = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        back.append(Edit(edit.key, edit.start + shift, edit.after, edit.before))
        shift += len(edit.after) - len(edit.before)
    return tuple(back)


def without_secrets(value: Any) -> Any:
    """JSON data without keys whose values are secret, and without the ``#auth=…`` of URLs."""
    if isinstance(value, Mapping):
        return {key: without_secrets(held) for key, held in value.items() if not _is_secret(str(key), held)}
    if isinstance(value, list | tuple):
        return [without_secrets(held) for held in value]
    return mask_url(value) if isinstance(value, str) else value


def workflow_of(call: CronCall) -> str:
    """The workflow whose cron it is: the second part of its name."""
    return call.name.split("/")[1] if call.name.count("/") == 2 else ""


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as the journal keeps it."""
    return {
        "operation": plan.operation,
        "title": plan.title,
        "reason": plan.reason,
        "run": plan.run,
        "run_number": plan.run_number,
        "step": plan.step,
        "workflow": plan.workflow,
        "guards": [asdict(guard) for guard in plan.guards],
        "idle_workflows": list(plan.idle_workflows),
        "changes": [_change_record(change) for change in plan.changes],
        "events": [without_secrets(event) for event in plan.events],
        "crons": [call_record(call) for call in plan.crons],
        "acknowledgement": dict(plan.acknowledgement) if plan.acknowledgement is not None else None,
        "notes": list(plan.notes),
        "irreversible": list(plan.irreversible),
        "undoes": plan.undoes,
    }


def call_record(call: CronCall) -> dict[str, Any]:
    """A cron call as the journal keeps it."""
    return {
        "action": call.action.value,
        "name": call.name,
        "job_id": call.job_id,
        "definition": without_secrets(call.definition),
        "twin": call.twin,
    }


def plan_from(record: object) -> Plan:
    """A plan read back from the journal.

    Raises:
        NotAPlan: something that it needs is missing or of another kind.
    """
    try:
        return _plan_from(_mapping(record))
    except (KeyError, TypeError, ValueError) as error:
        raise NotAPlan(f"not understood: {error}") from None


def call_from(record: object) -> CronCall:
    """A cron call read back from the journal; raises KeyError, TypeError or ValueError where it is none."""
    found = _mapping(record)
    return CronCall(
        action=CronAction(found["action"]),
        name=_text(found["name"]),
        job_id=_text_or_none(found.get("job_id")),
        definition=_mapping(found.get("definition") or {}),
        twin=_text_or_none(found.get("twin")),
    )


def _plan_from(record: Mapping[str, Any]) -> Plan:
    number = record.get("run_number")
    acknowledgement = record.get("acknowledgement")
    return Plan(
        operation=_text(record["operation"]),
        title=_text(record["title"]),
        reason=_text(record.get("reason", "")),
        run=_text_or_none(record.get("run")),
        run_number=number if isinstance(number, int) else None,
        step=_text_or_none(record.get("step")),
        workflow=_text_or_none(record.get("workflow")),
        guards=tuple(_guard_from(_mapping(each)) for each in record.get("guards") or ()),
        idle_workflows=tuple(_text(each) for each in record.get("idle_workflows") or ()),
        changes=tuple(_change_from(_mapping(each)) for each in record.get("changes") or ()),
        events=tuple(_mapping(each) for each in record.get("events") or ()),
        crons=tuple(call_from(each) for each in record.get("crons") or ()),
        acknowledgement=_mapping(acknowledgement) if acknowledgement is not None else None,
        notes=tuple(_text(each) for each in record.get("notes") or ()),
        irreversible=tuple(_text(each) for each in record.get("irreversible") or ()),
        undoes=_text_or_none(record.get("undoes")),
    )


def _change_record(change: RowChange) -> dict[str, Any]:
    record: dict[str, Any] = {
        "table": change.table,
        "row": change.row,
        "column": change.column,
        "subject": change.subject,
        "what": change.what,
        "volatile": change.volatile,
        "says": change.says,
    }
    if not change.edits:
        return {**record, "before": change.before, "after": change.after}
    sums = change.sums or (text_sum(str(change.before)), text_sum(str(change.after)))
    return {**record, "edits": [asdict(edit) for edit in change.edits], "sums": list(sums)}


def _change_from(record: Mapping[str, Any]) -> RowChange:
    edits = tuple(
        Edit(_text(each["key"]), int(each["start"]), _text(each["before"]), _text(each["after"]))
        for each in record.get("edits") or ()
    )
    before, after = record["sums"] if edits else ("", "")
    return RowChange(
        table=_text(record["table"]),
        row=_text(record["row"]),
        column=_text(record["column"]),
        before=None if edits else _value(record["before"]),
        after=None if edits else _value(record["after"]),
        subject=_text(record["subject"]),
        what=_text(record["what"]),
        volatile=record.get("volatile") is True,
        says=_text_or_none(record.get("says")),
        edits=edits,
        sums=(_text(before), _text(after)) if edits else None,
    )


def _guard_from(record: Mapping[str, Any]) -> Guard:
    return Guard(
        table=_text(record["table"]),
        row=_text(record["row"]),
        column=_text(record["column"]),
        value=_value(record["value"]),
        subject=_text(record["subject"]),
    )


def _is_secret(key: str, held: Any) -> bool:
    return is_secret_key(key) and held is not None and not isinstance(held, bool | int | float)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.60} is no object")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is no text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _value(value: object) -> SqlValue:
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{value!r:.60} is no cell")
