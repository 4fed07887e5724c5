"""The `openclaw` command line: the second way to the gateway, where our secret cannot be read or is refused.

It has ways in of its own (a paired device, secret stores). Slow: 1 to 5 s a call. Only what every version
measured understands is used, and only its standard output is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from farmtui.openclaw.jobs import job_id_of
from farmtui.openclaw.trouble import GatewayError, Trouble
from farmtui.paths import FarmPaths

LIST_S = 8.0
CHANGE_S = 15.0
_RPC_MS = 5000
_LIMIT = 64 << 20
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_UNITS = ((60_000, "m"), (1000, "s"), (1, "ms"))


class CommandLine:
    """The gateway through `openclaw cron …`.

    Args:
        paths: the state folder and config that it must use, whatever its own defaults are.
        environ: the environment it runs in.
        scrub: takes secrets out of what it says, and makes that one line.
    """

    def __init__(self, paths: FarmPaths, environ: Mapping[str, str], scrub: Callable[[str], str]) -> None:
        self._program = shutil.which("openclaw", path=environ.get("PATH", os.defpath))
        self._scrub = scrub
        self._environ = {
            **environ,
            "OPENCLAW_STATE_DIR": str(paths.state_dir.path),
            "OPENCLAW_CONFIG_PATH": str(paths.config.path),
            "NO_COLOR": "1",
        }

    @property
    def found(self) -> bool:
        """Whether there is such a command on the PATH."""
        return self._program is not None

    def jobs(self, timeout: float = LIST_S) -> list[Any]:
        """All jobs, disabled ones too.

        Raises:
            GatewayError: it fails, takes too long, or is not there.
        """
        answer = self._run(["list", "--json", "--all"], timeout)
        jobs = answer.get("jobs") if isinstance(answer, Mapping) else None
        if not isinstance(jobs, list):
            raise GatewayError(Trouble.FAILED, "openclaw cron list answered without a list of jobs")
        return jobs

    def remove(self, job_id: str, timeout: float = CHANGE_S) -> bool:
        """Remove a job: False where there was none of that id.

        Raises:
            GatewayError: it fails; `uncertain` where it was cut off.
        """
        try:
            answer = self._run(["rm", "--json", "--", job_id], timeout, changes=True)
        except GatewayError as error:
            if error.trouble is Trouble.NOT_FOUND:
                return False
            raise
        return not (isinstance(answer, Mapping) and answer.get("removed") is False)

    def add(self, definition: Mapping[str, Any], timeout: float = CHANGE_S) -> str:
        """Add a job; its new id.

        Raises:
            GatewayError: it fails, or the definition says what the command line cannot.
        """
        answer = self._run(["add", "--json", *_add_flags(definition)], timeout, changes=True)
        job = answer.get("job", answer) if isinstance(answer, Mapping) else {}
        job_id = job_id_of(job) if isinstance(job, Mapping) else None
        if job_id is None:
            raise GatewayError(Trouble.FAILED, "openclaw cron add answered without an id", uncertain=True)
        return job_id

    def _run(self, arguments: Sequence[str], timeout: float, *, changes: bool = False) -> Any:
        if self._program is None:
            raise GatewayError(Trouble.DOWN, "no openclaw command on the PATH")
        name = f"openclaw cron {arguments[0]}"
        command = [self._program, "cron", arguments[0], "--timeout", str(_RPC_MS), *arguments[1:]]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environ,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise GatewayError(Trouble.DOWN, f"{name} cannot be run ({reason})") from None
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise GatewayError(
                Trouble.HUNG, f"{name} took longer than {timeout:.0f}s", uncertain=changes
            ) from None
        finally:
            _end(process)
        answer = _parse(out)
        if process.returncode != 0:
            raise self._failure(name, answer, err, changes)
        if answer is None:
            raise GatewayError(Trouble.FAILED, f"{name} answered no JSON", uncertain=changes)
        return answer

    def _failure(self, name: str, answer: Any, err: bytes, changes: bool) -> GatewayError:
        error = answer.get("error") if isinstance(answer, Mapping) else None
        text = error.get("message") if isinstance(error, Mapping) else None
        if not isinstance(text, str) or not text:
            text = _ANSI.sub("", err[:_LIMIT].decode(errors="replace"))
        text = self._scrub(text)[:400] or "no reason given"
        words = text.lower()
        if "automation not found" in words or "unknown cron job id" in words or "id not found" in words:
            return GatewayError(Trouble.NOT_FOUND, text)
        # The gateway's own time-out says nothing about whether it did what it was asked.
        cut_off = changes and ("timeout" in words or "timed out" in words or "etimedout" in words)
        return GatewayError(Trouble.FAILED, f"{name}: {text}", uncertain=cut_off)


def _add_flags(definition: Mapping[str, Any]) -> list[str]:
    """A definition as flags of `cron add` that 2026.2 and 2026.9 alike understand."""
    payload, schedule = definition.get("payload"), definition.get("schedule")
    payload = payload if isinstance(payload, Mapping) else {}
    schedule = schedule if isinstance(schedule, Mapping) else {}
    delivery = definition.get("delivery")
    if payload.get("kind") != "agentTurn" or not isinstance(payload.get("message"), str):
        raise GatewayError(Trouble.INVALID, "only a job that prompts an agent can be added by command line")
    flags = [
        f"--name={definition.get('name')}",
        f"--agent={definition.get('agentId')}",
        f"--session={definition.get('sessionTarget', 'isolated')}",
        f"--wake={definition.get('wakeMode', 'now')}",
        f"--message={payload['message']}",
        *_schedule_flags(schedule),
    ]
    if payload.get("model"):
        flags.append(f"--model={payload['model']}")
    if payload.get("timeoutSeconds"):
        flags.append(f"--timeout-seconds={payload['timeoutSeconds']}")
    if isinstance(delivery, Mapping) and delivery.get("mode") == "none":
        flags.append("--no-deliver")
    if definition.get("enabled") is False:
        flags.append("--disabled")
    return flags


def _schedule_flags(schedule: Mapping[str, Any]) -> list[str]:
    every = schedule.get("everyMs")
    if isinstance(every, int) and every > 0:
        size, unit = next((size, unit) for size, unit in _UNITS if every % size == 0)
        return [f"--every={every // size}{unit}"]
    if schedule.get("kind") == "cron" and isinstance(schedule.get("expr"), str):
        zone = schedule.get("tz")
        return [f"--cron={schedule['expr']}", *([f"--tz={zone}"] if isinstance(zone, str) and zone else [])]
    raise GatewayError(Trouble.INVALID, "a job with such a schedule cannot be added by command line")


def _parse(out: bytes) -> Any:
    text = out[:_LIMIT].decode(errors="replace").strip()
    for start in (0, text.find("{")):
        try:
            return json.loads(text[max(start, 0) :])
        except (ValueError, RecursionError):
            continue
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave no child behind: node starts others, so the whole group goes."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
