"""What the README says is so: its commands run, its tables are the program's own, its pictures are there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from farmtui.cli.exits import EXIT_WORDS
from farmtui.console.actions import ACTIONS
from farmtui.demo.run import DemoFarm
from farmtui.medic.judge import CHECKS
from tests.screenshots import MOMENT, PICTURES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def blocks(text: str, language: str = "sh") -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def one_liner(name: str) -> str:
    """The command that stands after ``<!-- name -->``."""
    found = re.search(rf"<!-- {name} -->\n```sh\n(.*?)\n```", README, re.DOTALL)
    assert found is not None
    assert "\n" not in found[1], "one line"
    return found[1]


def commands() -> list[str]:
    """The lines of the README that call an installed farm."""
    return [line for block in blocks(README) for line in block.splitlines() if line.startswith("farm ")]


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFarm]:
    """The demo's farm on which the README's commands are run, one after the other."""
    with DemoFarm(tmp_path_factory.mktemp("readme") / "farm", still=MOMENT) as farm:
        yield farm


def test_every_block_is_accounted_for() -> None:
    """A block that is added is either run here, or in CI, or is told not to be a command."""
    lines = [line for block in blocks(README) for line in block.splitlines()]
    assert len(lines) == len(commands()) + 2
    assert README.count("```") == 2 * len(blocks(README))


def test_commands_do_what_they_say(still: DemoFarm, tmp_path: Path) -> None:
    """All of them, in the README's order: some rest on what others did."""
    environ = {
        **{name: text for name, text in os.environ.items() if not name.startswith(("OPENCLAW", "ANTFARM"))},
        "OPENCLAW_STATE_DIR": str(still.state_dir),
        "HOME": str(tmp_path),
        "PATH": f"{BIN}:/usr/bin:/bin",
    }
    findings = {"farm medic", "farm medic --fix stale-claim --dry-run", "farm doctor"}
    assert findings < set(commands())
    for command in commands():
        program, *arguments = shlex.split(command)
        now = [] if "--yes" in arguments else ["--now", MOMENT.isoformat()]
        done = subprocess.run(
            [str(BIN / program), *arguments, *now],
            env=environ,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        expected = (0, 1) if command in findings else (0,)
        assert done.returncode in expected, f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, command
        assert done.stdout.strip(), command


def test_the_numbers_in_the_commands_are_the_demos(still: DemoFarm) -> None:
    done = subprocess.run(
        [BIN / "farm", "runs", "--state-dir", still.state_dir, "--now", MOMENT.isoformat(), "--limit", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = {number for line in commands() for number in re.findall(r"\b2\d\d\b", line)}
    assert told == {"206", "208", "209"}
    for number in told:
        assert number in done.stdout


def test_the_keys_are_the_registrys() -> None:
    table = README.partition("## Keys")[2].partition("## ")[0]
    told = set(re.findall(r"`([^`]+)`", table))
    missing = {action.shown_key for action in ACTIONS} - told
    assert missing == set(), f"the README does not tell of {missing}"
    known = {shown for action in ACTIONS for shown in (action.shown_key, *map(_shown, action.keys))}
    known |= {"h", "j", "k", "l", "g", "G"}  # moving: lists know these by themselves
    assert told - known == set(), "the README tells of keys that there are none of"


def _shown(key: str) -> str:
    from farmtui.console.actions import shown_key

    return shown_key(key)


def test_the_checks_are_medics() -> None:
    told = re.findall(r"^\| ([a-z]+-[a-z-]+) \| (.+) \|$", README, re.MULTILINE)
    assert dict(told) == dict(CHECKS)


def test_the_exit_codes_are_the_programs() -> None:
    table = README.partition("| exit code |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| (\d+) \| (.+) \|$", table, re.MULTILINE)
    assert told == re.findall(r"^ *(\d+)  (.+)$", EXIT_WORDS, re.MULTILINE)


def test_links_and_pictures_lead_somewhere() -> None:
    for text in (README, CONTRIBUTING):
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if not target.startswith("https://"):
                assert (ROOT / target).exists(), target
    shown = set(re.findall(r"screenshots/([\w-]+)\.svg", README))
    assert shown <= PICTURES.keys()
    drawn = {path.stem for path in (ROOT / "screenshots").glob("*.svg")}
    assert drawn == PICTURES.keys(), "no picture is made by hand, none is left over"


def test_modules_named_in_contributing_are_there() -> None:
    for block in blocks(CONTRIBUTING):
        for module in re.findall(r"-m (tests[\w.]*)", block):
            assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    for path in re.findall(r"`((?:farmtui|tests|styles|workflows)/[\w/.]*)`", CONTRIBUTING):
        assert (ROOT / path).exists(), path


def test_ci_runs_the_readmes_own_command() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    extract = re.search(r"tests=\$\((sed .*)\)\n", script)
    assert extract is not None
    told = subprocess.run(
        ["bash", "-c", extract[1]], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True
    )
    assert told.stdout.strip() == one_liner("tests")


def test_the_changes_tell_of_this_version() -> None:
    from farmtui import __version__

    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"] == "README.md"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_opens_from_a_fresh_clone(tmp_path: Path) -> None:
    """The README's one line, up to what a terminal is needed for."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True, timeout=120)
    command = one_liner("demo")
    assert command.endswith("/farm demo")
    environ = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{command} --headless --seconds 1"],
        cwd=clone,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "farm-demo-" in done.stdout
