"""The demo's farm: a state folder of its own that really runs, for `farm demo`, scripts and tests.

It has a real antfarm.db, workflows, workspaces, progress files and a stand-in gateway on loopback. It
looks at nothing of the user's: neither ``~/.openclaw`` nor the environment nor the ``openclaw`` CLI.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import yaml

from farmtui.clock import SystemClock
from farmtui.demo.agents import BROKEN, BROKEN_AGENT, LOOK_S, Agents
from farmtui.demo.ants import Ants, Claim
from farmtui.demo.cronbook import RunReport, Version
from farmtui.demo.crons import Keeper, NoCrons, aged, job
from farmtui.demo.gateway import StandInGateway
from farmtui.demo.past import PastClock, play
from farmtui.demo.script import Script
from farmtui.paths import FarmPaths, locate
from farmtui.resources import resource_folder

SEED = 1
# So that a step that was reset is claimed while one looks on; real farms poll every 5 minutes.
POLL_MS = 10_000
FIRST_NUMBER = 194
# Left behind when its last run ended, and polling at Antfarm's own pace ever since.
ORPHANED = "dependency-update"
# The agent that no cron wakes: its runs wait for their verify step.
UNWOKEN = "antfarm/security-audit/verifier"
MARKER = ".farm-demo"
_MADE = ("antfarm", "workspaces", "cron", "farm", "openclaw.json")
_HIDDEN = ("OPENCLAW_", "ANTFARM_")


class DemoError(Exception):
    """The demo cannot be had there. The message is one line: what, where, what to do."""


class DemoFarm:
    """A farm in `folder`, which must be absent, empty, or an earlier demo's: that one is built anew.

    `start` opens its gateway and sets its agents to work, `stop` ends both; as a context manager it does
    both. The folder stays: see `demo_farm`.

    Args:
        seed: the same seed gives the same past.
        pace: how much quicker than usual the agents work and poll.
        still: the past ends at this moment and nothing happens after it: the gateway answers, agents and
            crons rest. For pictures that are the same each time.

    Raises:
        DemoError: the folder is somebody else's, in use, or cannot be written to.
    """

    def __init__(
        self, folder: Path, *, seed: int = SEED, pace: float = 1.0, still: datetime | None = None
    ) -> None:
        self.state_dir = folder.absolute()
        self._opened = still or datetime.now(UTC)
        self._works = still is None
        self._seed = seed
        self._pace = pace
        self._marker = _take(self.state_dir)
        self._script = Script(seed)
        self._rng = random.Random(f"{seed}/ids")
        self._workflows = self._install()
        self._claims = self._make_past()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._ants: Ants | None = None
        self.gateway = StandInGateway(
            Version.FEB,
            jobs=self._jobs(),
            state_dir=self.state_dir,
            on_run=self._poll if self._works else None,
        )

    @property
    def paths(self) -> FarmPaths:
        """Where everything of this farm is, as ``--state-dir`` would find it."""
        return locate(state_dir=self.state_dir, environ={}, home=self.state_dir)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment for a console on this farm: nothing in it leads to another farm or its CLI."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(_HIDDEN)}
        return {**kept, "HOME": str(self.state_dir), "PATH": ""}

    def start(self) -> None:
        """Open the gateway and set the agents to work."""
        self._ants = Ants(
            self.state_dir / "antfarm",
            self._workflows,
            self._workspaces,
            clock=SystemClock(),
            crons=(keeper := Keeper(self.gateway.book)),
            new_id=self._new_id,
        )
        self._agents = Agents(self._ants, keeper, self._script, seed=self._seed, pace=self._pace)
        self._agents.adopt(self._claims)
        self.gateway.start()
        self._write_config()
        if self._works:
            self._thread = threading.Thread(target=self._work, name="demo-agents", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End agents and gateway, and let go of the folder."""
        self._stopping.set()
        self.gateway.stop()
        if self._thread is not None:
            self._thread.join(timeout=5)
        if self._ants is not None:
            self._ants.close()
        self._marker.close()

    def __enter__(self) -> DemoFarm:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------ building

    @property
    def _workspaces(self) -> Path:
        return self.state_dir / "workspaces" / "workflows"

    def _install(self) -> dict[str, dict[str, Any]]:
        """Copy the workflows that come with farm, with a workspace for each agent."""
        installed = self.state_dir / "antfarm" / "workflows"
        specs = {}
        for source in sorted(resource_folder("workflows").glob("*/workflow.yml")):
            text = source.read_text(encoding="utf-8")
            if source.parent.name != ORPHANED:
                text += f"\ncron: {{interval_ms: {int(POLL_MS / self._pace)}}}\n"
            spec = yaml.load(text, Loader=_LOADER)
            folder = installed / spec["id"]
            folder.mkdir(parents=True)
            (folder / "workflow.yml").write_text(text, encoding="utf-8")
            rules = (source.parent / "AGENTS.md").read_text(encoding="utf-8")
            for agent in spec["agents"]:
                workspace = self._workspaces / spec["id"] / "agents" / agent["id"]
                workspace.mkdir(parents=True)
                (workspace / "AGENTS.md").write_text(rules, encoding="utf-8")
            specs[spec["id"]] = spec
        return specs

    def _make_past(self) -> list[Claim]:
        clock = PastClock(self._opened)
        ants = Ants(
            self.state_dir / "antfarm",
            self._workflows,
            self._workspaces,
            clock=clock,
            crons=NoCrons(),
            new_id=self._new_id,
            first_number=FIRST_NUMBER,
        )
        try:
            return play(ants, self._script, clock, self._opened, random.Random(f"{self._seed}/past"))
        finally:
            ants.close()

    def _jobs(self) -> list[dict[str, Any]]:
        """A cron for each agent of each workflow, but the one that is missing."""
        now, jobs = self._opened, []
        for spec in self._workflows.values():
            for index in range(len(spec["agents"])):
                definition = job(spec, index)
                if definition["name"] == UNWOKEN:
                    continue
                listed = aged(definition, self._new_id(), now - timedelta(days=2), now)
                if definition["agentId"] == BROKEN_AGENT:
                    listed["state"] |= {"lastStatus": "error", "lastError": BROKEN, "consecutiveErrors": 3}
                jobs.append(listed)
        return jobs

    def _write_config(self) -> None:
        agents = [
            {"id": "main", "name": "Main", "default": True, "workspace": str(self.state_dir / "workspace")}
        ]
        for workflow, spec in self._workflows.items():
            agents += [
                {
                    "id": f"{workflow}_{agent['id']}",
                    "name": agent["name"],
                    "workspace": str(self._workspaces / workflow / "agents" / agent["id"]),
                }
                for agent in spec["agents"]
            ]
        config = {"gateway": self.gateway.config(), "agents": {"list": agents}}
        path = self.state_dir / "openclaw.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=2), encoding="utf-8")

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    # ------------------------------------------------------------ running

    def _poll(self, listed: Mapping[str, Any]) -> RunReport:
        return self._agents.poll(listed)

    def _work(self) -> None:
        while not self._stopping.wait(LOOK_S):
            # A lock that an operator's write holds is gone at the next look.
            with suppress(sqlite3.OperationalError):
                self._agents.look()


