"""The `openclaw` command, played by a script that answers as the real one does."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farmtui.demo.gateway import StandInGateway
from farmtui.openclaw import cli
from farmtui.openclaw.crons import CronError, Crons
from farmtui.paths import FarmPaths
from farmtui.state import CronSource
from tests.openclaw.conftest import definition

NOT_FOUND = {"ok": False, "error": {"type": "cli_error", "message": "Automation not found: x. Run …"}}


class Command:
    """A command `openclaw` on a PATH of its own; what it was asked stands in `asked`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.environ = {"PATH": str(folder)}

    def answers(self, **by_subcommand: tuple[str, str, int]) -> None:
        """For each cron subcommand: what goes to stdout and stderr, and the exit code."""
        script = self.folder / "openclaw"
        script.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            f"log = open({str(self.folder / 'asked')!r}, 'a')\n"
            "names = ('OPENCLAW_STATE_DIR', 'OPENCLAW_CONFIG_PATH')\n"
            "env = {name: os.environ.get(name) for name in names}\n"
            "log.write(json.dumps({'argv': sys.argv[1:], 'env': env}) + '\\n')\n"
            "log.close()\n"
            f"out, err, code = {by_subcommand!r}[sys.argv[2]]\n"
            "sys.stdout.write(out); sys.stderr.write(err); sys.exit(code)\n"
        )
        script.chmod(0o755)

    def runs(self, shell: str) -> None:
        script = self.folder / "openclaw"
        script.write_text(f"#!/bin/sh\n{shell}\n")
        script.chmod(0o755)

    @property
    def asked(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in (self.folder / "asked").read_text().splitlines()]
        except FileNotFoundError:
            return []


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path / "bin")


@pytest.fixture
def locked_out(start: Callable[..., StandInGateway], write_config: Callable[..., None]) -> StandInGateway:
    """A gateway that is up and whose secret farm cannot read."""
    gateway = start()
    auth = {"mode": "token", "token": {"source": "exec", "provider": "vault", "id": "gw"}}
    write_config({"gateway": {**gateway.config(), "auth": auth}})
    return gateway


@pytest.fixture
def crons(paths: FarmPaths, command: Command, locked_out: StandInGateway) -> Crons:
    return Crons(paths, command.environ)


def listed(*jobs: dict[str, Any]) -> tuple[str, str, int]:
    return json.dumps({"jobs": jobs}), "\x1b[33mwarning: {not json}\x1b[0m\n", 0


JOB = {"id": "j1", **definition(), "status": "ok", "state": {}}


def test_a_secret_that_cannot_be_read_leaves_the_command_line(
    crons: Crons, command: Command, paths: FarmPaths
) -> None:
    command.answers(list=listed(JOB, {"id": "j2", "name": "heartbeat-main"}))

    listing = crons.list()

    assert listing.source is CronSource.CLI
    assert [job.id for job in listing.jobs] == ["j1"]
    assert listing.others == 1
    assert listing.note is not None
    assert "exec: vault gw" in listing.note
    assert "command line" in listing.note
    [asked] = command.asked
    assert asked["argv"][:2] == ["cron", "list"]
    assert {"--json", "--all", "--timeout"} <= set(asked["argv"])
    assert asked["env"]["OPENCLAW_STATE_DIR"] == str(paths.state_dir.path)
    assert asked["env"]["OPENCLAW_CONFIG_PATH"] == str(paths.config.path)


def test_a_refused_secret_leaves_the_command_line(
    start: Callable[..., StandInGateway],
    write_config: Callable[..., None],
    paths: FarmPaths,
    command: Command,
) -> None:
    gateway = start()
    write_config({"gateway": {**gateway.config(), "auth": {"mode": "token", "token": "REDACTED"}}})
    command.answers(list=listed(JOB))

    listing = Crons(paths, command.environ).list()

    assert listing.source is CronSource.CLI
    assert listing.note is not None
    assert "token mismatch" in listing.note
    assert "REDACTED" not in listing.note


def test_a_gateway_that_is_down_is_not_asked_again_by_command(
    crons: Crons, command: Command, locked_out: StandInGateway
) -> None:
    locked_out.stop()
    command.answers(list=listed(JOB))

    assert crons.list().source is CronSource.NONE
    assert command.asked == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (("", "\x1b[31mError: gateway closed (1006)\x1b[0m\n", 1), "gateway closed (1006)"),
        ((json.dumps({"ok": False, "error": {"message": "Gateway not reachable"}}), "x", 1), "not reachable"),
        (("no json", "", 0), "answered no JSON"),
        (("{}", "", 0), "without a list of jobs"),
        (("[]", "", 0), "without a list of jobs"),
        (("", "", 1), "no reason given"),
    ],
)
def test_a_command_that_fails_is_said_in_its_words(
    answer: tuple[str, str, int], words: str, crons: Crons, command: Command
) -> None:
    command.answers(list=answer)

    listing = crons.list()

    assert listing.source is CronSource.NONE
    assert listing.note is not None
    assert words in listing.note
    assert "\x1b" not in listing.note


