"""The live reader: what it tells of runs, steps and stories, and what it notices when they change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from farmtui.antfarm.reader import SLICES, DatabaseReader, Rows
from farmtui.antfarm.records import TASK_CHARACTERS
from farmtui.antfarm.schema import Unreadable
from farmtui.state import LoopConfig, Run, Tally
from tests.boxes import Box
from tests.farms import MINUTE, NOW, VERSIONS, Farmyard, StepRow, StoryRow

LOOP = {"over": "stories", "completion": "all_done", "verifyEach": True, "verifyStep": "verify"}
STEPS = (
    StepRow("plan", agent="planner", status="done", output="STATUS: done", age=9 * MINUTE),
    StepRow("build", agent="developer", status="running", loop=LOOP, current_story="S-2", age=4 * MINUTE),
    StepRow("verify", agent="verifier"),
)
STORIES = (StoryRow("S-1", status="done"), StoryRow("S-2", status="running", retry_count=1), StoryRow("S-3"))


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


@pytest.fixture
def reader(yard: Farmyard) -> Iterator[DatabaseReader]:
    made = DatabaseReader(yard.database)
    yield made
    made.close()


def _run(rows: Rows, run_id: str) -> Run:
    return next(run for run in rows.runs if run.id == run_id)


def _statuses(run: Run) -> dict[str, str]:
    return {step.name: step.status for step in run.steps}


def _sweep_once_round(reader: DatabaseReader) -> Rows:
    for _ in range(60):
        rows = reader.sweep()
    return rows


# ---------------------------------------------------------------- what is read


def test_an_active_run_with_its_steps_and_stories(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", "Add a button", number=14, steps=STEPS, stories=STORIES, age=4 * MINUTE)
    (run,) = reader.poll().runs
    assert (run.id, run.number, run.label, run.workflow, run.task) == (
        run_id,
        14,
        "#14",
        "relay",
        "Add a button",
    )
    assert (run.status, run.active, run.tally) == ("running", True, None)
    assert run.updated_at == NOW - 4 * MINUTE
    assert run.created_at == NOW - timedelta(hours=1, minutes=4)
    plan, build, verify = run.steps
    assert (plan.name, plan.status, plan.agent_id, plan.index, plan.type) == (
        "plan",
        "done",
        "relay_planner",
        0,
        "single",
    )
    assert (build.type, build.loop) == ("loop", LoopConfig(verify_each=True, verify_step="verify"))
    assert build.current_story_id == yard.story_id(run_id, "S-2") == run.stories[1].id
    assert build.updated_at == NOW - 4 * MINUTE
    assert (verify.status, verify.loop, verify.current_story_id) == ("waiting", None, None)
    assert [(s.story_id, s.status, s.retry_count, s.max_retries) for s in run.stories] == [
        ("S-1", "done", 0, 2),
        ("S-2", "running", 1, 2),
        ("S-3", "pending", 0, 2),
    ]


def test_runs_come_newest_first_by_when_they_began(yard: Farmyard, reader: DatabaseReader) -> None:
    old = yard.add_run("relay", created=timedelta(days=2), age=MINUTE)
    newest = yard.add_run("relay", created=timedelta(hours=1))
    between = yard.add_run("relay", created=timedelta(days=1))
    assert [run.id for run in reader.poll().runs] == [newest, between, old]


def test_ended_runs_have_only_a_tally_and_that_not_before_it_is_asked_for(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    ended = yard.add_run(
        "relay",
        status="failed",
        steps=[StepRow("plan", status="done"), StepRow("build", status="failed"), StepRow("verify")],
        stories=[StoryRow("S-1", status="done"), StoryRow("S-2", status="failed")],
    )
    bare = yard.add_run("relay", status="completed")
    first = reader.poll()
    assert not first.tallied
    assert (_run(first, ended).tally, _run(first, ended).steps, _run(first, ended).stories) == (None, (), ())
    rows = reader.tally()
    assert rows.tallied
    assert _run(rows, ended).tally == Tally(1, 3, 1, 2, ("done", "failed", "waiting"), ("build",))
    assert _run(rows, bare).tally == Tally()
    assert _run(rows, ended).steps == ()


def test_the_tally_lists_steps_by_their_index(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run(
        "relay",
        status="completed",
        steps=[
            StepRow("late", status="failed", extra={"step_index": 10}),
            StepRow("early", status="failed", extra={"step_index": 2}),
            StepRow("first", status="done", extra={"step_index": 1}),
        ],
    )
    tally = _run(reader.tally(), run_id).tally
    assert tally is not None
    assert (tally.statuses, tally.failed_steps) == (("done", "failed", "failed"), ("early", "late"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_schema_is_read(tmp_path: Path, version: str) -> None:
    yard = Farmyard(tmp_path, schema=version)
    active = yard.add_run("relay", number=3, steps=STEPS, stories=STORIES)
    ended = yard.add_run("relay", status="completed", steps=STEPS, stories=STORIES)
    reader = DatabaseReader(yard.database)
    rows = reader.tally()
    run = _run(rows, active)
    assert run.number == (3 if version in ("0.5.1", "fork") else None)
    assert run.label == ("#3" if version in ("0.5.1", "fork") else active[:8])
    assert [step.type for step in run.steps] == ["single", "single" if version == "0.1" else "loop", "single"]
    assert [step.abandoned_count for step in run.steps] == [0, 0, 0]
    assert len(run.stories) == 3
    assert _run(rows, ended).tally == Tally(1, 3, 1, 3, ("done", "running", "waiting"), ())
    reader.close()


@pytest.mark.parametrize(
    ("written", "told", "active"),
    [
        ("completed", "completed", False),
        ("done", "completed", False),
        ("canceled", "cancelled", False),
        ("paused", "paused", True),
        ("", "", True),
    ],
)
def test_run_statuses_are_normalised_and_unknown_ones_stay(
    yard: Farmyard, reader: DatabaseReader, written: str, told: str, active: bool
) -> None:
    yard.add_run("relay", status=written, steps=[StepRow("plan", status="gate")])
    (run,) = reader.poll().runs
    assert (run.status, run.active) == (told, active)
    assert [step.status for step in run.steps] == (["gate"] if active else [])


def test_odd_cells_do_no_harm(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", steps=STEPS, stories=STORIES, number=1)
    ended = yard.add_run("relay", status="completed", steps=STEPS)
    yard.execute("UPDATE runs SET task = CAST(x'66ff6f' AS TEXT), run_number = 'x', updated_at = 'soon'")
    yard.execute("UPDATE runs SET workflow_id = 7 WHERE id = ?", run_id)
    yard.execute(
        "UPDATE steps SET step_id = x'ff61', step_index = 'two', loop_config = '{', retry_count = NULL"
    )
    yard.execute("UPDATE steps SET max_retries = NULL, status = CAST(x'ff' AS TEXT) WHERE step_index = 'two'")
    yard.execute("UPDATE stories SET title = NULL, retry_count = 'x' WHERE 0")
    rows = reader.tally()
    run = _run(rows, run_id)
    bad = "\N{REPLACEMENT CHARACTER}"
    assert (run.task, run.number, run.updated_at, run.workflow) == (f"f{bad}o", None, None, "7")
    assert {
        (step.name, step.status, step.loop, step.retry_count, step.max_retries) for step in run.steps
    } == {(f"{bad}a", bad, None, 0, 2)}
    tally = _run(rows, ended).tally
    assert tally is not None
    assert tally.statuses == (bad,) * 3


def test_a_farm_without_tables_for_steps_and_stories_still_shows_its_runs(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    run_id = yard.add_run("relay")
    yard.execute("DROP TABLE stories")
    yard.execute("DROP TABLE steps")
    rows = reader.tally()
    assert _run(rows, run_id).steps == ()
    assert _sweep_once_round(reader).runs == rows.runs


def test_a_long_task_is_cropped_in_lists(yard: Farmyard, reader: DatabaseReader) -> None:
    yard.add_run("relay", "x" * 1_000_000)
    assert reader.poll().runs[0].task == "x" * TASK_CHARACTERS


def test_steps_that_do_not_lie_in_the_order_of_their_runs_are_found(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    first = yard.add_run("relay", steps=STEPS)
    second = yard.add_run("relay", steps=STEPS)
    third = yard.add_run("relay", steps=STEPS)
    yard.execute("UPDATE steps SET rowid = rowid + 100 WHERE run_id = ?", first)
    yard.execute("UPDATE steps SET rowid = rowid + 50 WHERE run_id = ? AND step_index = 1", second)
    rows = reader.poll()
    for run_id in (first, second, third):
        assert [step.name for step in _run(rows, run_id).steps] == ["plan", "build", "verify"]


def test_the_scan_for_the_tally_corrects_what_a_search_missed(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", steps=STEPS[:2])
    yard.add_run("relay", steps=STEPS)
    other = yard.add_run("relay", status="completed", steps=STEPS)
    # A step that somebody inserted later looks, to a search, as if the run had ended before it.
    yard.execute("UPDATE steps SET run_id = ? WHERE run_id = ? AND step_index = 2", run_id, other)
    reader.poll()
    assert [step.name for step in _run(reader.tally(), run_id).steps] == ["plan", "build", "verify"]


# ---------------------------------------------------------------- what is noticed


def test_nothing_new_is_the_identical_answer(yard: Farmyard, reader: DatabaseReader) -> None:
    yard.add_run("relay", steps=STEPS, stories=STORIES)
    rows = reader.tally()
    assert reader.poll() is rows
    assert reader.sweep() is rows
    assert reader.tally() is rows
    yard.execute("CREATE TABLE IF NOT EXISTS unrelated (x)")
    assert reader.poll() is rows


def test_only_what_changed_is_another_record(yard: Farmyard, reader: DatabaseReader) -> None:
    changed = yard.add_run("relay", steps=STEPS, stories=STORIES)
    yard.add_run("relay", steps=STEPS, stories=STORIES)
    yard.add_run("relay", status="completed", steps=STEPS)
    before = reader.tally()
    yard.execute("UPDATE steps SET status = 'done' WHERE id = ?", yard.step_id(changed, "build"))
    after = reader.poll()
    assert after.version == before.version + 1
    for old, new in zip(before.runs, after.runs, strict=True):
        assert (old is new) == (new.id != changed)
    old_run, new_run = _run(before, changed), _run(after, changed)
    assert _statuses(new_run) == {"plan": "done", "build": "done", "verify": "waiting"}
    assert [old is new for old, new in zip(old_run.steps, new_run.steps, strict=True)] == [True, False, True]
    assert all(old is new for old, new in zip(old_run.stories, new_run.stories, strict=True))


def test_a_change_within_the_same_second_is_noticed(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", steps=STEPS)
    reader.poll()
    yard.execute("UPDATE steps SET retry_count = 1 WHERE id = ?", yard.step_id(run_id, "plan"))
    assert _run(reader.poll(), run_id).steps[0].retry_count == 1


def test_inserted_runs_steps_and_stories(yard: Farmyard, reader: DatabaseReader) -> None:
    first = yard.add_run("relay", steps=STEPS[:1])
    reader.tally()
    second = yard.add_run("relay", steps=STEPS, created=timedelta(0))
    rows = reader.poll()
    assert rows.runs[0].id == second
    assert len(_run(rows, second).steps) == 3
    yard.execute(
        "INSERT INTO stories SELECT 'late', ?, 0, 'S-9', 't', 'd', '[]', 'pending', NULL, 0, 2, '', ''", first
    )
    (story,) = _run(reader.poll(), first).stories
    assert (story.id, story.created_at) == ("late", None)


@pytest.mark.parametrize("tallied", [True, False])
def test_a_run_that_ends_is_noticed_at_once_with_its_tally(
    yard: Farmyard, reader: DatabaseReader, tallied: bool
) -> None:
    run_id = yard.add_run("relay", steps=STEPS, stories=STORIES)
    reader.tally() if tallied else reader.poll()
    yard.execute("UPDATE steps SET status = 'done'")
    yard.execute("UPDATE runs SET status = 'completed'")
    run = _run(reader.poll(), run_id)
    assert (run.status, run.steps, run.stories) == ("completed", (), ())
    assert run.tally == Tally(3, 3, 1, 3, ("done", "done", "done"), ())


@pytest.mark.parametrize("tallied", [True, False])
def test_a_failed_run_that_is_resumed_is_noticed_at_once(
    yard: Farmyard, reader: DatabaseReader, tallied: bool
) -> None:
    run_id = yard.add_run("relay", status="failed", steps=STEPS, stories=STORIES)
    yard.add_run("relay", steps=STEPS)
    reader.tally() if tallied else reader.poll()
    yard.execute("UPDATE runs SET status = 'running' WHERE id = ?", run_id)
    run = _run(reader.poll(), run_id)
    assert run.active
    assert (len(run.steps), len(run.stories), run.tally) == (3, 3, None)
    yard.execute("UPDATE steps SET status = 'done' WHERE run_id = ?", run_id)
    assert set(_statuses(_run(reader.poll(), run_id)).values()) == {"done"}


def test_late_changes_of_ended_runs_are_swept_up_within_sixty_calls(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    ids = [
        yard.add_run("relay", status="completed", steps=STEPS, stories=STORIES) for _ in range(3 * SLICES + 7)
    ]
    reader.tally()
    _sweep_once_round(reader)
    changed, revived, renamed = ids[0], ids[80], ids[-1]
    yard.execute("UPDATE steps SET status = 'failed' WHERE id = ?", yard.step_id(changed, "build"))
    yard.execute("UPDATE stories SET status = 'done' WHERE run_id = ?", changed)
    yard.execute("UPDATE runs SET status = 'running' WHERE id = ?", revived)
    yard.execute("UPDATE runs SET task = 'Another' WHERE id = ?", renamed)
    rows = _sweep_once_round(reader)
    tally = _run(rows, changed).tally
    assert tally == Tally(1, 3, 3, 3, ("done", "failed", "waiting"), ("build",))
    assert len(_run(rows, revived).steps) == 3
    assert _run(rows, renamed).task == "Another"
    assert reader.sweep() is rows


def test_a_step_inserted_into_an_ended_run_is_counted(yard: Farmyard, reader: DatabaseReader) -> None:
    run_id = yard.add_run("relay", status="completed", steps=STEPS)
    yard.add_run("relay", status="completed", steps=STEPS)
    reader.tally()
    yard.execute(
        "INSERT INTO steps (id, run_id, step_id, agent_id, step_index, input_template, expects, status,"
        " created_at, updated_at) VALUES ('x', ?, 'extra', 'a', 3, '', '', 'failed', '', '')",
        run_id,
    )
    tally = _run(reader.poll(), run_id).tally
    assert tally == Tally(1, 4, 0, 0, ("done", "running", "waiting", "failed"), ("extra",))
    yard.execute("UPDATE steps SET status = 'done' WHERE id = 'x'")
    swept = _run(_sweep_once_round(reader), run_id).tally
    assert swept is not None
    assert swept.steps_done == 2


def test_deleted_runs_and_rows_are_gone_at_once(yard: Farmyard, reader: DatabaseReader) -> None:
    active = yard.add_run("relay", steps=STEPS, stories=STORIES)
    ended = yard.add_run("relay", status="completed", steps=STEPS)
    kept = yard.add_run("relay", status="completed", steps=STEPS)
    reader.tally()
    yard.execute("DELETE FROM steps WHERE id = ?", yard.step_id(active, "verify"))
    yard.execute("DELETE FROM stories WHERE run_id = ?", active)
    run = _run(reader.poll(), active)
    assert (len(run.steps), run.stories) == (2, ())
    yard.execute("DELETE FROM steps WHERE run_id IN (?, ?)", active, ended)
    yard.execute("DELETE FROM runs WHERE id IN (?, ?)", active, ended)
    assert [run.id for run in reader.poll().runs] == [kept]


def test_a_rowid_that_is_used_again_belongs_to_the_row_that_has_it(
    yard: Farmyard, reader: DatabaseReader
) -> None:
    yard.add_run("relay", steps=STEPS)
    gone = yard.add_run("relay", steps=STEPS)
    reader.tally()
    yard.execute("DELETE FROM steps WHERE run_id = ?", gone)
    yard.execute("DELETE FROM runs WHERE id = ?", gone)
    follower = yard.add_run("meadow", steps=[StepRow("taste", status="pending")])
    rows = reader.poll()
    assert _statuses(_run(rows, follower)) == {"taste": "pending"}
    assert len(rows.runs) == 2


def test_renumbering_by_vacuum_loses_nothing(yard: Farmyard, reader: DatabaseReader) -> None:
    gone = yard.add_run("relay", status="completed", steps=STEPS)
    active = yard.add_run("relay", steps=STEPS, stories=STORIES)
    ended = yard.add_run("relay", status="failed", steps=STEPS)
    reader.tally()
    yard.execute("DELETE FROM steps WHERE run_id = ?", gone)
    yard.execute("DELETE FROM runs WHERE id = ?", gone)
    before = reader.poll()
    yard.execute("VACUUM")
    yard.execute("UPDATE steps SET status = 'done' WHERE run_id = ?", active)
    rows = reader.poll()
    assert set(_statuses(_run(rows, active)).values()) == {"done"}
    assert _run(rows, ended).tally == _run(before, ended).tally
    assert rows.tallied


def test_a_schema_that_grows_while_it_is_open(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path, schema="0.3.0")
    run_id = yard.add_run("relay", steps=STEPS)
    reader = DatabaseReader(yard.database)
    assert reader.tally().runs[0].number is None
    yard.execute("ALTER TABLE runs ADD COLUMN run_number INTEGER")
    yard.execute("UPDATE runs SET run_number = 5")
    rows = reader.poll()
    assert (_run(rows, run_id).number, rows.tallied) == (5, True)
    reader.close()


def test_more_failed_runs_than_are_watched_are_swept(yard: Farmyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farmtui.antfarm.reader.FAILED_WATCHED", 2)
    ids = [yard.add_run("relay", status="failed", steps=STEPS) for _ in range(5)]
    reader = DatabaseReader(yard.database)
    reader.tally()
    yard.execute("UPDATE runs SET status = 'running' WHERE id IN (?, ?)", ids[0], ids[-1])
    rows = reader.poll()
    assert [_run(rows, run_id).active for run_id in (ids[0], ids[-1])] == [False, True]
    rows = _sweep_once_round(reader)
    assert [_run(rows, run_id).active for run_id in (ids[0], ids[-1])] == [True, True]
    reader.close()


# ---------------------------------------------------------------- the recorded boxes


def test_the_boxes_are_read_as_they_were_left(box: Box) -> None:
    reader = DatabaseReader(box.database)
    rows = reader.tally()
    counts = box.snapshot["counts"]
    assert len(rows.runs) == counts["runs"]
    tallied = [run.tally for run in rows.runs if run.tally is not None]
    active = [run for run in rows.runs if run.active]
    assert sum(len(run.steps) for run in active) + sum(t.steps_total for t in tallied) == counts["steps"]
    assert (
        sum(len(run.stories) for run in active) + sum(t.stories_total for t in tallied) == counts["stories"]
    )
    for name, situation in box.snapshot["situations"].items():
        if "run_id" in situation and "run_status" in situation:
            assert _run(rows, situation["run_id"]).status == situation["run_status"], name
    reader.close()


# ---------------------------------------------------------------- what cannot be read


def test_an_unreadable_database_is_told_and_the_reader_recovers(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path, database=False)
    reader = DatabaseReader(yard.database)
    for _ in range(2):
        with pytest.raises(Unreadable, match="no database at"):
            reader.tally()
    yard.database.touch()
    with pytest.raises(Unreadable, match="is empty"):
        reader.poll()
    yard.create_database()
    yard.add_run("relay", status="completed", steps=STEPS)
    rows = reader.poll()
    assert len(rows.runs) == 1
    assert rows.tallied, "the tally was asked for while the database was away"
    reader.close()
