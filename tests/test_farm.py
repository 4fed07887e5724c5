"""Farm against real SQLite files and real processes: one look, and live."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farmtui.antfarm.schema import Unreadable
from farmtui.clock import FixedClock
from farmtui.farm import Farm, View
from farmtui.state import CronSource, Lane
from tests.boxes import Box
from tests.farms import MINUTE, NOW, Farmyard, StepRow


class Watching:
    """Collects what a live Farm publishes."""

    def __init__(self, farm: Farm) -> None:
        self.farm = farm
        self.views: list[View] = []
        self._arrived = threading.Condition()
        farm.start(self._take)

    def _take(self, view: View) -> None:
        with self._arrived:
            self.views.append(view)
            self._arrived.notify_all()

    def until(self, wanted: Callable[[View], bool], seconds: float = 10) -> View:
        """The first View, from the newest on, that is as wanted."""
        deadline = time.monotonic() + seconds
        with self._arrived:
            while not (self.views and wanted(self.views[-1])):
                left = deadline - time.monotonic()
                assert left > 0, f"never came; the last: {self.views[-1:]}"
                self._arrived.wait(left)
            return self.views[-1]


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


@pytest.fixture
def live(yard: Farmyard) -> Iterator[Watching]:
    farm = Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False)
    yield Watching(farm)
    farm.stop()


def at_work(yard: Farmyard, age: int = 1) -> str:
    return yard.add_run("relay", steps=[StepRow("build", status="running", age=age * MINUTE)])


def test_one_look_reads_and_judges(yard: Farmyard) -> None:
    stale = at_work(yard, age=200)
    view = Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False).look()
    assert view.state.run(stale) is not None
    assert [(found.check, found.run) for found in view.judgement.findings if found.run] == [
        ("stale-claim", stale)
    ]


def test_a_contradiction_that_is_gone_at_the_second_look_is_no_finding(yard: Farmyard) -> None:
    run = yard.add_run("relay", steps=[StepRow("build", status="failed"), StepRow("close")])
    zombies = [f.check for f in look(yard).judgement.findings]
    assert "zombie-run" in zombies
    mend = threading.Timer(0.2, lambda: yard.execute("UPDATE runs SET status = 'failed' WHERE id = ?", run))
    mend.start()
    assert "zombie-run" not in [f.check for f in look(yard).judgement.findings]
    mend.join()


def look(yard: Farmyard) -> View:
    return Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False).look()


def test_without_a_database_nothing_is_all_clear(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path, database=False)
    view = look(yard)
    assert view.state.runs == ()
    status = view.state.sources["database"]
    assert status.error is not None
    assert str(yard.database) in status.error
    assert view.judgement.not_checked


def test_crons_are_named_as_unknown_where_nothing_lists_them(yard: Farmyard) -> None:
    at_work(yard)
    view = Farm(yard.paths, clock=FixedClock(NOW), environ={"PATH": ""}).look()
    assert view.state.crons.source is CronSource.NONE
    assert view.state.sources["crons"].error
    assert any("cron" in unchecked.check for unchecked in view.judgement.not_checked)


def test_a_commit_of_another_process_is_published(yard: Farmyard, live: Watching) -> None:
    run = at_work(yard)
    live.until(lambda view: view.judgement.lanes.get(run) is Lane.RUNNING)
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute(\"UPDATE steps SET status = 'pending' WHERE run_id = ?\", (sys.argv[2],))"
    )
    subprocess.run([sys.executable, "-c", script, str(yard.database), run], check=True)
    live.until(lambda view: view.judgement.lanes.get(run) is Lane.PENDING)


def test_a_database_that_comes_later_goes_away_and_is_replaced(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path, database=False)
    farm = Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False)
    watching = Watching(farm)
    try:
        watching.until(lambda view: not view.state.sources["database"].ok)
        yard.create_database()
        run = at_work(yard)
        good = watching.until(lambda view: view.state.run(run) is not None)
        assert good.state.sources["database"].ok

        yard.database.write_bytes(b"this is no database at all" * 200)
        for suffix in ("-wal", "-shm"):
            yard.database.with_name(yard.database.name + suffix).unlink(missing_ok=True)
        broken = watching.until(lambda view: not view.state.sources["database"].ok)
        assert broken.state.run(run) is not None, "the last good data stays"
        assert broken.state.sources["database"].read_at is not None
        assert broken.state.sources["database"].failing_since is not None
        assert broken.judgement.not_checked

        other = Farmyard(tmp_path / "other")
        fresh = at_work(other)
        with other.connect() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.database.replace(yard.database)
        back = watching.until(lambda view: view.state.sources["database"].ok)
        assert back.state.run(fresh) is not None
    finally:
        farm.stop()


def test_views_come_though_nothing_changes(live: Watching) -> None:
    """A View that does not come means that reading hangs: the console tells staleness by it."""
    live.until(lambda view: view.state.tallied)
    seq = live.views[-1].state.seq
    live.until(lambda view: view.state.seq > seq, seconds=20)


def test_stop_ends_every_thread(yard: Farmyard) -> None:
    farm = Farm(yard.paths, clock=FixedClock(NOW), environ={})
    watching = Watching(farm)
    watching.until(lambda view: view.state.tallied)
    farm.stop()
    deadline = time.monotonic() + 10
    while any(thread.name.startswith("farm-") for thread in threading.enumerate()):
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.05)


def test_detail_of_a_run_that_is_not_there(yard: Farmyard) -> None:
    farm = Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False)
    farm.look()
    with pytest.raises(Unreadable, match="no run nowhere"):
        farm.detail("nowhere")


def test_a_real_box_with_its_gateway_down_reads_the_store(box: Box) -> None:
    from farmtui.paths import locate

    paths = locate(state_dir=box.state_dir, environ={}, home=box.home)
    farm = Farm(paths, clock=FixedClock(box.taken_at), environ={"PATH": ""})
    view = farm.look()
    assert view.state.crons.source is CronSource.STORE
    assert view.state.crons.note
    assert len(view.state.crons.jobs) == box.snapshot["crons"]["antfarm"]
    checks = {finding.check for finding in view.judgement.findings}
    assert {"stale-claim", "zombie-run", "orphaned-crons", "missing-crons", "waiting-for-verify"} <= checks
    stale = box.situation("stale-claim")
    assert [f.run for f in view.judgement.findings if f.check == "stale-claim"] == [stale["run_id"]]
    assert farm.detail(stale["run_id"]).run.steps


def test_what_stands_where_a_folder_should_is_told_in_words(yard: Farmyard) -> None:
    yard.workflows.write_text("no folder")
    view = Farm(yard.paths, clock=FixedClock(NOW), environ={}, gateway=False).look(crons=False)
    assert view.state.sources["workflows"].error == f"cannot read {yard.workflows}: Not a directory"
