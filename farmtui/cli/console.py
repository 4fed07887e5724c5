"""`farm` without a command: the console."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Usage
from farmtui.cli.screen import is_terminal

if TYPE_CHECKING:
    from farmtui.clock import Clock
    from farmtui.farm import Farm, View
    from farmtui.operations.desk import Desk
    from farmtui.state import RunDetail


def open_console(call: Call) -> int:
    """Open the console; returns its exit code when it is left.

    Raises:
        Usage: there is no terminal to open it in, or it was to answer in JSON.
    """
    need_terminal(call, "farm runs, farm medic and farm --help work without one")
    return run_console(
        call.farm,
        clock=call.clock,
        readonly=call.options.readonly,
        mouse=not call.options.no_mouse,
        environ=call.environ,
    )


def need_terminal(call: Call, instead: str) -> None:
    """See that the console can be shown at all.

    Raises:
        Usage: there is no terminal, or the answer was to be JSON.
    """
    if call.options.json:
        raise Usage("--json needs a command, such as farm runs --json")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise Usage(f"the console needs a terminal; {instead}")
    if not is_terminal(sys.stderr):
        words = f"the console draws on standard error, which is no terminal here; {instead}"
        # Errors go to where nobody may be looking; what is a terminal is standard output.
        print(f"farm: {words}", flush=True)
        raise Usage(words)


def run_console(farm: Farm, *, clock: Clock, readonly: bool, mouse: bool, environ: Mapping[str, str]) -> int:
    """Show a farm until the operator leaves; returns the exit code.

    Raises:
        Exception: whatever nobody handled inside the console, once the terminal is itself again.
    """
    early = EarlyFarm(farm)
    try:
        from farmtui.console.app import FarmApp

        app = FarmApp(early, clock=clock, readonly=readonly, environ=environ)
        code = app.run(mouse=mouse)
    finally:
        farm.stop()
    if app.fault is not None:
        raise app.fault
    if app.return_code:
        return Exit.FAULT
    return Exit.FINE if code is None else code


class EarlyFarm:
    """A farm that is being read while the screen's libraries are still imported.

    The first View waits here until somebody asks for it by `start`.
    """

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._lock = threading.Lock()
        self._waiting: View | None = None
        self._publish: Callable[[View], None] | None = None
        farm.start(self._take)

    @property
    def desk(self) -> Desk:
        """The farm's desk."""
        return self._farm.desk

    def start(self, publish: Callable[[View], None]) -> None:
        """Pass on Views from here on, the one that waits first."""
        with self._lock:
            self._publish, waiting, self._waiting = publish, self._waiting, None
            if waiting is not None:
                publish(waiting)

    def refresh(self) -> None:
        """Read everything again now."""
        self._farm.refresh()

    def stop(self) -> None:
        """End the farm's threads."""
        self._farm.stop()

    def detail(self, run_id: str) -> RunDetail:
        """The long texts of one run. Blocks."""
        return self._farm.detail(run_id)

    def _take(self, view: View) -> None:
        with self._lock:
            if self._publish is None:
                self._waiting = view
            else:
                self._publish(view)
