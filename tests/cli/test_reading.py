"""What the commands that only read tell scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from farmtui.clock import iso
from farmtui.text import MASK
from tests.cli.commands import Commands
from tests.farms import MINUTE, NOW, Farmyard, StepRow, StoryRow

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ENVELOPE = {"schema", "generated_at", "database", "sources", "errors"}


def store_crons(yard: Farmyard, *jobs: dict[str, Any]) -> None:
    """OpenClaw's store on disk, as 2026.2 leaves it."""
    path = yard.state_dir / "cron" / "jobs.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"version": 1, "jobs": list(jobs)}))


def job(job_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "name": name,
        "enabled": True,
        "schedule": {"kind": "every", "everyMs": 300_000},
        "payload": {"kind": "agentTurn", "message": "poll"},
        "state": {},
        **more,
    }


@pytest.mark.parametrize("command", ["runs", "medic", "escalations", "crons", "journal", "doctor"])
def test_every_answer_has_the_envelope(command: str, farm: Commands) -> None:
    answer = farm(command, "--json").json
    assert answer.keys() >= ENVELOPE
    assert answer["schema"] == f"farm.{command}/1"
    assert MOMENT.fullmatch(answer["generated_at"])
    assert answer["database"] == str(farm.yard.database)
    assert isinstance(answer["errors"], list)
    assert answer["sources"]
    for source in answer["sources"].values():
        assert source.keys() == {"ok", "age_s", "error"}
        assert isinstance(source["ok"], bool)
        assert source["ok"] == (source["error"] is None)


# ---------------------------------------------------------------- runs


def test_runs_are_told_newest_first(farm: Commands, runs: dict[str, str]) -> None:
    told = farm("runs", "--json")
    assert told.code == 0
    found = told.json["runs"]
    assert [run["created_at"] for run in found] == sorted((run["created_at"] for run in found), reverse=True)
    by_id = {run["id"]: run for run in found}
    assert {kind: by_id[run_id]["lane"] for kind, run_id in runs.items()} == {
        "done": "done",
        "human": "human",
        "cancelled": "cancelled",
        "stale": "running",
        "loop": "running",
        "pending": "pending",
        "other": "other",
    }
    assert by_id[runs["loop"]] == {
        "id": runs["loop"],
        "number": 5,
        "workflow": "relay",
        "task": "Prune the trees",
        "status": "running",
        "lane": "running",
        "step": "grow",
        "steps_done": 1,
        "steps_total": 3,
        "stories_done": 1,
        "stories_total": 3,
        "created_at": iso(NOW - 100 * MINUTE),
        "updated_at": iso(NOW - 3 * MINUTE),
    }
    assert by_id[runs["done"]]["step"] is None
    assert by_id[runs["done"]]["steps_done"] == 2
    assert by_id[runs["human"]]["step"] == "build"
    assert by_id[runs["other"]]["status"] == "paused"


def test_runs_are_limited_and_chosen(farm: Commands, runs: dict[str, str]) -> None:
    def ids(*arguments: str) -> list[str]:
        return [run["id"] for run in farm("runs", "--json", *arguments).json["runs"]]

    everything = ids("--limit", "0")
    assert len(everything) == 7
    assert ids("--limit", "2") == everything[:2]
    assert ids("--lane", "human") == [runs["human"]]
    assert set(ids("--lane", "human", "--lane", "done")) == {runs["human"], runs["done"]}
    assert set(ids("--lane", "human,done")) == {runs["human"], runs["done"]}
    assert ids("--workflow", "elsewhere") == []
    assert ids("--workflow", "relay", "--limit", "0") == everything


def test_fifty_runs_are_told_unless_more_are_asked_for(farm: Commands) -> None:
    for _ in range(50):
        farm.yard.add_run("relay")
    assert len(farm("runs", "--json").json["runs"]) == 50
    assert len(farm("runs", "--json", "--limit", "0").json["runs"]) == 57


