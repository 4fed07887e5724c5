"""`farm reset`, `resolve`, `ack` and `undo`: what an operator does to one run, and taking it back."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Unread, Usage
from farmtui.cli.follow import wait_for_claim
from farmtui.cli.naming import find_run, find_step
from farmtui.cli.show import RUN_HELP
from farmtui.cli.writing import Asking, DryRun, Wait, Yes, change, planned, told
from farmtui.state import Run

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)]
LONGEST_GUIDANCE = 256 * 1024
_EMPTY = {"plan": None, "outcome": None, "entry": None, "after": None}


def reset(
    ctx: typer.Context,
    run: RunArgument,
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step's name or id.")],
    force: Annotated[bool, typer.Option("--force", help="Even if the step's claim is not stale.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    wait: Wait = False,
) -> Answer:
    """Put an abandoned step back to pending, to be claimed anew."""
    call: Call = ctx.obj
    call.begin("reset", **_EMPTY)
    found = _run(call, run)
    named = find_step(_with_steps(call, found), step)
    plan = planned(call, lambda: call.farm.desk.reset(found.id, named.id, force=force))
    done = change(call, plan, Asking(dry_run, yes))
    if wait and done.outcome == "applied":
        done = replace(done, followed=wait_for_claim(call, found.id, named.id))
    return told(call, "reset", done)


def resolve(
    ctx: typer.Context,
    run: RunArgument,
    retry: Annotated[
        bool, typer.Option("--retry", help="Give the run back to its agents, all counters at nought.")
    ] = False,
    guidance: Annotated[
        str | None,
        typer.Option("--guidance", metavar="TEXT", help="What the agent is to know; - reads it from stdin."),
    ] = None,
    guidance_file: Annotated[
        str | None, typer.Option("--guidance-file", metavar="FILE", help="The same, from a file.")
    ] = None,
    without_crons: Annotated[
        bool, typer.Option("--without-crons", help="Even if missing crons cannot be created.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    wait: Wait = False,
) -> Answer:
    """Resolve an escalated run: give it back to its agents, with guidance."""
    call: Call = ctx.obj
    call.begin("resolve", **_EMPTY)
    if not retry:
        raise Usage("say how it is to be resolved: --retry")
    if guidance is not None and guidance_file is not None:
        raise Usage("--guidance and --guidance-file are two ways to give one text: use one")
    text = _guidance(guidance, guidance_file)
    found = _run(call, run)
    plan = planned(call, lambda: call.farm.desk.retry(found.id, text, without_crons=without_crons))
    done = change(call, plan, Asking(dry_run, yes, stdin_taken=guidance == "-"))
    if wait and done.outcome == "applied":
        done = replace(done, followed=wait_for_claim(call, found.id, plan.step or ""))
    return told(call, "resolve", done)


def ack(
    ctx: typer.Context,
    run: RunArgument,
    note: Annotated[
        str | None, typer.Option("--note", metavar="TEXT", help="What the next operator is to know.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Acknowledge a failed run: it waits for nobody until it changes."""
    call: Call = ctx.obj
    call.begin("ack", **_EMPTY)
    if note is None or not note.strip():
        raise Usage("--note TEXT is needed: the next operator should know why")
    found = _run(call, run)
    plan = planned(call, lambda: call.farm.desk.acknowledge(found.id, note))
    return told(call, "ack", change(call, plan, Asking(dry_run, yes)))


def undo(
    ctx: typer.Context,
    entry: Annotated[
        str | None,
        typer.Argument(metavar="[ENTRY]", help="An entry of farm journal; the last one without it."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Take back what was done, unless it has moved on since."""
    call: Call = ctx.obj
    call.begin("undo", **_EMPTY)
    call.look(tally=False, needed=False)
    plan = planned(call, lambda: call.farm.desk.undo(entry))
    return told(call, "undo", change(call, plan, Asking(dry_run, yes)))


def _run(call: Call, word: str) -> Run:
    return find_run(call.look(tally=False).state.runs, word)


def _with_steps(call: Call, run: Run) -> Run:
    """The run with its steps, which are not kept of one that has ended."""
    if run.steps:
        return run
    from farmtui.antfarm.schema import Unreadable

    try:
        return call.farm.detail(run.id).run
    except Unreadable as error:
        raise Unread(str(error)) from None


def _guidance(given: str | None, file: str | None) -> str | None:
    if given is None and file is None:
        return None
    if given == "-":
        text = _read_stdin()
    elif file is not None:
        text = _read(file)
    else:
        text = given or ""
    if len(text) > LONGEST_GUIDANCE:
        raise Usage(f"the guidance is longer than {LONGEST_GUIDANCE // 1024} kB")
    if not text.strip():
        raise Usage("the guidance is empty")
    return text.rstrip("\n")


def _read_stdin() -> str:
    try:
        return sys.stdin.read(LONGEST_GUIDANCE + 1)
    except UnicodeDecodeError:
        raise Usage("the guidance on standard input is not UTF-8 text") from None


def _read(file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as stream:
            return stream.read(LONGEST_GUIDANCE + 1)
    except UnicodeDecodeError:
        raise Usage(f"{file} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise Unread(f"the guidance cannot be read from {file}: {words}") from None
