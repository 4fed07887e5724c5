"""The demo's farm: what is there when it is opened, that it really runs, and that it leaves others alone."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from farmtui.antfarm.events import EventLog
from farmtui.clock import parse_time
from farmtui.demo.run import MARKER, ORPHANED, UNWOKEN, DemoError, DemoFarm, demo_farm

QUICK = 50.0


def query(folder: Path, statement: str, *parameters: Any) -> list[Any]:
    with closing(
        sqlite3.connect(folder / "antfarm" / "antfarm.db", isolation_level=None, timeout=5)
    ) as database:
        return database.execute(statement, parameters).fetchall()


def until(happened: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for something that will happen; its value."""
    deadline = time.monotonic() + seconds
    while not (value := happened()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
    return value


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Path]:
    """A farm that was built and not started."""
    farm = DemoFarm(tmp_path / "farm")
    yield farm.state_dir
    farm.stop()


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[DemoFarm]:
    """A farm that runs fifty times as quick."""
    with demo_farm(tmp_path / "farm", pace=QUICK) as farm:
        yield farm


# ---------------------------------------------------------------- what is there at once


def test_every_state_of_a_run_is_there(past: Path) -> None:
    statuses = dict(query(past, "SELECT status, count(*) FROM runs GROUP BY status"))
    assert statuses.keys() == {"running", "completed", "failed", "cancelled"}
    assert 6 <= statuses["running"] <= 10
    active = {status for (status,) in query(past, "SELECT status FROM steps")}
    assert active == {"waiting", "pending", "running", "done", "failed"}


def test_one_claim_is_abandoned_and_others_are_fresh(past: Path) -> None:
    now = datetime.now(UTC)
    claimed = query(
        past,
        "SELECT s.updated_at FROM steps s JOIN runs r ON r.id = s.run_id "
        "WHERE r.status = 'running' AND s.status = 'running' AND s.current_story_id IS NOT NULL",
    )
    ages = sorted(now - moment for (text,) in claimed if (moment := parse_time(text)))
    assert ages[0] < timedelta(minutes=5)
    assert timedelta(hours=2) < ages[-1] < timedelta(hours=2, minutes=10)


def test_a_run_waits_for_its_verify_step_without_the_cron_that_would_wake_it(past: Path) -> None:
    [(template, context)] = query(
        past,
        "SELECT v.input_template, r.context FROM steps l JOIN steps v ON v.run_id = l.run_id JOIN runs r "
        "ON r.id = l.run_id WHERE l.type = 'loop' AND l.status = 'running' AND l.current_story_id IS NULL "
        "AND v.step_id = 'verify' AND v.status = 'pending'",
    )
    assert "{{test_cmd}}" in template
    assert "test_cmd" not in json.loads(context), "one key is missing, so that there is one to show"


def test_both_time_formats_occur_in_one_column(past: Path) -> None:
    forms = {"T" in text for (text,) in query(past, "SELECT updated_at FROM steps")}
    assert forms == {True, False}


def test_progress_is_in_workspaces_and_archived_for_completed_runs(past: Path) -> None:
    running = list(past.glob("workspaces/workflows/*/agents/*/progress-*.txt"))
    archived = list(past.glob("workspaces/workflows/*/agents/*/archive/*/progress.txt"))
    assert running
    assert archived
    completed = {run for (run,) in query(past, "SELECT id FROM runs WHERE status = 'completed'")}
    assert {path.parent.name for path in archived} <= completed
    assert running[0].read_text().startswith("## S-1 ")


def test_events_are_in_order_and_agree_with_the_rows(past: Path) -> None:
    lines = [json.loads(line) for line in (past / "antfarm" / "events.jsonl").read_text().splitlines()]
    assert [line["ts"] for line in lines] == sorted(line["ts"] for line in lines)
    completed = {line["runId"] for line in lines if line["event"] == "run.completed"}
    assert completed == {run for (run,) in query(past, "SELECT id FROM runs WHERE status = 'completed'")}
    log = EventLog(past / "antfarm" / "events.jsonl")
    log.poll()
    assert len(log.recent) == len(lines), "farm's own reader understands every line"


def test_the_same_seed_gives_the_same_past(tmp_path: Path) -> None:
    shots = []
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        farm = DemoFarm(tmp_path / name, seed=seed)
        shots.append(
            query(farm.state_dir, "SELECT id, step_id, status, output, retry_count FROM steps ORDER BY rowid")
        )
        farm.stop()
    assert shots[0] == shots[1] != shots[2]