def test_an_empty_farm_and_an_unreadable_one_do_not_look_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = Commands(Farmyard(tmp_path), capsys)
    told = empty("runs")
    assert (told.code, told.err) == (0, "")
    assert "No runs yet" in told.out
    assert empty("runs", "--json").json["runs"] == []
    for spoil in (
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"no database at all" * 100),
        lambda path: (path.unlink(), path.mkdir()),
    ):
        spoil(empty.yard.database)
        told = empty("runs")
        assert told.code == 3
        assert told.out == ""
        assert len(told.err.splitlines()) == 1
        assert str(empty.yard.database) in told.err
        told = empty("runs", "--json")
        assert told.code == 3
        assert told.json["errors"]
        assert told.json["sources"]["database"]["ok"] is False
        assert empty("medic").code == 3
        assert empty("show", "1").code == 3
        assert empty("escalations").code == 3
        assert empty("doctor").code == 3


def test_what_to_do_about_a_database_fits_what_is_wrong_with_it(farm: Commands) -> None:
    holder = farm.yard.connect()
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE runs SET task = task")
    told = farm("runs")
    assert told.code == 3
    assert "locked" in told.err
    assert "try again" in told.err
    assert "gateway box" not in told.err
    answer = farm("runs", "--json").json
    assert len([error for error in answer["errors"] if "locked" in error]) == 1
    holder.close()
    assert farm("runs").code == 0
    farm.yard.database.unlink()
    assert "gateway box" in farm("runs").err


def test_a_run_that_never_started_names_its_first_step(farm: Commands) -> None:
    farm.yard.add_run(
        "relay", "no crons", status="failed", steps=[StepRow("scout", status="pending"), StepRow("build")]
    )
    assert farm("runs", "--json", "--limit", "1").json["runs"][0]["step"] == "scout"


# ---------------------------------------------------------------- show


def test_a_run_is_told_with_everything_in_it(farm: Commands, runs: dict[str, str]) -> None:
    told = farm("show", runs["loop"], "--json")
    assert told.code == 0
    answer = told.json
    assert answer["run"]["id"] == runs["loop"]
    assert answer["run"]["context"]["task"] == "Prune the trees"
    plan, grow, pack = answer["steps"]
    assert grow.keys() >= {
        "id",
        "step_name",
        "agent",
        "index",
        "type",
        "status",
        "retry_count",
        "max_retries",
        "abandoned_count",
        "current_story",
        "updated_at",
        "claimed_at",
        "claim_age_s",
        "timeout_s",
        "expects",
        "input",
        "missing_keys",
        "output",
    }
    assert (grow["step_name"], grow["agent"], grow["type"]) == ("grow", "builder", "loop")
    assert grow["current_story"] == "S-2"
    # The story was claimed later than the step, and the workflow allows its builder 30 minutes.
    assert (grow["claimed_at"], grow["claim_age_s"]) == (iso(NOW - 2 * MINUTE), 120)
    assert grow["timeout_s"] == 35 * 60
    for step in (plan, pack):
        assert (step["claimed_at"], step["claim_age_s"], step["timeout_s"]) == (None, None, None)
    assert pack["missing_keys"] == []
    assert "awaited from" in pack["input"]
    first = answer["stories"][0]
    assert first.keys() == {
        "id",
        "story_id",
        "index",
        "title",
        "status",
        "retry_count",
        "max_retries",
        "output",
        "updated_at",
    }
    assert (first["story_id"], first["status"], first["retry_count"]) == ("S-1", "done", 1)
    assert first["output"] == "STATUS: done"
    assert answer["progress"] is None


def test_a_claim_lasts_as_long_as_its_agents_time_out(farm: Commands, runs: dict[str, str]) -> None:
    build = farm("show", runs["stale"], "--json").json["steps"][1]
    assert build["timeout_s"] == 1800 + 300
    assert build["claim_age_s"] == 2 * 60 * 60
    assert build["missing_keys"] == ["notes"]


