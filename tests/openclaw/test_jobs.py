"""Cron jobs in every shape that gateways, stores and the command line give them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.openclaw.jobs import (
    add_params,
    antfarm_name,
    least_params,
    listing_of,
    parse_job,
    schedule_words,
)
from farmtui.state import CronSource
from tests.boxes import Box
from tests.openclaw.conftest import definition

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("antfarm/relay/scout", ("relay", "scout")),
        ("antfarm/feature-dev/code_reviewer", ("feature-dev", "code_reviewer")),
        ("antfarm/medic", None),
        ("antfarm/a/b/c", None),
        ("antfarm//b", None),
        ("antfarm/a/", None),
        ("x antfarm/a/b", None),
        ("Antfarm/a/b", None),
        ("heartbeat-main", None),
        (None, None),
        (7, None),
    ],
)
def test_only_names_of_two_parts_are_antfarms(name: object, parts: tuple[str, str] | None) -> None:
    assert antfarm_name(name) == parts


def test_a_job_of_the_older_gateway() -> None:
    job = parse_job(
        {
            "id": "j1",
            **definition(),
            "createdAtMs": 1,
            "updatedAtMs": 2,
            "state": {
                "nextRunAtMs": 1796089620093,
                "lastRunAtMs": 1796089320017,
                "lastStatus": "error",
                "consecutiveErrors": 3,
                "lastError": "Error: Unknown model: nosuch/model-x",
                "runningAtMs": 1796089320018,
            },
        }
    )

    assert job is not None
    assert (job.workflow, job.agent, job.agent_id) == ("relay", "scout", "relay_scout")
    assert (job.schedule, job.every_ms) == ("every 5m", 300_000)
    assert job.next_run_at == datetime(2026, 12, 1, 1, 47, 0, 93000, tzinfo=UTC)
    assert (job.last_status, job.consecutive_errors) == ("error", 3)
    assert job.last_error == "Error: Unknown model: nosuch/model-x"
    assert job.running_since is not None
    assert "state" not in job.definition
    assert "updatedAtMs" not in job.definition


def test_a_job_of_the_newer_gateway_has_copies_at_the_top() -> None:
    job = parse_job(
        {
            "jobId": "j1",
            "name": "antfarm/relay/scout",
            "effectiveAgentId": "relay_scout",
            "nextRunAtMs": 1796089620093,
            "lastRunStatus": "error",
            "lastRunError": "no",
            "configRevision": "sha256:x",
        }
    )

    assert job is not None
    assert (job.id, job.agent_id, job.last_status, job.last_error) == ("j1", "relay_scout", "error", "no")
    assert job.next_run_at is not None
    assert job.enabled
    assert job.definition.keys() == {"jobId", "name", "effectiveAgentId"}


def test_a_job_without_an_id_is_none() -> None:
    assert parse_job({"name": "antfarm/relay/scout"}) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"kind": "every", "everyMs": 300_000}, "every 5m"),
        ({"kind": "every", "everyMs": 90_500}, "every 1m 30s 500ms"),
        ({"kind": "every", "everyMs": 5_400_000.0}, "every 1h 30m"),
        ({"kind": "every", "everyMs": 604_800_000}, "every 7d"),
        ({"kind": "cron", "expr": "0 * * * *"}, "cron 0 * * * *"),
        ({"kind": "cron", "expr": "0 3 * * *", "tz": "Europe/Berlin"}, "cron 0 3 * * * (Europe/Berlin)"),
        ({"kind": "at", "at": "2026-12-01T10:00:00+01:00"}, "at 2026-12-01T09:00:00Z"),
        ({"kind": "at", "atMs": 1796089620093}, "at 2026-12-01T01:47:00Z"),
        ({"kind": "at"}, "at ?"),
        ({"kind": "on-exit"}, "on-exit"),
        ({"kind": "every", "everyMs": True}, "every"),
        ("*/5 * * * *", "*/5 * * * *"),
        (None, "?"),
        ([], "?"),
    ],
)
def test_schedules_in_words(schedule: object, words: str) -> None:
    assert schedule_words(schedule) == words


def test_what_adding_takes_is_cut_to_what_gateways_know() -> None:
    listed = {
        "id": "x",
        **definition(payload={**definition()["payload"], "toolsAllow": ["*"]}),
        "delivery": {"mode": "none", "channel": "last"},
        "configRevision": "y",
        "wakeMode": None,
    }

    assert add_params(listed).keys() == definition().keys() - {"wakeMode"}
    assert least_params(listed)["payload"] == definition()["payload"]
    assert least_params(listed)["delivery"] == {"mode": "none"}
    assert add_params(listed)["delivery"] == {"mode": "none", "channel": "last"}


KEYS = ["id", "jobId", "name", "enabled", "schedule", "state", "agentId", "kind", "everyMs", "at", "atMs",
        "expr", "tz", "nextRunAtMs", "lastRunAtMs", "lastStatus", "lastError", "consecutiveErrors",
        "runningAtMs", "payload"]  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300)
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["antfarm/a/b", "every", "cron", "at"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES).map(lambda job: {"id": "j", "name": "antfarm/a/b", **job})
)
def test_no_job_makes_parsing_fail(raw: dict[str, Any]) -> None:
    job = parse_job(raw)

    assert job is None or (antfarm_name(job.name) == (job.workflow, job.agent) and job.id)
    hash(job)
    add_params(raw)
    least_params(raw)


@given(st.lists(VALUES, max_size=5))
def test_no_list_makes_listing_fail(raws: list[Any]) -> None:
    listing = listing_of(raws, CronSource.STORE, NOW)

    assert len(listing.jobs) + listing.others <= len(raws)


def test_the_boxes_lists(box: Box) -> None:
    listing = listing_of(box.payload("cron.list")["jobs"], CronSource.WEBSOCKET, NOW)

    assert len(listing.jobs) == 10
    assert listing.others in (0, 14)
    assert not listing.watchdog
    by_name = {job.name: job for job in listing.jobs}
    assert not by_name["antfarm/orchard/planner"].enabled
    assert by_name["antfarm/orchard/planner"].next_run_at is None
    assert by_name["antfarm/relay/scout"].last_status == "ok"
    assert by_name["antfarm/relay/closer"].last_status == "error"
    assert by_name["antfarm/relay/closer"].last_error
    assert by_name["antfarm/relay/closer"].consecutive_errors > 0
    assert all(job.agent_id == f"{job.workflow}_{job.agent}" for job in listing.jobs)
    assert all(job.schedule == "every 5m" for job in listing.jobs)
