"""The command line on state folders that real programs left; no gateway answers there."""

from __future__ import annotations

from typing import Any

import pytest

from farmtui.__main__ import main
from farmtui.clock import iso
from tests.boxes import Box
from tests.cli.commands import Told


class OnBox:
    def __init__(self, box: Box, capsys: pytest.CaptureFixture[str]) -> None:
        self.box = box
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Told:
        self._capsys.readouterr()
        where = ["--state-dir", str(self.box.state_dir), "--now", str(iso(self.box.taken_at))]
        code = main([*where, *arguments, "--json"])
        said = self._capsys.readouterr()
        assert said.err == ""
        return Told(code, said.out, said.err)


@pytest.fixture
def on_box(box: Box, capsys: pytest.CaptureFixture[str]) -> OnBox:
    return OnBox(box, capsys)


SINGLE = (
    "completed-by-polls",
    "failed-retries",
    "cancelled",
    "zombie",
    "stale-claim",
    "missing-key",
    "fresh",
)
LANES = {"completed": "done", "failed": "human", "cancelled": "cancelled"}


def test_every_run_is_told(on_box: OnBox) -> None:
    found = {run["id"]: run for run in on_box("runs", "--limit", "0").json["runs"]}
    assert len(found) == on_box.box.snapshot["counts"]["runs"]
    for name in SINGLE:
        situation = on_box.box.situation(name)
        run = found[situation["run_id"]]
        assert (run["number"], run["workflow"]) == (situation["run_number"], situation["workflow"])
        assert run["status"] == situation["run_status"]
        if run["status"] in LANES:
            assert run["lane"] == LANES[run["status"]]


def test_a_run_is_found_by_number_id_and_prefix(on_box: OnBox) -> None:
    situation = on_box.box.situation("loop-middle")
    for word in (str(situation["run_number"]), situation["run_id"], situation["run_id"][:8]):
        told = on_box("show", word)
        assert told.code == 0
        assert told.json["run"]["id"] == situation["run_id"]
    answer = told.json
    (loop,) = [step for step in answer["steps"] if step["step_name"] == situation["step"]]
    assert loop["current_story"] == "US-003"
    assert answer["progress"]["path"].endswith(situation["progress_file"])
    assert answer["events"]


def test_missing_keys_and_big_outputs_are_told(on_box: OnBox) -> None:
    situation = on_box.box.situation("missing-key")
    steps = on_box("show", situation["run_id"]).json["steps"]
    (step,) = [step for step in steps if step["id"] == situation["step_id"]]
    assert step["missing_keys"] == situation["missing"]
    situation = on_box.box.situation("big-output")
    steps = on_box("show", situation["run_id"]).json["steps"]
    (step,) = [step for step in steps if step["id"] == situation["step_id"]]
    assert len(step["output"].encode()) > 190_000


def test_medic_finds_what_is_so(on_box: OnBox) -> None:
    told = on_box("medic")
    assert told.code == 1
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in told.json["findings"]:
        found.setdefault(finding["check"], []).append(finding)
    box = on_box.box
    for check, name in (
        ("stale-claim", "stale-claim"),
        ("zombie-run", "zombie"),
        ("waiting-for-verify", "verify-waiting"),
    ):
        assert [finding["run"] for finding in found[check]] == [box.situation(name)["run_id"]]
    assert [finding["workflow"] for finding in found["orphaned-crons"]] == ["meadow"]
    assert len(found["orphaned-crons"][0]["crons"]) == 4
    assert [finding["workflow"] for finding in found["missing-crons"]] == ["orchard"]


def test_crons_are_told_from_the_store(on_box: OnBox) -> None:
    told = on_box("crons")
    assert told.code == 0
    answer = told.json
    box = on_box.box
    assert answer["source"] == "store"
    assert len(answer["crons"]) == box.snapshot["crons"]["antfarm"]
    by_name = {job["name"]: job for job in answer["crons"]}
    for name in box.situation("orphaned-crons")["crons"]:
        assert by_name[name]["orphan_reason"] == "no-active-run"
    failing = by_name[box.situation("cron-errors")["cron"]]
    assert failing["id"] == box.situation("cron-errors")["job_id"]
    assert failing["consecutive_errors"] == 3
    assert failing["last_error"] == box.situation("cron-errors")["last_error"]
    off = by_name[box.situation("disabled-cron")["cron"]]
    assert (off["enabled"], off["calls_per_hour"]) == (False, 0)
    assert {"workflow": "orchard", "agent": "packer"} in answer["missing"]


def test_escalations_are_told(on_box: OnBox) -> None:
    found = {each["run"]: each for each in on_box("escalations").json["escalations"]}
    box = on_box.box
    verify = found[box.situation("failed-verify")["run_id"]]
    assert (verify["step"], verify["story"]) == ("grow", box.situation("failed-verify")["story"])
    assert verify["last_output"]
    retries = found[box.situation("failed-retries")["run_id"]]
    assert retries["step"] == "build"
    assert len(retries["last_output"].splitlines()) > 1


def test_a_stale_claim_is_reset_and_undone(on_box: OnBox) -> None:
    situation = on_box.box.situation("stale-claim")
    number = str(situation["run_number"])
    assert on_box("reset", number, situation["step"], "--yes").json["outcome"] == "applied"
    assert "stale-claim" not in {finding["check"] for finding in on_box("medic").json["findings"]}
    assert on_box("undo", "--yes").code == 0
    assert "stale-claim" in {finding["check"] for finding in on_box("medic").json["findings"]}
    waiting = on_box.box.situation("verify-waiting")
    told = on_box("reset", waiting["run_id"], "grow", "--yes", "--force")
    assert (told.code, told.json["outcome"]) == (1, "refused")
