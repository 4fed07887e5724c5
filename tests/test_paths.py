"""Which farm: the order of flags, environment and home, and each file found on its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from farmtui.paths import BESIDE_DB, ENV_CONFIG, ENV_DB, ENV_STATE_DIR, FLAG_DB, FLAG_STATE_DIR, HOME, locate


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "person"
    made.mkdir()
    return made


def _farm(state_dir: Path, *, database: bool = True, config: bool = True, workflows: bool = True) -> Path:
    (state_dir / "antfarm").mkdir(parents=True)
    if database:
        (state_dir / "antfarm" / "antfarm.db").touch()
        (state_dir / "antfarm" / "events.jsonl").touch()
    if workflows:
        (state_dir / "antfarm" / "workflows").mkdir()
    if config:
        (state_dir / "openclaw.json").touch()
    return state_dir


def test_without_anything_it_waits_for_home(home: Path) -> None:
    found = locate(environ={}, home=home)
    assert found.database.path == home / ".openclaw" / "antfarm" / "antfarm.db"
    assert found.database.origin == HOME
    assert found.farm_dir == home / ".openclaw" / "farm"


def test_the_order_of_environment_and_home(home: Path, tmp_path: Path) -> None:
    named, state = tmp_path / "named.db", _farm(tmp_path / "state")
    _farm(home / ".openclaw")
    named.touch()
    environ = {"OPENCLAW_STATE_DIR": str(state)}
    assert locate(environ=environ, home=home).database.origin == ENV_STATE_DIR
    environ["ANTFARM_DB_PATH"] = str(named)
    found = locate(environ=environ, home=home)
    assert (found.database.path, found.database.origin) == (named, ENV_DB)
    named.unlink()
    assert locate(environ=environ, home=home).database.origin == ENV_STATE_DIR


def test_antfarm_itself_may_be_split_in_two(home: Path, tmp_path: Path) -> None:
    """0.5.1 keeps its database under home; workflows and config follow OPENCLAW_STATE_DIR."""
    _farm(home / ".openclaw", config=False, workflows=False)
    state = _farm(tmp_path / "state", database=False)
    found = locate(environ={"OPENCLAW_STATE_DIR": str(state)}, home=home)
    assert found.database.origin == HOME
    assert found.events.path == home / ".openclaw" / "antfarm" / "events.jsonl"
    assert found.workflows.path == state / "antfarm" / "workflows"
    assert found.config.path == state / "openclaw.json"


def test_a_flag_never_falls_back(home: Path, tmp_path: Path) -> None:
    _farm(home / ".openclaw")
    gone = tmp_path / "gone"
    found = locate(
        state_dir=gone, environ={"ANTFARM_DB_PATH": "/x.db", "OPENCLAW_CONFIG_PATH": "/c"}, home=home
    )
    assert found.database.path == gone / "antfarm" / "antfarm.db"
    assert {place.origin for place in (found.database, found.workflows, found.config)} == {FLAG_STATE_DIR}
    assert locate(db=gone, environ={}, home=home).database.path == gone


def test_a_database_named_by_flag_brings_its_own_state_folder(home: Path, tmp_path: Path) -> None:
    state = _farm(tmp_path / "state")
    found = locate(db=state / "antfarm" / "antfarm.db", environ={}, home=home)
    assert found.state_dir.path == state
    assert (found.database.origin, found.events.origin) == (FLAG_DB, BESIDE_DB)
    assert not found.split


def test_a_database_apart_from_the_gateways_folder_is_split(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.touch()
    assert locate(db=copy, environ={}, home=home).split
    assert not locate(db=copy, state_dir=home / ".openclaw", environ={}, home=home).split


def test_the_config_may_be_named_on_its_own(home: Path, tmp_path: Path) -> None:
    config = tmp_path / "claw.json"
    config.touch()
    found = locate(environ={"OPENCLAW_CONFIG_PATH": str(config)}, home=home)
    assert (found.config.path, found.config.origin) == (config, ENV_CONFIG)


def test_a_tilde_in_the_environment_is_home(home: Path) -> None:
    found = locate(environ={"OPENCLAW_STATE_DIR": "~/claw"}, home=home)
    assert found.state_dir.path == home / "claw"


def test_absolute_paths_need_no_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    named = tmp_path / "named" / "x.db"
    environ = {"OPENCLAW_STATE_DIR": str(tmp_path / "state")}
    assert locate(db=named, environ=environ, home=tmp_path).database.path == named
    with pytest.raises(FileNotFoundError):
        locate(db=Path("x.db"), environ=environ, home=tmp_path)
    monkeypatch.chdir(tmp_path)
    assert locate(db=Path("x.db"), environ=environ, home=tmp_path).database.path == tmp_path / "x.db"
