"""`farm` as a process: exit codes, closed pipes, terminals, faults, and what is imported."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import farmtui
from farmtui.clock import iso
from tests.cli.commands import Told, imported, process
from tests.farms import MINUTE, NOW, Farmyard, StepRow

Busy = tuple[Farmyard, dict[str, str]]
FARM = [sys.executable, "-m", "farmtui"]


def where(busy: Busy) -> list[str]:
    return ["--state-dir", str(busy[0].state_dir), "--now", str(iso(NOW))]


@pytest.mark.parametrize("line", [["--version"], ["--help"], ["medic", "--help"], ["nonsense"]])
def test_nothing_of_the_screen_is_imported_to_say_what_there_is(line: list[str]) -> None:
    modules = imported(line)
    assert "farmtui" in modules
    assert not {"textual", "rich", "watchfiles", "websockets", "yaml"} & modules
    if line == ["--version"]:
        assert not {"typer", "sqlite3", "json"} & modules


def test_the_console_is_opened_without_typer() -> None:
    assert "typer" not in imported(["--readonly", "--db=x"])


def test_version_is_told() -> None:
    for line in (["--version"], ["--json", "--version"]):
        told = process(*line)
        assert (told.code, told.out) == (0, f"farm {farmtui.__version__}\n")


COMMANDS = [
    *(["runs"], ["show"], ["medic"], ["escalations"], ["crons"], ["crons", "delete"], ["journal"]),
    *(["doctor"], ["reset"], ["resolve"], ["ack"], ["undo"], ["demo"]),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples_and_the_options_of_all(command: list[str]) -> None:
    told = process(*command, "--help")
    assert (told.code, told.err) == (0, "")
    assert "Examples:" in told.out
    for option in ("--json", "--state-dir", "--db", "--now", "--readonly"):
        assert option in told.out


def test_help_lists_every_command() -> None:
    told = process("--help")
    assert told.code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command[0]} ", told.out, re.MULTILINE)


def test_the_environment_names_the_farm(busy: Busy) -> None:
    yard, runs = busy
    for env in (
        {"OPENCLAW_STATE_DIR": str(yard.state_dir)},
        {"ANTFARM_DB_PATH": str(yard.database)},
        {"HOME": str(yard.home)},
    ):
        told = process("runs", "--json", env=env)
        assert told.code == 0
        assert told.json["database"] == str(yard.database)
        assert len(told.json["runs"]) == len(runs)


def test_a_closed_pipe_is_no_fault(busy: Busy) -> None:
    for line in (["runs"], ["runs", "--json"], ["show", busy[1]["loop"]], ["--help"], ["medic"]):
        command = subprocess.Popen(
            [*FARM, *line, *where(busy)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.close()
        errors = command.stderr.read()
        assert (command.wait(timeout=60), errors) == (0, ""), line
        command.stderr.close()


def test_a_standard_output_that_is_full_is_told(busy: Busy) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*FARM, "runs", *where(busy)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


def test_streams_that_are_closed_do_no_harm(busy: Busy) -> None:
    line = " ".join([*FARM, "runs", *where(busy)])
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        assert subprocess.run(["sh", "-c", f"{line} {closed}"], timeout=60, check=False).returncode == 0


def test_an_ascii_terminal_gets_marks_for_what_it_lacks(busy: Busy) -> None:
    busy[0].add_run("relay", "梨の木")
    told = process("runs", *where(busy), env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert told.code == 0
    assert "relay" in told.out


def test_no_escape_of_others_reaches_the_terminal(busy: Busy) -> None:
    yard, runs = busy
    yard.execute("UPDATE runs SET task = ?", "\x1b]0;owned\x07\x1b[2J‮evil")
    yard.execute("UPDATE steps SET output = ?", "\x1b[31mred\r\nSTATUS: done")
    evil = "re\x1b[2Jlay\u202e"
    run = yard.add_run(evil, steps=[StepRow("a\x1bb", "c\x07d", "running", age=90 * MINUTE)], age=90 * MINUTE)
    yard.add_run(evil, status="failed", steps=[StepRow("a\x1bb", "c\x07d", "failed")], run_id="dead-beef\x1b")
    jobs = [
        {"id": "j\x1bob", "name": f"antfarm/{evil}x/a\x07", "schedule": {"kind": "every", "everyMs": 1000}}
    ]
    (yard.state_dir / "cron").mkdir()
    (yard.state_dir / "cron" / "jobs.json").write_text(json.dumps({"version": 1, "jobs": jobs}))
    lines = (
        ["runs"],
        ["show", runs["human"], "--full"],
        ["show", run],
        ["escalations"],
        ["medic"],
        ["crons"],
        ["crons", "delete", "nope\x1b"],
        ["doctor"],
        ["reset", run, "nope\x1b"],
        ["reset", run, "a\x1bb", "--dry-run"],
        ["reset", run, "a\x1bb", "--yes"],
        ["resolve", "dead-beef\x1b", "--retry"],
        ["resolve", "dead-beef\x1b", "--retry", "--without-crons", "--guidance", "\x1b[1m", "--dry-run"],
        ["ack", "dead-beef\x1b", "--note", "\x1b[1mseen\u202e", "--yes"],
        ["escalations"],
        ["undo", "\x1b[1mno"],
        ["undo", "--dry-run"],
        ["journal"],
    )
    for line in lines:
        told = process(*line, *where(busy))
        assert not set(told.out + told.err) & set("\x1b\x07\u202e"), line
        assert "\x1b" not in told.out
        assert "‮" not in told.out
        assert "\r" not in told.out


def test_a_fault_of_ours_is_one_line_and_exit_70(busy: Busy) -> None:
    code = (
        "import sys; import farmtui.farm; import farmtui.__main__ as m;"
        "farmtui.farm.Farm.look = lambda *a, **k: 1 / 0; sys.exit(m.main(sys.argv[1:]))"
    )
    line = [sys.executable, "-c", code, "runs", *where(busy)]
    told = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 70
    assert told.stdout == ""
    assert len(told.stderr.splitlines()) == 1
    assert "ZeroDivisionError" in told.stderr
    told = subprocess.run([*line, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 70
    assert "ZeroDivisionError" in json.loads(told.stdout)["errors"][0]
    told = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "FARM_TRACEBACK": "1"},
    )
    assert told.returncode == 70
    assert "Traceback" in told.stderr


# ---------------------------------------------------------------- on a terminal


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, line: list[str], columns: int = 80, env: dict[str, str] | None = None) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # pragma: no cover
            os.environ.update({"TERM": "xterm-256color", **(env or {})})
            os.execv(sys.executable, [*FARM, *line])
        import fcntl
        import struct
        import termios

        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.shown = ""

    def until(self, text: str, seconds: float = 30) -> None:
        """Read until `text` was shown."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], 30)
        assert ready, self.shown
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


