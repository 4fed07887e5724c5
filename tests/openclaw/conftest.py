"""Fixtures of the gateway's tests: a state folder, and stand-in gateways whose config leads to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from farmtui.demo.cronbook import Version
from farmtui.demo.gateway import StandInGateway
from farmtui.openclaw.crons import Crons
from farmtui.openclaw.kept import KeptJobs
from farmtui.paths import FarmPaths, locate

TOKEN = "tok-5c4f1e0b7d2a49f8"


def definition(agent: str = "scout", workflow: str = "relay", **changes: Any) -> dict[str, Any]:
    """What Antfarm passes to `cron.add` for one agent."""
    agent_id = f"{workflow}_{agent}"
    return {
        "name": f"antfarm/{workflow}/{agent}",
        "enabled": True,
        "schedule": {"kind": "every", "everyMs": 300_000, "anchorMs": 0},
        "sessionTarget": "isolated",
        "wakeMode": "now",
        "agentId": agent_id,
        "payload": {
            "kind": "agentTurn",
            "message": f'step peek "{agent_id}"\nstep claim "{agent_id}"',
            "model": "default",
            "timeoutSeconds": 120,
        },
        "delivery": {"mode": "none"},
        **changes,
    }


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """An empty state folder of OpenClaw."""
    folder = tmp_path / "openclaw"
    folder.mkdir()
    return folder


@pytest.fixture
def paths(state: Path, tmp_path: Path) -> FarmPaths:
    return locate(state_dir=state, environ={}, home=tmp_path)


@pytest.fixture
def write_config(state: Path) -> Callable[..., None]:
    def write(config: Mapping[str, Any]) -> None:
        (state / "openclaw.json").write_text(json.dumps(config))

    return write


@pytest.fixture
def start(state: Path, write_config: Callable[..., None]) -> Iterator[Callable[..., StandInGateway]]:
    """Starts a stand-in gateway and writes the config that leads to it."""
    with ExitStack() as stack:

        def run(version: Version = Version.LATEST, **options: Any) -> StandInGateway:
            options.setdefault("secret", TOKEN)
            gateway = stack.enter_context(StandInGateway(version, state_dir=state, **options))
            write_config({"gateway": gateway.config()})
            return gateway

        yield run


@pytest.fixture(params=list(Version))
def gateway(request: pytest.FixtureRequest, start: Callable[..., StandInGateway]) -> StandInGateway:
    """A running stand-in of each version in turn, without jobs."""
    return start(request.param)


@pytest.fixture
def crons(paths: FarmPaths) -> Crons:
    # No PATH: no openclaw command of this machine is ever found.
    return Crons(paths, {"PATH": ""}, KeptJobs(paths.farm_dir))
