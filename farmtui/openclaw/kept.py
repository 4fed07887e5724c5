"""The definitions of Antfarm's cron jobs that farm has seen: Antfarm removes the jobs when a run ends.

One file, ``farm/crons.json`` in OpenClaw's state folder, holds the newest definition by job name, so
that the crons of a failed run can be made again. A definition is what `cron.add` takes: the prompt,
the schedule, the agent; no state and no secret.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from farmtui.openclaw.files import FileProblem, read_bounded
from farmtui.openclaw.jobs import add_params, antfarm_name
from farmtui.state import CronJob

VERSION = 1
LIMIT = 32 << 20


class KeptJobs:
    """The kept definitions of one farm. May be used from several threads.

    Args:
        farm_dir: farm's own folder; created (0700) when there is something to keep.
        writable: False only reads.
    """

    def __init__(self, farm_dir: Path, *, writable: bool = True) -> None:
        self._path = farm_dir / "crons.json"
        self._writable = writable
        self._lock = threading.Lock()

    def remember(self, jobs: Iterable[CronJob]) -> None:
        """Keep these jobs' definitions. Writes only if one differs from what is kept.

        Never raises: a folder that cannot be written costs the memory, not the list of crons.
        """
        if not self._writable:
            return
        seen = {job.name: add_params(job.definition) for job in jobs if job.definition.get("payload")}
        with self._lock:
            kept = self._read()
            merged = {**kept, **seen}
            if merged != kept:
                with suppress(OSError, ValueError, RecursionError):
                    self._write(merged)

    def find(self, workflow: str, agent: str) -> Mapping[str, Any] | None:
        """The definition last seen of that agent's job, `enabled` as it was then."""
        with self._lock:
            return self._read().get(f"antfarm/{workflow}/{agent}")

    def sibling(self, workflow: str) -> Mapping[str, Any] | None:
        """Any kept job of that workflow, to make another agent's from with `definition_for`."""
        with self._lock:
            kept = self._read()
        return next((kept[name] for name in sorted(kept) if name.startswith(f"antfarm/{workflow}/")), None)

    def _read(self) -> dict[str, dict[str, Any]]:
        # Read each time: another farm may keep jobs in the same folder.
        try:
            loaded = json.loads(read_bounded(self._path, LIMIT))
        except (FileProblem, ValueError, RecursionError):
            return {}
        jobs = loaded.get("jobs") if isinstance(loaded, dict) else None
        if not isinstance(jobs, dict):
            return {}
        return {
            name: job
            for name, job in jobs.items()
            if antfarm_name(name) and isinstance(job, dict) and job.get("name") == name
        }

    def _write(self, jobs: Mapping[str, Mapping[str, Any]]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        body = json.dumps({"version": VERSION, "jobs": jobs}, indent=1, sort_keys=True)
        draft = self._path.with_name(f".crons-{secrets.token_hex(8)}.json")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)


def definition_for(sibling: Mapping[str, Any], agent: str, agent_id: str) -> dict[str, Any] | None:
    """A sibling's job made into another agent's of the same workflow, enabled; None where it cannot be.

    Antfarm's prompts name the agent only by its id (``step peek "<workflow>_<agent>"``), so the sibling's
    id is replaced where it stands by itself, in name, agentId and message. A prompt that names nobody
    serves every agent; one that names the sibling in other words cannot be adapted.

    Args:
        agent: the short name, the last part of the job's name.
        agent_id: OpenClaw's id, ``<workflow>_<agent>``.
    """
    parts, old_id = antfarm_name(sibling.get("name")), sibling.get("agentId")
    payload = sibling.get("payload")
    if parts is None or not isinstance(old_id, str) or not old_id or not isinstance(payload, Mapping):
        return None
    message = payload.get("message")
    if not isinstance(message, str):
        return None
    message, named = re.subn(_alone(old_id), lambda _: agent_id, message)
    if not named and re.search(_alone(parts[1]), message, re.IGNORECASE):
        return None
    adapted = add_params(sibling)
    adapted["name"] = f"antfarm/{parts[0]}/{agent}"
    adapted["agentId"] = agent_id
    adapted["enabled"] = True
    adapted["payload"] = {**payload, "message": message}
    return adapted


def _alone(name: str) -> str:
    """A pattern for a name that is no part of a longer one or of a file's."""
    return rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)"
