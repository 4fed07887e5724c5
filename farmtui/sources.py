"""The sources of one farm: read each, keep the last good data, and say what is wrong since when.

Everything here blocks and belongs to one thread, except `list_crons`, which another thread may call:
a hung gateway must not hold up the board.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from farmtui.antfarm.events import EventLog
from farmtui.antfarm.reader import DatabaseReader, Rows
from farmtui.antfarm.schema import Unreadable
from farmtui.antfarm.workflows import WorkflowFolder
from farmtui.clock import SystemClock
from farmtui.openclaw.config import OpenClawConfig, read_config
from farmtui.openclaw.crons import Crons
from farmtui.operations.acknowledgements import Acknowledgements
from farmtui.paths import FarmPaths
from farmtui.state import (
    Acknowledgement,
    Agent,
    CronListing,
    CronSource,
    FarmState,
    Run,
    SourceStatus,
    Workflow,
)

DATABASE = "database"
EVENTS = "events"
WORKFLOWS = "workflows"
CONFIG = "config"
CRONS = "crons"
JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What tells that a small file changed, without reading it."""

    mtime_ns: int
    size: int
    inode: int


class Sources:
    """Reads one farm's sources into a FarmState.

    Args:
        paths: where everything is.
        crons: how the gateway's jobs are listed.
        environ: the environment, for the gateway's secret and port.
        readonly: shown in the state.
    """

    def __init__(self, paths: FarmPaths, crons: Crons, environ: Mapping[str, str], *, readonly: bool) -> None:
        self.paths = paths
        self._crons = crons
        self._environ = environ
        self._readonly = readonly
        self._wall = SystemClock()
        self._host = socket.gethostname()
        self._reader = DatabaseReader(paths.database.path)
        self._log = EventLog(paths.events.path)
        self._folder = WorkflowFolder(paths.workflows.path)
        self._acknowledgements = Acknowledgements(paths.farm_dir)
        self._lock = threading.Lock()
        self._statuses: dict[str, SourceStatus] = {}
        self._rows = Rows((), 0, False)
        self._index: Mapping[str, Run] = {}
        self._workflows: Mapping[str, Workflow] = {}
        self._acks: Mapping[str, Acknowledgement] = {}
        self._config: OpenClawConfig | None = None
        self._config_stamp: _Stamp | None = None
        self._listing = CronListing(CronSource.NONE, note="not asked yet")
        self._agents: Mapping[str, Agent] = {}
        self._seq = 0

    # ------------------------------------------------------------ reading

    def read_rows(self) -> None:
        """Runs, and the steps and stories of active runs."""
        self._guard(DATABASE, self._poll_rows)

    def read_tally(self) -> None:
        """The aggregates of ended runs: slower, so it follows the first look."""
        self._guard(DATABASE, self._poll_tally)

    def sweep(self) -> None:
        """One slice of the ended runs, looked at for late changes."""
        self._guard(DATABASE, self._poll_sweep)

    def read_files(self) -> None:
        """The event log, workflows, OpenClaw's config and the acknowledgements, as far as they changed."""
        self._guard(EVENTS, self._poll_events)
        self._guard(WORKFLOWS, self._poll_workflows)
        self._guard(CONFIG, self._poll_config)
        self._guard(JOURNAL, self._poll_acknowledgements)

    def list_crons(self) -> None:
        """Ask the gateway, else the CLI, else the store. A list that could not be had keeps the last one."""
        listing = self._crons.list()
        with self._lock:
            if listing.known:
                self._listing = listing
                self._well(CRONS)
            else:
                reason = listing.note or "the crons could not be listed"
                if not self._listing.known:
                    self._listing = listing
                self._failed(CRONS, reason)

    def state(self) -> FarmState:
        """What is known now; parts that did not change are the same objects as before."""
        with self._lock:
            listing, statuses = self._listing, dict(self._statuses)
        self._seq += 1
        return FarmState(
            seq=self._seq,
            paths=self.paths,
            host=self._host,
            runs=self._rows.runs,
            tallied=self._rows.tallied,
            workflows=self._workflows,
            agents=self._agents,
            crons=listing,
            acknowledgements=self._acks,
            last_claims=dict(self._log.last_claims),
            sources=statuses,
            unsafe_bind=self._config.unsafe_bind if self._config else None,
            readonly=self._readonly,
            index=self._index,
        )

    @property
    def listing(self) -> CronListing:
        """The crons as last listed."""
        with self._lock:
            return self._listing

    @property
    def workflows(self) -> Mapping[str, Workflow]:
        """The installed workflows as last read."""
        return self._workflows

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents of openclaw.json as last read."""
        return self._agents

    def run(self, run_id: str) -> Run | None:
        """The run of that id as last read."""
        return self._index.get(run_id)

    def close(self) -> None:
        """Let go of the database."""
        self._reader.close()

    # ------------------------------------------------------------ each source

    def _poll_rows(self) -> None:
        self._keep(self._reader.poll())

    def _poll_tally(self) -> None:
        self._keep(self._reader.tally())

    def _poll_sweep(self) -> None:
        self._keep(self._reader.sweep())

    def _keep(self, rows: Rows) -> None:
        if rows is not self._rows:
            self._rows = rows
            self._index = {run.id: run for run in rows.runs}

    def _poll_events(self) -> None:
        self._log.poll()

    def _poll_workflows(self) -> None:
        self._workflows = self._folder.poll()

    def _poll_acknowledgements(self) -> None:
        self._acks = self._acknowledgements.poll()

    def _poll_config(self) -> None:
        stamp = _stamp(self.paths)
        if self._config is None or stamp != self._config_stamp:
            self._config = read_config(self.paths, self._environ)
            self._config_stamp = stamp
            # Other parts compare and cache by identity: keep the mapping while nothing in it changed.
            if self._config.agents != self._agents:
                self._agents = self._config.agents
        if self._config.error is not None:
            raise Unreadable(self._config.error)

    # ------------------------------------------------------------ how each does

    def _guard(self, name: str, read: Callable[[], None]) -> None:
        try:
            read()
        except (Unreadable, OSError) as error:
            with self._lock:
                self._failed(name, _words(error))
        else:
            with self._lock:
                self._well(name)

    def _well(self, name: str) -> None:
        self._statuses[name] = SourceStatus(name, self._now())

    def _failed(self, name: str, error: str) -> None:
        before = self._statuses.get(name, SourceStatus(name, None))
        since = before.failing_since or self._now()
        self._statuses[name] = replace(before, error=error, failing_since=since)

    def _now(self) -> datetime:
        # When a source was read is a fact about this machine, whatever --now says to judge by.
        return self._wall.now()


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f" {error.filename}" if error.filename else ""
        return f"cannot read{where}: {error.strerror}"
    return str(error)


def _stamp(paths: FarmPaths) -> _Stamp | None:
    try:
        found = paths.config.path.stat()
    except OSError:
        return None
    return _Stamp(found.st_mtime_ns, found.st_size, found.st_ino)
