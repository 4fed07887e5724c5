"""How the console and the demo are opened from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from farmtui.cli.console import EarlyFarm
from tests.cli.commands import process


class Reading:
    """A farm that publishes when told to."""

    def __init__(self) -> None:
        self.publish: Callable[[Any], None] | None = None

    def start(self, publish: Callable[[Any], None]) -> None:
        assert self.publish is None
        self.publish = publish

    def tell(self, view: str) -> None:
        assert self.publish is not None
        self.publish(view)


def test_what_was_read_before_the_screen_was_there_is_not_lost() -> None:
    reading = Reading()
    early = EarlyFarm(cast(Any, reading))
    reading.tell("first")
    reading.tell("second")
    seen: list[Any] = []
    early.start(seen.append)
    assert seen == ["second"]
    reading.tell("third")
    assert seen == ["second", "third"]


def test_a_screen_that_is_there_first_gets_every_view() -> None:
    reading = Reading()
    seen: list[Any] = []
    EarlyFarm(cast(Any, reading)).start(seen.append)
    assert seen == []
    reading.tell("first")
    assert seen == ["first"]


@pytest.mark.parametrize(
    "line",
    [
        ["demo"],
        ["demo", "--seconds", "1"],
        ["demo", "--headless", "--state-dir", "x"],
        ["--now", "2026-01-01", "demo", "--headless"],
        ["demo", "--headless", "--json"],
    ],
)
def test_a_demo_that_cannot_be_is_a_wrong_command_line(line: list[str]) -> None:
    assert process(*line).code == 2


def test_a_demo_without_a_console_tells_its_folder_and_leaves_none() -> None:
    told = process("demo", "--headless", "--seconds", "0.5")
    assert (told.code, told.err) == (0, "")
    assert not Path(told.out.strip()).exists()


def test_a_demo_takes_no_folder_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    told = process("demo", "--headless", "--seconds", "0.5", "--keep", str(folder))
    assert told.code == 1
    assert len(told.err.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_demo_that_is_ended_cleans_up(number: signal.Signals) -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "farmtui", "demo", "--headless"], stdout=subprocess.PIPE, text=True
    )
    assert command.stdout is not None
    folder = Path(command.stdout.readline().strip())
    assert folder.is_dir()
    os.kill(command.pid, number)
    assert command.wait(timeout=30) == 0
    command.stdout.close()
    assert not folder.exists()
