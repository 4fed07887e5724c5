"""Crons: Antfarm's jobs in OpenClaw, listed and changed by whichever way works.

The gateway's WebSocket first; the `openclaw` command line where our secret cannot be read or is refused;
for reading, the store on disk where neither answers. HTTP is never used: no current version manages crons
by it. Whatever happens, only jobs named ``antfarm/<workflow>/<agent>`` are ever changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from farmtui.openclaw.config import OpenClawConfig, read_config
from farmtui.openclaw.files import FileProblem
from farmtui.openclaw.jobs import antfarm_name, job_id_of, listing_of, parse_job
from farmtui.openclaw.kept import KeptJobs
from farmtui.openclaw.methods import GatewayMethods
from farmtui.openclaw.store import read_store
from farmtui.openclaw.trouble import ADMIN, READ, GatewayError, Trouble
from farmtui.paths import FarmPaths
from farmtui.state import CronListing, CronSource

# What speaks to the gateway is imported when it is first used: that takes longer than the first look at
# the database, which does not need it.
if TYPE_CHECKING:
    from farmtui.openclaw.cli import CommandLine
    from farmtui.openclaw.gateway import Gateway

__all__ = ["CronError", "Crons", "RemoveResult", "parse_job"]

# A clear line within 3 s of the key or command: what is left goes to starting up and letting go.
_CONNECT_S = 1.8
_CHANGE_S = 10.0
# Troubles that lie in our secret and not in the gateway: the command line has other ways in.
_OURS = frozenset({Trouble.SECRET, Trouble.REFUSED, Trouble.SCOPE})
_T = TypeVar("_T")


class CronError(Exception):
    """A job could not be added or removed. One line: what, why, and where it helps what to do.

    Attributes:
        uncertain: the request went out and no answer came: whether it was done is not known.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


@dataclass(frozen=True, slots=True)
class RemoveResult:
    """What became of a removal.

    Attributes:
        gone: the job is not listed any more; False: the gateway still lists it.
        note: what else is to be known (it was gone already, it came back); None if nothing.
        came_back: ids of jobs of the same name that were not there before.
    """

    gone: bool
    note: str | None = None
    came_back: tuple[str, ...] = ()


class _Way(Protocol):
    """What the WebSocket and the command line both can."""

    def jobs(self) -> list[Any]: ...
    def remove(self, job_id: str) -> bool: ...
    def add(self, definition: Mapping[str, Any]) -> str: ...


