"""The rules by which a run moves, on rows by hand; tests/demo/test_conformance.py plays what Antfarm did."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from farmtui.antfarm import engine
from farmtui.antfarm.engine.outputs import MAX_STORIES
from farmtui.demo.ants import Ants, Claim
from farmtui.demo.crons import NoCrons
from farmtui.demo.past import PastClock
from tests.farms import NOW

SPEC = yaml.safe_load("""
id: orchard
agents: [{id: planner}, {id: grower}, {id: taster}, {id: packer}]
steps:
  - {id: plan, agent: planner, input: "Split {{task}}", expects: "STATUS: done", max_retries: 1}
  - id: grow
    agent: grower
    input: "{{current_story_id}} left {{stories_remaining}} after {{completed_stories}}: {{verify_feedback}}"
    type: loop
    loop: {over: stories, completion: all_done, verify_each: true, verify_step: taste}
  - id: taste
    agent: taster
    input: "Taste {{current_story_title}}"
    on_fail: {retry_step: grow, max_retries: 2}
  - {id: pack, agent: packer, input: "Pack {{changes}}", retries: 0}
""")
STORIES = json.dumps(
    [
        {"id": f"S-{n}", "title": f"Tree {n}", "description": "A tree", "acceptanceCriteria": ["grows"]}
        for n in (1, 2)
    ]
)
AGENTS = {"plan": "planner", "grow": "grower", "taste": "taster", "pack": "packer"}


class Orchard:
    """One run of `SPEC` on a real database."""

    def __init__(self, folder: Path) -> None:
        numbers = iter(range(1, 10_000))
        self.ants = Ants(
            folder,
            {"orchard": SPEC},
            folder,
            clock=PastClock(NOW),
            crons=NoCrons(),
            new_id=lambda: f"row-{next(numbers)}",
        )
        self.run = self.ants.start_run("orchard", "Plant")

    def claim(self, step: str) -> Claim:
        claim = self.ants.claim(f"orchard_{AGENTS[step]}")
        assert claim is not None
        assert claim.step == step
        return claim

    def do(self, step: str, output: str = "STATUS: done") -> Mapping[str, Any]:
        return self.ants.complete(self.claim(step).step_id, output)

    def statuses(self) -> dict[str, Any]:
        rows = self.ants.rows(self.run)
        return {str(row["step_id"]): row["status"] for row in rows.steps}

    @property
    def status(self) -> Any:
        return self.ants.rows(self.run).run["status"]


@pytest.fixture
def orchard(tmp_path: Path) -> Any:
    made = Orchard(tmp_path)
    yield made
    made.ants.close()


def test_from_beginning_to_end(orchard: Orchard) -> None:
    assert orchard.statuses() == {"plan": "pending", "grow": "waiting", "taste": "waiting", "pack": "waiting"}
    orchard.do("plan", f"STATUS: done\nREPO: /srv\nSTORIES_JSON: {STORIES}")
    assert orchard.claim("grow").input == "S-1 left 2 after (none yet): "
    step = orchard.ants.rows(orchard.run).steps[1]
    orchard.ants.complete(str(step["id"]), "STATUS: done\nCHANGES: one")
    assert orchard.statuses()["grow"] == "running", "the loop waits for its verify step"
    orchard.do("taste")
    assert orchard.claim("grow").input == "S-2 left 1 after - S-1: Tree 1: "
    orchard.ants.complete(str(step["id"]), "STATUS: done\nCHANGES: two")
    assert orchard.do("taste") == {"advanced": True, "runCompleted": False}
    assert orchard.claim("pack").input == "Pack two"
    last = orchard.ants.rows(orchard.run).steps[-1]
    assert orchard.ants.complete(str(last["id"]), "STATUS: done") == {"advanced": False, "runCompleted": True}
    assert orchard.status == "completed"
    assert orchard.ants.claim("orchard_planner") is None


def test_sent_back_with_the_verifiers_words(orchard: Orchard) -> None:
    orchard.do("plan", f"STATUS: done\nSTORIES_JSON: {STORIES}")
    orchard.do("grow")
    orchard.do("taste", "STATUS: Retry\nISSUES: too sour")
    again = orchard.claim("grow")
    assert again.story == "S-1"
    assert again.tries == 1
    assert again.input.endswith(": too sour")


def test_a_verifier_is_judged_by_its_own_words(orchard: Orchard) -> None:
    """A builder's `STATUS: retry` does not send its own story back when the verifier prints no status."""
    orchard.do("plan", f"STATUS: done\nSTORIES_JSON: {STORIES}")
    orchard.do("grow", "STATUS: retry\nISSUES: mine")
    orchard.do("taste", "VERIFIED: sweet")
    assert orchard.claim("grow").story == "S-2"


