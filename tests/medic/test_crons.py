"""orphaned-crons and missing-crons."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from farmtui.medic.judge import judge
from farmtui.paths import locate
from farmtui.state import (
    Agent,
    CronListing,
    CronSource,
    FarmState,
    Finding,
    Fix,
    MissingCron,
    Severity,
    SourceStatus,
    Tally,
)
from tests.medic.states import MINUTE, NOW, ago, crons, job, run, state, step, workflow

ENDED = run(status="completed", number=9, age=30 * MINUTE)
INSTALLED = {"relay": workflow(), "meadow": workflow(name="meadow")}


def only(farm: FarmState) -> Finding:
    (finding,) = judge(farm, NOW)[0].findings
    return finding


def test_crons_of_a_workflow_without_an_active_run() -> None:
    farm = state(ENDED, jobs=[job("plan"), job("build"), job("close", enabled=False)])
    finding = only(farm)
    ids = ("job-relay-plan-1", "job-relay-build-1", "job-relay-close-1")
    assert (finding.check, finding.workflow, finding.crons) == ("orphaned-crons", "relay", ids)
    assert "24 calls an hour" in finding.message
    assert finding.since == ENDED.updated_at
    assert finding.fix == Fix("delete-crons", ("farm", "crons", "delete", *ids))
    assert set(judge(farm, NOW)[0].orphans.values()) == {"no-active-run"}


def test_one_finding_a_workflow() -> None:
    farm = state(jobs=[job("plan"), job("plan", of="meadow")], workflows=INSTALLED)
    assert sorted(each.id for each in judge(farm, NOW)[0].findings) == [
        "orphaned-crons:meadow",
        "orphaned-crons:relay",
    ]


def test_orphans_that_cost_nothing_are_only_told() -> None:
    assert only(state(jobs=[job("plan", enabled=False)])).severity is Severity.INFO
    assert only(state(jobs=[job("plan")])).severity is Severity.WARNING


def test_a_run_of_unknown_status_keeps_its_crons() -> None:
    assert judge(state(run(step("plan", "pending"), status="paused")), NOW)[0].orphans == {}


def test_uninstalled_workflow_only_where_workflows_were_read() -> None:
    farm = state(jobs=[job("plan", of="gone")])
    assert judge(farm, NOW)[0].orphans == {"job-gone-plan-1": "workflow-uninstalled"}
    unread = replace(farm, sources={"workflows": SourceStatus("workflows", None, "permission denied", NOW)})
    assert judge(unread, NOW)[0].orphans == {"job-gone-plan-1": "no-active-run"}


def test_agent_unknown_only_where_the_config_was_read() -> None:
    active = run(step("plan", "pending"), step("build"))
    agents = {"relay_plan": Agent("relay_plan", None, None)}
    farm = state(active, agents=agents)
    assert judge(farm, NOW)[0].orphans == {"job-relay-build-1": "agent-unknown"}
    assert judge(replace(farm, agents={}), NOW)[0].orphans == {}
    broken = {"config": SourceStatus("config", None, "openclaw.json: line 3", NOW)}
    assert judge(replace(farm, sources=broken), NOW)[0].orphans == {}


def test_duplicates_keep_the_enabled_one_that_ran_last() -> None:
    active = run(step("plan", "pending"))
    jobs = [
        job("plan", number=1, last_run_at=ago(9 * MINUTE)),
        job("plan", number=2, last_run_at=ago(2 * MINUTE)),
        job("plan", number=3, last_run_at=ago(MINUTE), enabled=False),
        job("plan", number=4, last_run_at=None),
    ]
    orphans = judge(state(active, jobs=jobs), NOW)[0].orphans
    assert orphans == {f"job-relay-plan-{number}": "duplicate" for number in (1, 3, 4)}


def test_agents_of_unfinished_steps_without_a_cron() -> None:
    active = run(step("plan", "done"), step("build", "pending"), step("close"))
    farm = state(active, jobs=[job("build")])
    judgement = judge(farm, NOW)[0]
    assert judgement.missing_crons == (MissingCron("relay", "close"),)
    finding = only(farm)
    assert (finding.check, finding.workflow, finding.severity) == ("missing-crons", "relay", Severity.WARNING)
    assert "close" in finding.message
    due = only(state(active, jobs=[job("close")]))
    assert (due.severity, due.since) == (Severity.CRITICAL, ago(MINUTE))


def test_a_disabled_cron_is_not_missing() -> None:
    assert (
        judge(state(run(step("build", "pending")), jobs=[job("build", enabled=False)]), NOW)[0].findings == ()
    )


def test_one_missing_cron_is_told_once_for_all_runs() -> None:
    runs = [run(step("build", "pending"), number=number) for number in (1, 2, 3)]
    assert only(state(*runs, jobs=[])).message == "1 agent has no cron in relay: build"


def test_a_run_that_only_just_began_is_still_getting_its_crons() -> None:
    young = run(step("build", "pending"), created=timedelta(seconds=59))
    assert judge(state(young, jobs=[]), NOW)[0].findings == ()
    old = run(step("build", "pending"), created=timedelta(seconds=61))
    assert only(state(old, jobs=[])).check == "missing-crons"


def test_ended_runs_and_zombies_need_no_crons() -> None:
    zombie = run(step("build", "failed"), step("close"))
    failed = run(status="failed", number=2, tally=Tally())
    assert judge(state(zombie, failed, jobs=[]), NOW)[0].missing_crons == ()


def test_unlisted_crons_are_no_missing_ones() -> None:
    farm = state(run(step("build", "pending")), crons=CronListing(CronSource.NONE, note="gateway down"))
    judgement = judge(farm, NOW)[0]
    assert judgement.findings == judgement.missing_crons == ()
    assert [(each.check, each.reason) for each in judgement.not_checked] == [
        ("missing-crons", "gateway down"),
        ("orphaned-crons", "gateway down"),
    ]


def test_a_listing_from_disk_is_used_and_said() -> None:
    farm = state(ENDED, crons=crons(job("plan"), source=CronSource.STORE))
    assert any("store on disk" in line for line in only(farm).evidence)


def test_a_database_named_apart_from_the_gateway_offers_no_deletion() -> None:
    split = locate(db=Path("/elsewhere/copy.db"), environ={}, home=Path("/home/op"))
    finding = only(state(ENDED, jobs=[job("plan")], paths=split))
    assert finding.fix is None
    assert any("may not belong together" in line for line in finding.evidence)
