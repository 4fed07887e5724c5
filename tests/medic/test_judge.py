"""The judgement as a whole: contradictions, order, escalations, what could not be checked, odd data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farmtui.medic.judge import CHECKS, CONTRADICTIONS, judge
from farmtui.state import (
    Acknowledgement,
    CronListing,
    CronSource,
    FarmState,
    Lane,
    LoopConfig,
    NotChecked,
    Run,
    SourceStatus,
    Step,
    Story,
    Tally,
)
from tests.medic.states import MINUTE, NOW, job, run, spec, state, step, workflow

NAMES = {check for check, _ in CHECKS}


# ---------------------------------------------------------------- contradictions


@pytest.mark.parametrize(
    "farm",
    [
        state(run(step("plan", "done"))),
        state(run(step("plan", "done"), step("build"))),
        state(run(step("plan", "pending")), jobs=[]),
        state(jobs=[job("plan")]),
    ],
    ids=["zombie-run", "stuck-between-steps", "missing-crons", "orphaned-crons"],
)
def test_a_contradiction_counts_at_the_second_look(farm: FarmState) -> None:
    first, candidates = judge(farm, NOW, frozenset())
    assert first.findings == first.missing_crons == ()
    assert first.orphans == {}
    second, again = judge(farm, NOW, candidates)
    assert [each.check for each in second.findings]
    assert again == candidates
    assert {each.check for each in second.findings} <= CONTRADICTIONS
    assert judge(farm, NOW, None)[0] == second


def test_a_contradiction_that_went_away_counts_afresh() -> None:
    _, candidates = judge(state(run(step("plan", "done"))), NOW, frozenset())
    moved, none = judge(state(run(step("plan", "pending"))), NOW, candidates)
    assert moved.findings == ()
    assert none == frozenset()


def test_an_unconfirmed_zombie_is_given_no_lesser_cause() -> None:
    farm = state(run(step("plan", "done", 99 * MINUTE), age=99 * MINUTE))
    assert judge(farm, NOW, frozenset())[0].findings == ()


def test_what_takes_long_needs_no_second_look() -> None:
    farm = state(run(step("plan", "running", 40 * MINUTE)))
    assert [each.check for each in judge(farm, NOW, frozenset())[0].findings] == ["stale-claim"]


def test_a_newly_orphaned_job_waits_although_its_workflow_is_known() -> None:
    before = state(jobs=[job("plan")])
    _, candidates = judge(before, NOW, frozenset())
    judgement, _ = judge(state(jobs=[job("plan"), job("build")]), NOW, candidates)
    assert judgement.orphans == {"job-relay-plan-1": "no-active-run"}
    assert judgement.findings[0].crons == ("job-relay-plan-1",)


# ---------------------------------------------------------------- what could not be checked


def test_with_the_database_unreadable_nothing_is_checked() -> None:
    sources = {"database": SourceStatus("database", NOW - MINUTE, "disk I/O error", NOW)}
    farm = state(run(step("plan", "running", 99 * MINUTE)), sources=sources)
    judgement, candidates = judge(farm, NOW)
    assert judgement.findings == ()
    assert candidates == frozenset()
    assert judgement.not_checked == tuple(
        NotChecked(check, "database: disk I/O error") for check, _ in CHECKS
    )
    assert judgement.lanes == {"run-0001": Lane.RUNNING}


def test_all_checks_are_made_where_all_is_read() -> None:
    assert judge(state(run(step("plan", "pending"))), NOW)[0].not_checked == ()


# ---------------------------------------------------------------- order, acknowledgement, escalations


def test_the_worst_first_then_the_oldest() -> None:
    farm = state(
        run(step("plan", "pending", 20 * MINUTE), number=1),
        run(step("plan", "running", 40 * MINUTE, agent="a"), number=2),
        run(step("plan", "running", 50 * MINUTE, agent="b"), number=3),
        run(step("plan", "pending", 30 * MINUTE), number=4),
    )
    assert [each.run_number for each in judge(farm, NOW)[0].findings] == [3, 2, 4, 1]


def failed(number: int, age: timedelta, *names: str) -> Run:
    statuses = ("failed",) * len(names)
    return run(status="failed", number=number, age=age, tally=Tally(statuses=statuses, failed_steps=names))


def test_escalations_oldest_first_acknowledged_ones_too() -> None:
    relay = {"relay": workflow(spec("plan", "escalate_to: human"), spec("build"))}
    old, new, quiet = failed(1, 30 * MINUTE, "plan"), failed(2, MINUTE, "plan"), failed(3, MINUTE, "build")
    ack = Acknowledgement(old.id, "failed", old.updated_at, "on it", "op", NOW, "e1")
    judgement, _ = judge(state(new, quiet, old, workflows=relay, acknowledgements={old.id: ack}), NOW)
    assert [(each.run_number, each.step, each.acknowledged) for each in judgement.escalations] == [
        (1, "plan", True),
        (2, "plan", False),
    ]
    assert judgement.lanes == {old.id: Lane.FAILED, new.id: Lane.HUMAN, quiet.id: Lane.FAILED}


def test_an_acknowledgement_marks_a_finding_while_the_run_is_as_it_was() -> None:
    zombie = run(step("plan", "failed"))
    ack = Acknowledgement(zombie.id, "running", zombie.updated_at, "known", "op", NOW, "e1")
    assert judge(state(zombie, acknowledgements={zombie.id: ack}), NOW)[0].findings[0].acknowledged
    other = Acknowledgement(zombie.id, "running", NOW, "known", "op", NOW, "e1")
    assert not judge(state(zombie, acknowledgements={zombie.id: other}), NOW)[0].findings[0].acknowledged


# ---------------------------------------------------------------- odd data

statuses = st.sampled_from(
    ["waiting", "pending", "running", "done", "failed", "skipped", "gate", "", "\x1b[1m"]
)
times = st.none() | st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001 - hypothesis takes the zone apart
    max_value=datetime(2030, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
names = st.sampled_from(["plan", "build", "verify", ""])


@st.composite
def steps(draw: st.DrawFn, index: int) -> Step:
    return Step(
        rowid=index,
        id=draw(st.sampled_from(["a", "b", "c"])),
        run_id="r",
        name=draw(names),
        agent_id=draw(st.sampled_from(["relay_plan", "relay", "relay_", "", "other"])),
        index=index,
        type=draw(st.sampled_from(["single", "loop", "x"])),
        status=draw(statuses),
        retry_count=draw(st.integers(-1, 9)),
        max_retries=2,
        abandoned_count=draw(st.integers(-1, 9)),
        current_story_id=draw(st.none() | st.sampled_from(["s", "t"])),
        loop=draw(st.none() | st.builds(LoopConfig, st.booleans(), st.none() | names)),
        created_at=draw(times),
        updated_at=draw(times),
    )


stories = st.builds(
    Story,
    rowid=st.just(1),
    id=st.sampled_from(["s", "t"]),
    run_id=st.just("r"),
    index=st.integers(-1, 3),
    story_id=names,
    title=names,
    status=statuses,
    retry_count=st.integers(0, 3),
    max_retries=st.integers(0, 3),
    created_at=times,
    updated_at=times,
)


@st.composite
def runs(draw: st.DrawFn, number: int) -> Run:
    status = draw(st.sampled_from(["running", "failed", "completed", "cancelled", "paused", ""]))
    count = 0 if status in ("failed", "completed", "cancelled") else draw(st.integers(0, 4))
    tally = st.builds(
        Tally,
        statuses=st.lists(statuses, max_size=5).map(tuple),
        failed_steps=st.lists(names, max_size=2).map(tuple),
    )
    return Run(
        rowid=number,
        id=f"r{number}",
        number=draw(st.none() | st.just(7)),
        workflow=draw(st.sampled_from(["relay", "gone", "broken", ""])),
        task="",
        status=status,
        created_at=draw(times),
        updated_at=draw(times),
        steps=tuple(draw(steps(index)) for index in range(count)),
        stories=tuple(draw(st.lists(stories, max_size=2))),
        tally=draw(st.none() | tally),
    )


@st.composite
def farms(draw: st.DrawFn) -> FarmState:
    listed = [
        job(
            draw(names),
            of=draw(st.sampled_from(["relay", "gone", ""])),
            number=number,
            enabled=draw(st.booleans()),
            every_ms=draw(st.none() | st.sampled_from([0, 1, 300_000])),
            last_run_at=draw(times),
            consecutive_errors=draw(st.integers(0, 3)),
            agent_id=draw(st.none() | st.just("relay_plan")),
        )
        for number in range(draw(st.integers(0, 4)))
    ]
    relay = workflow(spec("plan", "human"), spec("build", verify="verify"), timeouts={"plan": 60})
    return state(
        *(draw(runs(number)) for number in range(draw(st.integers(0, 4)))),
        crons=CronListing(draw(st.sampled_from(CronSource)), tuple(listed)),
        workflows={"relay": relay, "broken": workflow(error="is not valid YAML")},
    )


@settings(max_examples=200, deadline=None)
@given(farm=farms(), now=times.filter(lambda at: at is not None))
def test_whatever_the_rows_hold_there_is_a_judgement(farm: FarmState, now: datetime) -> None:
    judgement, candidates = judge(farm, now)
    assert judgement.lanes.keys() == {each.id for each in farm.runs}
    about_runs = [each.run for each in judgement.findings if each.run is not None]
    assert len(about_runs) == len(set(about_runs))
    running = {each.id for each in farm.runs if each.status == "running"}
    assert set(about_runs) <= running
    assert {each.check for each in judgement.findings} <= NAMES
    identities = [each.id for each in judgement.findings]
    assert len(identities) == len(set(identities))
    assert judge(farm, now, candidates)[0] == judgement
    humans = {run_id for run_id, lane in judgement.lanes.items() if lane is Lane.HUMAN}
    assert humans == {each.run for each in judgement.escalations if not each.acknowledged}
