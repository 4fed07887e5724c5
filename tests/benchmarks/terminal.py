"""A program in a terminal of its own, seen through pyte: what a person would see, and when."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

import pyte

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Terminal:
    """Runs `argv` in a pseudo-terminal of the given size and keeps its screen."""

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], *, columns: int = 160, lines: int = 45
    ) -> None:
        self.started = time.perf_counter()
        self.bytes_read = 0
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            # Before the program starts: a change of size in mid-start would cost it a second layout.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(argv[0], list(argv), {**environ, "TERM": "xterm-256color"})

    def text(self) -> str:
        """The screen's lines as they stand."""
        return "\n".join(self._screen.display)

    def read(self, seconds: float) -> None:
        """Take in what the program writes for at most that long, or until it writes something."""
        ready, _, _ = select.select([self._fd], [], [], seconds)
        if ready:
            data = os.read(self._fd, 65536)
            self.bytes_read += len(data)
            self._stream.feed(data)

    def until(self, wanted: str, seconds: float = 30) -> float:
        """Seconds since the start (by time.perf_counter) until the text stood on the screen.

        Raises:
            TimeoutError: it never came; the message shows the screen.
        """
        deadline = time.perf_counter() + seconds
        while wanted not in self.text():
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{wanted!r} never came:\n{self.text()}")
            self.read(0.005)
        return time.perf_counter() - self.started

    def drain(self, seconds: float) -> None:
        """Take in output for that long."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self.read(left)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._fd, keys.encode())

    def cpu_seconds(self) -> float:
        """CPU time used so far by the process."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:  # noqa: PTH123
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def resident_mb(self) -> float:
        """Resident memory in MB."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * PAGE / 1e6

    def close(self) -> None:
        """End the program and wait for it."""
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.perf_counter() + 5
        while time.perf_counter() < deadline:
            self.read(0.05) if self._open() else time.sleep(0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _open(self) -> bool:
        try:
            return bool(select.select([self._fd], [], [], 0)[0]) and bool(os.fstat(self._fd))
        except OSError:
            return False
