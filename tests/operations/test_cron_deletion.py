"""Deleting crons: only Antfarm's, only what no active run needs, looked at again before each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from farmtui.openclaw.crons import CronError
from farmtui.operations.plan import OutcomeStatus, Refused
from farmtui.state import CronSource
from tests.farms import Farmyard, StepRow
from tests.operations.kit import RELAY, ListedCrons, desk_on, job

AGENTS = ("scout", "builder", "closer")


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    yard = Farmyard(tmp_path)
    yard.write_workflow(RELAY)
    yard.add_run("relay", status="completed", number=1)
    yard.add_run("orchard", number=2, steps=[StepRow("plan", status="pending")])
    return yard


@pytest.fixture
def crons() -> ListedCrons:
    return ListedCrons(
        [
            *(job("relay", agent) for agent in AGENTS),
            job("orchard", "plan"),
            {"id": "m", "name": "antfarm/medic", "schedule": {"kind": "every", "everyMs": 1}},
            {"id": "o", "name": "somebody else's", "schedule": {"kind": "every", "everyMs": 1}},
        ]
    )


def test_all_orphans_of_a_workflow(yard: Farmyard, crons: ListedCrons) -> None:
    desk = desk_on(yard.paths, crons)
    plan = desk.delete_orphans("relay")
    assert plan.title == "Delete 3 crons of relay"
    assert "saves 36 model calls an hour" in plan.notes
    outcome = desk.apply(plan)
    assert (outcome.status, outcome.detail) == (OutcomeStatus.APPLIED, "3 crons deleted")
    assert crons.names() == ["antfarm/medic", "antfarm/orchard/plan", "somebody else's"]
    assert outcome.after["crons"] == []


def test_all_orphans_of_all_workflows_spare_the_active_ones(yard: Farmyard, crons: ListedCrons) -> None:
    crons.jobs.append(job("meadow", "planner"))
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.delete_orphans())
    assert crons.names() == ["antfarm/medic", "antfarm/orchard/plan", "somebody else's"]
    with pytest.raises(Refused, match="no orphaned crons"):
        desk.delete_orphans()


@pytest.mark.parametrize("job_id", ["m", "o", "nosuch", ""])
def test_what_is_not_antfarms_is_never_planned(yard: Farmyard, crons: ListedCrons, job_id: str) -> None:
    with pytest.raises(Refused, match="gone, or another program's"):
        desk_on(yard.paths, crons).delete_crons([job_id])


def test_what_is_listed_no_more_counts_as_gone(yard: Farmyard, crons: ListedCrons) -> None:
    plan = desk_on(yard.paths, crons).delete_crons(["nosuch", "id-relay-scout", "id-relay-scout"])
    assert [call.name for call in plan.crons] == ["antfarm/relay/scout"]
    assert any("nosuch is not listed: gone already" in note for note in plan.notes)
    crons.jobs = [one for one in crons.jobs if one["id"] != "id-relay-scout"]
    outcome = desk_on(yard.paths, crons).apply(plan)
    assert (outcome.status, outcome.problems) == (OutcomeStatus.APPLIED, ())


@pytest.mark.parametrize("status", ["running", "paused", "blocked"])
def test_a_cron_that_an_active_run_needs_is_refused(yard: Farmyard, crons: ListedCrons, status: str) -> None:
    yard.execute("UPDATE runs SET status = ? WHERE workflow_id = 'orchard'", status)
    with pytest.raises(Refused, match=f"antfarm/orchard/plan is needed: #2 of orchard is {status}"):
        desk_on(yard.paths, crons).delete_crons(["id-orchard-plan"])


@pytest.mark.parametrize("status", ["done", "canceled"])
def test_forks_words_for_an_end_are_ends(yard: Farmyard, crons: ListedCrons, status: str) -> None:
    yard.execute("UPDATE runs SET status = ? WHERE workflow_id = 'orchard'", status)
    assert desk_on(yard.paths, crons).delete_crons(["id-orchard-plan"]).crons


def test_one_of_two_of_a_name_may_go_while_the_run_is_active(yard: Farmyard, crons: ListedCrons) -> None:
    crons.jobs.append(job("orchard", "plan", "second"))
    desk = desk_on(yard.paths, crons)
    with pytest.raises(Refused, match="is needed"):
        desk.delete_crons(["id-orchard-plan", "second"])
    for one in ("id-orchard-plan", "second"):
        assert desk.delete_crons([one]).crons[0].twin is not None
    (orphan,) = desk.delete_orphans("orchard").crons
    assert orphan.name == "antfarm/orchard/plan"
    outcome = desk.apply(desk.delete_crons(["second"]))
    assert outcome.status is OutcomeStatus.APPLIED
    assert crons.names().count("antfarm/orchard/plan") == 1


def test_but_not_when_the_other_is_disabled_or_gone_meanwhile(yard: Farmyard, crons: ListedCrons) -> None:
    crons.jobs.append(job("orchard", "plan", "second", enabled=False))
    desk = desk_on(yard.paths, crons)
    with pytest.raises(Refused, match="is needed"):
        desk.delete_crons(["id-orchard-plan"])
    plan = desk.delete_crons(["second"])
    crons.jobs = [one for one in crons.jobs if one["id"] != "id-orchard-plan"]
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert any("not listed any more" in problem for problem in outcome.problems)


def test_a_cron_whose_agent_openclaw_does_not_know_may_go(yard: Farmyard, crons: ListedCrons) -> None:
    crons.jobs.append(job("orchard", "ghost"))
    with pytest.raises(Refused, match="is needed"):
        desk_on(yard.paths, crons).delete_crons(["id-orchard-ghost"])
    yard.write_config({"agents": {"list": [{"id": "orchard_plan"}]}})
    plan = desk_on(yard.paths, crons).delete_crons(["id-orchard-ghost"])
    assert "openclaw.json has no such agent" in plan.reason
    assert desk_on(yard.paths, crons).apply(plan).status is OutcomeStatus.APPLIED


def test_active_runs_are_looked_at_again_before_each(yard: Farmyard, crons: ListedCrons) -> None:
    started: list[str] = []

    def start(job_id: str) -> None:
        if not started:
            started.append(yard.add_run("relay", number=3))

    crons.before_remove = start
    desk = desk_on(yard.paths, crons)
    outcome = desk.apply(desk.delete_orphans("relay"))
    assert outcome.status is OutcomeStatus.PARTIAL
    assert outcome.detail == "1 of 3 crons deleted"
    assert crons.names()[:3] == ["antfarm/medic", "antfarm/orchard/plan", "antfarm/relay/closer"]
    told = "\n".join(outcome.problems)
    assert "antfarm/relay/scout was not deleted: #3 of relay needs it now" in told
    assert "#3 of relay has started meanwhile and needs its crons" in told


def test_a_run_that_started_before_any_was_deleted_stops_all(yard: Farmyard, crons: ListedCrons) -> None:
    desk = desk_on(yard.paths, crons)
    plan = desk.delete_orphans("relay")
    yard.add_run("relay")
    before = crons.names()
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert crons.names() == before


def test_with_the_database_gone_nothing_is_deleted(yard: Farmyard, crons: ListedCrons) -> None:
    desk = desk_on(yard.paths, crons)
    plan = desk.delete_orphans("relay")
    yard.database.unlink()
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "cannot be seen" in outcome.problems[0]
    assert len(crons.jobs) == 6


def test_one_that_comes_back_is_said_with_its_new_id(yard: Farmyard, crons: ListedCrons) -> None:
    crons.comes_back.add("antfarm/relay/scout")
    outcome = desk_on(yard.paths, crons).apply(desk_on(yard.paths, crons).delete_crons(["id-relay-scout"]))
    assert outcome.problems == ("antfarm/relay/scout: removed, but it came back as new-1",)
    assert outcome.after["crons"] == [{"id": "new-1", "name": "antfarm/relay/scout", "enabled": True}]


def test_what_the_gateway_refuses_is_told_and_the_others_go(yard: Farmyard, crons: ListedCrons) -> None:
    crons.refuses["id-relay-builder"] = CronError("missing scope: operator.admin")
    desk = desk_on(yard.paths, crons)
    outcome = desk.apply(desk.delete_orphans("relay"))
    assert (outcome.status, outcome.detail) == (OutcomeStatus.PARTIAL, "2 of 3 crons deleted")
    assert outcome.problems == ("antfarm/relay/builder was not deleted: missing scope: operator.admin",)
    # Undo brings back what was deleted, and nothing else.
    plan = desk.undo()
    assert [call.name for call in plan.crons] == ["antfarm/relay/closer", "antfarm/relay/scout"]


def test_an_answer_that_never_came_leaves_it_unknown(yard: Farmyard, crons: ListedCrons) -> None:
    crons.refuses["id-relay-scout"] = CronError("no answer in 10 s", uncertain=True)
    desk = desk_on(yard.paths, crons)
    outcome = desk.apply(desk.delete_crons(["id-relay-scout"]))
    assert outcome.status is OutcomeStatus.UNKNOWN
    assert "may or may not have been deleted" in outcome.problems[0]
    with pytest.raises(Refused, match="is listed: not added again"):
        desk.undo()


@pytest.mark.parametrize("source", [CronSource.STORE, CronSource.NONE])
def test_without_a_gateway_nothing_is_planned(yard: Farmyard, crons: ListedCrons, source: CronSource) -> None:
    crons.source, crons.note = source, "gateway hung"
    for plan in (lambda d: d.delete_orphans(), lambda d: d.delete_crons(["id-relay-scout"])):
        with pytest.raises(Refused, match="gateway hung"):
            plan(desk_on(yard.paths, crons))


def test_a_database_named_apart_from_the_gateway_deletes_no_crons(yard: Farmyard, crons: ListedCrons) -> None:
    plan = desk_on(yard.paths, crons).delete_orphans("relay")
    apart = desk_on(replace(yard.paths, split=True), crons)
    for act in (lambda: apart.delete_orphans("relay"), lambda: apart.apply(plan)):
        with pytest.raises(Refused, match="--state-dir"):
            act()
    assert len(crons.jobs) == 6


def test_a_job_that_runs_just_now_is_said(yard: Farmyard, crons: ListedCrons) -> None:
    crons.jobs[0] = job("relay", "scout", state={"runningAtMs": 1})
    plan = desk_on(yard.paths, crons).delete_crons(["id-relay-scout"])
    assert any("running just now" in note for note in plan.notes)


def test_undo_adds_again_what_was_deleted_with_a_new_id(yard: Farmyard, crons: ListedCrons) -> None:
    desk = desk_on(yard.paths, crons)
    original = dict(crons.jobs[0])
    desk.apply(desk.delete_orphans("relay"))
    plan = desk.undo()
    assert any("new ids" in note for note in plan.notes)
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    back = next(one for one in crons.jobs if one["name"] == original["name"])
    assert back["id"] != original["id"]
    for key in ("agentId", "enabled", "schedule", "payload", "delivery", "sessionTarget", "wakeMode"):
        assert back[key] == original[key]
    # Taking the undo back deletes the new ones.
    desk.apply(desk.undo(desk.entries()[-1].id))
    assert "antfarm/relay/scout" not in crons.names()


def test_undo_adds_none_that_is_listed_again(yard: Farmyard, crons: ListedCrons) -> None:
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.delete_orphans("relay"))
    crons.jobs.append(job("relay", "scout", "from-antfarm"))
    plan = desk.undo()
    assert [call.name for call in plan.crons] == ["antfarm/relay/builder", "antfarm/relay/closer"]
    crons.jobs += [job("relay", "builder"), job("relay", "closer")]
    with pytest.raises(Refused, match=r"nothing of .* is left to undo"):
        desk.undo()
    crons.source, crons.note = CronSource.NONE, "gateway down"
    with pytest.raises(Refused, match="gateway down"):
        desk.undo()
