"""`farm crons delete`: cron jobs named antfarm/<workflow>/<agent>, by id or all that are orphaned."""

from __future__ import annotations

from typing import Annotated

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Unread, Usage
from farmtui.cli.naming import find_crons
from farmtui.cli.writing import Asking, DryRun, Yes, change, planned, told


def delete(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="A cron's id, or the first 4 characters of it or more."),
    ] = None,
    orphaned: Annotated[
        bool, typer.Option("--orphaned", help="All that poll for nothing, as farm crons tells.")
    ] = False,
    workflow: Annotated[
        str | None, typer.Option("--workflow", metavar="WORKFLOW", help="With --orphaned: only its crons.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Delete cron jobs of Antfarm's; undo adds them again."""
    call: Call = ctx.obj
    call.begin("crons.delete", plan=None, outcome=None, entry=None, after=None)
    if bool(ids) == orphaned:
        raise Usage("name crons by their ids, or say --orphaned")
    if workflow is not None and not orphaned:
        raise Usage("--workflow belongs to --orphaned")
    # The desk plans from fresh lists of its own; ours only tells which jobs the words mean.
    if ids:
        listing = call.look(crons=True, tally=False, needed=False).state.crons
        if not listing.known:
            raise Unread(listing.note or "the crons could not be listed")
        chosen = find_crons(listing.jobs, ids)
        plan = planned(call, lambda: call.farm.desk.delete_crons(chosen))
    else:
        call.look(tally=False, needed=False)
        plan = planned(call, lambda: call.farm.desk.delete_orphans(workflow))
    return told(call, "crons.delete", change(call, plan, Asking(dry_run, yes)))
