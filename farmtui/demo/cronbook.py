"""The cron jobs of a stand-in gateway, with the methods, shapes and errors measured on real ones.

``feb`` is openclaw 2026.2.12 and ``latest`` 2026.9.6, where they differ. Held in memory; ``feb`` also
writes them to ``cron/jobs.json`` as the real one does.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

READ = "operator.read"
ADMIN = "operator.admin"
ADDS_A_MINUTE = 30
_RUNS_KEPT = 50


class Version(StrEnum):
    """Which gateway is stood in for."""

    FEB = "feb"
    LATEST = "latest"


class RpcError(Exception):
    """An error as a gateway answers it."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.frame: dict[str, Any] = {"code": code, "message": message}
        if details is not None:
            self.frame["details"] = dict(details)
        if retry_after_ms is not None:
            self.frame |= {"retryable": True, "retryAfterMs": retry_after_ms}


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a job's run ended: `status` is ok, error or skipped."""

    status: str = "ok"
    summary: str = "HEARTBEAT_OK"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Method:
    """A method: its scope and, since parameters are closed, which it knows."""

    scope: str
    feb: frozenset[str] | None
    latest: frozenset[str]


_IDS = frozenset({"id", "jobId"})
_ADDED = frozenset(
    {"name", "enabled", "schedule", "sessionTarget", "wakeMode", "agentId", "payload", "delivery"}
)
_METHODS: Mapping[str, _Method] = {
    "cron.list": _Method(
        READ,
        frozenset({"includeDisabled"}),
        frozenset({"includeDisabled", "limit", "offset", "query", "enabled", "sortBy", "sortDir", "compact"}),
    ),
    "cron.status": _Method(READ, frozenset(), frozenset()),
    "cron.get": _Method(READ, None, _IDS),
    "cron.runs": _Method(READ, _IDS | {"limit"}, _IDS | {"limit"}),
    "cron.add": _Method(ADMIN, _ADDED, _ADDED),
    "cron.update": _Method(ADMIN, _IDS | {"patch"}, _IDS | {"patch"}),
    "cron.remove": _Method(ADMIN, _IDS, _IDS),
    "cron.run": _Method(ADMIN, _IDS | {"mode"}, _IDS | {"mode"}),
}
_PAYLOAD = {
    Version.FEB: frozenset({"kind", "message", "model", "timeoutSeconds"}),
    Version.LATEST: frozenset({"kind", "message", "model", "timeoutSeconds", "toolsAllow"}),
}


