"""What changes the farm: planned, agreed to, applied, journalled, taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from farmtui.clock import iso
from farmtui.demo.cronbook import Version
from farmtui.demo.gateway import StandInGateway
from tests.cli.commands import Commands
from tests.cli.test_reading import MOMENT, job
from tests.farms import MINUTE, NOW, StepRow

ENDED = "01234567-dead"
SCOUT = "11111111-aaaa"
BUILDER = "22222222-bbbb"


@pytest.fixture(params=[Version.FEB, Version.LATEST])
def gateway(request: pytest.FixtureRequest, farm: Commands) -> Iterator[StandInGateway]:
    """A gateway with the busy farm's crons and one orphan."""
    jobs = [
        job(SCOUT, "antfarm/relay/scout", agentId="relay_scout"),
        job(BUILDER, "antfarm/relay/builder", agentId="relay_builder"),
        job(ENDED, "antfarm/gone/agent", agentId="gone_agent"),
        job("44444444-dddd", "antfarm/medic"),
    ]
    with StandInGateway(request.param, jobs=jobs) as running:
        farm.yard.write_config(
            {
                "gateway": running.config(),
                "agents": {"list": [{"id": "relay_scout"}, {"id": "relay_builder"}]},
            }
        )
        yield running


def listed(gateway: StandInGateway) -> set[str]:
    return {entry["name"] for entry in gateway.book.jobs}


def step_row(farm: Commands, run: str, name: str) -> dict[str, Any]:
    return farm.yard.row("steps", farm.yard.step_id(run, name))


# ---------------------------------------------------------------- agreeing


@pytest.mark.parametrize("command", ["reset", "resolve", "ack"])
def test_nothing_is_written_without_agreement(command: str, farm: Commands, runs: dict[str, str]) -> None:
    before = farm.yard.dump()
    rest = {
        "reset": [runs["stale"], "build"],
        "resolve": [runs["human"], "--retry", "--without-crons"],
        "ack": [runs["human"], "--note", "seen"],
    }[command]
    told = farm(command, *rest)
    assert told.code == 2
    assert "--yes" in told.err
    told = farm(command, *rest, "--json")
    assert told.code == 2
    assert told.json["plan"]["operation"]
    assert told.json["outcome"] is None
    told = farm(command, *rest, "--dry-run", "--json")
    assert told.code == 0
    assert told.json["outcome"] == "dry-run"
    assert told.json["plan"]["title"]
    assert (told.json["entry"], told.json["after"]) == (None, None)
    shown = farm(command, *rest, "--dry-run")
    assert shown.code == 0
    assert "will" in shown.out
    told = farm(command, *rest, "--yes", "--readonly", "--json")
    assert told.code == 1
    assert told.json["outcome"] == "refused"
    assert "read-only" in told.json["errors"][0]
    assert farm.yard.dump() == before
    assert farm("journal", "--json").json["entries"] == []
    assert not (farm.yard.state_dir / "farm" / "journal.jsonl").exists()


# ---------------------------------------------------------------- reset, undo


def test_a_stale_claim_is_reset_and_the_reset_undone(farm: Commands, runs: dict[str, str]) -> None:
    told = farm("reset", "4", "build", "--yes", "--json")
    assert told.code == 0
    answer = told.json
    assert answer["outcome"] == "applied"
    assert answer["plan"]["run"] == runs["stale"]
    (after,) = answer["after"]["steps"]
    assert (after["status"], after["abandoned_count"]) == ("pending", 1)
    assert MOMENT.fullmatch(after["updated_at"])
    row = step_row(farm, runs["stale"], "build")
    assert (row["status"], row["abandoned_count"]) == ("pending", 1)
    # What is written bears the machine's time, whatever --now says to judge by.
    assert row["updated_at"] > str(iso(NOW + 1000 * MINUTE))[:10]
    event = json.loads(farm.yard.events.read_text().splitlines()[-1])
    assert (event["event"], event["runId"], event["stepId"]) == ("step.timeout", runs["stale"], "build")
    (entry,) = farm("journal", "--json").json["entries"]
    assert (entry["entry"], entry["outcome"], entry["undone_by"]) == (answer["entry"], "applied", None)
    assert entry["user"]
    assert entry["plan"]["title"] == answer["plan"]["title"]

    undone = farm("undo", "--yes", "--json")
    assert undone.code == 0
    assert undone.json["plan"]["undoes"] == answer["entry"]
    row = step_row(farm, runs["stale"], "build")
    assert (row["status"], row["abandoned_count"]) == ("running", 0)
    newest, oldest = farm("journal", "--json").json["entries"]
    assert oldest["undone_by"] == newest["entry"] == undone.json["entry"]
    assert farm("undo", answer["entry"], "--yes").code == 1
    assert len(farm("journal", "--json", "--limit", "1").json["entries"]) == 1


