"""`farm runs`: every run, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Usage
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, table
from farmtui.clock import iso
from farmtui.state import Lane, Run, Workflow

# What a lane rests on: rows, policies, and who has seen what.
LANE_SOURCES = ("database", "workflows", "journal")
LANES = tuple(str(lane) for lane in Lane)


def runs(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many; 0 for all.")] = 50,
    lane: Annotated[
        list[str] | None,
        typer.Option("--lane", metavar="LANE", help=f"Only these lanes ({', '.join(LANES)}); repeatable."),
    ] = None,
    workflow: Annotated[
        list[str] | None,
        typer.Option("--workflow", metavar="WORKFLOW", help="Only runs of these workflows; repeatable."),
    ] = None,
) -> Answer:
    """List runs, newest first."""
    call: Call = ctx.obj
    call.begin("runs", runs=[])
    if limit < 0:
        raise Usage("--limit is a number of runs, or 0 for all")
    lanes = {part for value in lane or () for part in value.split(",")}
    if unknown := sorted(lanes.difference(LANES)):
        raise Usage(f"no lane {unknown[0]!r}: there are {', '.join(LANES)}")
    view = call.look()
    found = [
        run
        for run in view.state.runs
        if (not lanes or str(view.judgement.lanes.get(run.id, Lane.OTHER)) in lanes)
        and (not workflow or run.workflow in workflow)
    ]
    shown = found[:limit] if limit else found
    return Answer(
        "runs",
        {
            "runs": [
                summary(
                    run,
                    view.judgement.lanes.get(run.id, Lane.OTHER),
                    view.state.workflows.get(run.workflow),
                )
                for run in shown
            ],
            "total": len(found),
        },
        lambda data, screen: _lines(data, screen, every=len(view.state.runs)),
        Exit.FINE,
        call.source_errors(*LANE_SOURCES),
    )


def summary(run: Run, lane: Lane, workflow: Workflow | None) -> dict[str, Any]:
    """A run in one row, for scripts.

    Args:
        workflow: as installed: where no step of a failed run failed, it tells which one is to blame.
    """
    from farmtui.medic.lanes import failed_step, run_tally
    from farmtui.medic.steps import active_step

    tally = run_tally(run)
    step = active_step(run)
    blamed = failed_step(run, workflow if run.status == "failed" else None)
    return {
        "id": run.id,
        "number": run.number,
        "workflow": run.workflow,
        "task": run.task,
        "status": run.status,
        "lane": str(lane),
        "step": step.name if step is not None else blamed,
        "steps_done": tally.steps_done,
        "steps_total": tally.steps_total,
        "stories_done": tally.stories_done,
        "stories_total": tally.stories_total,
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
    }


def label(number: int | None, run_id: str | None) -> str:
    """How a run is called for people: ``#14``, else the beginning of its id."""
    return f"#{number}" if number is not None else (run_id or "")[:8]


def _lines(data: Mapping[str, Any], screen: Screen, *, every: int) -> Iterator[str]:
    shown = data["runs"]
    if not shown:
        if every:
            yield "No run of these lanes and workflows."
        else:
            yield 'No runs yet. antfarm workflow run WORKFLOW "TASK" starts one; farm demo shows a busy farm.'
        return
    yield from table(
        [
            Column("RUN", right=True),
            Column("WORKFLOW"),
            Column("LANE", state=True),
            Column("STEP"),
            Column("STEPS", right=True),
            Column("STORIES", right=True),
            Column("CHANGED", right=True),
            Column("TASK", flexible=True),
        ],
        [
            (
                label(run["number"], run["id"]),
                run["workflow"],
                run["lane"] if run["lane"] != "other" else run["status"],
                run["step"],
                _part(run["steps_done"], run["steps_total"]),
                _part(run["stories_done"], run["stories_total"]),
                screen.age(run["updated_at"]),
                run["task"],
            )
            for run in shown
        ],
        screen,
    )
    if len(shown) < data["total"]:
        yield f"{len(shown)} of {data['total']}; --limit 0 shows all"


def _part(done: int, whole: int) -> str:
    return f"{done}/{whole}" if whole else ""
