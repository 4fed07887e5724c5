"""OpenClaw's stores on disk: two real ones, and each kind built by hand."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farmtui.openclaw.crons import Crons
from farmtui.openclaw.files import FileProblem
from farmtui.openclaw.jobs import listing_of
from farmtui.openclaw.store import read_store
from farmtui.paths import locate
from farmtui.state import CronSource
from tests.boxes import Box
from tests.openclaw.conftest import definition
from tests.openclaw.test_jobs import NOW

STATE = {"nextRunAtMs": 1796089460231, "lastRunStatus": "ok"}


def write_database(folder: Path, rows: list[tuple[Any, ...]], *, live: bool = True) -> Path:
    path = folder / "state" / "openclaw.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        state = ", state_json TEXT" if live else ""
        db.execute(f"CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, job_json TEXT{state})")
        marks = ", ".join("?" * (4 if live else 3))
        db.executemany(f"INSERT INTO cron_jobs VALUES ({marks})", rows)  # noqa: S608
        db.commit()
    return path


def write_jobs(folder: Path, jobs: Any) -> Path:
    (folder / "cron").mkdir()
    path = folder / "cron" / "jobs.json"
    path.write_text(json.dumps(jobs))
    return path


def test_the_older_store(state: Path) -> None:
    job = {"id": "a", **definition(), "state": STATE}
    write_jobs(state, {"version": 1, "jobs": [job]})

    assert read_store(state) == [job]


@pytest.mark.parametrize("wrap", [lambda state: {"state": state, "updatedAtMs": 5}, lambda state: state])
def test_live_state_in_a_file_of_its_own(wrap: Any, state: Path) -> None:
    jobs = write_jobs(
        state, {"version": 1, "jobs": [{"id": "a", **definition()}, {"id": "b", **definition()}]}
    )
    jobs.with_name("jobs-state.json").write_text(json.dumps({"version": 1, "jobs": {"a": wrap(STATE)}}))

    first, second = read_store(state)

    assert first["state"] == STATE
    assert "state" not in second


def test_a_broken_file_of_state_costs_only_the_state(state: Path) -> None:
    jobs = write_jobs(state, {"version": 1, "jobs": [{"id": "a", **definition()}]})
    jobs.with_name("jobs-state.json").write_text("{")

    assert len(read_store(state)) == 1


def test_the_newer_store(state: Path) -> None:
    job = {"id": "a", **definition(), "state": {}}
    path = write_database(state, [("key", "a", json.dumps(job), json.dumps(STATE))])

    assert read_store(state) == [{**job, "state": STATE}]
    assert [file.name for file in path.parent.iterdir()] == ["openclaw.sqlite"]


def test_what_a_gateway_has_not_yet_merged_into_the_file_is_read(state: Path) -> None:
    path = write_database(state, [])
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("INSERT INTO cron_jobs VALUES ('key', 'a', ?, '{}')", [json.dumps({"id": "a"})])
        db.commit()

        assert [job["id"] for job in read_store(state)] == ["a"]


def test_of_several_stores_in_one_database_ours_is_read(state: Path) -> None:
    ours = str(state / "cron" / "jobs.json")
    write_database(state, [(ours, "a", '{"id": "a"}', "{}"), ("/other", "b", '{"id": "b"}', "{}")])

    assert [job["id"] for job in read_store(state)] == ["a"]


def test_a_named_store(state: Path, tmp_path: Path) -> None:
    named = tmp_path / "mine.json"
    named.write_text(json.dumps({"jobs": [{"id": "m"}]}))

    assert read_store(state, named) == [{"id": "m"}]


def test_a_database_without_jobs_leaves_the_older_file(state: Path) -> None:
    (state / "state").mkdir()
    with closing(sqlite3.connect(state / "state" / "openclaw.sqlite")) as db:
        db.execute("CREATE TABLE other (x)")
        db.commit()
    write_jobs(state, {"jobs": [{"id": "a"}]})

    assert read_store(state) == [{"id": "a"}]


def test_a_table_that_is_empty_beside_jobs_not_yet_taken_over(state: Path) -> None:
    write_database(state, [])
    assert read_store(state) == []
    write_jobs(state, {"jobs": [{"id": "a"}]})

    assert read_store(state) == [{"id": "a"}]


def test_odd_rows_are_passed_over(state: Path) -> None:
    write_database(state, [("k", "a", "{", "{}"), ("k", "b", "[]", "{}"), ("k", "c", '{"id": "c"}', "no")])

    assert read_store(state) == [{"id": "c"}]


def test_a_store_without_a_column_of_state(state: Path) -> None:
    write_database(state, [("k", "a", '{"id": "a"}')], live=False)

    assert read_store(state) == [{"id": "a"}]


@pytest.mark.parametrize("text", ["", "{", '{"jobs": {}}', "7", "[" * 100_000])
def test_a_broken_store_is_said(text: str, state: Path) -> None:
    write_jobs(state, {}).write_text(text)

    with pytest.raises(FileProblem):
        read_store(state)


def test_what_is_no_database_is_said(state: Path) -> None:
    (state / "state").mkdir()
    (state / "state" / "openclaw.sqlite").write_bytes(b"no database at all" * 100)

    with pytest.raises(FileProblem, match="cannot be read"):
        read_store(state)


def test_no_store_is_said(state: Path) -> None:
    with pytest.raises(FileProblem, match="no job store"):
        read_store(state)


def test_the_boxes_stores_say_what_their_gateways_said(box: Box) -> None:
    store = listing_of(read_store(box.state_dir), CronSource.STORE, NOW)
    wire = listing_of(box.payload("cron.list")["jobs"], CronSource.STORE, NOW)

    assert [(job.id, job.name, job.enabled, job.schedule) for job in store.jobs] == [
        (job.id, job.name, job.enabled, job.schedule) for job in wire.jobs
    ]
    assert store.others == wire.others
    assert all(job.last_status for job in store.jobs if job.enabled)


def test_a_box_whose_gateway_is_down_is_listed_from_its_store(box: Box) -> None:
    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)

    # Port 1: nothing of this machine is asked.
    listing = Crons(paths, {"PATH": "", "OPENCLAW_GATEWAY_PORT": "1"}).list()

    assert listing.source is CronSource.STORE
    assert len(listing.jobs) == 10