class CronBook:
    """All jobs of one gateway. Safe to use from several threads.

    Args:
        version: whose shapes and errors.
        publish: takes the payload of each `cron` event; called without locks held.
        jobs: to begin with, as a gateway would list them.
        agents: ids that jobs may name; None allows all. Only ``latest`` looks.
        state_dir: OpenClaw's state folder, where ``feb`` keeps cron/jobs.json; None keeps no file.
        now_ms: the clock.

    Attributes:
        comes_back: a job that is removed appears again under a new id (openclaw#111274).
        undeletable: ids that `cron.remove` says to have removed, and that stay.
        unlisted: ids that run but are neither listed nor found (openclaw#112350).
    """

    def __init__(
        self,
        version: Version,
        publish: Callable[[dict[str, Any]], None],
        *,
        jobs: Iterable[Mapping[str, Any]] = (),
        agents: Iterable[str] | None = None,
        state_dir: Path | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self.version = version
        self.comes_back = False
        self.undeletable: set[str] = set()
        self.unlisted: set[str] = set()
        self._publish = publish
        self._agents = None if agents is None else set(agents)
        self._file = state_dir / "cron" / "jobs.json" if state_dir and version is Version.FEB else None
        self._now_ms = now_ms
        self._lock = threading.RLock()
        self._jobs: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, deque[dict[str, Any]]] = {}
        self._adds: deque[int] = deque(maxlen=ADDS_A_MINUTE)
        for job in jobs:
            kept = deepcopy(dict(job))
            kept.setdefault("id", str(uuid.uuid4()))
            kept.setdefault("state", {})
            self._jobs[kept["id"]] = kept
        if self._jobs:
            self._save()

    # ------------------------------------------------------------ from inside the process

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """All jobs as they are, disabled ones and unlisted ones too."""
        with self._lock:
            return [self._shape(job) for job in self._jobs.values()]

    def add(self, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Add a job, however many were added before."""
        now = self._now_ms()
        with self._lock:
            job = {
                "id": str(uuid.uuid4()),
                "enabled": True,
                "wakeMode": "now",
                **deepcopy(dict(definition)),
                "createdAtMs": now,
                "updatedAtMs": now,
                "state": {},
            }
            self._schedule(job, now)
            self._jobs[job["id"]] = job
            self._save()
            shaped = self._shape(job)
        self._tell("added", shaped)
        return shaped

    def remove(self, job_id: str) -> bool:
        """Remove a job: whether there was one."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job_id in self.unlisted:
                return False
            if job_id not in self.undeletable:
                del self._jobs[job_id]
                self._runs.pop(job_id, None)
                self._save()
            shaped = self._shape(job)
        self._tell("removed", shaped)
        if self.comes_back:
            self.add({key: value for key, value in job.items() if key in _ADDED})
        return True

    def due(self) -> tuple[list[str], int | None]:
        """Ids of the jobs whose time has come, and when (in ms) the next one's will."""
        now = self._now_ms()
        with self._lock:
            times = {
                job["id"]: job["state"]["nextRunAtMs"]
                for job in self._jobs.values()
                if job.get("enabled") and "nextRunAtMs" in job["state"]
            }
        due = sorted((job_id for job_id in times if times[job_id] <= now), key=lambda job_id: times[job_id])
        return due, min((moment for moment in times.values() if moment > now), default=None)

    def run(self, job_id: str, agent: Callable[[Mapping[str, Any]], RunReport]) -> None:
        """One run of a job: `agent` gets the job and does its turn."""
        started = self._now_ms()
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                return
            job["state"]["runningAtMs"] = started
            self._save()
            shaped = self._shape(job)
        self._tell("started", shaped, runAtMs=started)
        try:
            report = agent(shaped)
        except Exception as error:  # an agent that fails is a run that failed, as in a real gateway
            report = RunReport("error", "", f"{type(error).__name__}: {error}")
        self._finish(job, started, report)

    def _finish(self, job: dict[str, Any], started: int, report: RunReport) -> None:
        now = self._now_ms()
        with self._lock:
            state = job["state"]
            state.pop("runningAtMs", None)
            state.pop("lastError", None)
            failures = state.get("consecutiveErrors", 0)
            state |= {
                "lastRunAtMs": started,
                "lastStatus": report.status,
                "lastDurationMs": now - started,
                "consecutiveErrors": failures + 1 if report.status == "error" else 0,
            }
            if report.error is not None:
                state["lastError"] = report.error
            if self.version is Version.LATEST:
                state["lastRunStatus"] = report.status
            self._schedule(job, now)
            entry = {
                "ts": now,
                "jobId": job["id"],
                "action": "finished",
                "status": report.status,
                "summary": report.summary,
                "runAtMs": started,
                "durationMs": now - started,
                "nextRunAtMs": state.get("nextRunAtMs"),
            }
            if report.error is not None:
                entry["error"] = report.error
            if job["id"] in self._jobs:
                self._runs.setdefault(job["id"], deque(maxlen=_RUNS_KEPT)).append(entry)
                self._save()
            shaped = self._shape(job)
        self._tell("finished", shaped, status=report.status, summary=report.summary, durationMs=now - started)

    # ------------------------------------------------------------ from a client

    def call(self, method: str, params: Mapping[str, Any], scopes: Iterable[str]) -> Any:
        """Answer a client's request.

        Raises:
            RpcError: as a real gateway would.
        """
        known = _METHODS.get(method)
        allowed = None
        if known is not None:
            allowed = known.latest if self.version is Version.LATEST else known.feb
        if known is None or allowed is None:
            raise RpcError("INVALID_REQUEST", f"unknown method: {method}")
        if known.scope not in scopes and ADMIN not in scopes:
            self._missing_scope(known.scope)
        for name in params:
            if name not in allowed:
                self._unexpected(method, name)
        return getattr(self, f"_{method.removeprefix('cron.')}_call")(params)

    def _list_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            listed = [
                self._shape(job)
                for job in self._jobs.values()
                if job["id"] not in self.unlisted and (params.get("includeDisabled") or job.get("enabled"))
            ]
        listed.sort(key=lambda job: job["state"].get("nextRunAtMs", 0))
        if self.version is Version.FEB:
            return {"jobs": listed}
        offset, limit = params.get("offset", 0), params.get("limit") or max(1, len(listed))
        page = listed[offset : offset + limit]
        more = offset + limit < len(listed)
        return {
            "jobs": page,
            "snapshotRevision": f"sha256:{uuid.uuid4().hex}",
            "total": len(listed),
            "offset": offset,
            "limit": limit,
            "hasMore": more,
            "nextOffset": offset + limit if more else None,
            "deliveryPreviews": {},
        }

    def _status_call(self, _params: Mapping[str, Any]) -> dict[str, Any]:
        _, next_wake = self.due()
        with self._lock:
            status: dict[str, Any] = {"enabled": True, "jobs": len(self._jobs), "nextWakeAtMs": next_wake}
        if self._file is not None:
            status["storePath"] = str(self._file)
        if self.version is Version.LATEST:
            status |= {"triggersEnabled": True, "storage": "sqlite"}
        return status

    def _get_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            return self._shape(self._find(params))

    def _runs_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        limit = params.get("limit", _RUNS_KEPT)
        with self._lock:
            entries = list(self._runs.get(_id(params), ()))
            if self.version is Version.LATEST:
                self._find(params)
        if self.version is Version.FEB:
            return {"entries": entries[-limit:]}
        newest = entries[::-1][:limit]
        return {
            "entries": newest,
            "total": len(entries),
            "offset": 0,
            "limit": limit,
            "hasMore": len(entries) > limit,
            "nextOffset": limit if len(entries) > limit else None,
        }

    def _add_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        for name in ("name", "schedule", "payload"):
            if name not in params:
                raise RpcError(
                    "INVALID_REQUEST",
                    f"invalid cron.add params: must have required property '{name}'",
                )
        for name in params["payload"]:
            if name not in _PAYLOAD[self.version]:
                self._unexpected("cron.add", name, "/payload")
        if self.version is Version.LATEST:
            self._limit_adds()
            agent = params.get("agentId")
            if self._agents is not None and agent not in self._agents:
                raise RpcError("UNAVAILABLE", f"Error: cron job agent is unavailable: {agent}")
        return self.add(params)

    def _update_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            job = self._find(params)
            job.update(deepcopy(dict(params.get("patch", {}))))
            job["updatedAtMs"] = self._now_ms()
            self._schedule(job, self._now_ms())
            self._save()
            shaped = self._shape(job)
        self._tell("updated", shaped)
        return shaped

    def _remove_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        removed = self.remove(_id(params))
        if not removed and self.version is Version.LATEST:
            self._unknown(_id(params))
        return {"ok": True, "removed": removed}

    def _run_call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        now = self._now_ms()
        with self._lock:
            job = self._find(params)
            if params.get("mode", "force") == "due" and job["state"].get("nextRunAtMs", now + 1) > now:
                return {"ok": True, "ran": False, "reason": "not-due"}
            if self.version is Version.LATEST and "runningAtMs" in job["state"]:
                return {"ok": True, "ran": False, "reason": "already-running"}
            if self.version is Version.FEB:
                return {"ok": True, "ran": True}
            # The scheduler finds it due at its next look.
            job["state"]["nextRunAtMs"] = now
        return {"ok": True, "enqueued": True, "runId": str(uuid.uuid4())}

    # ------------------------------------------------------------ shapes and errors

    def _shape(self, job: Mapping[str, Any]) -> dict[str, Any]:
        shaped = deepcopy(dict(job))
        if self.version is Version.LATEST:
            state = shaped["state"]
            shaped["effectiveAgentId"] = shaped.get("agentId")
            shaped["scheduledToolPolicy"] = {"version": 1, "mode": "trusted"}
            if isinstance(shaped.get("payload"), dict):
                shaped["payload"].setdefault("toolsAllow", ["*"])
            for key in ("nextRunAtMs", "lastRunAtMs", "lastRunStatus"):
                if key in state:
                    shaped[key] = state[key]
            if "lastError" in state:
                shaped["lastRunError"] = state["lastError"]
        return shaped

    def _find(self, params: Mapping[str, Any]) -> dict[str, Any]:
        job = self._jobs.get(_id(params))
        if job is None or job["id"] in self.unlisted:
            self._unknown(_id(params))
        return job

    def _unknown(self, job_id: str) -> NoReturn:
        if self.version is Version.FEB:
            raise RpcError("UNAVAILABLE", f"Error: unknown cron job id: {job_id}")
        raise RpcError(
            "INVALID_REQUEST",
            f"Automation not found: {job_id}. List automations and retry with a current job id.",
            details={"code": "CRON_JOB_NOT_FOUND", "jobId": job_id},
        )

    def _missing_scope(self, scope: str) -> NoReturn:
        if self.version is Version.FEB:
            raise RpcError("INVALID_REQUEST", f"missing scope: {scope}")
        raise RpcError(
            "FORBIDDEN", f"missing scope: {scope}", details={"code": "MISSING_SCOPE", "missingScope": scope}
        )

    def _unexpected(self, method: str, name: str, where: str = "root") -> NoReturn:
        raise RpcError(
            "INVALID_REQUEST", f"invalid {method} params: at {where}: unexpected property '{name}'"
        )

    def _limit_adds(self) -> None:
        now = self._now_ms()
        with self._lock:
            if len(self._adds) == ADDS_A_MINUTE and now - self._adds[0] < 60_000:
                raise RpcError(
                    "UNAVAILABLE",
                    "rate limit exceeded for cron.add",
                    retry_after_ms=60_000 - (now - self._adds[0]),
                )
            self._adds.append(now)

    # ------------------------------------------------------------ time, file, events

    def _schedule(self, job: dict[str, Any], now: int) -> None:
        schedule = job.get("schedule") or {}
        every = schedule.get("everyMs")
        if not job.get("enabled") or not isinstance(every, int) or every <= 0:
            job["state"].pop("nextRunAtMs", None)
            return
        anchor = schedule.get("anchorMs", job.get("createdAtMs", now))
        job["state"]["nextRunAtMs"] = anchor + ((now - anchor) // every + 1) * every

    def _save(self) -> None:
        if self._file is None:
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._file.with_suffix(".tmp")
        draft.write_text(json.dumps({"version": 1, "jobs": list(self._jobs.values())}, indent=2))
        os.replace(draft, self._file)  # noqa: PTH105

    def _tell(self, action: str, job: Mapping[str, Any], **more: Any) -> None:
        event: dict[str, Any] = {"jobId": job["id"], "action": action, **more}
        if "nextRunAtMs" in job["state"]:
            event["nextRunAtMs"] = job["state"]["nextRunAtMs"]
        if self.version is Version.LATEST:
            event["job"] = dict(job)
        self._publish(event)


def _id(params: Mapping[str, Any]) -> str:
    return str(params.get("id") or params.get("jobId") or "")