def test_retries_used_up_fail_the_run(orchard: Orchard) -> None:
    assert orchard.ants.fail(orchard.claim("plan").step_id, "no") == {"retrying": True, "runFailed": False}
    assert orchard.ants.fail(orchard.claim("plan").step_id, "no") == {"retrying": False, "runFailed": True}
    assert orchard.status == "failed"
    step = orchard.ants.rows(orchard.run).steps[0]
    assert orchard.ants.complete(str(step["id"]), "STATUS: done") == {
        "advanced": False,
        "runCompleted": False,
    }
    assert orchard.ants.rows(orchard.run).steps[0]["output"] == "no", "a late report is thrown away"


def test_limits_are_read_from_every_spelling(orchard: Orchard) -> None:
    limits = {row["step_id"]: row["max_retries"] for row in orchard.ants.rows(orchard.run).steps}
    assert limits == {"plan": 1, "grow": 2, "taste": 2, "pack": 0}


def test_what_is_not_running_cannot_be_reported_on(orchard: Orchard) -> None:
    steps = {str(row["step_id"]): str(row["id"]) for row in orchard.ants.rows(orchard.run).steps}
    for report in (orchard.ants.complete, orchard.ants.fail):
        with pytest.raises(engine.NotAllowed, match="waiting"):
            report(steps["pack"], "STATUS: done")
    with pytest.raises(engine.NotAllowed, match="Step not found: nowhere"):
        orchard.ants.fail("nowhere", "x")


def test_a_claim_that_was_taken_back_is_known(orchard: Orchard) -> None:
    claim = orchard.claim("plan")
    assert orchard.ants.holds(claim)
    orchard.ants.connection.execute("UPDATE steps SET status = 'pending' WHERE id = ?", (claim.step_id,))
    assert not orchard.ants.holds(claim)


def test_a_stopped_run_takes_its_open_steps_with_it(orchard: Orchard) -> None:
    orchard.do("plan", f"STATUS: done\nSTORIES_JSON: {STORIES}")
    orchard.ants.stop(orchard.run)
    assert orchard.status == "cancelled"
    assert orchard.statuses() == {"plan": "done", "grow": "failed", "taste": "failed", "pack": "failed"}


@given(st.text())
def test_any_output_gives_keys_that_templates_can_name(output: str) -> None:
    for key, value in engine.parse_keys(output).items():
        assert set(key) <= set("abcdefghijklmnopqrstuvwxyz_")
        assert value == value.strip()


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_]{1,12}", fullmatch=True), st.from_regex(r"[a-z ]{0,20}", fullmatch=True)
    )
)
def test_keys_come_back_as_they_were_handed_in(given_keys: dict[str, str]) -> None:
    output = "\n".join(f"{key}: {value}" for key, value in given_keys.items())
    expected = {
        key.lower(): value.strip() for key, value in given_keys.items() if not key.startswith("STORIES_JSON")
    }
    assert engine.parse_keys(output) == expected


def test_a_key_with_a_carriage_return_is_none() -> None:
    assert engine.parse_keys("STATUS: done\r\nREPO: /srv") == {"repo": "/srv"}


@given(
    st.one_of(
        st.text(),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(json.dumps),
    )
)
def test_any_list_of_stories_is_taken_whole_or_refused(text: str) -> None:
    try:
        stories = engine.parse_stories(f"STORIES_JSON: {text}")
    except engine.BadStories:
        return
    assert len(stories) <= MAX_STORIES
    assert len({story.story_id for story in stories}) == len(stories)


def test_a_list_nested_without_end_is_refused() -> None:
    with pytest.raises(engine.BadStories, match="nested too deep"):
        engine.parse_stories("STORIES_JSON: " + "[" * 100_000)


@pytest.mark.parametrize("seed", range(12))
def test_however_agents_report_the_run_comes_to_an_end(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    orchard = Orchard(tmp_path)
    for _ in range(200):
        pending = [name for name, status in orchard.statuses().items() if status == "pending"]
        if not pending:
            break
        claim = orchard.ants.claim(f"orchard_{AGENTS[rng.choice(pending)]}")
        if claim is None:
            continue
        if rng.random() < 0.3:
            orchard.ants.fail(claim.step_id, "no")
        else:
            answer = rng.choice(("STATUS: done", "STATUS: retry\nISSUES: no", "nothing to say"))
            stories = f"\nSTORIES_JSON: {STORIES}" if claim.step == "plan" else ""
            orchard.ants.complete(claim.step_id, answer + stories)
    assert orchard.status in ("completed", "failed")
    rows = orchard.ants.rows(orchard.run)
    if orchard.status == "completed":
        assert {row["status"] for row in rows.steps} == {"done"}
        assert {row["status"] for row in rows.stories} == {"done"}
    orchard.ants.close()