def test_secrets_are_masked_wherever_they_turn_up(farm: Commands, runs: dict[str, str]) -> None:
    farm.yard.add_events(
        {"event": "step.done", "runId": runs["stale"], "stepId": "scout", "detail": "used hunter2-hunter2"}
    )
    told = farm("show", runs["stale"], "--json")
    assert "hunter2" not in told.out
    assert "ghp_" not in told.out
    assert "abcdef" not in told.out
    answer = told.json
    assert answer["run"]["context"]["api_key"] == MASK
    assert answer["run"]["context"]["branch"] == "fence"
    assert answer["steps"][1]["input"] == f"Build fence with {MASK} and [missing: notes]"
    shown = farm("show", runs["stale"], "--full")
    assert "hunter2" not in shown.out
    assert "ghp_" not in shown.out


def test_a_contexts_secrets_are_revealed_when_asked_but_no_others(
    farm: Commands, runs: dict[str, str]
) -> None:
    farm.yard.write_config({"gateway": {"auth": {"mode": "token", "token": "gateway-secret-1"}}})
    farm.yard.execute(
        "UPDATE steps SET output = 'the gateway said gateway-secret-1' WHERE id = ?",
        farm.yard.step_id(runs["stale"], "scout"),
    )
    told = farm("show", runs["stale"], "--json", "--reveal")
    answer = told.json
    assert answer["run"]["context"]["api_key"] == "hunter2-hunter2"
    assert "hunter2-hunter2" in answer["steps"][1]["input"]
    assert "abcdef" not in told.out
    assert "gateway-secret" not in told.out
    assert "gateway-secret" not in farm("doctor", "--json").out


def test_outputs_are_whole_for_scripts_and_cropped_for_people(farm: Commands, runs: dict[str, str]) -> None:
    output = "\n".join(f"line {number}" for number in range(500))
    farm.yard.execute(
        "UPDATE steps SET output = ? WHERE id = ?", output, farm.yard.step_id(runs["done"], "scout")
    )
    assert farm("show", runs["done"], "--json").json["steps"][0]["output"] == output
    shown = farm("show", runs["done"])
    assert "line 3" in shown.out
    assert "line 300" not in shown.out
    assert "--full" in shown.out
    assert "line 300" in farm("show", runs["done"], "--full").out


def test_progress_is_told_with_its_path(farm: Commands, runs: dict[str, str]) -> None:
    workspace = farm.yard.workspace("relay", "builder")
    farm.yard.write_config({"agents": {"list": [{"id": "relay_builder", "workspace": str(workspace)}]}})
    path = workspace / f"progress-{runs['loop']}.txt"
    path.write_text("- one tree\n")
    assert farm("show", runs["loop"], "--json").json["progress"] == {
        "path": str(path),
        "text": "- one tree\n",
    }
    path.unlink()
    path.symlink_to("/etc/passwd")
    told = farm("show", runs["loop"], "--json")
    assert told.json["progress"] is None
    assert told.json["errors"]
    assert "root:" not in told.out


def test_an_events_agent_is_named_as_its_steps_is(farm: Commands, runs: dict[str, str]) -> None:
    farm.yard.add_events(
        {"event": "step.running", "runId": runs["loop"], "stepId": "grow", "agentId": "relay_builder"},
        {"event": "run.started", "runId": runs["loop"]},
    )
    answer = farm("show", runs["loop"], "--json").json
    assert answer["steps"][1]["agent"] == "builder"
    assert [(event["agent"], event["agent_id"]) for event in answer["events"]] == [
        ("builder", "relay_builder"),
        (None, None),
    ]


def test_a_context_is_told_to_people_as_json_has_it(farm: Commands) -> None:
    run = farm.yard.add_run(
        "relay",
        context={"flag": True, "none": None, "port": 8080, "deep": {"on": False, "what": ["ü"]}},
        steps=[StepRow("scout", status="pending")],
    )
    lines = [line.split(maxsplit=1) for line in farm("show", run).out.splitlines()]
    assert ["flag", "true"] in lines
    assert ["none", "null"] in lines
    assert ["port", "8080"] in lines
    assert ["deep", '{"on": false, "what": ["ü"]}'] in lines


def test_a_context_that_is_none_is_said(farm: Commands) -> None:
    run = farm.yard.add_run("relay", context="[1, 2", steps=[StepRow("scout", status="pending")])
    answer = farm("show", run, "--json").json
    assert answer["run"]["context"] == {}
    assert any("context" in error for error in answer["errors"])


