"""`farm escalations`: failed runs that wait for a person, the oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Unread
from farmtui.cli.runs import LANE_SOURCES, label
from farmtui.cli.screen import Screen
from farmtui.cli.table import pairs
from farmtui.clock import iso
from farmtui.state import Acknowledgement, Escalation
from farmtui.text import crop, safe_line

if TYPE_CHECKING:
    from farmtui.antfarm.failures import Failure

_OUTPUT_CELLS = 300


def escalations(ctx: typer.Context) -> Answer:
    """List the failed runs that wait for a person, oldest first."""
    call: Call = ctx.obj
    call.begin("escalations", escalations=[])
    view = call.look()
    from farmtui.antfarm.failures import read_failures
    from farmtui.antfarm.schema import Unreadable

    found = view.judgement.escalations
    try:
        failures = read_failures(call.paths.database.path, [entry.run for entry in found])
    except Unreadable as error:
        raise Unread(str(error)) from None
    call.hide_secrets_of(*(entry.run for entry in found))
    return Answer(
        "escalations",
        {"escalations": [_data(entry, failures.get(entry.run)) for entry in found]},
        lambda data, screen: _lines(data, screen, view.state.acknowledgements),
        Exit.FINE,
        call.source_errors(*LANE_SOURCES),
    )


def _data(entry: Escalation, failure: Failure | None) -> dict[str, Any]:
    return {
        "run": entry.run,
        "run_number": entry.run_number,
        "workflow": entry.workflow,
        "task": entry.task,
        "step": entry.step,
        "story": entry.story or (failure.story if failure is not None else None),
        "reason": entry.reason,
        "since": iso(entry.since),
        "last_output": failure.output if failure is not None else None,
        "acknowledged": entry.acknowledged,
    }


def _lines(
    data: Mapping[str, Any], screen: Screen, acknowledgements: Mapping[str, Acknowledgement]
) -> Iterator[str]:
    entries = data["escalations"]
    if not entries:
        yield "Nobody is waited for: no failed run has a policy that names a human."
        return
    for at, entry in enumerate(entries):
        if at:
            yield ""
        run = label(entry["run_number"], entry["run"])
        waits = "acknowledged" if entry["acknowledged"] else "waits for you"
        since = f" {screen.age(entry['since'])}" if entry["since"] else ""
        yield safe_line(f"{run} {entry['workflow']}  {entry['task']}", screen.width)
        where = " ".join(part for part in (entry["step"], entry["story"]) if part)
        output = entry["last_output"]
        yield from pairs(
            [
                ("state", waits + since),
                ("why", entry["reason"]),
                ("where", where),
                ("seen", _seen(acknowledgements.get(entry["run"])) if entry["acknowledged"] else None),
                ("last", None if output is None else crop(safe_line(output, _OUTPUT_CELLS), _OUTPUT_CELLS)),
                ("then", f"farm resolve {entry['run'][:8]} --retry --guidance TEXT, or farm ack"),
            ],
            screen,
            indent=2,
        )


def _seen(ack: Acknowledgement | None) -> str | None:
    """Who has seen it, and what is to be known of it."""
    return None if ack is None else f"by {ack.by}: {ack.note or 'without a note'}"