def test_a_step_is_named_by_its_id_too(farm: Commands, runs: dict[str, str]) -> None:
    step = farm.yard.step_id(runs["stale"], "build")
    assert farm("reset", runs["stale"][:8], step, "--yes").code == 0


@pytest.mark.parametrize(
    ("run", "step"), [("loop", "grow"), ("pending", "scout"), ("done", "build"), ("cancelled", "scout")]
)
def test_what_is_not_stale_is_not_reset(run: str, step: str, farm: Commands, runs: dict[str, str]) -> None:
    before = farm.yard.dump()
    told = farm("reset", runs[run], step, "--yes", "--json")
    assert (told.code, told.json["outcome"], told.json["plan"]) == (1, "refused", None)
    assert told.json["errors"]
    assert farm.yard.dump() == before


def test_a_step_that_is_not_stale_is_reset_by_force(farm: Commands, runs: dict[str, str]) -> None:
    assert farm("reset", runs["loop"], "grow", "--yes", "--force").code == 0
    assert step_row(farm, runs["loop"], "grow")["status"] == "pending"


def test_what_is_not_there_is_told(farm: Commands, runs: dict[str, str]) -> None:
    for line in (
        ["reset", "99", "build"],
        ["reset", runs["stale"], "no-such-step"],
        ["show", "zzzz"],
        ["ack", "99", "--note", "x"],
        ["resolve", "99", "--retry"],
        ["undo", "no-such-entry"],
    ):
        told = farm(*line, "--json")
        assert told.code == 1, line
        assert len(told.json["errors"]) == 1


# ---------------------------------------------------------------- ack


def test_an_acknowledged_run_waits_for_nobody(farm: Commands, runs: dict[str, str]) -> None:
    assert farm("ack", runs["human"], "--note", "waits for the new key", "--yes").code == 0
    (found,) = farm("escalations", "--json").json["escalations"]
    assert found["acknowledged"] is True
    assert re.search(r"seen +by \S+: waits for the new key\n", farm("escalations").out)
    lanes = {run["id"]: run["lane"] for run in farm("runs", "--json").json["runs"]}
    assert lanes[runs["human"]] == "failed"
    assert farm("undo", "--yes").code == 0
    (found,) = farm("escalations", "--json").json["escalations"]
    assert found["acknowledged"] is False


# ---------------------------------------------------------------- resolve


def test_an_escalated_run_is_given_back_with_guidance(
    farm: Commands, runs: dict[str, str], gateway: StandInGateway
) -> None:
    told = farm("resolve", "2", "--retry", "--guidance", "Use the side door", "--yes", "--json")
    assert told.code == 0, told.out
    assert told.json["outcome"] == "applied"
    row = step_row(farm, runs["human"], "build")
    assert (row["status"], row["retry_count"]) == ("pending", 0)
    assert "{{operator_guidance}}" in row["input_template"]
    context = json.loads(farm.yard.row("runs", runs["human"])["context"])
    assert context["operator_guidance"] == "Use the side door"
    assert farm.yard.row("runs", runs["human"])["status"] == "running"