def test_a_terminal_is_asked_and_may_say_no(busy: Busy) -> None:
    yard, runs = busy
    before = yard.dump()
    terminal = Terminal(["reset", runs["stale"], "build", *where(busy)])
    terminal.until("[y/N]")
    assert "running → pending" in terminal.shown
    terminal.type("n\n")
    assert terminal.end() == 1
    assert "declined" in terminal.shown
    assert yard.dump() == before
    terminal = Terminal(["reset", runs["stale"], "build", *where(busy)])
    terminal.until("[y/N]")
    terminal.type("y\n")
    assert terminal.end() == 0
    assert yard.row("steps", yard.step_id(runs["stale"], "build"))["status"] == "pending"


def test_ctrl_c_at_the_question_changes_nothing(busy: Busy) -> None:
    yard, runs = busy
    before = yard.dump()
    terminal = Terminal(["reset", runs["stale"], "build", *where(busy)])
    terminal.until("[y/N]")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown
    assert yard.dump() == before


def test_lines_fit_the_terminal_and_colours_are_shown_there_only(busy: Busy) -> None:
    busy[0].add_run("relay", "梨の木を北側に植える " * 30)
    line = ["runs", *where(busy)]

    def lines(told: str) -> list[str]:
        return [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in told.splitlines()]

    from farmtui.text import cells

    terminal = Terminal(line, columns=60)
    assert terminal.end() == 0
    assert "\x1b[" in terminal.shown
    assert max(map(cells, lines(terminal.shown))) <= 60
    plain = Terminal(line, columns=60, env={"NO_COLOR": "1"})
    assert plain.end() == 0
    assert "\x1b[" not in plain.shown
    told: Told = process(*line)
    assert "\x1b[" not in told.out
    assert max(map(cells, lines(told.out))) > 200
