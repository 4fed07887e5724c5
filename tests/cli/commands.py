"""Running `farm`: in this process, or as a process of its own; and a farm to run it on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from farmtui.__main__ import main
from farmtui.clock import iso
from tests.farms import MINUTE, NOW, Farmyard, StepRow, StoryRow

WORKFLOW = """
id: relay
name: Relay
agents:
  - id: scout
    workspace: {baseDir: agents/scout}
  - id: builder
    timeoutSeconds: 1800
    workspace: {baseDir: agents/builder}
steps:
  - {id: scout, agent: scout, input: "Look into {{task}}", expects: "STATUS: done"}
  - {id: build, agent: builder, input: "Build on {{branch}}", expects: "STATUS: done",
     on_fail: {escalate_to: human}}
"""


@dataclass(frozen=True)
class Told:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The answer; it must be one JSON object in pure ASCII."""
        assert self.out.isascii()
        loaded = json.loads(self.out)
        assert isinstance(loaded, dict)
        return loaded


class Commands:
    """Runs `farm` on one farm, by its state folder and with the clock held at NOW."""

    def __init__(self, yard: Farmyard, capsys: pytest.CaptureFixture[str]) -> None:
        self.yard = yard
        self._capsys = capsys

    def __call__(self, *arguments: str, now: str | None = None) -> Told:
        """Run in this process."""
        self._capsys.readouterr()
        where = ["--state-dir", str(self.yard.state_dir), "--now", now or str(iso(NOW))]
        code = main([*arguments, *where])
        said = self._capsys.readouterr()
        return Told(code, said.out, said.err)


def process(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    cwd: Path | None = None,
) -> Told:
    """Run as a process of its own, with no terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "farmtui", *arguments],
        env={**os.environ, **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )
    return Told(done.returncode, done.stdout, done.stderr)


def imported(arguments: Sequence[str]) -> set[str]:
    """The modules that a command line imports."""
    code = (
        "import sys; from farmtui.__main__ import main; code = main(sys.argv[1:]);"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    return set(done.stderr.split())


def busy_yard(folder: Path) -> tuple[Farmyard, dict[str, str]]:
    """A farm with one run of each kind; the ids of its runs by kind."""
    yard = Farmyard(folder)
    yard.write_workflow(WORKFLOW)
    yard.write_config({"agents": {"list": [{"id": "relay_scout"}, {"id": "relay_builder"}]}})
    runs = {}
    runs["done"] = yard.add_run(
        "relay",
        "Mow the meadow",
        status="completed",
        steps=[StepRow("scout", status="done"), StepRow("build", "builder", status="done")],
        age=600 * MINUTE,
    )
    runs["human"] = yard.add_run(
        "relay",
        "Fix the [bold]gate\x1b[31m",
        status="failed",
        steps=[
            StepRow("scout", status="done", output="STATUS: done"),
            StepRow("build", "builder", status="failed", output="It did not build", retry_count=2),
        ],
        age=300 * MINUTE,
    )
    runs["cancelled"] = yard.add_run(
        "relay", "Never mind", status="cancelled", steps=[StepRow("scout", status="failed")], age=200 * MINUTE
    )
    runs["stale"] = yard.add_run(
        "relay",
        "Mend the fence",
        context={"branch": "fence", "api_key": "hunter2-hunter2", "notify": "https://x.test/#auth=abcdef"},
        steps=[
            StepRow("scout", status="done", output="STATUS: done\nTOKEN: ghp_0123456789abcdefghij0123"),
            StepRow(
                "build",
                "builder",
                status="running",
                input="Build {{branch}} with {{api_key}} and {{notes}}",
                age=120 * MINUTE,
            ),
        ],
        age=120 * MINUTE,
        created=180 * MINUTE,
    )
    runs["loop"] = yard.add_run(
        "relay",
        "Prune the trees",
        steps=[
            StepRow("plan", "scout", status="done"),
            StepRow(
                "grow",
                "builder",
                status="running",
                loop={"over": "stories"},
                current_story="S-2",
                age=3 * MINUTE,
            ),
            StepRow("pack", "scout", input="Pack {{changes}}"),
        ],
        stories=[
            StoryRow("S-1", "First row", status="done", output="STATUS: done", retry_count=1),
            StoryRow("S-2", "Second row", status="running", age=2 * MINUTE),
            StoryRow("S-3", "Third row"),
        ],
        age=3 * MINUTE,
        created=100 * MINUTE,
    )
    runs["pending"] = yard.add_run(
        "relay",
        "Carry water",
        steps=[StepRow("scout", status="pending"), StepRow("build", "builder")],
        created=90 * MINUTE,
    )
    runs["other"] = yard.add_run("relay", "Paused", status="paused", created=80 * MINUTE)
    return yard, runs
