"""`farm journal`: what was done to this farm, by whom, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Unread, Usage
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, table
from farmtui.cli.writing import iso_times
from farmtui.state import SourceStatus
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.operations.journal import JournalEntry


def journal(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many; 0 for all.")] = 20,
) -> Answer:
    """List what was done to this farm, by whom, and what came of it."""
    call: Call = ctx.obj
    call.begin("journal", entries=[])
    if limit < 0:
        raise Usage("--limit is a number of entries, or 0 for all")
    from farmtui.antfarm.schema import Unreadable
    from farmtui.operations.journal import Journal

    found = Journal(call.paths.farm_dir)
    now = datetime.now(UTC)
    try:
        entries = found.entries()
    except Unreadable as error:
        call.statuses["journal"] = SourceStatus("journal", None, str(error), now)
        raise Unread(str(error)) from None
    call.statuses["journal"] = SourceStatus("journal", now)
    shown = list(reversed(entries))[: limit or None]
    call.hide_secrets_of(*(each.plan.run for each in shown if each.plan is not None))
    return Answer(
        "journal", {"path": str(found.path), "entries": [entry_data(each) for each in shown]}, _lines
    )


def entry_data(entry: JournalEntry) -> dict[str, Any]:
    """An entry for scripts. `plan` is null where a newer farm wrote it in a way that is not understood."""
    from farmtui.operations.words import entry_json

    data = entry_json(entry)
    outcome = data["outcome"]
    return {
        **data,
        "outcome": outcome["status"],
        "detail": outcome["detail"],
        "problems": outcome["problems"],
        "after": iso_times(data["after"]),
    }


def _lines(data: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    entries = data["entries"]
    if not entries:
        yield "Nothing was done to this farm with farm yet."
        return
    yield from table(
        [
            Column("ENTRY"),
            Column("AGO", right=True),
            Column("WHO"),
            Column("OUTCOME", state=True),
            Column("UNDONE BY"),
            Column("WHAT", flexible=True),
        ],
        [
            (
                each["entry"],
                screen.age(each["at"]),
                each["sudo_user"] or each["user"],
                each["outcome"],
                each["undone_by"],
                each["title"] or each["operation"],
            )
            for each in entries
        ],
        screen,
    )
    for each in entries:
        for line in (*each["problems"], *([each["problem"]] if each["problem"] else [])):
            yield safe_line(f"{each['entry']}: {line}")
