"""Deleting, undoing and retrying against a real WebSocket server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farmtui.clock import FixedClock
from farmtui.demo.cronbook import Version
from farmtui.demo.gateway import Mode, StandInGateway
from farmtui.openclaw import crons as crons_module
from farmtui.openclaw.crons import Crons
from farmtui.openclaw.kept import KeptJobs
from farmtui.operations.desk import Desk
from farmtui.operations.plan import OutcomeStatus, Refused
from farmtui.state import CronSource
from tests.farms import NOW, Farmyard, StepRow
from tests.operations.kit import ALICE, job


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


@pytest.fixture(params=list(Version))
def gateway(request: pytest.FixtureRequest, yard: Farmyard) -> Iterator[StandInGateway]:
    jobs = [job("relay", agent) for agent in ("scout", "build")]
    with StandInGateway(request.param, state_dir=yard.state_dir, jobs=jobs) as gateway:
        yard.write_config({"gateway": gateway.config(), "agents": {"list": [{"id": "relay_build"}]}})
        yield gateway


@pytest.fixture
def desk(yard: Farmyard, gateway: StandInGateway) -> Desk:
    kept = KeptJobs(yard.paths.farm_dir)
    # No PATH: no openclaw command of this machine is ever found.
    crons = Crons(yard.paths, {"PATH": ""}, kept)
    return Desk(yard.paths, crons, FixedClock(NOW), ALICE, False, dict, kept)


def names(gateway: StandInGateway) -> list[str]:
    return sorted(str(one["name"]) for one in gateway.book.jobs)


def test_orphans_go_and_undo_brings_them_back(desk: Desk, gateway: StandInGateway) -> None:
    outcome = desk.apply(desk.delete_orphans())
    assert (outcome.status, outcome.problems) == (OutcomeStatus.APPLIED, ())
    assert names(gateway) == []
    outcome = desk.apply(desk.undo())
    assert outcome.status is OutcomeStatus.APPLIED
    assert names(gateway) == ["antfarm/relay/build", "antfarm/relay/scout"]
    assert {one["name"] for one in outcome.after["crons"]} == set(names(gateway))


def test_a_failed_run_gets_the_crons_back_that_it_lost(
    yard: Farmyard, desk: Desk, gateway: StandInGateway
) -> None:
    run = yard.add_run("relay", status="failed", steps=[StepRow("build", status="failed")])
    desk.apply(desk.delete_orphans())
    outcome = desk.apply(desk.retry(run, "go on"))
    assert outcome.status is OutcomeStatus.APPLIED
    assert names(gateway) == ["antfarm/relay/build"]
    assert desk.apply(desk.undo()).status is OutcomeStatus.APPLIED
    assert names(gateway) == []


def test_an_agent_that_openclaw_does_not_know_is_told(yard: Farmyard) -> None:
    run = yard.add_run("relay", status="failed", steps=[StepRow("build", status="failed")])
    jobs = [job("relay", "scout")]
    with StandInGateway(Version.LATEST, jobs=jobs, agents=["relay_scout"]) as gateway:
        yard.write_config({"gateway": gateway.config()})
        kept = KeptJobs(yard.paths.farm_dir)
        crons = Crons(yard.paths, {"PATH": ""}, kept)
        desk = Desk(yard.paths, crons, FixedClock(NOW), ALICE, False, dict, kept)
        outcome = desk.apply(desk.retry(run))
    assert outcome.status is OutcomeStatus.PARTIAL
    assert "antfarm/relay/build was not created: " in outcome.problems[0]
    assert "relay_build" in outcome.problems[0]


def test_a_gateway_that_hangs_meanwhile_is_asked_no_more_than_once(
    yard: Farmyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crons_module, "_CONNECT_S", 0.3)
    jobs = [job("relay", agent) for agent in ("scout", "build", "close")]
    with StandInGateway(Version.LATEST, jobs=jobs) as gateway:
        yard.write_config({"gateway": gateway.config()})
        kept = KeptJobs(yard.paths.farm_dir)
        desk = Desk(
            yard.paths, Crons(yard.paths, {"PATH": ""}, kept), FixedClock(NOW), ALICE, False, dict, kept
        )
        plan = desk.delete_orphans()
        gateway.mode = Mode.HUNG
        outcome = desk.apply(plan)
        assert len(names(gateway)) == 3
    assert outcome.status is OutcomeStatus.REFUSED
    assert "antfarm/relay/build was not deleted: " in outcome.problems[0]
    assert "2 more not tried: " in outcome.problems[1]
    with pytest.raises(Refused, match="cannot be asked to delete crons"):
        desk.delete_orphans()


@pytest.mark.parametrize("version", list(Version))
@pytest.mark.parametrize("mode", [Mode.HUNG, Mode.STARTING])
def test_a_gateway_that_does_not_serve_is_told_in_a_clear_line_within_3_s(
    yard: Farmyard, version: Version, mode: Mode
) -> None:
    with StandInGateway(version) as gateway:
        yard.write_config({"gateway": gateway.config()})
        gateway.mode = mode
        began = time.monotonic()
        listing = Crons(yard.paths, {"PATH": ""}).list()
        took = time.monotonic() - began
    assert listing.source is CronSource.NONE
    assert listing.note is not None
    assert {Mode.HUNG: "does not answer", Mode.STARTING: "is still starting"}[mode] in listing.note
    # The rest of the 3 s belongs to a command's start.
    assert took < 2.7
