"""However a database changes, the live reader ends at what a fresh one reads."""

# Statements are put together from names and numbers of this file only.
# ruff: noqa: S608
from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmtui.antfarm.reader import DatabaseReader, Rows
from tests.farms import Farmyard, StepRow, StoryRow

RUN_STATUSES = st.sampled_from(["running", "running", "failed", "completed", "cancelled", "paused", "done"])
CHILD_STATUSES = st.sampled_from(["waiting", "pending", "running", "done", "failed", "odd"])
PICK = st.integers(0, 5)

Change = Callable[[Farmyard], object]


def _at(table: str, pick: int) -> str:
    """A condition that holds for one row, the last ones more often."""
    return f"rowid = (SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 1 OFFSET {pick})"


def _add_run(status: str, steps: int, stories: int) -> Change:
    return lambda yard: yard.add_run(
        "relay",
        status=status,
        steps=[StepRow(f"s{index}") for index in range(steps)],
        stories=[StoryRow(f"S-{index}") for index in range(stories)],
    )


def _set(table: str, column: str, pick: int, value: str) -> Change:
    return lambda yard: yard.execute(f"UPDATE {table} SET {column} = ? WHERE {_at(table, pick)}", value)


def _delete(table: str, pick: int) -> Change:
    return lambda yard: yard.execute(f"DELETE FROM {table} WHERE {_at(table, pick)}")


def _delete_run(pick: int) -> Change:
    def change(yard: Farmyard) -> None:
        for child in ("steps", "stories"):
            yard.execute(
                f"DELETE FROM {child} WHERE run_id = (SELECT id FROM runs WHERE {_at('runs', pick)})"
            )
        yard.execute(f"DELETE FROM runs WHERE {_at('runs', pick)}")

    return change


def _add_step(pick: int, status: str) -> Change:
    columns = (
        "id, run_id, step_id, agent_id, step_index, input_template, expects, status, created_at, updated_at"
    )
    values = "hex(randomblob(8)), id, 'extra', 'a', 9, '', '', ?, '', ''"
    return lambda yard: yard.execute(
        f"INSERT INTO steps ({columns}) SELECT {values} FROM runs WHERE {_at('runs', pick)}", status
    )


def _vacuum(yard: Farmyard) -> object:
    return yard.execute("VACUUM")


RUNS = st.builds(_add_run, RUN_STATUSES, st.integers(0, 4), st.integers(0, 3))
CHANGES = st.one_of(
    RUNS,
    st.builds(_set, st.just("runs"), st.just("status"), PICK, RUN_STATUSES),
    st.builds(_set, st.sampled_from(["steps", "stories"]), st.just("status"), PICK, CHILD_STATUSES),
    st.builds(_set, st.just("runs"), st.just("task"), PICK, st.text(max_size=5)),
    st.builds(_delete, st.sampled_from(["steps", "stories"]), PICK),
    st.builds(_delete_run, PICK),
    st.builds(_add_step, PICK, CHILD_STATUSES),
    st.just(_vacuum),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(RUNS, max_size=5), st.lists(st.lists(CHANGES, min_size=1, max_size=4), max_size=6), st.booleans()
)
def test_the_live_reader_ends_where_a_fresh_one_begins(
    start: list[Change], rounds: list[list[Change]], tallied: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        yard = Farmyard(folder)
        # While this is open, no other connection that closes is the last one, which would checkpoint.
        with closing(yard.connect()) as held:
            held.execute("SELECT * FROM runs").fetchall()
            for change in start:
                change(yard)
            reader = DatabaseReader(yard.database)
            reader.tally() if tallied else reader.poll()
            for changes in rounds:
                for change in changes:
                    change(yard)
                _right_at_once(reader.poll(), yard)
            reader.tally()
            for _ in range(60):
                swept = reader.sweep()
            assert swept.runs == _fresh(yard).runs
            reader.close()
    finally:
        shutil.rmtree(folder)


def _right_at_once(rows: Rows, yard: Farmyard) -> None:
    """Which runs there are, and all of every active one, without waiting for a sweep."""
    fresh = {run.id: run for run in _fresh(yard).runs}
    assert {run.id for run in rows.runs} == fresh.keys()
    for run in rows.runs:
        if run.active:
            assert run == fresh[run.id]


def _fresh(yard: Farmyard) -> Rows:
    with closing(DatabaseReader(yard.database)) as reader:
        return reader.tally()
