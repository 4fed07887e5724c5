"""Farm: opens the sources, refreshes them, judges, and publishes (FarmState, Judgement).

Live, it runs one reader thread for the database and small files, one for the gateway and one that
watches the files to wake the reader. The reader's tick of a second is the truth; the watch, which is
blind on some mounts, only makes it quicker.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from farmtui.antfarm.schema import Unreadable
from farmtui.clock import Clock, SystemClock
from farmtui.medic.judge import judge
from farmtui.openclaw.crons import Crons
from farmtui.openclaw.kept import KeptJobs
from farmtui.paths import FarmPaths
from farmtui.sources import Sources
from farmtui.state import CronSource, FarmState, Judgement, RunDetail

if TYPE_CHECKING:
    from farmtui.operations.desk import Desk

TICK_S = 1.0
# Judged again this often though nothing was written: ages cross their limits by themselves.
JUDGE_EVERY_S = 5.0
# Antfarm commits statement by statement; what a second look this much later still sees is no half-way state.
SECOND_LOOK_S = 0.5
# From the first View until the console has drawn it.
FIRST_PAINT_S = 0.5
CRONS_EVERY_S = 60.0
CRONS_RETRY_S = 15.0
CRONS_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """What is known and what follows from it, at one moment."""

    state: FarmState
    judgement: Judgement


class Farm:
    """One farm, looked at once (`look`) or live (`start`, `refresh`, `stop`).

    Args:
        paths: where everything is.
        clock: the time to judge by.
        environ: the environment; os.environ where None.
        readonly: takes every write away.
        gateway: False never contacts the gateway or its CLI.
    """

    def __init__(
        self,
        paths: FarmPaths,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        readonly: bool = False,
        gateway: bool = True,
    ) -> None:
        self.paths = paths
        self.clock: Clock = clock or SystemClock()
        self._environ = os.environ if environ is None else environ
        self._readonly = readonly
        self._kept = KeptJobs(paths.farm_dir, writable=not readonly)
        self.crons = Crons(paths, self._environ, self._kept)
        self.sources = Sources(paths, self.crons, self._environ, readonly=readonly)
        self._gateway = gateway
        self._judge = _Judge(self.clock)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._ask_crons = threading.Event()
        self._threads: list[threading.Thread] = []

    @cached_property
    def desk(self) -> Desk:
        """What an operator can do here. Imported when first used: looking needs none of it."""
        from farmtui.operations.desk import Desk
        from farmtui.operations.operator import Operator

        return Desk(
            paths=self.paths,
            crons=self.crons,
            clock=self.clock,
            operator=Operator.current(self._environ),
            readonly=self._readonly,
            workflows=lambda: self.sources.workflows,
            kept=self._kept,
        )

    # ------------------------------------------------------------ once

    def look(self, *, crons: bool = True, tally: bool = True, settle: bool = True) -> View:
        """Read every source once and judge; a contradiction is looked at a second time.

        Args:
            crons: also list the crons (up to about 3 s where the gateway hangs).
            tally: also read the aggregates of ended runs.
            settle: take the second look; without it, contradictions are no findings.
        """
        lister = threading.Thread(target=self.sources.list_crons, name="farm-crons", daemon=True)
        if crons and self._gateway:
            lister.start()
        self.sources.read_rows()
        if tally:
            self.sources.read_tally()
        self.sources.read_files()
        if crons and self._gateway:
            lister.join()
        state = self.sources.state()
        judgement, candidates = judge(state, self.clock.now(), frozenset())
        if candidates and settle:
            time.sleep(SECOND_LOOK_S)
            self.sources.read_rows()
            state = self.sources.state()
            judgement, _ = judge(state, self.clock.now(), candidates)
        return View(state, judgement)

    def detail(self, run_id: str) -> RunDetail:
        """The long texts, events and progress of one run. Blocks.

        Raises:
            Unreadable: the database cannot be read, or has no such run.
        """
        from farmtui.antfarm.detail import read_detail

        run = self.sources.run(run_id)
        if run is None:
            raise Unreadable(f"no run {run_id} in {self.paths.database.path}")
        sources = self.sources
        return read_detail(
            self.paths, run, sources.agents, self.clock.now(), sources.workflows.get(run.workflow)
        )

    # ------------------------------------------------------------ live

    def start(self, publish: Callable[[View], None]) -> None:
        """Begin reading; `publish` is called from the reader's thread.

        It is called with every View that differs, and every `JUDGE_EVERY_S` where none does: a View that
        does not come means that reading itself hangs.
        """
        self._spawn("reader", lambda: self._read(publish))

    def refresh(self) -> None:
        """Read everything again now."""
        self._ask_crons.set()
        self._wake.set()

    def stop(self) -> None:
        """End the threads; waits for the reader, not for a gateway that hangs."""
        self._stop.set()
        self._wake.set()
        self._ask_crons.set()
        for thread in self._threads:
            thread.join(timeout=1.0 if "reader" in thread.name else 0.1)

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"farm-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self, publish: Callable[[View], None]) -> None:
        sources, publisher = self.sources, _Publisher(publish, self._judge)
        sources.read_rows()
        sources.read_files()
        publisher.offer(sources.state())
        # Only after the first paint, which what follows would hold up.
        self._stop.wait(FIRST_PAINT_S)
        if self._gateway:
            self._spawn("gateway", self._list_crons)
        sources.read_tally()
        publisher.offer(sources.state())
        self._spawn("watch", self._watch)
        last_tick = time.monotonic()
        try:
            while not self._stop.is_set():
                self._wake.wait(max(0.0, last_tick + TICK_S - time.monotonic()))
                if self._stop.is_set():
                    return
                self._wake.clear()
                sources.read_rows()
                sources.read_files()
                if time.monotonic() - last_tick >= TICK_S:
                    last_tick = time.monotonic()
                    sources.sweep()
                publisher.offer(sources.state())
        finally:
            sources.close()

    def _list_crons(self) -> None:
        watcher = threading.Thread(
            target=self.crons.watch,
            args=(self._ask_crons.set, self._stop),
            name="farm-gateway-events",
            daemon=True,
        )
        watcher.start()
        while not self._stop.is_set():
            self._ask_crons.clear()
            self.sources.list_crons()
            self._wake.set()
            # One event follows another when agents are busy: ask once for all of them.
            self._stop.wait(CRONS_PAUSE_S)
            answered = self.sources.listing.source in (CronSource.WEBSOCKET, CronSource.CLI)
            self._ask_crons.wait(CRONS_EVERY_S if answered else CRONS_RETRY_S)

    def _watch(self) -> None:
        """Wake the reader when the database, the event log or the journal is touched."""
        from watchfiles import watch

        database, journal = self.paths.database.path, self.paths.farm_dir
        names = {database.name, f"{database.name}-wal", self.paths.events.path.name}
        while not self._stop.is_set():
            folders = {
                str(folder)
                for folder in (database.parent, self.paths.events.path.parent, journal)
                if folder.is_dir()
            }
            if not folders:
                self._stop.wait(TICK_S)
                continue
            try:
                for changes in watch(
                    *folders,
                    watch_filter=lambda _, path: Path(path).name in names or Path(path).parent == journal,
                    debounce=200,
                    step=20,
                    stop_event=self._stop,
                    recursive=False,
                    raise_interrupt=False,
                ):
                    if changes:
                        self._wake.set()
            except OSError:
                # A folder went away or cannot be watched: the tick goes on, try again in a while.
                self._stop.wait(5 * TICK_S)


class _Judge:
    """Judges a state, remembering for how long each contradiction has been seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first_seen: dict[str, float] = {}

    def __call__(self, state: FarmState) -> Judgement:
        moment = time.monotonic()
        settled = frozenset(key for key, first in self._first_seen.items() if moment - first >= SECOND_LOOK_S)
        judgement, candidates = judge(state, self._clock.now(), settled)
        self._first_seen = {key: self._first_seen.get(key, moment) for key in candidates}
        return judgement