class Crons:
    """Antfarm's cron jobs of one farm. Threads may share it: each call has a connection of its own.

    Args:
        paths: the config, the state folder and its store.
        environ: the environment: variables that the config refers to, PATH for the command line.
        kept: remembers the definitions of all jobs listed.
    """

    def __init__(self, paths: FarmPaths, environ: Mapping[str, str], kept: KeptJobs | None = None) -> None:
        self._paths = paths
        self._environ = environ
        self._kept = kept

    # ------------------------------------------------------------ reading

    def list(self, timeout: float = _CONNECT_S) -> CronListing:
        """The jobs now, by the best way there is. Never raises: `source` is NONE and `note` says why.

        Args:
            timeout: seconds for the WebSocket; the command line, tried only where the trouble is our
                secret, takes up to 8 s more.
        """
        config = self._config()
        try:
            listing = self._from_gateway(config, timeout)
        except GatewayError as error:
            listing = self._otherwise(config, error)
        if listing.known and self._kept is not None:
            self._kept.remember(listing.jobs)
        return listing

    def watch(self, on_change: Callable[[], None], stop: Event) -> None:
        """Call `on_change` whenever the gateway says that a job changed, and when it comes or goes.

        Blocks until `stop` is set: for a thread of its own. One call stands for several events in a row.
        """
        from farmtui.openclaw.watch import watch_gateway

        watch_gateway(self._config, on_change, stop)

    def _config(self) -> OpenClawConfig:
        return read_config(self._paths, self._environ)

    def _from_gateway(self, config: OpenClawConfig, timeout: float) -> CronListing:
        deadline = time.monotonic() + timeout
        with self._connected(config, (READ,), timeout) as gateway:
            jobs = GatewayMethods(gateway, max(0.1, deadline - time.monotonic())).jobs()
            return listing_of(jobs, CronSource.WEBSOCKET, _now(), version=gateway.version)

    def _otherwise(self, config: OpenClawConfig, trouble: GatewayError) -> CronListing:
        reason = str(trouble)
        if trouble.trouble in _OURS:
            line = self._command_line(config)
            try:
                note = f"{reason}; list is from the openclaw command line"
                return listing_of(line.jobs(), CronSource.CLI, _now(), note=note)
            except GatewayError as error:
                reason = f"{reason}; {error}"
        try:
            jobs = read_store(self._paths.state_dir.path, config.job_store)
        except FileProblem as problem:
            return CronListing(CronSource.NONE, note=f"{reason}; {problem}")
        read_at = _now()
        note = f"{reason}; list is from the store on disk, read {read_at.astimezone():%H:%M}"
        return listing_of(jobs, CronSource.STORE, read_at, note=note)

    # ------------------------------------------------------------ changing

    def remove(self, job_id: str) -> RemoveResult:
        """Remove one job, after looking again that it is Antfarm's, and look whether it is gone.

        A job that is not there any more counts as gone.

        Raises:
            CronError: it is not Antfarm's, or the gateway could not be asked or refused.
        """
        if self._paths.split:
            raise CronError(
                "the database was named by --db, the gateway was not: name its state folder with --state-dir"
            )
        return self._change(lambda way: _remove(way, job_id))

    def add(self, definition: Mapping[str, Any]) -> str:
        """Add a job from its definition, as listed or kept; the new job's id.

        Raises:
            CronError: the definition is no Antfarm job's, or the gateway could not be asked or refused.
        """
        if antfarm_name(definition.get("name")) is None:
            raise CronError("only jobs named antfarm/<workflow>/<agent> are added")
        if not isinstance(definition.get("schedule"), Mapping) or not isinstance(
            definition.get("payload"), Mapping
        ):
            raise CronError(f"the definition of {definition['name']} has no schedule or no payload")
        return self._change(lambda way: way.add(definition))

    def _change(self, act: Callable[[_Way], _T]) -> _T:
        config = self._config()
        try:
            with self._connected(config, (READ, ADMIN), _CONNECT_S) as gateway:
                return act(GatewayMethods(gateway, _CHANGE_S))
        except GatewayError as error:
            if error.trouble not in _OURS or error.uncertain:
                raise CronError(str(error), uncertain=error.uncertain) from None
            reason = str(error)
        try:
            return act(self._command_line(config))
        except GatewayError as error:
            raise CronError(f"{reason}; {error}", uncertain=error.uncertain) from None

    def _connected(self, config: OpenClawConfig, scopes: tuple[str, ...], timeout: float) -> Gateway:
        from farmtui.openclaw.gateway import Gateway

        gateway = Gateway(config, scopes)
        try:
            gateway.connect(timeout)
        except GatewayError:
            gateway.close()
            raise
        return gateway

    def _command_line(self, config: OpenClawConfig) -> CommandLine:
        from farmtui.openclaw.cli import CommandLine

        return CommandLine(self._paths, self._environ, config.scrub)


def _remove(way: _Way, job_id: str) -> RemoveResult:
    before = _named(way.jobs())
    if job_id not in before:
        return RemoveResult(gone=True, note="it was gone already")
    name = before[job_id]
    if antfarm_name(name) is None:
        raise CronError(f"{name} is not a job of Antfarm's: only antfarm/<workflow>/<agent> is removed")
    removed = way.remove(job_id)
    try:
        after = _named(way.jobs())
    except GatewayError as error:
        return RemoveResult(gone=True, note=f"removed, but the list could not be read again: {error}")
    if job_id in after:
        said = "said that it removed it" if removed else "said that there is no such job"
        return RemoveResult(gone=False, note=f"the gateway {said}, and still lists it")
    came_back = tuple(new for new, called in after.items() if called == name and new not in before)
    if came_back:
        return RemoveResult(True, f"removed, but it came back as {', '.join(came_back)}", came_back)
    return RemoveResult(gone=True, note=None if removed else "it was gone already")


def _named(jobs: list[Any]) -> dict[str, str]:
    """Names of jobs by id."""
    return {
        job_id: str(job.get("name"))
        for job in jobs
        if isinstance(job, Mapping) and (job_id := job_id_of(job)) is not None
    }


def _now() -> datetime:
    return datetime.now(UTC)
