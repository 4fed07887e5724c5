"""What farm put back is carried on by Antfarm's rules: runs that were given back get done."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from farmtui.clock import SystemClock
from farmtui.demo.ants import Ants
from farmtui.operations.plan import OutcomeStatus
from tests.farms import Farmyard
from tests.operations.kit import ListedCrons, desk_on, job

STORIES = (
    'STORIES_JSON: [{"id":"S-1","title":"One","description":"d","acceptanceCriteria":["a"]},'
    '{"id":"S-2","title":"Two","description":"d","acceptanceCriteria":["a"]}]'
)
SPEC: Mapping[str, Any] = {
    "id": "orchard",
    "steps": [
        {"id": "plan", "agent": "planner", "input": "Split {{task}}"},
        {
            "id": "grow",
            "agent": "grower",
            "type": "loop",
            "loop": {
                "over": "stories",
                "completion": "all_done",
                "verify_each": True,
                "verify_step": "taste",
            },
            "input": "{{current_story}} Feedback: {{verify_feedback}}",
        },
        {"id": "taste", "agent": "taster", "input": "Check {{current_story_id}}", "max_retries": 0},
        {"id": "pack", "agent": "packer", "input": "Pack"},
    ],
}


class NoCrons:
    def ensure(self, spec: Mapping[str, Any]) -> None: ...
    def remove(self, workflow: str) -> None: ...


class Farm:
    """A farm whose agents do as they are told, one call a step."""

    def __init__(self, tmp: Path) -> None:
        self.yard = Farmyard(tmp, database=False)
        numbers = itertools.count(1)
        self.ants = Ants(
            self.yard.database.parent,
            {"orchard": SPEC},
            tmp / "workspaces",
            clock=SystemClock(),
            crons=NoCrons(),
            new_id=lambda: f"row-{next(numbers)}",
        )
        agents = ("planner", "grower", "taster", "packer")
        self.desk = desk_on(self.yard.paths, ListedCrons([job("orchard", agent) for agent in agents]))
        self.run = self.ants.start_run("orchard", "apples")
        self.work("planner", STORIES)

    def work(self, agent: str, output: str) -> str:
        """The agent claims and reports; returns its input."""
        claim = self.ants.claim(f"orchard_{agent}")
        assert claim is not None, f"{agent} has nothing to do"
        self.ants.complete(claim.step_id, output)
        return claim.input

    def give_up(self, agent: str, reason: str) -> None:
        claim = self.ants.claim(f"orchard_{agent}")
        assert claim is not None
        self.ants.fail(claim.step_id, reason)

    def status(self) -> str:
        return str(self.yard.execute("SELECT status FROM runs")[0][0])

    def finish(self) -> list[str]:
        """Everybody does whatever there is until the run ends; returns who verified or built which story."""
        told = []
        while self.status() == "running":
            for agent in ("grower", "taster", "packer"):
                claim = self.ants.claim(f"orchard_{agent}")
                if claim is not None:
                    story = claim.story or claim.context.get("current_story_id")
                    told.append(f"{agent} {story}" if agent != "packer" else agent)
                    self.ants.complete(claim.step_id, "STATUS: done")
                    break
            else:
                rows = self.yard.execute("SELECT step_id, status FROM steps")
                pytest.fail(f"nobody has anything to do: {rows}")
        return told


@pytest.fixture
def farm(tmp_path: Path):  # type: ignore[no-untyped-def]
    farm = Farm(tmp_path)
    with closing(farm.ants):
        yield farm


def test_a_story_refused_too_often_is_done_after_all(farm: Farm) -> None:
    for attempt in range(3):
        farm.work("grower", f"STATUS: done\nCHANGES: try {attempt}")
        farm.work("taster", f"STATUS: retry\nISSUES: bad {attempt}")
    assert farm.status() == "failed"
    assert farm.desk.apply(farm.desk.retry(farm.run, "try harder")).status is OutcomeStatus.APPLIED
    # One hiccup more does not fail it again.
    shown = farm.work("grower", "STATUS: done")
    assert "Feedback: bad 2" in shown
    assert shown.endswith("Operator guidance: try harder")
    farm.work("taster", "STATUS: retry\nISSUES: still bad")
    assert farm.status() == "running"
    assert farm.finish() == ["grower S-1", "taster S-1", "grower S-2", "taster S-2", "packer"]
    assert farm.status() == "completed"


def test_the_story_that_waited_for_a_verifier_who_gave_up_is_verified(farm: Farm) -> None:
    farm.work("grower", "STATUS: done")
    farm.give_up("taster", "no browser")
    assert farm.status() == "failed"
    farm.desk.apply(farm.desk.retry(farm.run))
    assert farm.finish() == ["taster S-1", "grower S-2", "taster S-2", "packer"]
    assert farm.status() == "completed"


def test_a_reset_story_is_claimed_again_and_none_is_passed_over(farm: Farm) -> None:
    farm.work("grower", "STATUS: done")
    farm.work("taster", "STATUS: done")
    assert farm.ants.claim("orchard_grower") is not None
    farm.desk.apply(farm.desk.reset(farm.run, "grow", force=True))
    assert farm.finish() == ["grower S-2", "taster S-2", "packer"]
    assert farm.status() == "completed"


def test_a_reset_that_was_undone_is_still_the_agents_to_report_on(farm: Farm) -> None:
    claim = farm.ants.claim("orchard_grower")
    assert claim is not None
    farm.desk.apply(farm.desk.reset(farm.run, "grow", force=True))
    farm.desk.apply(farm.desk.undo())
    assert farm.ants.holds(claim)
    farm.ants.complete(claim.step_id, "STATUS: done")
    assert farm.finish()[0] == "taster S-1"
