"""Applying plans while others are at work, while locks are held, and while things break."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from farmtui.operations import database
from farmtui.operations.plan import Guard, OutcomeStatus, Plan, Refused, RowChange
from farmtui.operations.words import entry_json
from tests.farms import MINUTE, Farmyard, StepRow, StoryRow
from tests.operations.kit import LOOP, ListedCrons, cells, desk_on, job

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def stale(yard: Farmyard) -> str:
    return yard.add_run(
        "orchard",
        number=7,
        steps=[
            StepRow("plan", status="done"),
            StepRow("grow", "grower", "running", loop=LOOP, current_story="S-1", age=90 * MINUTE),
            StepRow("verify", "taster"),
        ],
        stories=[StoryRow("S-1", status="running", age=90 * MINUTE)],
    )


def other_process(yard: Farmyard, code: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    """A process that knows nothing of farm but what `code` imports."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(yard.database), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environ},
    )


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE steps SET status = 'done' WHERE step_id = 'grow'",
            "step grow: status was running, is done",
        ),
        (
            "UPDATE steps SET updated_at = datetime('now') WHERE step_id = 'grow'",
            "step grow: updated was 2026-02-15 10:30:00, is 20",
        ),
        (
            "UPDATE stories SET retry_count = 1 WHERE story_id = 'S-1'",
            "story S-1: retries was 0, is 1",
        ),
        (
            "UPDATE steps SET status = 'pending' WHERE step_id = 'verify'",
            "step verify: status was waiting, is pending",
        ),
        ("UPDATE runs SET status = 'cancelled'", "run: status was running, is cancelled"),
        ("UPDATE stories SET retry_count = CAST('0' AS BLOB)", "retries was 0, is binary data"),
        ("DELETE FROM stories", "story S-1 is gone"),
    ],
)
def test_what_another_process_moved_is_told_and_nothing_is_written(
    yard: Farmyard, statement: str, told: str
) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    mover = other_process(
        yard,
        """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        connection.execute(sys.argv[2])
        connection.close()
        """,
        statement,
    )
    assert mover.wait(20) == 0
    before = yard.dump()
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "it has changed meanwhile" in outcome.detail
    assert told in outcome.detail
    assert yard.dump() == before
    assert not yard.events.exists()
    (entry,) = desk.entries()
    assert (entry.status, entry.detail) == (OutcomeStatus.REFUSED, outcome.detail)


def test_a_number_stored_as_text_is_not_the_number(yard: Farmyard) -> None:
    run = stale(yard)
    plan = desk_on(yard.paths).reset(run, "grow")
    guards = (*plan.guards, Guard("steps", yard.step_id(run, "grow"), "step_index", "1", "step grow"))
    outcome = desk_on(yard.paths).apply(replace(plan, guards=guards))
    assert outcome.status is OutcomeStatus.REFUSED


def test_text_that_is_not_utf8_is_refused_rather_than_lost(yard: Farmyard) -> None:
    run = yard.add_run(
        "relay",
        status="failed",
        steps=[StepRow("build", status="failed", output="it broke", input="Ask {{task}}")],
    )
    yard.execute("UPDATE runs SET context = CAST(x'7b2261223a22ff227d' AS TEXT) WHERE id = ?", run)
    raw = yard.execute("SELECT hex(context) FROM runs")
    desk = desk_on(yard.paths)
    plan = desk.retry(run, "mind the gap", without_crons=True)
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert yard.execute("SELECT hex(context) FROM runs") == raw


