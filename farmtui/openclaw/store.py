"""OpenClaw's jobs as they stand on disk: for reading when the gateway cannot be asked. Never written.

``cron/jobs.json`` up to 2026.4, with live state in ``jobs-state.json`` beside it in the later of these;
``state/openclaw.sqlite`` (table cron_jobs) since 2026.6.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from farmtui.openclaw.files import FileProblem, read_bounded

_LIMIT = 64 << 20
_BUSY_S = 0.5


def read_store(state_dir: Path, job_store: Path | None = None) -> list[Mapping[str, Any]]:
    """All jobs in the store, each with its `state`.

    Args:
        state_dir: OpenClaw's state folder.
        job_store: the file of jobs where the config names one (`cron.store`).

    Raises:
        FileProblem: there is no store, or it cannot be read.
    """
    named = job_store or state_dir / "cron" / "jobs.json"
    database = state_dir / "state" / "openclaw.sqlite"
    if _exists(database):
        jobs = _from_database(database, str(named))
        # An older gateway's file is renamed once its jobs are taken over: beside an empty table it counts.
        if jobs is not None and (jobs or not _exists(named)):
            return jobs
    if not _exists(named):
        raise FileProblem(f"no job store in {state_dir}")
    return _from_files(named)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _from_files(path: Path) -> list[Mapping[str, Any]]:
    loaded = _json(path)
    jobs = loaded.get("jobs") if isinstance(loaded, Mapping) else loaded
    if not isinstance(jobs, list):
        raise FileProblem(f"{path} holds no list of jobs")
    states = _states(path.with_name(f"{path.stem}-state.json"))
    return [_with_state(job, states.get(str(job.get("id")))) for job in jobs if isinstance(job, Mapping)]


def _states(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Live state by job id. The file is absent in older versions; the jobs are worth showing without it."""
    try:
        loaded = _json(path)
    except FileProblem:
        return {}
    entries = loaded.get("jobs", loaded) if isinstance(loaded, Mapping) else {}
    if not isinstance(entries, Mapping):
        return {}
    found = {}
    for job_id, entry in entries.items():
        if isinstance(entry, Mapping):
            inner = entry.get("state", entry)
            if isinstance(inner, Mapping):
                found[str(job_id)] = inner
    return found


def _from_database(path: Path, store_key: str) -> list[Mapping[str, Any]] | None:
    """The jobs of table cron_jobs; None where the database has no such table."""
    wal = Path(f"{path}-wal")
    try:
        # Without a log nobody writes: `immutable` then reads the file alone and leaves no -wal, -shm behind.
        mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=_BUSY_S)) as db:
            db.text_factory = lambda data: data.decode(errors="replace")
            columns = {row[1] for row in db.execute("PRAGMA table_info(cron_jobs)")}
            if "job_json" not in columns:
                return None
            state = "state_json" if "state_json" in columns else "'{}'"
            key = "store_key" if "store_key" in columns else "''"
            rows = db.execute(f"SELECT {key}, job_json, {state} FROM cron_jobs").fetchall()  # noqa: S608
    except (sqlite3.Error, OSError) as error:
        raise FileProblem(f"{path} cannot be read ({error})") from None
    # One database may hold several stores; a copied folder still has the key of where it came from.
    keys = {row[0] for row in rows}
    if len(keys) > 1 and store_key in keys:
        rows = [row for row in rows if row[0] == store_key]
    return [_with_state(job, _loads(live)) for _, text, live in rows if (job := _loads(text))]


def _with_state(job: Mapping[str, Any], live: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {**job, "state": live} if live else job


def _json(path: Path) -> Any:
    try:
        return json.loads(read_bounded(path, _LIMIT))
    except (ValueError, RecursionError):
        raise FileProblem(f"{path} is no JSON") from None


def _loads(text: object) -> Mapping[str, Any] | None:
    try:
        loaded = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None
