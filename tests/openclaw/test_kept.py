"""The definitions that farm keeps, and another agent's job made from a sibling's."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from farmtui.openclaw.jobs import parse_job
from farmtui.openclaw.kept import KeptJobs, definition_for
from farmtui.state import CronJob
from tests.boxes import Box
from tests.openclaw.conftest import definition


def job(agent: str = "scout", workflow: str = "relay", **changes: Any) -> CronJob:
    parsed = parse_job({"id": "j", **definition(agent, workflow, **changes), "state": {"lastRunAtMs": 1}})
    assert parsed is not None
    return parsed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "farm"


def test_a_job_seen_once_is_found_later(folder: Path) -> None:
    KeptJobs(folder).remember([job("scout"), job("builder")])
    KeptJobs(folder).remember([])

    assert KeptJobs(folder).find("relay", "scout") == definition("scout")
    assert KeptJobs(folder).find("relay", "nobody") is None
    assert KeptJobs(folder).sibling("relay") == definition("builder")
    assert KeptJobs(folder).sibling("rel") is None


def test_the_newest_definition_counts(folder: Path) -> None:
    kept = KeptJobs(folder)
    kept.remember([job()])
    kept.remember([job(enabled=False)])

    assert kept.find("relay", "scout") == definition(enabled=False)


def test_file_and_folder_are_the_operators_alone(folder: Path) -> None:
    KeptJobs(folder).remember([job()])

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "crons.json").stat().st_mode) == 0o600
    assert os.listdir(folder) == ["crons.json"]  # noqa: PTH208


def test_nothing_is_written_where_nothing_changed(folder: Path) -> None:
    kept = KeptJobs(folder)
    kept.remember([job()])
    before = (folder / "crons.json").stat()
    kept.remember([job()])
    kept.remember([])

    after = (folder / "crons.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_readonly_writes_nothing(folder: Path) -> None:
    KeptJobs(folder, writable=False).remember([job()])

    assert not folder.exists()


def test_no_folder_is_made_for_nothing(folder: Path) -> None:
    KeptJobs(folder).remember([])

    assert not folder.exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"jobs": []}', '{"jobs": {"antfarm/relay/scout": 7}}', "\x00", "[" * 100_000]
)
def test_a_broken_file_is_as_none_and_is_replaced(text: str, folder: Path) -> None:
    folder.mkdir()
    (folder / "crons.json").write_text(text)
    kept = KeptJobs(folder)

    assert kept.find("relay", "scout") is None
    kept.remember([job()])
    assert kept.find("relay", "scout") == definition()


def test_a_name_that_does_not_fit_its_job_is_not_believed(folder: Path) -> None:
    folder.mkdir()
    other = {**definition(), "name": "heartbeat-main"}
    (folder / "crons.json").write_text(json.dumps({"version": 1, "jobs": {"antfarm/relay/scout": other}}))

    assert KeptJobs(folder).find("relay", "scout") is None


def test_a_folder_that_cannot_be_made_costs_no_list(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    KeptJobs(tmp_path / "file" / "farm").remember([job()])


def test_a_job_is_made_from_a_siblings() -> None:
    made = definition_for(definition("scout", enabled=False), "builder", "relay_builder")

    assert made == definition("builder")


def test_only_the_id_itself_is_replaced() -> None:
    sibling = definition("plan")
    sibling["payload"]["message"] = (
        'peek "relay_plan"; not "relay_planner", relay_plan.txt; claim relay_plan.'
    )

    made = definition_for(sibling, "verify", "relay_verify")

    assert made is not None
    assert made["payload"]["message"] == (
        'peek "relay_verify"; not "relay_planner", relay_plan.txt; claim relay_verify.'
    )
    assert sibling["payload"]["message"].startswith('peek "relay_plan"')


def test_a_prompt_that_names_nobody_serves_all() -> None:
    sibling = {**definition("scout"), "payload": {"kind": "agentTurn", "message": "Look for work."}}

    made = definition_for(sibling, "builder", "relay_builder")

    assert made is not None
    assert (made["name"], made["agentId"]) == ("antfarm/relay/builder", "relay_builder")
    assert made["payload"] == sibling["payload"]


@pytest.mark.parametrize(
    "changes",
    [
        {"agentId": None},
        {"name": "antfarm/medic"},
        {"payload": None},
        {"payload": {"kind": "agentTurn"}},
        {"payload": {"kind": "agentTurn", "message": "You are the Scout. Look for work."}},
    ],
)
def test_what_cannot_be_adapted_is_not(changes: dict[str, Any]) -> None:
    assert definition_for({**definition(), **changes}, "builder", "relay_builder") is None


def test_the_boxes_jobs_are_each_others_siblings(box: Box) -> None:
    jobs = {
        parsed.name: parsed
        for raw in box.payload("cron.list")["jobs"]
        if (parsed := parse_job(raw)) is not None
    }

    made = definition_for(jobs["antfarm/relay/scout"].definition, "builder", "relay_builder")

    assert made is not None
    assert made["payload"] == jobs["antfarm/relay/builder"].definition["payload"]
