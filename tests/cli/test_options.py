"""The options that every command takes: before it, after it, and never dropped."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.__main__ import main
from farmtui.cli.exits import Usage
from farmtui.cli.options import CONSOLE_OPTIONS, GLOBAL_OPTIONS, Globals, asks_json, only_globals
from farmtui.clock import iso
from tests.cli.commands import Commands
from tests.farms import NOW, Farmyard

EVERYWHERE = ["runs", "show", "medic", "escalations", "crons", "journal", "doctor"]


def test_each_option_has_a_field() -> None:
    keys = {option.key for option in (*GLOBAL_OPTIONS, *CONSOLE_OPTIONS)}
    assert keys == {each.name for each in fields(Globals)}


@pytest.mark.parametrize("command", EVERYWHERE)
def test_options_mean_the_same_before_and_after_every_command(
    command: str, farm: Commands, runs: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rest = [command, *([runs["stale"]] if command == "show" else [])]
    options = ["--json", "--state-dir", str(farm.yard.state_dir), "--now", str(iso(NOW))]
    answers = []
    for line in ([*options, *rest], [*rest, *options], [options[0], *rest, *options[1:]]):
        main(line)
        answer = json.loads(capsys.readouterr().out)
        answer.pop("sources")
        answers.append(answer)
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["database"] == str(farm.yard.database)
    assert answers[0]["generated_at"] == iso(NOW)


@pytest.mark.parametrize(
    "line",
    [
        ["crons", "delete", "none", "--dry-run"],
        ["--json", "crons", "delete", "none"],
        ["crons", "--json", "delete", "none"],
        ["crons", "delete", "--json", "none"],
        ["crons", "delete", "none", "--json"],
    ],
)
def test_options_reach_a_subcommand_from_every_level(line: list[str], farm: Commands) -> None:
    told = farm(*line)
    assert told.code == 3
    assert ("{" in told.out) == ("--json" in line)


@pytest.mark.parametrize(
    "line",
    [
        ["--db", "a.db", "runs", "--db", "b.db"],
        ["runs", "--db", "a.db", "--db", "b.db"],
        ["--db", "a.db", "--db", "b.db", "runs"],
        ["crons", "--state-dir", "a", "delete", "x", "--state-dir", "b"],
        ["--now", "2026-01-01", "runs", "--now", "2026-01-02"],
        ["--db", "a", "--db", "b"],
    ],
)
def test_an_option_given_twice_differently_is_refused(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == 2
    assert "given twice" in capsys.readouterr().err


def test_an_option_given_twice_alike_is_fine(farm: Commands) -> None:
    assert farm("--state-dir", str(farm.yard.state_dir), "runs").code == 0


@pytest.mark.parametrize(
    "line",
    [
        ["runs", "--nowhere"],
        ["runs", "--limit", "many"],
        ["runs", "--limit", "-1"],
        ["runs", "--lane", "somewhere"],
        ["runs", "extra"],
        ["show"],
        ["nonsense"],
        ["runs", "--db"],
        ["runs", "--db", ""],
        ["runs", "--state-dir", ""],
        ["runs", "--now", "yesterday"],
        ["runs", "--no-mouse"],
        ["medic", "run"],
        ["medic", "--fix", "no-such-check"],
        ["medic", "--yes"],
        ["crons", "delete"],
        ["crons", "delete", "abcd", "--orphaned"],
        ["crons", "delete", "abcd", "--workflow", "relay"],
        ["resolve", "1"],
        ["resolve", "1", "--retry", "--guidance", "a", "--guidance-file", "b"],
        ["resolve", "1", "--retry", "--guidance", " "],
        ["ack", "1"],
        ["ack", "1", "--note", ""],
        ["journal", "--limit", "-1"],
        ["demo", "--db", "x"],
        [],
    ],
)
@pytest.mark.parametrize("json_first", [False, True])
def test_a_wrong_command_line_is_told_in_one_line(
    line: list[str], json_first: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--json", *line] if json_first else line)
    said = capsys.readouterr()
    assert code == 2
    if json_first:
        answer = json.loads(said.out)
        assert answer["errors"]
        assert {"schema", "generated_at", "database", "sources"} <= answer.keys()
        assert said.err == ""
    else:
        assert said.out == ""
        assert len(said.err.splitlines()) == 1


def test_json_after_the_command_also_answers_its_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--limit", "many", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"]


def test_without_a_terminal_the_console_says_so(
    busy: tuple[Farmyard, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--state-dir", str(busy[0].state_dir)]) == 2
    assert "terminal" in capsys.readouterr().err


def test_the_bare_options_are_understood_as_typer_does() -> None:
    assert only_globals([]) == Globals()
    assert only_globals(["--db=x", "--readonly", "--state-dir", "--json"]) == Globals(
        db="x", readonly=True, state_dir="--json"
    )
    assert only_globals(["--db"]) is None
    assert only_globals(["--readonly=yes"]) is None
    assert only_globals(["runs"]) is None
    assert only_globals(["--help"]) is None


@given(st.lists(st.sampled_from(["--json", "--db", "--db=a", "a", "--", "runs", "--now", ""])))
def test_any_arguments_are_read_without_a_fault(arguments: list[str]) -> None:
    asks_json(arguments)
    try:
        options = only_globals(arguments)
    except Usage:
        return
    assert options is None or "runs" not in arguments or "runs" in (options.db, options.now)


def test_a_flag_never_falls_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yard = Farmyard(tmp_path / "home")
    assert yard.database.is_file()
    assert main(["runs", "--state-dir", str(tmp_path / "elsewhere")]) == 3
    assert "elsewhere" in capsys.readouterr().err
