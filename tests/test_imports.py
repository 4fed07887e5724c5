"""What may import what: import-linter's contracts, and what a process that runs a command really loads."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.farms import Farmyard

ROOT = Path(__file__).resolve().parents[1]
LOADED = """
import json, sys
from farmtui.__main__ import main
sys.stdout, shown = sys.stderr, sys.stdout
try:
    code = main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
json.dump([code, sorted(sys.modules)], shown)
"""


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    """Exit code of `farm` with these arguments, and the modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    code, modules = json.loads(done.stdout)
    return code or 0, set(modules)


def test_imports_go_down_only() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_module_is_under_the_contracts() -> None:
    """A room that is new must be given its layer: one that is in none may import everything."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = " ".join(next(contract["layers"] for contract in contracts if contract["type"] == "layers"))
    rooms = {
        f"farmtui.{path.stem}"
        for path in (ROOT / "farmtui").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }
    assert rooms == set(layers.replace("|", " ").split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["runs", "--help"], ["medic", "--help"]])
def test_help_and_version_load_no_user_interface(arguments: list[str]) -> None:
    code, modules = loaded_by(*arguments)
    assert code == 0
    assert "textual" not in modules
    assert "rich" not in modules
    assert "farmtui.farm" not in modules, "no command is run, so no farm is needed"


def test_version_loads_next_to_nothing() -> None:
    _, modules = loaded_by("--version")
    assert "typer" not in modules
    assert "sqlite3" not in modules


@pytest.mark.parametrize("command", ["runs", "medic", "crons", "escalations", "journal", "doctor"])
def test_commands_load_no_textual(tmp_path: Path, command: str) -> None:
    yard = Farmyard(tmp_path)
    code, modules = loaded_by(command, "--json", "--no-gateway", "--state-dir", str(yard.state_dir))
    assert code in (0, 1, 3)
    assert f"farmtui.cli.{command}" in modules
    assert "textual" not in modules
    assert "rich" not in modules


def test_the_demos_farm_runs_without_textual() -> None:
    program = "import sys, farmtui.demo.run; print({'textual', 'rich', 'typer'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"