def test_the_command_takes_the_seed(tmp_path: Path) -> None:
    farm = Path(sys.executable).with_name("farm")
    kept = tmp_path / "kept"
    command = [farm, "demo", "--headless", "--seconds", "0", "--seed", "7", "--keep", kept]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{kept}\n"
    other = DemoFarm(tmp_path / "other", seed=7)
    other.stop()
    first_ids = "SELECT id FROM steps ORDER BY rowid LIMIT 50"
    assert query(kept, first_ids) == query(other.state_dir, first_ids)


def test_two_retries_and_then_a_human(past: Path) -> None:
    failed = query(
        past,
        "SELECT workflow_id, json_extract(context, '$.issues') FROM runs WHERE status = 'failed' ORDER BY 1",
    )
    assert [workflow for workflow, _ in failed] == ["bug-fix", "dependency-update", "security-audit"]
    assert failed[-1][1], "the verifier's last words are kept"


# ---------------------------------------------------------------- that it really runs


def test_runs_complete_and_new_ones_start(quick: DemoFarm) -> None:
    folder = quick.state_dir
    [(known, done)] = query(folder, "SELECT count(*), sum(status = 'completed') FROM runs")
    until(lambda: query(folder, "SELECT count(*) FROM runs")[0][0] > known)
    until(lambda: query(folder, "SELECT count(*) FROM runs WHERE status = 'completed'")[0][0] > done)


def test_a_step_put_back_is_claimed_and_its_run_goes_on(quick: DemoFarm) -> None:
    folder = quick.state_dir
    [(step, run, story)] = query(
        folder,
        "SELECT s.id, s.run_id, s.current_story_id FROM steps s JOIN runs r ON r.id = s.run_id "
        "WHERE r.task = 'Add OAuth login to the web shop' AND s.status = 'running'",
    )
    query(folder, "UPDATE stories SET status = 'pending' WHERE id = ?", story)
    query(
        folder,
        "UPDATE steps SET status = 'pending', current_story_id = NULL, updated_at = datetime('now') "
        "WHERE id = ?",
        step,
    )
    until(lambda: query(folder, "SELECT 1 FROM stories WHERE id = ? AND status = 'done'", story))
    until(lambda: query(folder, "SELECT 1 FROM runs WHERE id = ? AND status = 'completed'", run))


def test_a_retried_escalation_completes_and_answers_to_the_guidance(quick: DemoFarm) -> None:
    folder = quick.state_dir
    [(run, step, context)] = query(
        folder,
        "SELECT r.id, s.id, r.context FROM runs r JOIN steps s ON s.run_id = r.id "
        "WHERE r.task = 'Fix the flaky checkout test' AND s.status = 'failed'",
    )
    guided = json.dumps({**json.loads(context), "operator_guidance": "Freeze the clock in the payment stub."})
    query(
        folder,
        "UPDATE steps SET status = 'pending', retry_count = 0, output = NULL, "
        "input_template = input_template || char(10) || '{{operator_guidance}}' WHERE id = ?",
        step,
    )
    query(folder, "UPDATE runs SET status = 'running', context = ? WHERE id = ?", guided, run)
    until(lambda: query(folder, "SELECT 1 FROM runs WHERE id = ? AND status = 'completed'", run))
    [(output,)] = query(folder, "SELECT output FROM steps WHERE id = ?", step)
    assert "Freeze the clock in the payment stub." in output


def test_a_deleted_cron_stays_away(quick: DemoFarm) -> None:
    orphans = [job for job in quick.gateway.book.jobs if job["name"].startswith(f"antfarm/{ORPHANED}/")]
    assert len(orphans) == 3
    for job in orphans:
        quick.gateway.book.remove(job["id"])
    [(known,)] = query(quick.state_dir, "SELECT max(run_number) FROM runs")
    until(lambda: query(quick.state_dir, "SELECT max(run_number) FROM runs")[0][0] > known + 1)
    names = {job["name"] for job in quick.gateway.book.jobs}
    assert not any(ORPHANED in name for name in names)
    stored = json.loads((quick.state_dir / "cron" / "jobs.json").read_text())
    assert {job["name"] for job in stored["jobs"]} == names


def test_the_run_that_waits_goes_on_once_its_verifier_is_woken(quick: DemoFarm) -> None:
    folder = quick.state_dir
    sibling = next(
        job for job in quick.gateway.book.jobs if job["name"].startswith("antfarm/security-audit/")
    )
    [(run,)] = query(folder, "SELECT id FROM runs WHERE task = 'Audit uploads and file names'")
    assert UNWOKEN not in {job["name"] for job in quick.gateway.book.jobs}
    definition = {key: sibling[key] for key in ("schedule", "sessionTarget", "payload", "delivery")}
    quick.gateway.book.add({**definition, "name": UNWOKEN, "agentId": "security-audit_verifier"})
    until(lambda: query(folder, "SELECT 1 FROM runs WHERE id = ? AND status = 'completed'", run))