# ---------------------------------------------------------------- medic


def test_findings_are_told_with_what_would_mend_them(farm: Commands, runs: dict[str, str]) -> None:
    store_crons(
        farm.yard,
        job("11111111-aaaa", "antfarm/relay/scout"),
        job("22222222-bbbb", "antfarm/relay/builder"),
        job("33333333-cccc", "antfarm/gone/agent"),
        job("44444444-dddd", "antfarm/medic"),
    )
    told = farm("medic", "--json")
    assert told.code == 1
    answer = told.json
    by_check = {finding["check"]: finding for finding in answer["findings"]}
    assert by_check.keys() == {"stale-claim", "orphaned-crons"}
    stale = by_check["stale-claim"]
    assert stale.keys() == {
        "id",
        "check",
        "severity",
        "run",
        "run_number",
        "step",
        "story",
        "workflow",
        "crons",
        "since",
        "message",
        "evidence",
        "acknowledged",
        "fix",
    }
    assert (stale["run"], stale["run_number"], stale["step"]) == (runs["stale"], 4, "build")
    assert stale["since"] == iso(NOW - 120 * MINUTE)
    assert stale["severity"] == "critical"
    assert stale["fix"]["action"] == "reset"
    assert stale["fix"]["argv"][:4] == ["farm", "reset", runs["stale"], "build"]
    # The proposed command line leads to this farm wherever it is run.
    assert stale["fix"]["argv"][4:] == ["--state-dir", str(farm.yard.state_dir)]
    assert by_check["orphaned-crons"]["crons"] == ["33333333-cccc"]
    assert answer["not_checked"] == []


def test_without_crons_there_is_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Commands(Farmyard(tmp_path), capsys)
    quiet.yard.write_config({})
    told = quiet("medic", "--json")
    assert told.code == 3
    assert told.json["findings"] == []
    assert {each["check"] for each in told.json["not_checked"]} >= {"orphaned-crons", "missing-crons"}
    assert all(each["reason"] for each in told.json["not_checked"])
    assert "All clear" not in quiet("medic").out
    store_crons(quiet.yard)
    told = quiet("medic")
    assert (told.code, told.out) == (0, "All clear.\n")


def test_now_decides_what_is_stale(farm: Commands, runs: dict[str, str]) -> None:
    def stale(now: str) -> list[str]:
        return [
            f["run"] for f in farm("medic", "--json", now=now).json["findings"] if f["check"] == "stale-claim"
        ]

    assert stale(str(iso(NOW))) == [runs["stale"]]
    assert stale(str(iso(NOW - 100 * MINUTE))) == []


# ---------------------------------------------------------------- crons


def test_crons_are_told_with_what_they_cost(farm: Commands) -> None:
    store_crons(
        farm.yard,
        job(
            "11111111-aaaa",
            "antfarm/relay/scout",
            state={"lastStatus": "ok", "lastRunAtMs": 1_770_000_000_000},
        ),
        job("22222222-bbbb", "antfarm/relay/builder", enabled=False),
        job("33333333-cccc", "antfarm/gone/agent", schedule={"kind": "cron", "expr": "0 * * * *"}),
        job("44444444-dddd", "antfarm/medic"),
        job("55555555-eeee", "somebody/else"),
    )
    told = farm("crons", "--json")
    assert told.code == 0
    answer = told.json
    assert answer["source"] == "store"
    assert answer["sources"]["gateway"]["ok"] is False
    by_id = {each["id"]: each for each in answer["crons"]}
    assert by_id.keys() == {"11111111-aaaa", "22222222-bbbb", "33333333-cccc"}
    scout = by_id["11111111-aaaa"]
    assert scout.keys() == {
        "id",
        "name",
        "workflow",
        "agent",
        "enabled",
        "schedule",
        "every_ms",
        "next_run_at",
        "last_run_at",
        "last_status",
        "last_error",
        "consecutive_errors",
        "running_since",
        "orphan_reason",
        "calls_per_hour",
    }
    assert (scout["workflow"], scout["agent"]) == ("relay", "scout")
    assert (scout["every_ms"], scout["calls_per_hour"]) == (300_000, 12)
    assert scout["orphan_reason"] is None
    assert scout["last_run_at"] == "2026-02-02T02:40:00.000Z"
    assert by_id["22222222-bbbb"]["calls_per_hour"] == 0
    gone = by_id["33333333-cccc"]
    assert (gone["calls_per_hour"], gone["orphan_reason"]) == (None, "workflow-uninstalled")
    assert answer["missing"] == []


