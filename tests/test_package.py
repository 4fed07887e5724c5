"""The package: what it carries is found from anywhere, and its wheel works where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from farmtui import __version__
from farmtui.resources import resource_folder
from tests.pins import closure, normal

ROOT = Path(__file__).resolve().parents[1]
FARM = Path(sys.executable).with_name("farm")


def run(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and hold it to success."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
        **more,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name", ["styles", "workflows"])
def test_a_checkouts_folders_are_found_from_any_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert any(resource_folder(name).iterdir())


def test_a_damaged_installation_is_told_in_one_line() -> None:
    with pytest.raises(FileNotFoundError, match="paintings/ is missing from farm's installation"):
        resource_folder("paintings")


def test_farm_and_python_m_are_the_same(tmp_path: Path) -> None:
    told = {
        run(FARM, "--version", cwd=tmp_path).stdout,
        run(sys.executable, "-m", "farmtui", "--version", cwd=tmp_path).stdout,
    }
    assert told == {f"farm {__version__}\n"}


def test_everything_needed_is_pinned_by_name_and_version_alone() -> None:
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", pin) for pin in pins), pins
    assert {pin.partition("==")[0] for pin in pins} >= closure().keys() - {"colorama"}


def test_what_is_declared_is_pinned() -> None:
    """Also where a dependency is not installed here, so not in the closure."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {normal(re.split(r"[^A-Za-z0-9._-]", text)[0]) for text in declared}
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert names <= pinned


def test_no_dependency_comes_from_a_place() -> None:
    """No URL, no host of a registry, no path of one machine in what installs farm."""
    for name in ("constraints.txt", "pyproject.toml", ".ci/run", "README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text()
        assert not re.search(r"index-url|find-links|file://|pypi\.org|@\s*(git\+)?https?:", text), name
        assert not re.search(r"(?<![\w.~$])/(work|root|home|Users)/", text), name


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_wheel_works_without_the_checkout(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT)
    [wheel] = (tmp_path / "dist").glob("farmtui-*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    for folder in ("styles", "workflows"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                assert f"farmtui/{path.relative_to(ROOT)}" in packed
    assert not [name for name in packed if name.startswith(("tests/", "screenshots/"))]
    assert any(name.endswith("LICENSE") for name in packed)

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    farm = tmp_path / "venv" / "bin" / "farm"
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    assert run(farm, "--version", cwd=outside, env=environ).stdout == f"farm {__version__}\n"
    where = run(
        python,
        "-c",
        "from farmtui.resources import resource_folder as find; print(find('styles'), find('workflows'))",
        cwd=outside,
        env=environ,
    ).stdout
    assert where.count(str(tmp_path / "venv")) == 2
    ended = run(farm, "demo", "--headless", "--seconds", "2", cwd=outside, env=environ)
    assert "farm-demo-" in ended.stdout
