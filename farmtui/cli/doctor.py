"""`farm doctor`: what farm found where and why, what it could not reach, and how to mend that."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import typer

from farmtui import __version__
from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, pairs, table
from farmtui.paths import FarmPaths
from farmtui.state import CronSource, FarmState
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.openclaw.config import OpenClawConfig

_LIBRARIES = ("textual", "typer", "websockets", "watchfiles", "pyyaml", "pyjson5")
# Columns of steps and runs by which an Antfarm's age can be told, the newest first.
_ERAS = (
    ("0.5.1", "runs", "run_number"),
    ("0.3.0", "steps", "abandoned_count"),
    ("0.2.1", "runs", "notify_url"),
    ("0.2.0", "steps", "loop_config"),
)
_OLDEST = "0.1"
_KNOWN = frozenset(
    "id workflow_id task status context created_at updated_at notify_url run_number run_id step_id agent_id"  # noqa: SIM905
    " step_index input_template expects output retry_count max_retries type loop_config current_story_id"
    " abandoned_count story_index story_id title description acceptance_criteria".split()
)
_MEND = {
    "database": "run farm where Antfarm runs, or name the database: --state-dir DIR or --db FILE",
    "events": "Antfarm writes it with its first event; without it bars and last claims are not known",
    "workflows": "antfarm workflow install WORKFLOW puts one there; without it policies are not known",
    "config": "openclaw configure writes it; without it agents and the gateway's secret are not known",
    "journal": "look who may read and write the folder farm/ in OpenClaw's state folder",
    "crons": "openclaw gateway status tells how the gateway does; farm asks it again by itself",
    "gateway": "openclaw gateway status tells how it does; openclaw gateway start starts it",
}


def doctor(ctx: typer.Context) -> Answer:
    """Tell what is where and why, what cannot be reached, and how to mend it."""
    call: Call = ctx.obj
    call.begin("doctor", problems=[])
    view = call.look(crons=True, needed=False)
    state = view.state
    problems = _problems(call, state)
    data = {
        "versions": _versions(),
        "host": state.host,
        "places": _places(call.paths, state),
        "split": call.paths.split,
        "schema_facts": _schema(call.paths),
        "runs": len(state.runs),
        "workflows": [
            {"id": each.id, "path": each.path, "error": each.error} for each in state.workflows.values()
        ],
        "gateway": _gateway(call.config, state),
        "problems": problems,
    }
    unreached = any(problem["unreached"] for problem in problems)
    return Answer("doctor", data, _lines, Exit.UNREAD if unreached else Exit.FINE, call.source_errors())


def _versions() -> dict[str, str | None]:
    return {
        "farm": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: _library(name) for name in _LIBRARIES},
    }


def _library(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _places(paths: FarmPaths, state: FarmState) -> list[dict[str, Any]]:
    named = {
        "database": paths.database,
        "events": paths.events,
        "workflows": paths.workflows,
        "state_dir": paths.state_dir,
        "config": paths.config,
    }
    places = [
        {
            "name": name,
            "path": str(place.path),
            "origin": place.origin,
            "exists": _exists(place.path),
            "error": state.sources[name].error if name in state.sources else None,
        }
        for name, place in named.items()
    ]
    places.append(
        {
            "name": "farm_dir",
            "path": str(paths.farm_dir),
            "origin": "in the state folder",
            "exists": _exists(paths.farm_dir),
            "error": state.sources["journal"].error if "journal" in state.sources else None,
        }
    )
    return places


def _exists(path: Any) -> bool:
    try:
        return bool(path.exists())
    except OSError:
        return False


def _schema(paths: FarmPaths) -> dict[str, Any] | None:
    from farmtui.antfarm.schema import Unreadable, connect_ro, readable, schema_of

    path = paths.database.path
    try:
        with readable(path), closing(connect_ro(path)) as connection:
            columns = schema_of(connection, path)
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    except Unreadable:
        return None
    era = next((name for name, table_name, column in _ERAS if column in columns[table_name]), _OLDEST)
    extra = sorted(
        f"{table_name}.{column}" for table_name, found in columns.items() for column in found - _KNOWN
    )
    return {"antfarm": era, "journal_mode": str(mode), "columns_of_forks": extra}


def _gateway(config: OpenClawConfig, state: FarmState) -> dict[str, Any]:
    listing = state.crons
    return {
        "source": str(listing.source),
        "url": config.url,
        "version": listing.version,
        "auth": config.auth.mode,
        "auth_problem": config.auth.problem,
        "unsafe_bind": config.unsafe_bind,
        "watchdog": listing.watchdog if listing.known else None,
        "note": listing.note,
    }


def _problems(call: Call, state: FarmState) -> list[dict[str, Any]]:
    """What is wrong, each with the way to mend it; `unreached` where it kept farm from reading or asking."""
    problems = [
        {"what": f"{status.name}: {status.error}", "mend": _MEND.get(status.name), "unreached": True}
        for status in state.sources.values()
        if status.error is not None
    ]
    answered = state.crons.source in (CronSource.WEBSOCKET, CronSource.CLI)
    crons_failed = "crons" in state.sources and state.sources["crons"].error is not None
    if not answered and not crons_failed and not call.options.no_gateway:
        problems.append({"what": f"gateway: {state.crons.note}", "mend": _MEND["gateway"], "unreached": True})
    if state.unsafe_bind is not None:
        problems.append(
            {
                "what": f"the gateway is bound beyond loopback: {state.unsafe_bind}",
                "mend": "openclaw config set gateway.bind loopback, unless others are meant to reach it",
                "unreached": False,
            }
        )
    if call.paths.split:
        problems.append(
            {
                "what": "the database lies outside the gateway's state folder: they may not belong together",
                "mend": "name the state folder with --state-dir; crons are not deleted until then",
                "unreached": False,
            }
        )
    problems += [
        {"what": f"config: {line}", "mend": f"mend {call.paths.config.path}", "unreached": False}
        for line in call.config.problems
    ]
    problems += [
        {
            "what": f"workflow {each.id}: workflow.yml {each.error}",
            "mend": f"mend {each.path}",
            "unreached": False,
        }
        for each in state.workflows.values()
        if each.error is not None
    ]
    return problems


def _lines(data: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    versions = data["versions"]
    libraries = ", ".join(f"{name} {versions[name] or 'absent'}" for name in _LIBRARIES)
    yield f"farm {versions['farm']}, Python {versions['python']}, SQLite {versions['sqlite']}"
    yield f"{libraries}, on {sys.platform}"
    yield ""
    yield from table(
        [Column("WHAT"), Column("STATE", state=True), Column("WHY THERE"), Column("PATH")],
        [(place["name"], _place_state(place), place["origin"], place["path"]) for place in data["places"]],
        screen if screen.width is None else Screen(screen.now, None, screen.colour),
    )
    yield ""
    gateway, schema = data["gateway"], data["schema_facts"]
    workflows = [f"{each['id']}{' (broken)' if each['error'] else ''}" for each in data["workflows"]]
    version_words = f" OpenClaw {gateway['version']}" if gateway["version"] else ""
    yield from pairs(
        [
            ("host", data["host"]),
            ("runs", data["runs"]),
            ("schema", None if schema is None else _schema_words(schema)),
            ("workflows", ", ".join(workflows) or "none installed"),
            ("gateway", f"{gateway['source']}{version_words}, {gateway['url']}"),
            ("", gateway["note"]),
            ("log-in", f"{gateway['auth']}, {gateway['auth_problem'] or 'as configured'}"),
            (
                "watchdog",
                {True: "antfarm/medic is listed", False: "no antfarm/medic"}.get(gateway["watchdog"]),
            ),
        ],
        screen,
    )
    yield ""
    if not data["problems"]:
        yield "Nothing is wrong with what farm reads."
    for problem in data["problems"]:
        yield screen.state("failed", "✗") + " " + safe_line(problem["what"])
        if problem["mend"]:
            yield f"  {safe_line(problem['mend'])}"


def _place_state(place: Mapping[str, Any]) -> str:
    if place["error"]:
        return "failed"
    return "ok" if place["exists"] else "absent"


def _schema_words(schema: Mapping[str, Any]) -> str:
    extra = schema["columns_of_forks"]
    forks = f", with a fork's {', '.join(extra)}" if extra else ""
    return f"as Antfarm {schema['antfarm']} makes it, journal {schema['journal_mode']}{forks}"