def test_missing_crons_are_told(farm: Commands) -> None:
    store_crons(farm.yard, job("11111111-aaaa", "antfarm/relay/scout"))
    assert farm("crons", "--json").json["missing"] == [{"workflow": "relay", "agent": "builder"}]


def test_crons_that_cannot_be_listed_are_not_none(farm: Commands) -> None:
    told = farm("crons", "--json")
    assert told.code == 3
    assert told.json["source"] == "none"
    assert told.json["errors"]
    shown = farm("crons")
    assert shown.code == 3
    assert "could not be listed" in shown.out
    assert shown.err


# ---------------------------------------------------------------- escalations


def test_escalations_are_told_with_the_last_words(farm: Commands, runs: dict[str, str]) -> None:
    told = farm("escalations", "--json")
    assert told.code == 0
    (found,) = told.json["escalations"]
    assert found == {
        "run": runs["human"],
        "run_number": 2,
        "workflow": "relay",
        "task": "Fix the [bold]gate\x1b[31m",
        "step": "build",
        "story": None,
        "reason": found["reason"],
        "since": iso(NOW - 300 * MINUTE),
        "last_output": "It did not build",
        "acknowledged": False,
    }
    assert "human" in found["reason"]


def test_an_escalated_loop_tells_its_story(farm: Commands) -> None:
    run = farm.yard.add_run(
        "elsewhere",
        status="failed",
        steps=[StepRow("grow", status="failed", loop={"over": "stories"}, output="gave up")],
        stories=[StoryRow("S-1", status="done"), StoryRow("S-2", status="failed", output="CHANGES: none")],
    )
    found = {each["run"]: each for each in farm("escalations", "--json").json["escalations"]}
    assert (found[run]["story"], found[run]["last_output"]) == ("S-2", "CHANGES: none")


# ---------------------------------------------------------------- doctor, journal


def test_doctor_tells_what_is_where_and_what_to_do(farm: Commands) -> None:
    told = farm("doctor", "--json")
    assert told.code == 3
    answer = told.json
    places = {place["name"]: place for place in answer["places"]}
    assert places["database"] == {
        "name": "database",
        "path": str(farm.yard.database),
        "origin": "--state-dir",
        "exists": True,
        "error": None,
    }
    assert places["events"]["exists"] is False
    assert answer["schema_facts"]["antfarm"] == "0.5.1"
    assert answer["versions"]["farm"]
    assert all(problem["what"] and problem["mend"] for problem in answer["problems"])
    shown = farm("doctor")
    assert str(farm.yard.database) in shown.out
    assert "--state-dir" in shown.out


@pytest.mark.parametrize("schema", ["0.1", "0.2.0", "0.2.1", "0.3.0", "0.5.1", "fork"])
def test_every_schema_is_read(schema: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = Commands(Farmyard(tmp_path, schema=schema), capsys)
    run = old.yard.add_run("relay", steps=[StepRow("scout", status="pending")], status="running")
    (told,) = old("runs", "--json").json["runs"]
    assert (told["id"], told["lane"]) == (run, "pending")
    assert (told["number"] is None) == (schema not in ("0.5.1", "fork"))
    assert old("show", run, "--json").code == 0
    facts = old("doctor", "--json").json["schema_facts"]
    assert facts["antfarm"] == ("0.5.1" if schema == "fork" else schema)
    assert bool(facts["columns_of_forks"]) == (schema == "fork")


def test_an_empty_journal_is_told(farm: Commands) -> None:
    told = farm("journal", "--json")
    assert told.code == 0
    assert told.json["entries"] == []
    assert "Nothing" in farm("journal").out
