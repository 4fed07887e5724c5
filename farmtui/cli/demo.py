"""`farm demo`: the console on a small farm that runs by itself."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from farmtui.cli.call import Call
from farmtui.cli.console import need_terminal, run_console
from farmtui.cli.exits import Exit, Stop, Usage
from farmtui.clock import SystemClock

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def demo(
    ctx: typer.Context,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="DIR", help="Keep the farm in this folder: an empty one or a demo's."),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="No console: print the state folder and let the farm run.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="N", help="With --headless: end after so long.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="The same number gives the same past and chances.")
    ] = 1,
    no_mouse: Annotated[bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal.")] = False,
) -> int:
    """Show a small farm that really runs; yours is not touched."""
    call: Call = ctx.obj
    call.begin("demo")
    options = call.options
    for flag, given in (
        ("--state-dir", options.state_dir),
        ("--db", options.db),
        ("--now", options.now),
        ("--no-gateway", options.no_gateway),
    ):
        if given:
            raise Usage(f"{flag} does not go with farm demo, which has a farm of its own")
    if seconds is not None and not headless:
        raise Usage("--seconds belongs to --headless")
    if not headless:
        need_terminal(call, "farm demo --headless runs without one")
    elif options.json:
        raise Usage("farm demo has no answer in JSON")
    folder = None if keep is None else Path(keep)
    from farmtui.demo.run import DemoError, demo_farm, run_headless

    try:
        if headless:
            run_headless(folder, seconds=seconds, seed=seed)
            return Exit.FINE
        from farmtui.farm import Farm

        with _ended_by_signals(), demo_farm(folder, seed=seed) as running:
            farm = Farm(running.paths, environ=running.environ, readonly=options.readonly)
            return run_console(
                farm,
                clock=SystemClock(),
                readonly=options.readonly,
                mouse=not (no_mouse or options.no_mouse),
                environ=running.environ,
            )
    except DemoError as error:
        raise Stop(str(error), Exit.FOUND) from None


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A signal that ends the process lets the demo clean up after itself."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    previous = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
