"""Leaving cleanly when the terminal goes.

SIGHUP kills Textual without its clean-up; ignored, it spins on a dead terminal at 30 to 90 % of a core.
So SIGHUP and SIGTERM end the app, and a look every few seconds ends it where no signal came (a dropped
SSH line under nohup, a detached session whose pty is gone).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

WATCH_S = 5.0


def on_signals(leave: Callable[[], None]) -> None:
    """Call `leave` in the running event loop on SIGHUP and SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        # Not in the main thread (some tests), or not on this system.
        try:
            loop.add_signal_handler(number, leave)
        except (NotImplementedError, RuntimeError, ValueError):
            return


class TerminalDriver(LinuxDriver):
    """Textual's driver for terminals, held to what happens when one goes.

    A hangup comes with SIGCONT, at which Textual's begins application mode a second time, on the dead
    terminal; and once its writing thread has died there, the thirty-first write blocks the app for ever.
    """

    def _sigcont_application(self, *_: Any) -> None:
        if self._must_signal_resume:  # only set where it was SIGTSTP that stopped us
            super()._sigcont_application()

    def write(self, data: str) -> None:
        if self._writes:
            super().write(data)

    def close(self) -> None:
        if self._writes:
            super().close()

    @property
    def _writes(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()


class TerminalWatch:
    """Tells whether what was a terminal is none any more.

    Args:
        descriptor: an open file descriptor of the terminal.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # A terminal that does not control us never had a foreground group to ask for.
        self._controls = self._has_group()

    @property
    def lost(self) -> bool:
        """`isatty` may stay true for a pty whose other side closed; asking for its group fails then."""
        try:
            if not os.isatty(self._descriptor):
                return True
        except OSError:
            return True
        return self._controls and not self._has_group()

    def _has_group(self) -> bool:
        try:
            os.tcgetpgrp(self._descriptor)
        except OSError:
            return False
        return True
