"""State folders as real programs left them, where shared/ is laid beside the checkout."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@dataclass(frozen=True)
class Box:
    """A copy of one box: `home` may be written to; `taken_at` is the moment to judge by."""

    home: Path
    snapshot: dict[str, Any]
    payloads: Path

    @property
    def state_dir(self) -> Path:
        return self.home / ".openclaw"

    @property
    def database(self) -> Path:
        return self.state_dir / "antfarm" / "antfarm.db"

    @property
    def taken_at(self) -> datetime:
        return datetime.fromisoformat(self.snapshot["taken_at"])

    def situation(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.snapshot["situations"][name]
        return found

    def payload(self, name: str) -> dict[str, Any]:
        """A recorded gateway payload: ``cron.list``, ``cron.runs``, ``sessions.list``, ``cron.status``."""
        loaded: dict[str, Any] = json.loads((self.payloads / f"{name}.json").read_text())
        return loaded


def copy_box(name: str, target: Path) -> Box:
    """Copy a box so that it may be written to, its paths pointing into the copy. Skips without shared/."""
    source = SHARED / "boxes" / name
    if not source.is_dir():
        pytest.skip(f"needs shared/boxes/{name}, which only the project's own machines have")
    home = target / name
    home.mkdir(parents=True)
    shutil.copytree(source / ".openclaw", home / ".openclaw")
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    config = home / ".openclaw" / "openclaw.json"
    config.write_text(config.read_text().replace("/home/farm", str(home)))
    return Box(home, json.loads((source / "SNAPSHOT.json").read_text()), source)
