"""A busy farm, and `farm` run on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import Commands, busy_yard
from tests.farms import Farmyard


@pytest.fixture
def busy(tmp_path: Path) -> tuple[Farmyard, dict[str, str]]:
    return busy_yard(tmp_path)


@pytest.fixture
def runs(busy: tuple[Farmyard, dict[str, str]]) -> dict[str, str]:
    """Ids of the busy farm's runs, by kind."""
    return busy[1]


@pytest.fixture
def farm(busy: tuple[Farmyard, dict[str, str]], capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(busy[0], capsys)
