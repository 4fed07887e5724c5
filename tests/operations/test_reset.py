"""Resetting an abandoned step."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farmtui.clock import parse_time
from farmtui.operations.plan import OutcomeStatus, Refused
from farmtui.state import CronSource
from tests.farms import MINUTE, NOW, Farmyard, StepRow, StoryRow
from tests.operations.kit import LOOP, RELAY, ListedCrons, cells, change, desk_on, job


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def single(yard: Farmyard, *, age: timedelta = 124 * MINUTE, abandoned: int = 0, retries: int = 1) -> str:
    return yard.add_run(
        "relay",
        number=14,
        steps=[
            StepRow("scout", status="done"),
            StepRow("build", "builder", "running", age=age, abandoned_count=abandoned, retry_count=retries),
            StepRow("close", "closer"),
        ],
        age=age,
    )


def loop(yard: Farmyard, *, retries: int = 0, verify: str = "waiting", story: str | None = "S-2") -> str:
    return yard.add_run(
        "orchard",
        steps=[
            StepRow("plan", status="done"),
            StepRow("grow", "grower", "running", loop=LOOP, current_story=story, age=90 * MINUTE),
            StepRow("verify", "taster", verify),
        ],
        stories=[
            StoryRow("S-1", status="done"),
            StoryRow("S-2", status="running" if story else "done", retry_count=retries, age=90 * MINUTE),
            StoryRow("S-3"),
        ],
    )


def test_a_stale_step_goes_back_and_its_retries_are_left_alone(yard: Farmyard) -> None:
    run = single(yard)
    build = yard.step_id(run, "build")
    before = datetime.now(UTC)
    outcome = desk_on(yard.paths).apply(desk_on(yard.paths).reset(run, "build"))
    assert outcome.status is OutcomeStatus.APPLIED
    row = yard.row("steps", build)
    assert (row["status"], row["abandoned_count"], row["retry_count"]) == ("pending", 1, 1)
    # SQLite's own form, and the machine's time whatever the clock to judge by says.
    written = datetime.strptime(row["updated_at"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert before - timedelta(seconds=1) <= written <= datetime.now(UTC)
    assert outcome.after["steps"][0]["status"] == "pending"


def test_it_is_logged_as_antfarm_logs_it_with_the_steps_name(yard: Farmyard) -> None:
    run = single(yard)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, yard.step_id(run, "build")))
    (line,) = yard.events.read_text().splitlines()
    event = json.loads(line)
    assert parse_time(event.pop("ts")) is not None
    assert event == {
        "event": "step.timeout",
        "runId": run,
        "workflowId": "relay",
        "stepId": "build",
        "detail": "Reset by farm to pending (abandon 1/5)",
    }


def test_only_the_step_its_story_and_nothing_else_is_written(yard: Farmyard) -> None:
    run = loop(yard)
    other = single(yard)
    before = yard.dump()
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "grow"))
    after = yard.dump()
    changed = [
        row[0] for table in before for row, now in zip(before[table], after[table], strict=True) if row != now
    ]
    assert changed == [yard.step_id(run, "grow"), yard.story_id(run, "S-2")]
    assert other not in changed


def test_in_a_loop_the_storys_retries_count(yard: Farmyard) -> None:
    run = loop(yard, retries=1)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "grow"))
    grow, story = yard.step_id(run, "grow"), yard.story_id(run, "S-2")
    assert cells(yard, "steps", grow, "status", "current_story_id", "abandoned_count") == ("pending", None, 0)
    assert cells(yard, "stories", story, "status", "retry_count") == ("pending", 2)


@pytest.mark.parametrize(("abandoned", "after"), [(3, 4), (4, 5), (5, 5), (9, 9)])
def test_a_reset_never_fails_a_run_by_abandonments(yard: Farmyard, abandoned: int, after: int) -> None:
    run = single(yard, abandoned=abandoned)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "build")
    assert any("Antfarm's own clean-up fails the run" in note for note in plan.notes)
    assert any("the count stays" in note for note in plan.notes) is (after == abandoned)
    desk.apply(plan)
    build = yard.step_id(run, "build")
    assert cells(yard, "steps", build, "status", "abandoned_count") == ("pending", after)
    assert cells(yard, "runs", run, "status") == ("running",)


@pytest.mark.parametrize("retries", [2, 3])
def test_a_reset_never_fails_a_run_by_its_storys_retries(yard: Farmyard, retries: int) -> None:
    run = loop(yard, retries=retries)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "grow")
    assert any("used up its 2 retries" in note for note in plan.notes)
    desk.apply(plan)
    assert cells(yard, "stories", yard.story_id(run, "S-2"), "status", "retry_count") == ("pending", retries)


def test_a_young_claim_needs_force_and_says_how_old_it_is(yard: Farmyard) -> None:
    run = single(yard, age=12 * MINUTE)
    with pytest.raises(Refused, match=r"build of #14 is not stale: running 12m, the limit is 35m.*--force"):
        desk_on(yard.paths).reset(run, "build")
    plan = desk_on(yard.paths).reset(run, "build", force=True)
    assert any("done twice" in note for note in plan.notes)


@pytest.mark.parametrize(("minutes", "stale"), [(24, False), (26, True)])
def test_the_workflows_own_time_out_counts(yard: Farmyard, minutes: int, stale: bool) -> None:
    yard.write_workflow(RELAY)
    run = single(yard, age=minutes * MINUTE)
    if stale:
        assert "builder's limit is 20m (+5m)" in desk_on(yard.paths).reset(run, "build").reason
    else:
        with pytest.raises(Refused, match=r"builder's limit is 20m"):
            desk_on(yard.paths).reset(run, "build")


def test_a_loops_age_is_its_storys_where_that_is_younger(yard: Farmyard) -> None:
    run = loop(yard)
    yard.execute(
        "UPDATE stories SET updated_at = ? WHERE id = ?",
        (NOW - 5 * MINUTE).strftime("%Y-%m-%d %H:%M:%S"),
        yard.story_id(run, "S-2"),
    )
    with pytest.raises(Refused, match="running 5m"):
        desk_on(yard.paths).reset(run, "grow")


@pytest.mark.parametrize("verify", ["pending", "running"])
@pytest.mark.parametrize("force", [False, True])
def test_a_loop_that_waits_for_its_verify_step_is_refused(yard: Farmyard, verify: str, force: bool) -> None:
    run = loop(yard, verify=verify, story=None)
    before = yard.dump()
    with pytest.raises(Refused, match=f"only waits for verify, which is {verify}"):
        desk_on(yard.paths).reset(run, "grow", force=force)
    assert yard.dump() == before


def test_a_dead_loop_without_a_story_goes_back(yard: Farmyard) -> None:
    run = loop(yard, verify="waiting", story=None)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "grow"))
    grow = yard.step_id(run, "grow")
    assert cells(yard, "steps", grow, "status", "abandoned_count") == ("pending", 1)


@pytest.mark.parametrize("status", ["pending", "waiting", "done", "failed", "gate"])
def test_a_step_that_does_not_run_is_refused_with_its_status(yard: Farmyard, status: str) -> None:
    run = yard.add_run("relay", steps=[StepRow("build", status=status, age=99 * MINUTE)])
    with pytest.raises(Refused, match=f"is {status}, not running"):
        desk_on(yard.paths).reset(run, "build", force=True)


@pytest.mark.parametrize(
    ("status", "told"),
    [("failed", "farm resolve"), ("cancelled", "is cancelled"), ("completed", "is completed")],
)
def test_a_run_that_has_ended_is_refused(yard: Farmyard, status: str, told: str) -> None:
    run = single(yard)
    yard.execute("UPDATE runs SET status = ? WHERE id = ?", status, run)
    with pytest.raises(Refused, match=told):
        desk_on(yard.paths).reset(run, "build", force=True)


def test_the_step_may_be_named_or_given_by_id_and_must_be_one(yard: Farmyard) -> None:
    run = single(yard)
    desk = desk_on(yard.paths)
    build = yard.step_id(run, "build")
    assert desk.reset(run, "build").changes == desk.reset(run, build).changes
    with pytest.raises(Refused, match="has no step bild; its steps are scout, build, close"):
        desk.reset(run, "bild")
    yard.execute("UPDATE steps SET step_id = 'build' WHERE step_id = 'close'")
    with pytest.raises(Refused, match="several steps build"):
        desk.reset(run, "build")
    with pytest.raises(Refused, match="no run nosuch"):
        desk.reset("nosuch", "build")


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ([job("relay", "builder")], "builder's cron polls in 3m"),
        (
            [job("relay", "builder", state={"runningAtMs": int(NOW.timestamp() * 1000) - 40_000})],
            "builder's cron is running just now, for 40s",
        ),
        ([job("relay", "builder", enabled=False)], "builder's cron is disabled"),
        ([job("relay", "closer")], "builder has no cron: nobody will claim the step"),
        (
            [job("relay", "builder", "a", enabled=False), job("relay", "builder", "b")],
            "builder's cron polls in 3m",
        ),
    ],
)
def test_it_tells_what_the_agents_cron_does(yard: Farmyard, jobs: list[dict[str, object]], told: str) -> None:
    run = single(yard)
    plan = desk_on(yard.paths, ListedCrons(jobs)).reset(run, "build")
    assert any(told in note for note in plan.notes)


def test_without_a_gateway_it_is_still_reset_and_says_what_is_not_known(yard: Farmyard) -> None:
    run = single(yard)
    crons = ListedCrons()
    crons.source, crons.note = CronSource.NONE, "gateway down"
    desk = desk_on(yard.paths, crons)
    plan = desk.reset(run, "build")
    assert plan.notes[-1] == "when builder's cron polls is not known: gateway down"
    assert desk.apply(plan).status is OutcomeStatus.APPLIED


@pytest.mark.parametrize("schema", ["0.1", "0.2.0", "0.2.1", "0.3.0", "0.5.1", "fork"])
def test_older_and_forked_schemas(tmp_path: Path, schema: str) -> None:
    yard = Farmyard(tmp_path, schema=schema)
    run = single(yard)
    desk = desk_on(yard.paths)
    plan = desk.reset(run, "build")
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.APPLIED
    row = yard.row("steps", yard.step_id(run, "build"))
    assert row["status"] == "pending"
    counted = "abandoned_count" in row
    assert counted == (schema in ("0.3.0", "0.5.1", "fork"))
    assert any("no steps.abandoned_count" in note for note in plan.notes) != counted
    desk.apply(desk.undo())
    assert yard.row("steps", yard.step_id(run, "build"))["status"] == "running"


def test_read_only_refuses_to_plan_and_to_apply(yard: Farmyard) -> None:
    run = single(yard)
    plan = desk_on(yard.paths).reset(run, "build")
    readonly = desk_on(yard.paths, readonly=True)
    before = yard.dump()
    with pytest.raises(Refused, match="--readonly"):
        readonly.reset(run, "build")
    with pytest.raises(Refused, match="--readonly"):
        readonly.apply(plan)
    assert yard.dump() == before
    assert not (yard.state_dir / "farm" / "journal.jsonl").exists()


def test_planning_writes_nothing_at_all(yard: Farmyard) -> None:
    run = single(yard)
    before = yard.dump()
    desk_on(yard.paths).reset(run, "build")
    assert yard.dump() == before
    assert not yard.events.exists()
    assert not (yard.state_dir / "farm" / "journal.jsonl").exists()
    assert change(desk_on(yard.paths).reset(run, "build"), "steps", run, "status") is None
