"""Which farm: where the database, the event log, the workflows and OpenClaw's files are, and why there.

The order is ``--db`` > ``--state-dir`` > ``$ANTFARM_DB_PATH`` > ``$OPENCLAW_STATE_DIR`` > ``~/.openclaw``.
A flag never falls back to anything else. The environment and home are tried in turn, each file on its
own, because Antfarm 0.5.1 itself always keeps its database under home while OpenClaw, and the
workflows, follow ``$OPENCLAW_STATE_DIR``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

FLAG_DB = "--db"
FLAG_STATE_DIR = "--state-dir"
ENV_DB = "$ANTFARM_DB_PATH"
ENV_STATE_DIR = "$OPENCLAW_STATE_DIR"
ENV_CONFIG = "$OPENCLAW_CONFIG_PATH"
HOME = "~/.openclaw"
BESIDE_DB = "beside the database"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder and what named it (one of the constants above), for the header and `farm doctor`."""

    path: Path
    origin: str


@dataclass(frozen=True, slots=True)
class FarmPaths:
    """Every place of one farm. None of them need exist.

    Attributes:
        database: ``antfarm.db``.
        events: ``events.jsonl``, Antfarm's event log.
        workflows: folder with ``<workflow>/workflow.yml``.
        state_dir: OpenClaw's state folder.
        config: ``openclaw.json``.
        farm_dir: farm's own folder in the state folder: journal, acknowledgements, kept crons.
        split: the database was named by a flag and the gateway's state folder was not, and does not
            contain it. Such a pair may not belong together, so crons are not deleted by it.
    """

    database: Place
    events: Place
    workflows: Place
    state_dir: Place
    config: Place
    farm_dir: Path
    split: bool = False


def locate(
    *,
    db: Path | None = None,
    state_dir: Path | None = None,
    environ: Mapping[str, str],
    home: Path,
) -> FarmPaths:
    """Find one farm's places in the module's order. Looks whether files exist, reads none."""
    places = _state_dirs(db, state_dir, environ, home)
    state = _first_existing(places)
    if db is not None:
        database = Place(_absolute(db), FLAG_DB)
    elif state_dir is not None:
        database = Place(state.path / "antfarm" / "antfarm.db", FLAG_STATE_DIR)
    else:
        database = _first_existing(_env_databases(environ, home))
    configs = [Place(place.path / "openclaw.json", place.origin) for place in places]
    if state_dir is None and (named := environ.get("OPENCLAW_CONFIG_PATH")):
        configs.insert(0, Place(_expand(named, home), ENV_CONFIG))
    events = [Place(database.path.parent / "events.jsonl", BESIDE_DB)]
    if db is None and state_dir is None:
        events += [Place(place.path / "antfarm" / "events.jsonl", place.origin) for place in places]
    return FarmPaths(
        database=database,
        events=_first_existing(events),
        workflows=_first_existing(
            [Place(place.path / "antfarm" / "workflows", place.origin) for place in places]
        ),
        state_dir=state,
        config=_first_existing(configs),
        farm_dir=state.path / "farm",
        split=db is not None
        and state.origin in (ENV_STATE_DIR, HOME)
        and not database.path.is_relative_to(state.path),
    )


def _state_dirs(
    db: Path | None, state_dir: Path | None, environ: Mapping[str, str], home: Path
) -> list[Place]:
    if state_dir is not None:
        return [Place(_absolute(state_dir), FLAG_STATE_DIR)]
    if db is not None:
        database = _absolute(db)
        if database.parent.name == "antfarm":
            return [Place(database.parent.parent, FLAG_DB)]
    places = []
    if named := environ.get("OPENCLAW_STATE_DIR"):
        places.append(Place(_expand(named, home), ENV_STATE_DIR))
    places.append(Place(home / ".openclaw", HOME))
    return places


def _env_databases(environ: Mapping[str, str], home: Path) -> list[Place]:
    places = []
    if named := environ.get("ANTFARM_DB_PATH"):
        places.append(Place(_expand(named, home), ENV_DB))
    if named := environ.get("OPENCLAW_STATE_DIR"):
        places.append(Place(_expand(named, home) / "antfarm" / "antfarm.db", ENV_STATE_DIR))
    places.append(Place(home / ".openclaw" / "antfarm" / "antfarm.db", HOME))
    return places


def _first_existing(places: Iterable[Place]) -> Place:
    """The first place that exists, else the first that was named: that is the one to wait for."""
    listed = list(places)
    return next((place for place in listed if _exists(place.path)), listed[0])


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _expand(text: str, home: Path) -> Path:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return Path(text).absolute()
