"""A real terminal for tests: a tmux server of its own, with one window of a given size."""

from __future__ import annotations

import shlex
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self


class Tmux:
    """One program in one window. A context manager: the server and the program are gone afterwards.

    Args:
        command: the program and its arguments.
        environ: all that it gets of the environment, beside what tmux adds.
        size: columns and lines.
    """

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], size: tuple[int, int] = (80, 24)
    ) -> None:
        self._socket = f"farm-{uuid.uuid4().hex[:12]}"
        self._command = command
        self._environ = environ
        self._size = size

    def __enter__(self) -> Self:
        columns, lines = self._size
        # When the program has ended its pane stays, with its last words and its exit code.
        line = f"{shlex.join(self._command)}; printf '\\n[left with %s]\\n' $?; exec sleep 600"
        self._tmux("new-session", "-d", "-s", "farm", "-x", str(columns), "-y", str(lines), "sh", "-c", line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names ("Enter", "Escape", "R")."""
        for key in keys:
            self._tmux("send-keys", "-t", "farm", key)
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self._tmux("send-keys", "-t", "farm", "-l", text)

    def screen(self) -> str:
        """What the window shows, without trailing blanks."""
        return self._tmux("capture-pane", "-p", "-t", "farm")

    def until(self, *texts: str, seconds: float = 45) -> str:
        """Wait until all of these stand on the screen together; the screen."""
        deadline = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if all(text in screen for text in texts):
                return screen
            assert time.monotonic() < deadline, f"{texts} never stood here together:\n{screen}"
            time.sleep(0.1)

    def until_gone(self, text: str, seconds: float = 45) -> str:
        """Wait until this stands nowhere on the screen; the screen."""
        deadline = time.monotonic() + seconds
        while text in (screen := self.screen()):
            assert time.monotonic() < deadline, f"{text!r} stayed:\n{screen}"
            time.sleep(0.1)
        return screen

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments],
            env=dict(self._environ),
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout
