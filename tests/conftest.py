"""Fixtures shared by all tests: no test ever sees the machine's own farm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.boxes import Box, copy_box


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty HOME, and no variable that points at a farm, a gateway or its secret."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in (
        "ANTFARM_DB_PATH",
        "OPENCLAW_STATE_DIR",
        "OPENCLAW_CONFIG_PATH",
        "OPENCLAW_GATEWAY_PORT",
        "OPENCLAW_GATEWAY_TOKEN",
        "OPENCLAW_GATEWAY_PASSWORD",
        "NO_COLOR",
    ):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(params=["feb", "latest"])
def box(request: pytest.FixtureRequest, tmp_path: Path) -> Box:
    """Each of the two recorded state folders in turn."""
    return copy_box(request.param, tmp_path)


@pytest.fixture
def feb(tmp_path: Path) -> Box:
    return copy_box("feb", tmp_path)


@pytest.fixture
def latest(tmp_path: Path) -> Box:
    return copy_box("latest", tmp_path)