def test_it_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farmtui.demo.agents.ENDED_KEPT", 12)
    with demo_farm(tmp_path / "farm", pace=QUICK) as farm:
        first = query(farm.state_dir, "SELECT min(run_number) FROM runs")[0][0]
        until(lambda: query(farm.state_dir, "SELECT min(run_number) FROM runs")[0][0] > first)
        [(ended,)] = query(farm.state_dir, "SELECT count(*) FROM runs WHERE status <> 'running'")
        assert ended <= 14
        [(strays,)] = query(
            farm.state_dir, "SELECT count(*) FROM steps WHERE run_id NOT IN (SELECT id FROM runs)"
        )
        assert strays == 0


# ---------------------------------------------------------------- folders, and other people's farms


def test_a_temporary_folder_is_gone_afterwards() -> None:
    with demo_farm() as farm:
        folder = farm.state_dir
        assert (folder / "openclaw.json").stat().st_mode & 0o777 == 0o600
    assert not folder.exists()


def test_a_named_folder_stays_and_may_be_used_again(tmp_path: Path) -> None:
    with demo_farm(tmp_path / "kept") as farm:
        assert farm.state_dir == tmp_path / "kept"
    assert (tmp_path / "kept" / "antfarm" / "antfarm.db").exists()
    with demo_farm(tmp_path / "kept"):
        pass


def test_another_ones_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(DemoError, match="holds something that no demo made"), demo_farm(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with (
        demo_farm(tmp_path / "farm"),
        pytest.raises(DemoError, match="another farm demo runs"),
        demo_farm(tmp_path / "farm"),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DemoError, match=r"no demo in .*file"), demo_farm(tmp_path / "file" / "farm"):
        pass


WATCHED = """
import sys
touched = []
def watch(name, arguments):
    if name in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove", "sqlite3.connect"):
        path = str(arguments[0])
        if "decoy" in path:
            touched.append((name, path))
sys.addaudithook(watch)
from farmtui.demo.run import run_headless
run_headless(seconds=2)
print(touched)
"""


def test_the_users_own_farm_is_never_touched(tmp_path: Path) -> None:
    decoy = tmp_path / "decoy"
    for folder in (decoy / ".openclaw" / "antfarm", decoy / "state" / "antfarm"):
        folder.mkdir(parents=True)
        (folder / "antfarm.db").write_bytes(b"precious")
    before = {path: path.stat().st_mtime_ns for path in decoy.rglob("*")}
    environ = {
        **os.environ,
        "HOME": str(decoy),
        "OPENCLAW_STATE_DIR": str(decoy / "state"),
        "ANTFARM_DB_PATH": str(decoy / "state" / "antfarm" / "antfarm.db"),
        "OPENCLAW_CONFIG_PATH": str(decoy / "openclaw.json"),
    }
    # -I leaves user site-packages out, which Python itself looks for under HOME.
    done = subprocess.run(
        [sys.executable, "-s", "-c", WATCHED],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert {path: path.stat().st_mtime_ns for path in decoy.rglob("*")} == before


def test_a_signal_ends_it_and_its_folder(tmp_path: Path) -> None:
    program = "from farmtui.demo.run import run_headless; run_headless()"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    # What is told must come through a pipe at once, without Python's help.
    environ.pop("PYTHONUNBUFFERED", None)
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        assert (folder / MARKER).exists()
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=20) == 0
    assert not folder.exists()
    assert list(tmp_path.glob("farm-demo-*")) == []


def test_its_environment_leads_to_no_other_farm(monkeypatch: pytest.MonkeyPatch, past: Path) -> None:
    monkeypatch.setenv("OPENCLAW_GATEWAY_TOKEN", "another gateway's")
    monkeypatch.setenv("ANTFARM_DB_PATH", "/another/farm")
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")
    farm = DemoFarm(past.parent / "other")
    environ = farm.environ
    farm.stop()
    assert not [name for name in environ if name.startswith(("OPENCLAW_", "ANTFARM_"))]
    assert environ["HOME"] == str(farm.state_dir)
    assert environ["PATH"] == ""
    assert environ["SSH_CONNECTION"].startswith("192.0.2.7"), "who operates it is still told"
