"""The journal and the acknowledgements: whole lines, several operators, odd lines, permissions."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from farmtui.antfarm.schema import Unreadable
from farmtui.operations import acknowledgements
from farmtui.operations.acknowledgements import Acknowledgements
from farmtui.operations.journal import Effects, Journal
from farmtui.operations.lines import LineFile, Unwritable
from farmtui.operations.operator import Operator
from farmtui.operations.plan import CronAction, CronCall, Edit, Guard, Outcome, OutcomeStatus, Plan, RowChange
from farmtui.operations.records import NotAPlan, plan_from, plan_record
from tests.operations.kit import ALICE, job

ROOT = Path(__file__).resolve().parents[2]


def whole_plan() -> Plan:
    return Plan(
        operation="retry",
        title="Give #1 back",
        reason="it failed",
        run="run-id",
        run_number=1,
        step="build",
        workflow="relay",
        guards=(Guard("runs", "run-id", "status", "failed", "run #1"),),
        idle_workflows=("relay",),
        changes=(
            RowChange("runs", "run-id", "status", "failed", "running", "run #1", "status"),
            RowChange("steps", "s", "retry_count", 2, 0, "step build", "retries", says="2 → 0"),
            RowChange("steps", "s", "updated_at", "2026-01-01", None, "step build", "updated", volatile=True),
        ),
        events=({"event": "step.timeout", "runId": "run-id"},),
        crons=(CronCall(CronAction.REMOVE, "antfarm/relay/closer", "id", job("relay", "closer"), "twin"),),
        acknowledgement={"run": "run-id", "run_status": "failed", "note": "n"},
        notes=("a note",),
        irreversible=("nothing",),
        undoes="20260101T000000-abcd",
    )


def test_a_plan_survives_the_journal(tmp_path: Path) -> None:
    plan = whole_plan()
    assert plan_from(json.loads(json.dumps(plan_record(plan)))) == plan


@pytest.mark.parametrize("broken", [None, [], {}, {"operation": 1, "title": "t"}, {"operation": "reset"}])
def test_what_is_no_plan_is_said_to_be_none(broken: object) -> None:
    with pytest.raises(NotAPlan):
        plan_from(broken)


def test_an_entry_without_its_second_line_is_unknown(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "farm")
    entry = journal.begin(whole_plan(), ALICE, "/db")
    (found,) = journal.entries()
    assert (found.id, found.status, found.by) == (entry, OutcomeStatus.UNKNOWN, "alice")
    done = Effects(rows=True, crons=whole_plan().crons)
    journal.finish(Outcome(OutcomeStatus.PARTIAL, entry, "half", ("p",), {"run": {"id": "x"}}), done)
    (found,) = journal.entries()
    assert (found.status, found.detail, found.problems) == (OutcomeStatus.PARTIAL, "half", ("p",))
    assert found.effects == done
    assert found.plan == whole_plan()


def test_entry_ids_sort_by_time_and_differ(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "farm")
    ids = [journal.begin(whole_plan(), ALICE, "/db") for _ in range(20)]
    assert len(set(ids)) == 20
    assert [one[:15] for one in ids] == sorted(one[:15] for one in ids)
    assert [entry.id for entry in journal.entries()] == ids


def test_folder_and_file_are_for_the_owner_only(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        Journal(tmp_path / "farm").begin(whole_plan(), ALICE, "/db")
    finally:
        os.umask(usual)
    assert stat.S_IMODE((tmp_path / "farm").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "farm" / "journal.jsonl").stat().st_mode) == 0o600


def test_a_folder_and_file_that_others_could_read_are_closed(tmp_path: Path) -> None:
    farm = tmp_path / "farm"
    farm.mkdir(mode=0o755)
    file = farm / "journal.jsonl"
    file.touch(mode=0o644)
    Journal(farm).begin(whole_plan(), ALICE, "/db")
    assert stat.S_IMODE(farm.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_plain_file_is_not_written_through(tmp_path: Path, kind: str) -> None:
    farm = tmp_path / "farm"
    farm.mkdir()
    file, other = farm / "journal.jsonl", tmp_path / "other"
    if kind == "link":
        other.touch()
        file.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(Unwritable, match=r"cannot write .*journal\.jsonl"):
        Journal(farm).begin(whole_plan(), ALICE, "/db")
    with pytest.raises(Unreadable):
        Journal(farm).entries()
    assert kind != "link" or other.read_bytes() == b""


def test_odd_lines_are_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "farm")
    first = journal.begin(whole_plan(), ALICE, "/db")
    with journal.path.open("ab") as file:
        file.write(b"not json\n[1]\n\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
        file.write(b'{"v":1,"phase":"end","entry":"never-begun"}\n{"v":1,"entry":7}\n')
        file.write(b'{"v":1,"entry":"%s","phase":"end","status":"odd"}\n' % first.encode())
        file.write(b'{"v":2,"entry":"newer","phase":"begin","plan":{"operation":"warp","title":"T"}}\n')
        file.write(b'{"v":1,"entry":"hal')
    second = journal.begin(whole_plan(), ALICE, "/db")
    found = {entry.id: entry for entry in journal.entries()}
    assert list(found) == [first, "newer", second]
    assert found[first].status is OutcomeStatus.UNKNOWN
    assert found["newer"].plan is None
    assert found["newer"].operation == "warp"
    assert "another version" in str(found["newer"].problem)


def test_a_line_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    """The limit on the size of files stands for a full disk."""
    file = LineFile(tmp_path / "farm" / "x.jsonl")
    file.append({"entry": "first"})
    code = """
        import resource, signal, sys
        from pathlib import Path
        from farmtui.operations.lines import LineFile, Unwritable
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            LineFile(Path(sys.argv[1])).append({"text": "x" * 5000})
        except Unwritable as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(file.path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert "cannot write" in done.stdout
    assert [record["entry"] for record in file.records()] == ["first"]
    assert file.path.read_bytes().count(b"\n") == 1


WRITER = """
import sys
from pathlib import Path
from farmtui.operations.journal import Effects, Journal
from farmtui.operations.plan import Outcome, OutcomeStatus, Plan
from farmtui.operations.operator import Operator
journal = Journal(Path(sys.argv[1]))
for number in range(40):
    plan = Plan("reset", f"{sys.argv[2]} {number}", "x" * 9000)
    entry = journal.begin(plan, Operator(sys.argv[2]), "/db")
    journal.finish(Outcome(OutcomeStatus.APPLIED, entry, "done"), Effects(rows=True))
"""


def test_several_operators_do_not_mix_their_lines(tmp_path: Path) -> None:
    farm = tmp_path / "farm"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(farm), name], cwd=ROOT) for name in ("ann", "bob")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    entries = Journal(farm).entries()
    assert all(entry.status is OutcomeStatus.APPLIED for entry in entries)
    for name in ("ann", "bob"):
        titles = [entry.title for entry in entries if entry.user == name]
        assert titles == [f"{name} {number}" for number in range(40)]