@contextmanager
def demo_farm(keep: Path | None = None, *, seed: int = SEED, pace: float = 1.0) -> Iterator[DemoFarm]:
    """A running demo in a temporary folder that is gone afterwards, or in `keep`, which stays.

    Raises:
        DemoError: `keep` is somebody else's folder, in use, or cannot be written to.
    """
    folder = keep if keep is not None else Path(tempfile.mkdtemp(prefix="farm-demo-"))
    try:
        with DemoFarm(folder, seed=seed, pace=pace) as farm:
            yield farm
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def run_headless(
    keep: Path | None = None,
    *,
    seconds: float | None = None,
    seed: int = SEED,
    tell: Callable[[str], None] | None = None,
) -> None:
    """Run the farm without a console, until `seconds` are over or SIGINT, SIGTERM or SIGHUP comes.

    Args:
        tell: is given the state folder once the farm can be looked at with ``farm --state-dir``; where
            None it is printed at once, also into a pipe.

    Raises:
        DemoError: as `demo_farm`.
    """
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    previous = {
        number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        with demo_farm(keep, seed=seed) as farm:
            (tell or _say)(str(farm.state_dir))
            deadline = None if seconds is None else time.monotonic() + seconds
            # Waits in slices: a signal's handler runs between them.
            while not ended.wait(
                0.5 if deadline is None else max(0.0, min(0.5, deadline - time.monotonic()))
            ):
                if deadline is not None and time.monotonic() >= deadline:
                    return
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# The C parser is ten times quicker, and not everywhere.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _take(folder: Path) -> TextIO:
    """Make the folder ours and empty of an earlier demo; returns its marker, locked while it is in use.

    Raises:
        DemoError: it holds something else, another demo runs there, or it cannot be written to.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker = folder / MARKER
        if any(folder.iterdir()) and not marker.is_file():
            raise DemoError(f"{folder} holds something that no demo made: name an empty or absent folder")
        file = marker.open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise DemoError(f"another farm demo runs in {folder}: end it, or name another folder") from None
        for name in _MADE:
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise DemoError(f"no demo in {folder}: {error.strerror or error}") from None
    return file