def test_noise_before_the_json_is_passed_over(crons: Crons, command: Command) -> None:
    out, err, code = listed(JOB)
    command.answers(list=(f"\n  Doctor: all well\n{out}\n", err, code))

    assert crons.list().source is CronSource.CLI


def test_no_command_is_said(crons: Crons) -> None:
    assert "no openclaw command on the PATH" in str(crons.list().note)


def test_a_command_that_hangs_is_ended_with_all_it_started(
    crons: Crons, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A child that would keep the pipes open, as node's workers do.
    pids = command.folder / "pids"
    command.runs(f"/bin/sleep 600 & echo $! > {shlex.quote(str(pids))}\n/bin/sleep 600")
    monkeypatch.setattr(cli.CommandLine.jobs, "__defaults__", (0.5,))

    began = time.monotonic()
    listing = crons.list()

    assert time.monotonic() - began < 30
    assert "took longer than" in str(listing.note)
    child = int(pids.read_text())
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_job_is_removed_by_command(crons: Crons, command: Command) -> None:
    command.answers(list=listed(JOB), rm=('{"ok": true, "removed": true}', "", 0))

    result = crons.remove("j1")

    assert not result.gone
    assert "still lists it" in str(result.note)
    assert [asked["argv"][1] for asked in command.asked] == ["list", "rm", "list"]
    assert command.asked[1]["argv"][-1] == "j1"


@pytest.mark.parametrize(
    "answer",
    [
        (json.dumps(NOT_FOUND), "Automation not found", 1),
        ("", "Error: Error: unknown cron job id: x\n", 1),
        ('{"ok": true, "removed": false}', "", 0),
    ],
)
def test_not_found_is_gone_by_command_too(
    answer: tuple[str, str, int], paths: FarmPaths, command: Command
) -> None:
    command.answers(rm=answer)

    assert cli.CommandLine(paths, command.environ, str).remove("x") is False


def test_no_other_job_is_removed_by_command(crons: Crons, command: Command) -> None:
    command.answers(list=listed({"id": "j2", "name": "heartbeat-main"}))

    with pytest.raises(CronError, match="not a job of Antfarm's"):
        crons.remove("j2")

    assert [asked["argv"][1] for asked in command.asked] == ["list"]


def test_a_job_is_added_with_flags_that_all_versions_know(crons: Crons, command: Command) -> None:
    command.answers(add=('{"id": "new"}', "", 0))
    message = '--not a flag\nstep peek "relay_scout"'
    payload = {**definition()["payload"], "message": message, "toolsAllow": ["*"]}

    assert crons.add(definition(payload=payload, enabled=False)) == "new"

    [asked] = command.asked
    assert {
        "--name=antfarm/relay/scout",
        "--agent=relay_scout",
        "--every=5m",
        "--session=isolated",
        f"--message={message}",
        "--model=default",
        "--timeout-seconds=120",
        "--no-deliver",
        "--disabled",
        "--json",
    } <= set(asked["argv"])
    assert "--delivery" not in asked["argv"]


@pytest.mark.parametrize(
    ("schedule", "flags"),
    [
        ({"kind": "every", "everyMs": 90_000}, ["--every=90s"]),
        ({"kind": "every", "everyMs": 1500}, ["--every=1500ms"]),
        ({"kind": "cron", "expr": "0 * * * *", "tz": "UTC"}, ["--cron=0 * * * *", "--tz=UTC"]),
    ],
)
def test_schedules_as_flags(
    schedule: dict[str, Any], flags: list[str], crons: Crons, command: Command
) -> None:
    command.answers(add=('{"id": "new"}', "", 0))
    crons.add(definition(schedule=schedule))

    assert set(flags) <= set(command.asked[0]["argv"])


def test_what_the_command_line_cannot_say_is_refused(crons: Crons, command: Command) -> None:
    with pytest.raises(CronError, match="only a job that prompts an agent"):
        crons.add(definition(payload={"kind": "systemEvent", "text": "x"}))
    assert command.asked == []


@pytest.mark.parametrize(
    ("answer", "uncertain"),
    [
        (("", "Error: gateway timeout after 5000ms", 1), True),
        (("", "unauthorized: gateway token mismatch", 1), False),
        (("{}", "", 0), True),
    ],
)
def test_a_cut_off_change_is_uncertain(
    answer: tuple[str, str, int], uncertain: bool, crons: Crons, command: Command
) -> None:
    command.answers(add=answer)

    with pytest.raises(CronError) as failed:
        crons.add(definition())

    assert failed.value.uncertain is uncertain


def test_the_commands_words_are_scrubbed(
    start: Callable[..., StandInGateway],
    write_config: Callable[..., None],
    paths: FarmPaths,
    command: Command,
) -> None:
    gateway = start()
    write_config({"gateway": {**gateway.config(), "auth": {"mode": "token", "token": "stale-token-1"}}})
    command.answers(list=("", f"Error: bad token stale-token-1{os.linesep}", 1))

    note = Crons(paths, command.environ).list().note

    assert note is not None
    assert "bad token ••••••" in note
