"""Following a step until it is claimed or two polls have gone by."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from farmtui.antfarm.rows import read_rows
from farmtui.operations.follow import FollowState
from farmtui.operations.plan import Refused
from tests.farms import MINUTE, Farmyard, StepRow
from tests.operations.kit import RELAY, ListedCrons, desk_on, job


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def pending(yard: Farmyard) -> str:
    return yard.add_run("relay", steps=[StepRow("build", "builder", "pending")])


@pytest.mark.parametrize(
    ("statement", "state", "told"),
    [
        ("SELECT 1", FollowState.WAITING, "build waits for builder, 0s of 11m"),
        ("UPDATE steps SET status = 'running'", FollowState.CLAIMED, "builder claimed build"),
        ("UPDATE steps SET status = 'done'", FollowState.CLAIMED, "it is done"),
        # Claimed and given up between two looks.
        ("UPDATE steps SET updated_at = datetime('now')", FollowState.CLAIMED, "it is pending"),
        ("UPDATE steps SET status = 'failed'", FollowState.GONE, "build is failed now"),
        ("UPDATE runs SET status = 'cancelled'", FollowState.GONE, "the run is cancelled now"),
        ("DELETE FROM steps", FollowState.GONE, "build is gone"),
    ],
)
def test_what_became_of_the_step(yard: Farmyard, statement: str, state: FollowState, told: str) -> None:
    run = pending(yard)
    follow = desk_on(yard.paths).follow(run, "build")
    yard.execute(statement)
    status = follow.look()
    assert status.state is state
    assert told in status.text
    assert status.over == (state is not FollowState.WAITING)


def test_a_run_that_is_gone_is_no_error(yard: Farmyard) -> None:
    run = pending(yard)
    follow = desk_on(yard.paths).follow(run, "build")
    yard.execute("DELETE FROM steps")
    yard.execute("DELETE FROM runs")
    assert follow.look().state is FollowState.GONE


@pytest.mark.parametrize(
    ("workflow", "poll", "minutes"),
    [(None, None, 11), (RELAY + "cron: {interval_ms: 60000}\n", None, 3), (None, 2 * MINUTE, 5)],
)
def test_two_polls_and_what_a_session_takes(
    yard: Farmyard, workflow: str | None, poll: timedelta | None, minutes: int
) -> None:
    if workflow is not None:
        yard.write_workflow(workflow)
    run = pending(yard)
    follow = desk_on(yard.paths).follow(run, yard.step_id(run, "build"), poll)
    rows = read_rows(yard.database, run)
    assert follow.deadline - follow.since == minutes * MINUTE
    just_before = follow.check(rows, follow.deadline - timedelta(seconds=1))
    assert just_before.state is FollowState.WAITING
    after = follow.check(rows, follow.deadline)
    assert after.state is FollowState.TIMEOUT
    assert f"nobody claimed build in {minutes}m" in after.text


def test_the_agents_own_cron_as_last_seen_tells_its_polls(yard: Farmyard) -> None:
    schedule = {"kind": "every", "everyMs": 30_000}
    crons = ListedCrons([job("relay", "builder", schedule=schedule)])
    desk = desk_on(yard.paths, crons)
    crons.list()
    assert desk.follow(pending(yard), "build").poll == timedelta(seconds=30)


def test_no_such_step(yard: Farmyard) -> None:
    with pytest.raises(Refused, match="has no step nosuch"):
        desk_on(yard.paths).follow(pending(yard), "nosuch")
