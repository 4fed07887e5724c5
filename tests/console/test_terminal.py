"""The console on a real terminal: signals and a lost terminal end it cleanly, and nothing spins."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from farmtui.console.terminal import TerminalWatch
from tests.farms import Farmyard, StepRow

ROOT = Path(__file__).resolve().parents[2]
ALTERNATE_SCREEN_OFF = b"\x1b[?1049l"
MOUSE_ON = b"\x1b[?1000h"


class Console:
    """`farm` as a process on a pty of its own."""

    def __init__(
        self,
        yard: Farmyard,
        *options: str,
        controlled: bool = True,
        program: Sequence[str] = ("-m", "farmtui"),
        stderr: int | None = None,
    ) -> None:
        self.master, slave = pty.openpty()
        self.output = b""
        environ = {
            "HOME": str(yard.home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
            "LINES": "24",
        }
        self.process = subprocess.Popen(
            [sys.executable, *program, "--state-dir", str(yard.state_dir), "--no-gateway", *options],
            stdin=slave,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            env=environ,
            start_new_session=True,
            preexec_fn=_control_terminal if controlled else None,
        )
        os.close(slave)

    def read_until(self, wanted: bytes, timeout: float = 30) -> None:
        end = time.monotonic() + timeout
        while wanted not in self.output:
            assert time.monotonic() < end, self.output[-2000:]
            assert self.read(0.2) or self.process.poll() is None, self.output[-2000:]

    def read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], timeout)
        if not ready:
            return False
        try:
            self.output += os.read(self.master, 65536)
        except OSError:
            return False
        return True

    def wait(self, timeout: float = 30) -> int:
        """The exit code; what is written meanwhile is read."""
        end = time.monotonic() + timeout
        while self.process.poll() is None:
            assert time.monotonic() < end, "still running"
            self.read(0.1)
        while self.read(0.1):
            pass
        return self.process.returncode


def _control_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    yard = Farmyard(tmp_path / "yard")
    yard.add_run("relay", "Dig the well", steps=[StepRow("plan", status="running")])
    return yard


@pytest.fixture
def console(yard: Farmyard) -> Iterator[Console]:
    console = Console(yard)
    yield console
    if console.process.poll() is None:
        console.process.kill()
        console.process.wait()


def test_it_opens_shows_the_farm_and_q_leaves(console: Console) -> None:
    console.read_until(b"Dig the well")
    os.write(console.master, b"q")
    assert console.wait() == 0
    assert ALTERNATE_SCREEN_OFF in console.output
    assert b"Traceback" not in console.output


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signals_end_it_and_restore_the_terminal(console: Console, number: signal.Signals) -> None:
    console.read_until(b"Dig the well")
    console.process.send_signal(number)
    assert console.wait() == 0
    assert ALTERNATE_SCREEN_OFF in console.output
    assert b"Traceback" not in console.output


def test_a_terminal_that_goes_away_ends_it(console: Console) -> None:
    console.read_until(b"Dig the well")
    os.close(console.master)
    assert console.process.wait(30) is not None


def test_going_on_without_having_been_stopped_begins_nothing_twice(console: Console) -> None:
    """Textual's own driver begins application mode again, with threads of its own, at any SIGCONT."""
    console.read_until(b"Dig the well")
    threads = Path(f"/proc/{console.process.pid}/task")
    if not threads.is_dir():
        pytest.skip("needs /proc to count a process's threads")
    while console.read(1.0):
        pass
    before = len(list(threads.iterdir())), console.output.count(MOUSE_ON)
    console.process.send_signal(signal.SIGCONT)
    while console.read(1.0):
        pass
    assert (len(list(threads.iterdir())), console.output.count(MOUSE_ON)) == before


def test_a_hangup_that_goes_on_first_ends_it(console: Console, yard: Farmyard) -> None:
    """The kernel sends SIGCONT with SIGHUP, in either order, while the board is being redrawn."""
    console.read_until(b"Dig the well")
    os.close(console.master)
    for round_ in range(40):
        if console.process.poll() is not None:
            break
        console.process.send_signal(signal.SIGCONT)
        yard.execute("UPDATE runs SET task = ?", f"Dig the well, round {round_}")
        time.sleep(0.05)
    assert console.process.wait(20) is not None


def test_a_terminal_that_goes_without_a_signal_ends_it(yard: Farmyard) -> None:
    """A terminal that does not control the process sends none: the watch has to notice."""
    console = Console(yard, controlled=False)
    try:
        console.read_until(b"Dig the well")
        os.close(console.master)
        assert console.process.wait(30) is not None
    finally:
        if console.process.poll() is None:
            console.process.kill()
            console.process.wait()


def test_a_fault_inside_ends_in_one_line(yard: Farmyard) -> None:
    """Textual's own way out prints a traceback with every local variable, secrets and all."""
    faulty = (
        "import sys; from farmtui.console.board import BoardScreen\n"
        "def show(*_): secret = 's3cret-token'; raise LookupError('of no use to an operator')\n"
        "BoardScreen.show = show\n"
        "from farmtui.__main__ import main; sys.exit(main())"
    )
    console = Console(yard, program=("-c", faulty))
    assert console.wait() == 70
    said = console.output.rpartition(ALTERNATE_SCREEN_OFF)[2]
    assert b"a fault of farm's own: LookupError" in said
    assert b"Traceback" not in said
    assert b"s3cret" not in console.output


def test_a_redirected_standard_error_is_refused_in_words(yard: Farmyard, tmp_path: Path) -> None:
    """Textual draws on it: the screen would stay blank."""
    with (tmp_path / "errors").open("wb+") as errors:
        console = Console(yard, stderr=errors.fileno())
        assert console.wait() == 2
        errors.seek(0)
        assert b"standard error" in errors.read()
    # Where the operator looks, too: what was redirected may be /dev/null.
    assert b"standard error" in console.output


def test_the_mouse_can_be_left_to_the_terminal(yard: Farmyard) -> None:
    for options, wanted in (((), True), (("--no-mouse",), False)):
        console = Console(yard, *options)
        console.read_until(b"Dig the well")
        os.write(console.master, b"q")
        assert console.wait() == 0
        assert (MOUSE_ON in console.output) is wanted


def test_the_watch_tells_a_lost_terminal() -> None:
    master, slave = pty.openpty()
    watch = TerminalWatch(slave)
    assert not watch.lost
    os.close(master)
    assert watch.lost
    os.close(slave)
    assert watch.lost
