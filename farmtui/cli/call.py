"""A Call: one invocation of `farm`, its options, and the farm that they name, opened when first asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farmtui.cli.answer import Envelope, source_status
from farmtui.cli.exits import Stop, Unread
from farmtui.cli.options import Given, Globals
from farmtui.clock import Clock, FixedClock, SystemClock
from farmtui.paths import FarmPaths, locate
from farmtui.state import CronListing, CronSource, SourceStatus
from farmtui.text import LEAST_SECRET, secret_values, without

if TYPE_CHECKING:
    from farmtui.farm import Farm, View
    from farmtui.openclaw.config import OpenClawConfig


class Call:
    """One invocation.

    Attributes:
        given: the options that stand anywhere, as met so far.
        kind: the shape of the answer; `empty` its fields where there is nothing to tell.
        view: what was last read; None before.
        statuses: how sources do that a command reads by itself.
    """

    def __init__(self, given: Given | None = None, environ: Mapping[str, str] | None = None) -> None:
        self.given = given or Given()
        self.environ = os.environ if environ is None else environ
        self.kind = "error"
        self.empty: Mapping[str, Any] = {}
        self.view: View | None = None
        self.statuses: dict[str, SourceStatus] = {}
        self._secrets: frozenset[str] = frozenset()

    def begin(self, kind: str, **empty: Any) -> None:
        """Say what the answer will be, so that an error has its shape as well."""
        self.kind, self.empty = kind, empty

    @property
    def options(self) -> Globals:
        """The options that stand anywhere."""
        return self.given.globals

    @cached_property
    def clock(self) -> Clock:
        """The time to judge by: the machine's, or what ``--now`` fixes."""
        moment = self.options.moment
        return SystemClock() if moment is None else FixedClock(moment)

    @cached_property
    def paths(self) -> FarmPaths:
        """Where everything of this farm is.

        Raises:
            Unread: the working folder or the home folder cannot be told.
        """
        try:
            return locate(
                db=self.options.database,
                state_dir=self.options.state_folder,
                environ=self.environ,
                home=Path.home(),
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise Unread(f"the farm's folder cannot be told: {error}") from None

    @cached_property
    def farm(self) -> Farm:
        """The farm, opened."""
        from farmtui.farm import Farm

        return Farm(
            self.paths,
            clock=self.clock,
            environ=self.environ,
            readonly=self.options.readonly,
            gateway=not self.options.no_gateway,
        )

    @cached_property
    def config(self) -> OpenClawConfig:
        """OpenClaw's config as farm reads it."""
        from farmtui.openclaw.config import read_config

        return read_config(self.paths, self.environ)

    def look(self, *, crons: bool = False, tally: bool = True, needed: bool = True) -> View:
        """Read the farm once. Findings count only where the crons were listed too.

        Args:
            crons: also list the crons, and look twice at what contradicts itself.
            tally: also read the aggregates of ended runs.
            needed: without the database there is no answer.

        Raises:
            Unread: the database cannot be read, and is needed.
        """
        self.view = self.farm.look(crons=crons, tally=tally, settle=crons)
        database = self.view.state.sources.get("database")
        if needed and database is not None and database.error is not None:
            raise Unread(f"{database.error}{self._advice()}")
        return self.view

    def source_errors(self, *names: str) -> tuple[str, ...]:
        """What is wrong with the sources that were read, one a line.

        Args:
            names: only these, which the answer rests on; all where none are named.
        """
        read = {**(self.view.state.sources if self.view is not None else {}), **self.statuses}
        return tuple(
            f"{name}: {status.error}"
            for name, status in read.items()
            if status.error is not None and (not names or name in names)
        )

    def envelope(self) -> Envelope:
        """What stands in every JSON answer of this call, as far as it is known."""
        try:
            database: str | None = str(self.paths.database.path)
            moment = self.clock.now()
        except Exception:
            # The options themselves are wrong; what is wrong with them is being told already.
            database, moment = None, datetime.now(UTC)
        return Envelope(moment, database, self._sources())

    def scrub(self, text: str) -> str:
        """Text without the gateway's secret and those of `hide_secrets_in`."""
        return without(self._secrets | self._gateway_secret, text)

    def hide_secrets_in(self, *contexts: Mapping[str, Any]) -> None:
        """Mask from now on what these contexts hold in secret, wherever it is repeated."""
        self._secrets |= frozenset().union(*map(secret_values, contexts))

    def hide_secrets_of(self, *runs: str | None) -> None:
        """`hide_secrets_in` the contexts of these runs, which are read for it."""
        from farmtui.antfarm.detail import read_contexts
        from farmtui.antfarm.schema import Unreadable

        wanted = [run for run in runs if run is not None]
        if not wanted:
            return
        try:
            self.hide_secrets_in(*read_contexts(self.paths.database.path, wanted))
        except Unreadable:
            return  # an answer that rests on the database has failed; the journal is masked by its keys

    @cached_property
    def _gateway_secret(self) -> frozenset[str]:
        try:
            secret = self.config.auth.secret
        except Stop:
            return frozenset()  # not even the config's place is known
        if secret is None or len(secret.reveal()) < LEAST_SECRET:
            return frozenset()
        return frozenset({secret.reveal()})

    def _advice(self) -> str:
        """What to do about a database that cannot be read, where its error does not say so itself."""
        path = self.paths.database.path
        try:
            if path.is_file() and path.stat().st_size:
                return "; try again, or see farm doctor"
        except OSError:
            return ""
        return ". Is this the gateway box? (--state-dir, --db)"

    def _sources(self) -> dict[str, Mapping[str, Any]]:
        wall = datetime.now(UTC)
        read = {**(self.view.state.sources if self.view is not None else {}), **self.statuses}
        told: dict[str, Mapping[str, Any]] = {
            name: source_status(status, wall) for name, status in read.items()
        }
        if self.view is not None and "crons" in told:
            told["gateway"] = _gateway_status(self.view.state.crons, told["crons"])
        return told


def _gateway_status(listing: CronListing, crons: Mapping[str, Any]) -> dict[str, Any]:
    """How the gateway does: the list of crons may be good and yet come from the store on disk."""
    answered = crons["ok"] and listing.source in (CronSource.WEBSOCKET, CronSource.CLI)
    return {
        "ok": answered,
        "age_s": crons["age_s"] if answered else None,
        "error": None if answered else listing.note or crons["error"],
    }