@contextmanager
def locked(yard: Farmyard) -> Iterator[sqlite3.Connection]:
    holder = other_process(
        yard,
        """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.readline()
        connection.execute("ROLLBACK")
        """,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield holder  # type: ignore[misc]
    finally:
        holder.stdin.close()
        holder.wait(20)


def test_a_lock_held_for_too_long_is_a_plain_refusal(yard: Farmyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    before = yard.dump()
    with locked(yard):
        outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "locked for 0.2 s" in outcome.detail
    assert yard.dump() == before
    assert desk.entries()[0].status is OutcomeStatus.REFUSED
    assert desk.apply(plan).status is OutcomeStatus.APPLIED


def test_a_lock_let_go_in_time_costs_nothing_but_the_wait(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    with locked(yard) as holder:
        timer = threading.Timer(0.3, lambda: holder.stdin.close())  # type: ignore[attr-defined]
        timer.start()
        outcome = desk.apply(plan)
        timer.join()
    assert outcome.status is OutcomeStatus.APPLIED


@pytest.mark.slow
def test_antfarm_loses_nothing_while_farm_acts_500_times(yard: Farmyard) -> None:
    """Another process works in real transactions without a busy time-out; bare retries cure every error.

    One retry after 10 ms is enough but where the machine itself stops us under the lock: two always are.
    """
    runs = [stale(yard) for _ in range(450)]
    yard.execute("CREATE TABLE counter (n INTEGER)")
    yard.execute("INSERT INTO counter VALUES (0)")
    counter = other_process(
        yard,
        """
        import select, sqlite3, sys, time
        connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
        done = retried = uncured = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            for attempt in range(10):
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("UPDATE counter SET n = n + 1")
                    connection.execute("COMMIT")
                    done += 1
                    break
                except sqlite3.OperationalError:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    retried += attempt == 0
                    uncured += attempt == 2
                    time.sleep(0.01)
            time.sleep(0.001)
        print(done, retried, uncured)
        """,
    )
    desk = desk_on(yard.paths)
    for number, run in enumerate(runs):
        assert desk.apply(desk.reset(run, "grow")).status is OutcomeStatus.APPLIED
        time.sleep(0.012)  # so that a retry after 10 ms does not meet the next action's lock
        if number < 50:  # an undo reads the whole journal: later ones only take longer
            assert desk.apply(desk.undo()).status is OutcomeStatus.APPLIED
            time.sleep(0.012)
    answer, _ = counter.communicate("stop\n", timeout=20)
    assert len(desk.entries()) == 500
    done, retried, uncured = map(int, answer.split())
    print(f"{done} transactions of another process, {retried} met a lock, {uncured} met it three times")
    assert yard.execute("SELECT n FROM counter") == [(done,)]
    given_back = "SELECT count(*), sum(status = 'pending') FROM steps WHERE step_id = 'grow'"
    assert yard.execute(given_back) == [(450, 400)]
    assert done > 500
    assert uncured == 0


def test_farm_never_checkpoints_and_leaves_the_wal_to_antfarm(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    with closing(yard.connect()) as antfarm:
        antfarm.execute("PRAGMA wal_autocheckpoint = 0")
        antfarm.execute("UPDATE runs SET task = 'a'")
        wal = Path(f"{yard.database}-wal")
        size, main = wal.stat().st_size, yard.database.read_bytes()
        assert desk.apply(desk.reset(run, "grow")).status is OutcomeStatus.APPLIED
        assert wal.stat().st_size > size
        assert yard.database.read_bytes() == main


def test_alone_with_the_database_it_does_not_checkpoint_either(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    main = yard.database.read_bytes()
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    assert yard.database.read_bytes() == main
    assert cells(yard, "steps", yard.step_id(run, "grow"), "status") == ("pending",)


# ---------------------------------------------------------------- things that break

ACTOR = """
import os, signal, sys
from pathlib import Path
from farmtui.paths import locate
from tests.operations.kit import ListedCrons, desk_on, job
database, run, when = sys.argv[1:]
home = Path(database).parents[2]
crons = ListedCrons([job("orchard", "taster")])
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
desk = desk_on(locate(state_dir=home / ".openclaw", environ={}, home=home), crons)
if when == "crons":
    crons.before_remove = die
    plan = desk.delete_crons(["id-orchard-taster"])
else:
    plan = desk.reset(run, "grow")
    if when == "events":
        import farmtui.operations.apply as apply
        apply.append_events = die
print("ready", flush=True)
desk.apply(plan)
"""


def test_killed_while_it_waits_for_the_lock_the_entry_is_unknown_and_nothing_was_written(
    yard: Farmyard,
) -> None:
    run = stale(yard)
    before = yard.dump()
    journal = yard.state_dir / "farm" / "journal.jsonl"
    with locked(yard):
        actor = other_process(yard, ACTOR, run, "lock")
        assert actor.stdout is not None
        assert actor.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 20
        while not (journal.exists() and journal.read_bytes().endswith(b"\n")):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        actor.kill()
        actor.wait(20)
    desk = desk_on(yard.paths)
    (entry,) = desk.entries()
    assert entry.status is OutcomeStatus.UNKNOWN
    assert entry_json(entry)["outcome"]["status"] == "unknown"
    assert yard.dump() == before
    with pytest.raises(Refused, match=r"nothing of .* is left to undo"):
        desk.undo()


def test_killed_after_the_rows_were_written_undo_finds_out_and_takes_them_back(yard: Farmyard) -> None:
    run = stale(yard)
    before = yard.dump()
    actor = other_process(yard, ACTOR, run, "events")
    assert actor.wait(20) == -signal.SIGKILL
    assert cells(yard, "steps", yard.step_id(run, "grow"), "status") == ("pending",)
    desk = desk_on(yard.paths)
    (entry,) = desk.entries()
    assert entry.status is OutcomeStatus.UNKNOWN
    plan = desk.undo()
    assert "how far it went is not known" in plan.reason
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    assert yard.dump() == before


def test_killed_before_a_cron_was_deleted_undo_sees_that_it_is_there(yard: Farmyard) -> None:
    actor = other_process(yard, ACTOR, "-", "crons")
    assert actor.wait(20) == -signal.SIGKILL
    there = desk_on(yard.paths, ListedCrons([job("orchard", "taster")]))
    assert there.entries()[0].status is OutcomeStatus.UNKNOWN
    with pytest.raises(Refused, match="antfarm/orchard/taster is listed: not added again"):
        there.undo()
    gone = ListedCrons()
    assert desk_on(yard.paths, gone).apply(desk_on(yard.paths, gone).undo()).status is OutcomeStatus.APPLIED
    assert gone.names() == ["antfarm/orchard/taster"]


def test_a_journal_that_cannot_be_written_stops_everything(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    folder = yard.state_dir / "farm"
    if folder.exists():
        folder.rmdir()
    folder.write_text("a file where the folder should be")
    before = yard.dump()
    with pytest.raises(Refused, match=r"nothing was done.*cannot write .*journal\.jsonl"):
        desk.apply(plan)
    assert yard.dump() == before
    assert not yard.events.exists()


def test_a_full_disk_is_a_plain_refusal_and_writes_nothing(yard: Farmyard) -> None:
    """The limit on the size of files stands for a full disk: the WAL cannot grow, the journal can."""
    run = stale(yard)
    with closing(yard.connect()) as holder:
        holder.execute("PRAGMA wal_autocheckpoint = 0")
        holder.execute("CREATE TABLE filler (text)")
        holder.execute("INSERT INTO filler VALUES (zeroblob(2000000))")
        before = yard.dump()
        actor = other_process(
            yard,
            """
            import resource, signal, sys
            from pathlib import Path
            from farmtui.paths import locate
            from tests.operations.kit import desk_on
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            home = Path(sys.argv[1]).parents[2]
            desk = desk_on(locate(state_dir=home / ".openclaw", environ={}, home=home))
            plan = desk.reset(sys.argv[2], "grow")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
            outcome = desk.apply(plan)
            print(outcome.status.value, outcome.detail)
            """,
            run,
        )
        answer, _ = actor.communicate(timeout=30)
        assert answer.startswith("refused nothing was done: ")
        assert yard.dump() == before
    assert desk_on(yard.paths).entries()[0].status is OutcomeStatus.REFUSED


def test_an_event_log_that_cannot_be_written_makes_it_partial(yard: Farmyard) -> None:
    run = stale(yard)
    yard.events.mkdir()
    desk = desk_on(yard.paths)
    outcome = desk.apply(desk.reset(run, "grow"))
    assert outcome.status is OutcomeStatus.PARTIAL
    assert any("event was not logged" in problem for problem in outcome.problems)
    assert desk.entries()[0].effects.rows
    assert not desk.entries()[0].effects.events
    desk.apply(desk.undo())
    assert cells(yard, "steps", yard.step_id(run, "grow"), "status") == ("running",)


def test_a_database_that_is_gone_is_refused(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    yard.database.unlink()
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "no database at" in outcome.detail
    assert not yard.database.exists()


def test_names_of_tables_and_columns_are_never_taken_on_trust(yard: Farmyard) -> None:
    run = stale(yard)
    for table, column in (("runs; --", "status"), ("sqlite_master", "name"), ("runs", "task] = 1 --")):
        odd = RowChange(table, run, column, None, None, "run", "x")
        with pytest.raises(ValueError, match="is no"):
            database.write(yard.database, (), (odd,))


def test_a_column_that_is_not_there_is_an_error_and_no_text(yard: Farmyard) -> None:
    run = stale(yard)
    odd = RowChange("runs", run, "nosuch", "nosuch", "x", "run", "nosuch")
    with pytest.raises(database.NotWritten, match="no such column"):
        database.write(yard.database, database.cells_of(Plan("reset", "t", "r", changes=(odd,))), (odd,))


def test_two_operators_at_once_only_one_of_them_acts(yard: Farmyard) -> None:
    run = stale(yard)
    actors = [other_process(yard, SAME_PLAN, run) for _ in range(2)]
    for actor in actors:
        assert actor.stdout is not None
        assert actor.stdout.readline() == "ready\n"
    answers = sorted(actor.communicate("go\n", timeout=30)[0].strip() for actor in actors)
    assert answers == ["applied", "refused"]
    assert cells(yard, "stories", yard.story_id(run, "S-1"), "retry_count") == (1,)
    assert len(yard.events.read_text().splitlines()) == 1
    statuses = sorted(entry.status.value for entry in desk_on(yard.paths).entries())
    assert statuses == ["applied", "refused"]


SAME_PLAN = """
import sys
from pathlib import Path
from farmtui.paths import locate
from tests.operations.kit import desk_on
home = Path(sys.argv[1]).parents[2]
desk = desk_on(locate(state_dir=home / ".openclaw", environ={}, home=home))
plan = desk.reset(sys.argv[2], "grow")
print("ready", flush=True)
sys.stdin.readline()
print(desk.apply(plan).status.value)
"""


def test_the_journal_holds_what_was_written_and_by_whom(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    outcome = desk.apply(desk.reset(run, "grow"))
    begin, end = map(json.loads, (yard.state_dir / "farm" / "journal.jsonl").read_text().splitlines())
    who = {key: begin[key] for key in ("user", "sudo_user", "host", "terminal", "ssh_client")}
    assert who == {
        "user": "farm",
        "sudo_user": "alice",
        "host": "gw-box",
        "terminal": "/dev/pts/3",
        "ssh_client": "192.0.2.7",
    }
    assert (begin["v"], begin["phase"], begin["entry"]) == (1, "begin", outcome.entry)
    assert begin["database"] == str(yard.database)
    written = {
        (each["row"], each["column"]): each["after"]
        for each in begin["plan"]["changes"]
        if each["column"] == "updated_at"
    }
    for (row, _), moment in written.items():
        table = "steps" if row == yard.step_id(run, "grow") else "stories"
        assert yard.row(table, row)["updated_at"] == moment
    assert (end["phase"], end["status"], end["effects"]["rows"]) == ("end", "applied", True)