def test_secrets_do_not_get_into_it(tmp_path: Path) -> None:
    definition = job("relay", "closer") | {
        "payload": {"message": "post to https://x/#auth=s3cret", "apiToken": "t0ken"},
        "delivery": {"mode": "none", "authToken": "t0ken"},
    }
    context = '{"API_KEY":"k3y","task":"t"}'
    edit = Edit("operator_guidance", 27, "", ',"operator_guidance":"g"')
    change = RowChange(
        "runs", "r", "context", context, context[:27] + edit.after + "}", "run", "context", edits=(edit,)
    )
    plan = Plan(
        "retry",
        "t",
        "r",
        changes=(change,),
        crons=(CronCall(CronAction.REMOVE, "antfarm/relay/closer", "id", definition),),
        events=({"event": "x", "detail": "https://x/#auth=s3cret"},),
    )
    journal = Journal(tmp_path / "farm")
    entry = journal.begin(plan, ALICE, "/db")
    journal.finish(Outcome(OutcomeStatus.APPLIED, entry, "d"), Effects(True, True, plan.crons))
    text = journal.path.read_text()
    for secret in ("k3y", "t0ken", "s3cret"):
        assert secret not in text
    assert "operator_guidance" in text


def test_who_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"SUDO_USER": "alice", "SSH_CONNECTION": "192.0.2.7 50000 192.0.2.1 22"}
    operator = Operator.current(environ)
    assert (operator.sudo_user, operator.ssh_client, operator.name) == ("alice", "192.0.2.7", "alice")
    alone = Operator.current({})
    assert alone.name == alone.user
    assert (alone.sudo_user, alone.ssh_client) == (None, None)


# ---------------------------------------------------------------- acknowledgements


def acknowledge(folder: Path, entry: str, run: str = "run", note: str = "mine", **more: object) -> None:
    told = {"run": run, "run_status": "failed", "run_updated_at": "2026-02-15 11:00:00", "note": note}
    acknowledgements.append(folder, told | more, ALICE, entry)


def test_the_last_acknowledgement_of_each_run_counts(tmp_path: Path) -> None:
    acknowledge(tmp_path, "e1", note="first")
    acknowledge(tmp_path, "e2", note="second")
    acknowledge(tmp_path, "e3", run="other")
    found = acknowledgements.read(tmp_path)
    assert {run: (ack.note, ack.by, ack.entry) for run, ack in found.items()} == {
        "run": ("second", "alice", "e2"),
        "other": ("mine", "alice", "e3"),
    }
    assert found["run"].run_updated_at is not None


def test_one_that_is_taken_back_gives_way_to_the_one_before(tmp_path: Path) -> None:
    acknowledge(tmp_path, "e1", note="first")
    acknowledge(tmp_path, "e2", note="second")
    acknowledgements.append(tmp_path, {"run": "run", "withdraws": "e2"}, ALICE, "e3")
    assert acknowledgements.read(tmp_path)["run"].note == "first"
    acknowledgements.append(tmp_path, {"run": "run", "withdraws": "e1"}, ALICE, "e4")
    assert acknowledgements.read(tmp_path) == {}


def test_polling_gives_the_same_object_until_somebody_writes(tmp_path: Path) -> None:
    polled = Acknowledgements(tmp_path)
    nothing = polled.poll()
    assert nothing == {}
    assert polled.poll() is nothing
    acknowledge(tmp_path, "e1")
    first = polled.poll()
    assert first["run"].note == "mine"
    assert polled.poll() is first
    acknowledge(tmp_path, "e2", note="again")
    assert polled.poll()["run"].note == "again"
    (tmp_path / "acknowledgements.jsonl").unlink()
    assert polled.poll() == {}


def test_odd_acknowledgements_are_left_out(tmp_path: Path) -> None:
    acknowledge(tmp_path, "e1")
    with (tmp_path / "acknowledgements.jsonl").open("a") as file:
        file.write(
            '{"run":7}\n{"run":"x","entry":"e"}\n{"run":"y","entry":"e","withdraws":"never"}\nrubbish\n'
        )
        file.write(
            '{"run":"z","entry":"e9","run_status":"failed","run_updated_at":"soon","note":3,"by":[]}\n'
        )
    found = acknowledgements.read(tmp_path)
    assert set(found) == {"run", "z"}
    assert (found["z"].run_updated_at, found["z"].note, found["z"].by) == (None, "", "?")