def test_guidance_comes_from_a_file_or_standard_input(
    farm: Commands, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import io

    def guidance(*arguments: str) -> list[str]:
        told = farm("resolve", "2", "--retry", "--without-crons", "--dry-run", "--json", *arguments)
        assert told.code == 0, told.err
        edits = [edit for change in told.json["plan"]["changes"] for edit in change.get("edits", ())]
        return [edit["after"] for edit in edits if '"operator_guidance":' in edit["after"]]

    file = tmp_path / "guidance.txt"
    file.write_text("Drei Türen\n", encoding="utf-8")
    assert "Drei T" in guidance("--guidance-file", str(file))[0]
    monkeypatch.setattr("sys.stdin", io.StringIO("From outside\n"))
    assert "From outside" in guidance("--guidance", "-")[0]
    assert guidance() == []
    assert farm("resolve", "2", "--retry", "--guidance-file", str(tmp_path / "absent")).code == 3


def test_without_crons_a_retry_is_refused_unless_asked_for(farm: Commands, runs: dict[str, str]) -> None:
    told = farm("resolve", "2", "--retry", "--yes", "--json")
    assert (told.code, told.json["outcome"]) == (1, "refused")
    assert farm("resolve", "2", "--retry", "--yes", "--without-crons").code == 0


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--yes",)])
def test_no_answer_about_a_change_shows_a_secret(
    more: tuple[str, ...], farm: Commands, runs: dict[str, str], gateway: StandInGateway
) -> None:
    context = {"api_key": "hunter2-hunter2", "why": "as hunter2-hunter2"}
    farm.yard.execute("UPDATE runs SET context = ? WHERE id = ?", json.dumps(context), runs["human"])
    farm.yard.execute(
        "UPDATE steps SET output = ? WHERE id = ?",
        f"hunter2-hunter2 and {gateway.secret} were refused, see https://x.test/#auth=abcdef",
        farm.yard.step_id(runs["human"], "build"),
    )
    said = [
        farm("escalations", "--json"),
        farm("escalations"),
        farm("show", runs["human"], "--json"),
        farm("resolve", runs["human"], "--retry", "--guidance", f"not {gateway.secret}", "--json", *more),
        farm("reset", runs["human"], str(gateway.secret), "--json"),
        farm("reset", runs["human"], str(gateway.secret)),
        farm("journal", "--json"),
        farm("undo", "--json", *more),
    ]
    for told in said:
        for secret in ("hunter2", str(gateway.secret), "abcdef"):
            assert secret not in told.out + told.err
    assert "were refused" in said[0].out


def test_what_cannot_be_journalled_is_refused(farm: Commands, runs: dict[str, str]) -> None:
    (farm.yard.state_dir / "farm").write_text("no folder")
    told = farm("reset", runs["stale"], "build", "--yes", "--json")
    assert (told.code, told.json["outcome"]) == (1, "refused")
    assert step_row(farm, runs["stale"], "build")["status"] == "running"


# ---------------------------------------------------------------- crons


def test_orphaned_crons_are_deleted_and_come_back_by_undo(farm: Commands, gateway: StandInGateway) -> None:
    answer = farm("crons", "--json").json
    assert answer["source"] == "websocket"
    assert answer["sources"]["gateway"]["ok"] is True
    told = farm("crons", "delete", "--orphaned", "--yes", "--json")
    assert told.code == 0, told.out
    assert told.json["outcome"] == "applied"
    assert [call["id"] for call in told.json["plan"]["crons"]] == [ENDED]
    assert listed(gateway) == {"antfarm/relay/scout", "antfarm/relay/builder", "antfarm/medic"}
    assert farm("crons", "delete", "--orphaned", "--yes").code == 1
    undone = farm("undo", "--yes", "--json")
    assert undone.code == 0, undone.out
    assert "antfarm/gone/agent" in listed(gateway)


def test_crons_are_named_by_id_or_its_beginning(farm: Commands, gateway: StandInGateway) -> None:
    assert farm("crons", "delete", "0123", "--yes").code == 0
    assert "antfarm/gone/agent" not in listed(gateway)
    told = farm("crons", "delete", ENDED, "--yes", "--json")
    assert told.code == 1
    # Antfarm's watchdog and crons that active runs need are never deleted.
    for needed in ("44444444-dddd", SCOUT):
        assert farm("crons", "delete", needed, "--yes").code == 1
    assert listed(gateway) == {"antfarm/relay/scout", "antfarm/relay/builder", "antfarm/medic"}


def test_only_a_workflows_orphans_are_deleted(farm: Commands, gateway: StandInGateway) -> None:
    assert farm("crons", "delete", "--orphaned", "--workflow", "elsewhere", "--yes").code == 1
    assert farm("crons", "delete", "--orphaned", "--workflow", "gone", "--yes").code == 0


def test_a_gateway_that_cannot_be_asked_deletes_nothing(farm: Commands, gateway: StandInGateway) -> None:
    farm.yard.write_config({"gateway": {**gateway.config(), "auth": {"mode": "token", "token": "wrong"}}})
    told = farm("crons", "delete", "--orphaned", "--yes", "--json")
    assert told.code == 1
    assert told.json["errors"]
    assert "wrong" not in told.out
    assert "antfarm/gone/agent" in listed(gateway)


# ---------------------------------------------------------------- medic --fix


def test_medic_mends_what_a_check_found(
    farm: Commands, runs: dict[str, str], gateway: StandInGateway
) -> None:
    second = farm.yard.add_run(
        "relay",
        steps=[StepRow("scout", status="running", age=90 * MINUTE), StepRow("build", "builder")],
        age=90 * MINUTE,
        created=100 * MINUTE,
    )
    dry = farm("medic", "--fix", "stale-claim", "--dry-run", "--json")
    assert dry.code == 0
    assert [fix["outcome"] for fix in dry.json["fixes"]] == ["dry-run", "dry-run"]
    assert farm("medic", "--fix", "stale-claim").code == 2
    told = farm("medic", "--fix", "stale-claim", "--yes", "--json")
    assert told.code == 0, told.out
    assert {fix["plan"]["run"] for fix in told.json["fixes"]} == {runs["stale"], second}
    assert {fix["outcome"] for fix in told.json["fixes"]} == {"applied"}
    assert all(fix["entry"] for fix in told.json["fixes"])
    assert step_row(farm, second, "scout")["status"] == "pending"
    left = farm("medic", "--json").json["findings"]
    assert {finding["check"] for finding in left} == {"orphaned-crons"}
    told = farm("medic", "--fix", "orphaned-crons", "--yes", "--json")
    assert told.code == 0, told.out
    assert farm("medic").code == 0
    told = farm("medic", "--fix", "stale-claim", "--yes", "--json")
    assert (told.code, told.json["fixes"]) == (0, [])


def test_medic_does_not_mend_what_it_cannot(farm: Commands, runs: dict[str, str]) -> None:
    assert farm("medic", "--fix", "orphaned-crons", "--yes", "--json").code == 3
    farm.yard.execute("UPDATE steps SET status = 'done' WHERE run_id = ?", runs["loop"])
    assert farm("medic", "--fix", "zombie-run", "--yes").code == 1


# ---------------------------------------------------------------- waiting


def test_a_claim_is_waited_for(farm: Commands, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def claim(_seconds: float) -> None:
        farm.yard.execute(
            "UPDATE steps SET status = 'running' WHERE id = ?", farm.yard.step_id(runs["stale"], "build")
        )

    monkeypatch.setattr("farmtui.cli.follow.sleep", claim)
    told = farm("reset", runs["stale"], "build", "--yes", "--wait", "--json")
    assert told.code == 0
    assert told.json["followed"]["state"] == "claimed"


def test_waiting_ends_when_the_step_can_be_claimed_no_more(
    farm: Commands, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_seconds: float) -> None:
        farm.yard.execute("UPDATE runs SET status = 'cancelled' WHERE id = ?", runs["stale"])

    monkeypatch.setattr("farmtui.cli.follow.sleep", stop)
    told = farm("reset", runs["stale"], "build", "--yes", "--wait", "--json")
    assert told.code == 1
    assert (told.json["outcome"], told.json["followed"]["state"]) == ("applied", "gone")


def test_who_waits_no_longer_still_gets_the_answer(
    farm: Commands, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("farmtui.cli.follow.sleep", interrupt)
    told = farm("reset", runs["stale"], "build", "--yes", "--wait", "--json")
    assert told.code == 1
    assert (told.json["outcome"], told.json["followed"]["state"]) == ("applied", "waiting")
