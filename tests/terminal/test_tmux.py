"""The installed `farm demo` in a real tmux at 80×24: keys are pressed, and the farm is mended."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.tmux import Tmux

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

FARM = str(Path(sys.executable).with_name("farm"))
GUIDANCE = "Freeze the clock in the payment stub."


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """What a login on a strange machine has, and a temporary folder of its own."""
    (tmp_path / "tmp").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path / "tmp"),
    }


def query(folder: Path, statement: str, *parameters: Any) -> list[Any]:
    with closing(sqlite3.connect(folder / "antfarm" / "antfarm.db", timeout=5)) as database:
        return database.execute(statement, parameters).fetchall()


def until(happened: Callable[[], Any], seconds: float = 90) -> Any:
    """Wait for something that will happen; its value."""
    deadline = time.monotonic() + seconds
    while not (value := happened()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.1)
    return value


def select(tmux: Tmux, text: str) -> None:
    """Move down until the selected row, which is marked at its left, holds this text."""
    tmux.keys("g")
    for _ in range(12):
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            if any(line.startswith("▌") and text in line for line in tmux.screen().splitlines()):
                return
            time.sleep(0.1)
        tmux.keys("j")
    raise AssertionError(f"no row with {text!r}:\n{tmux.screen()}")


def agree(tmux: Tmux) -> None:
    """The dialog's safe choice is focused: go to the other one and take it."""
    tmux.keys("Tab", "Enter")


def test_a_farm_is_mended_with_a_few_keys(tmp_path: Path, environ: Mapping[str, str]) -> None:
    folder = tmp_path / "farm"
    with Tmux([FARM, "demo", "--keep", str(folder)], environ) as tmux:
        tmux.until("#208 feature-dev", "stale-claim", "Needs a human 2", "gateway ● ws")

        # The abandoned step: put back, and claimed by its agent at its next poll.
        tmux.keys("4")
        select(tmux, "stale-claim")
        tmux.keys("R")
        dialog = tmux.until("Reset the stale claim of #208 implement", "Cancel")
        assert "S-3 → none" in dialog
        assert "0 → 1 of 2" in dialog
        tmux.keys("Escape")
        tmux.until_gone("Cancel")
        assert not query(folder, "SELECT 1 FROM stories WHERE retry_count = 1 AND status = 'pending'")
        tmux.keys("R")
        tmux.until("Reset the stale claim of #208 implement", "Cancel")
        agree(tmux)
        tmux.until_gone("Cancel")
        tmux.until_gone("stale-claim ")
        story = (
            "SELECT s.status FROM stories s JOIN runs r ON r.id = s.run_id "
            "WHERE r.run_number = 208 AND s.story_id = 'S-3' AND s.retry_count = 1"
        )
        until(lambda: query(folder, story) in ([("running",)], [("done",)]))
        events = (folder / "antfarm" / "events.jsonl").read_text()
        assert '"event": "step.timeout"' in events or '"event":"step.timeout"' in events

        # The crons of a workflow that nobody runs any more.
        select(tmux, "orphaned-crons")
        tmux.keys("X")
        tmux.until("Delete 3 crons of dependency-update", "Cancel")
        agree(tmux)
        tmux.until("3 crons deleted")
        listed = json.loads((folder / "cron" / "jobs.json").read_text())["jobs"]
        assert not [job["name"] for job in listed if "dependency-update" in job["name"]]

        # The run that waits for a human, given back with advice.
        tmux.keys("3")
        select(tmux, "#209")
        tmux.keys("R")
        tmux.until("Retry #209 with guidance")
        tmux.type(GUIDANCE)
        tmux.until(GUIDANCE)
        tmux.keys("C-s")
        tmux.until("Give #209 back to its agents", "Cancel")
        agree(tmux)
        tmux.until_gone("Cancel")
        until(lambda: query(folder, "SELECT 1 FROM runs WHERE run_number = 209 AND status <> 'failed'"))
        [(output,)] = until(
            lambda: query(
                folder,
                "SELECT s.output FROM steps s JOIN runs r ON r.id = s.run_id "
                "WHERE r.run_number = 209 AND s.step_id = 'fix' AND s.status = 'done'",
            )
        )
        assert GUIDANCE in output, "the agent was given it"

        tmux.keys("1")
        tmux.until("Needs a human 1")
        tmux.keys("q")
        tmux.until("[left with 0]")
    journal = (folder / "farm" / "journal.jsonl").read_text()
    assert journal.count('"applied"') >= 3


def test_the_farm_is_gone_when_the_console_is_left(tmp_path: Path, environ: Mapping[str, str]) -> None:
    with Tmux([FARM, "demo"], environ, size=(60, 20)) as tmux:
        tmux.until("human", "found")
        assert len(list((tmp_path / "tmp").glob("farm-demo-*"))) == 1
        tmux.keys("q")
        tmux.until("[left with 0]")
    assert list((tmp_path / "tmp").glob("farm-demo-*")) == []


def test_a_lost_terminal_ends_it_and_leaves_nothing(tmp_path: Path, environ: Mapping[str, str]) -> None:
    with Tmux([FARM, "demo"], environ) as tmux:
        tmux.until("gateway ● ws")
    # The server was killed: the terminal hung up.
    until(lambda: not list((tmp_path / "tmp").glob("farm-demo-*")), 30)
