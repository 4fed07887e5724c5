"""Acknowledge: somebody has seen a failed run. Nothing changes in Antfarm's database."""

from __future__ import annotations

from farmtui.operations.facts import Facts
from farmtui.operations.plan import Guard, Plan, Refused
from farmtui.text import safe_line

NOTE_CHARACTERS = 2_000


def plan_acknowledge(found: Facts, note: str) -> Plan:
    """Plan to acknowledge a failed run, with a note for the others.

    Raises:
        Refused: the run has not failed, or the note is too long.
    """
    run, row = found.run, found.rows.run
    if run.status != "failed":
        raise Refused(f"{run.label} is {safe_line(run.status, 40)}: only a failed run waits for anybody")
    note = note.strip()
    if len(note) > NOTE_CHARACTERS:
        raise Refused(f"the note has {len(note)} characters, at most {NOTE_CHARACTERS} are kept")
    columns = [name for name in ("status", "updated_at") if name in row]
    return Plan(
        operation="acknowledge",
        title=f"Acknowledge {run.label} {run.workflow}",
        reason=note or "without a note",
        run=run.id,
        run_number=run.number,
        workflow=run.workflow,
        guards=tuple(Guard("runs", run.id, name, row[name], f"run {run.label}") for name in columns),
        acknowledgement={
            "run": run.id,
            "run_status": run.status,
            "run_updated_at": row.get("updated_at"),
            "note": note,
        },
        notes=("it no longer waits for a human, until the run changes",),
    )
