"""The live reader beside other processes: commits, locks, checkpoints, and files that are replaced."""

# ruff: noqa: S608 (numbers only)
from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from farmtui.antfarm.reader import DatabaseReader
from farmtui.antfarm.schema import Unreadable
from tests.farms import Farmyard, StepRow

STEPS = (StepRow("plan", status="pending"), StepRow("build"))

# Runs each line that it is sent as SQL, committed by itself, and answers with "ok" or the error.
_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
for line in sys.stdin:
    try:
        connection.execute(line).fetchall()
        print("ok", flush=True)
    except sqlite3.Error as error:
        print(error, flush=True)
"""


class Writer:
    """Another process with the database open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, statement: str) -> str:
        given, answered = self._process.stdin, self._process.stdout
        assert given is not None
        assert answered is not None
        given.write(statement + "\n")
        given.flush()
        return answered.readline().strip()


@contextmanager
def another_process(database: Path) -> Iterator[Writer]:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Writer(process)
    finally:
        process.communicate()


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


@pytest.fixture
def reader(yard: Farmyard) -> Iterator[DatabaseReader]:
    made = DatabaseReader(yard.database)
    yield made
    made.close()


def test_each_commit_of_another_process_is_seen_at_the_next_look(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    yard.add_run("relay", steps=STEPS)
    reader.tally()
    with another_process(yard.database) as write:
        for turn in range(50):
            assert write(f"UPDATE steps SET retry_count = {turn + 1} WHERE step_id = 'plan'") == "ok"
            assert reader.poll().runs[0].steps[0].retry_count == turn + 1


def test_what_is_not_committed_is_not_seen(yard: Farmyard, reader: DatabaseReader) -> None:
    yard.add_run("relay", steps=STEPS)
    rows = reader.tally()
    with another_process(yard.database) as write:
        assert write("BEGIN IMMEDIATE") == "ok"
        assert write("UPDATE steps SET status = 'done'") == "ok"
        assert reader.poll() is rows
        assert write("COMMIT") == "ok"
        assert {step.status for step in reader.poll().runs[0].steps} == {"done"}


def test_reading_neither_locks_writers_out_nor_keeps_the_log_from_being_checkpointed(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    yard.add_run("relay", steps=STEPS)
    with another_process(yard.database) as write:
        write("PRAGMA wal_autocheckpoint = 20")
        for turn in range(300):
            assert write(f"UPDATE steps SET output = printf('%.20000c', 'x'), retry_count = {turn}") == "ok"
            reader.poll()
            reader.sweep()
        reader.tally()
        assert write("PRAGMA wal_checkpoint(TRUNCATE)") == "ok"
        assert yard.database.with_name("antfarm.db-wal").stat().st_size == 0


def test_we_never_checkpoint_for_others(yard: Farmyard) -> None:
    with closing(yard.connect()) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        yard.add_run("relay", steps=STEPS)
        connection.execute("UPDATE steps SET status = 'done'")
        before = yard.database.read_bytes()
        reader = DatabaseReader(yard.database)
        reader.tally()
        reader.sweep()
        reader.close()
        assert yard.database.read_bytes() == before


def test_an_exclusive_lock_is_told_and_passes_by(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    reader.tally()
    reader.close()
    with another_process(yard.database) as write:
        assert write("PRAGMA locking_mode = EXCLUSIVE") == "ok"
        assert write("UPDATE steps SET status = 'done'") == "ok"
        for _ in range(2):
            with pytest.raises(Unreadable, match="is locked by another process"):
                reader.poll()
    rows = reader.poll()
    assert [run.id for run in rows.runs] == [run_id]
    assert {step.status for step in rows.runs[0].steps} == {"done"}


def test_a_database_that_is_replaced_while_open(
    tmp_path: Path, yard: Farmyard, reader: DatabaseReader
) -> None:
    yard.add_run("relay", "before", steps=STEPS)
    ended = yard.add_run("relay", "ended", status="completed", steps=STEPS)
    reader.tally()
    other_home = tmp_path / "other"
    other_home.mkdir()
    other = Farmyard(other_home)
    other.add_run("meadow", "after", status="completed", steps=STEPS, run_id="another")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        yard.database.with_name(yard.database.name + suffix).unlink(missing_ok=True)
    other.database.replace(yard.database)
    rows = reader.poll()
    assert [run.task for run in rows.runs] == ["after"]
    assert rows.tallied
    assert rows.runs[0].tally is not None
    assert rows.runs[0].tally.steps_total == 2
    assert ended not in {run.id for run in rows.runs}


def test_a_replacement_with_the_same_rows_keeps_the_records(yard: Farmyard, reader: DatabaseReader) -> None:
    yard.add_run("relay", steps=STEPS)
    yard.add_run("relay", status="completed", steps=STEPS)
    rows = reader.tally()
    copy = yard.database.with_name("copy.db")
    with closing(sqlite3.connect(copy)) as target, closing(yard.connect()) as source:
        source.backup(target)
    copy.replace(yard.database)
    assert reader.poll() is rows


def test_a_file_overwritten_in_place(tmp_path: Path, yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    yard.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    earlier = tmp_path / "earlier.db"
    shutil.copyfile(yard.database, earlier)
    yard.execute("UPDATE steps SET status = 'done'")
    yard.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert reader.tally().runs[0].steps[0].status == "done"
    shutil.copyfile(earlier, yard.database)
    (run,) = reader.poll().runs
    assert (run.id, run.steps[0].status) == (run_id, "pending")


@pytest.mark.parametrize("damage", ["header", "truncated", "emptied", "removed", "folder"])
def test_damage_while_open_is_told_and_mended_by_a_good_file(
    tmp_path: Path, yard: Farmyard, reader: DatabaseReader, damage: str
) -> None:
    for _ in range(40):
        yard.add_run("relay", "x" * 500, steps=STEPS)
    yard.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good = tmp_path / "good.db"
    shutil.copyfile(yard.database, good)
    rows = reader.tally()
    _break(yard.database, damage)
    for _ in range(2):
        with pytest.raises(Unreadable) as caught:
            reader.poll()
        assert str(yard.database) in str(caught.value)
        assert "\n" not in str(caught.value)
    if damage == "folder":
        yard.database.rmdir()
    good.replace(yard.database)
    assert reader.poll() is rows


def _break(database: Path, damage: str) -> None:
    if damage in ("removed", "folder"):
        database.unlink()
        if damage == "folder":
            database.mkdir()
        return
    file: IO[bytes]
    with database.open("r+b") as file:
        if damage == "header":
            file.write(b"garbage" * 20)
        else:
            file.truncate(4096 if damage == "truncated" else 0)