class _Publisher:
    """Passes on a View when something in it differs, or when time may have changed the judgement."""

    def __init__(self, publish: Callable[[View], None], judge_state: _Judge) -> None:
        self._publish = publish
        self._judge = judge_state
        self._last: View | None = None
        self._judged_at = 0.0

    def offer(self, state: FarmState) -> None:
        last = self._last
        unchanged = last is not None and _same(last.state, state)
        if unchanged and time.monotonic() - self._judged_at < JUDGE_EVERY_S:
            return
        judgement = self._judge(state)
        self._judged_at = time.monotonic()
        self._last = View(state, judgement)
        self._publish(self._last)


def _same(one: FarmState, other: FarmState) -> bool:
    """Whether nothing differs but the sequence number and when the sources were read."""
    return (
        one.runs is other.runs
        and one.workflows is other.workflows
        and one.agents is other.agents
        and one.crons is other.crons
        and one.acknowledgements is other.acknowledgements
        and one.last_claims == other.last_claims
        and one.tallied == other.tallied
        and one.unsafe_bind == other.unsafe_bind
        and _troubles(one) == _troubles(other)
    )


def _troubles(state: FarmState) -> dict[str, tuple[str | None, datetime | None]]:
    return {name: (status.error, status.failing_since) for name, status in state.sources.items()}
