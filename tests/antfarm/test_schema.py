"""Opening a database: whatever is wrong with the file is one clear line."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farmtui.antfarm.schema import (
    Unreadable,
    cell,
    columns_of,
    connect_ro,
    int_of,
    readable,
    schema_of,
    selection,
    text_of,
)
from tests.farms import VERSIONS, Farmyard


def _look(path: Path) -> None:
    with readable(path), closing(connect_ro(path)) as connection:
        schema_of(connection, path)


def _why(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        _look(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_an_absent_database(tmp_path: Path) -> None:
    assert "no database at" in _why(tmp_path / "antfarm.db")


def test_an_empty_file_and_a_database_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "antfarm.db"
    path.touch()
    assert "is empty" in _why(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    assert "is empty" in _why(path)


def test_something_else_than_a_database(tmp_path: Path) -> None:
    path = tmp_path / "antfarm.db"
    path.write_text("This is a letter, and a long one. " * 100)
    assert "is not an SQLite database" in _why(path)


def test_somebody_elses_database(tmp_path: Path) -> None:
    path = tmp_path / "antfarm.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (id)")
        assert "no table runs" in _why(path)
        connection.execute("CREATE TABLE runs (distance)")
    assert "no column id" in _why(path)


def test_a_folder_and_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    assert "no regular file" in _why(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "no regular file" in _why(pipe)


def test_a_damaged_page(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    yard.add_run("relay", steps=[])
    yard.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with yard.database.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 2000)
    assert "corrupt" in _why(yard.database)


def test_a_path_with_odd_characters(tmp_path: Path) -> None:
    odd = tmp_path / "what? #1 100% {x}"
    odd.mkdir()
    _look(Farmyard(odd).database)


def test_reading_leaves_the_database_as_it_is(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    with closing(connect_ro(yard.database)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("DELETE FROM runs")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_columns_are_those_of_the_version(tmp_path: Path, version: str) -> None:
    yard = Farmyard(tmp_path, schema=version)
    with closing(connect_ro(yard.database)) as connection:
        steps, runs = columns_of(connection, "steps"), columns_of(connection, "runs")
        assert columns_of(connection, "no_such_table") == frozenset()
    assert ("type" in steps) == (version != "0.1")
    assert ("abandoned_count" in steps) == (version in ("0.3.0", "0.5.1", "fork"))
    assert ("run_number" in runs) == (version in ("0.5.1", "fork"))
    assert ("claimed_at" in steps) == (version == "fork")


def test_a_selection_has_null_for_what_is_not_there() -> None:
    columns = frozenset({"id", "task"})
    assert (
        selection(columns, ("id", "type", "task"), {"task": 9})
        == "id, NULL AS type, substr(task, 1, 9) AS task"
    )


def test_odd_cells() -> None:
    assert cell(b"caf\xc3\xa9 \xff") == "café \N{REPLACEMENT CHARACTER}"
    assert [text_of(value) for value in (None, 5, 1.5, b"x", "y")] == ["", "5", "1.5", "x", "y"]
    assert [int_of(value, 7) for value in (3, "4", " 5 ", b"6", None, "x", float("inf"), "nan")] == [
        3,
        4,
        5,
        6,
        7,
        7,
        7,
        7,
    ]
