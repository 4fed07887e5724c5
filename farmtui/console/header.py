"""The header: one line that is always true, and a banner below it when a source cannot be read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from farmtui.clock import duration, seconds_since
from farmtui.console.cron_rows import calls_per_hour
from farmtui.console.line import Line
from farmtui.console.signs import LANE_SIGNS
from farmtui.console.tones import Piece, width_of
from farmtui.state import CronSource, FarmState, Lane, SourceStatus
from farmtui.text import cells, safe_line

if TYPE_CHECKING:
    from farmtui.farm import View

# Farm publishes every 5 s at least: after this long without a word its reading hangs.
SILENCE_S = 15.0
_DATABASE, _CRONS = "database", "crons"
_HOST_CELLS = 16
_PATH_CELLS = 40
# The folders of an absolute path, up to the name of the file.
_FOLDERS = re.compile(r"(?<![\w.~…])~?/(?:[^/\s]+/)+(?=[^/\s])")
_LANE_TONES = {
    Lane.RUNNING: "running",
    Lane.PENDING: "pending",
    Lane.FAILED: "failed",
    Lane.DONE: "done",
    Lane.OTHER: "warning",
}
_SOURCE_WORDS = {CronSource.WEBSOCKET: "ws", CronSource.CLI: "cli", CronSource.STORE: "from disk"}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the line.

    Attributes:
        rank: the highest drops out first as it narrows; 0 never does.
        short: what stands for it where even the parts that stay are too wide.
    """

    pieces: tuple[Piece, ...]
    rank: int = 0
    short: tuple[Piece, ...] | None = None


def header_pieces(
    view: View | None, now: datetime, width: int, *, readonly: bool = False, silent_s: float = 0.0
) -> tuple[Piece, ...]:
    """The header in `width` cells. Humans, findings and staleness never drop out.

    Args:
        view: None before the first look.
        silent_s: seconds since the last View came.
    """
    if view is None:
        return ((" farm  ", "strong"), ("◌ reading …", "muted"))
    return _join(_parts(view, now, readonly, silent_s), width)


def _parts(view: View, now: datetime, readonly: bool, silent_s: float) -> list[Part]:
    state, judgement = view.state, view.judgement
    lanes = Counter(judgement.lanes.values())
    parts = [
        Part(((safe_line(state.host.split(".")[0], _HOST_CELLS), "strong"),), rank=3),
        Part((_freshness(state, now, silent_s),)),
        Part(humans := _humans(lanes[Lane.HUMAN] if was_read(state) else None), short=humans[:2]),
        Part(_findings(view), short=_findings(view, short=True)),
    ]
    if readonly:
        parts.insert(2, Part((("READ-ONLY", "accent"),), rank=1))
    for rank, lane in enumerate((Lane.RUNNING, Lane.PENDING, Lane.FAILED, Lane.DONE, Lane.OTHER), start=4):
        if count := lanes[lane]:
            parts.append(Part(((f"{LANE_SIGNS[lane]} {count}", _LANE_TONES[lane]),), rank=rank))
    parts.append(Part(_gateway(state), rank=10))
    if wasted := _wasted(view):
        parts.append(Part(((wasted, "warning"),), rank=11))
    if state.unsafe_bind:
        parts.append(Part(((f"▲ gateway open to {safe_line(state.unsafe_bind, 20)}", "warning"),), rank=12))
    parts.append(Part(((_which(state), "muted"),), rank=13))
    return parts


def _freshness(state: FarmState, now: datetime, silent_s: float) -> Piece:
    status = state.sources.get(_DATABASE)
    if status is None or (status.read_at is None and status.ok):
        return "◌ reading …", "muted"
    if status.read_at is None:
        return "✗ no data", "alarm"
    if not status.ok:
        return f"▲ stale {duration(seconds_since(status.read_at, now))}", "alarm"
    if silent_s > SILENCE_S:
        return f"▲ stale {duration(silent_s)}", "alarm"
    return "● live", "done"


def was_read(state: FarmState) -> bool:
    """Whether the database was ever read: without that, no number about runs is true."""
    status = state.sources.get(_DATABASE)
    return status is not None and status.read_at is not None


def _humans(count: int | None) -> tuple[Piece, ...]:
    """`count` None: nobody knows, since the database was never read."""
    if count is None:
        return ("‼", "warning"), (" ?", "warning"), (" humans", "warning")
    tone = "human" if count else "muted"
    sign = ("‼", "warning" if count else "muted")
    return sign, (f" {count}", tone), (" human" if count == 1 else " humans", tone)


def _findings(view: View, *, short: bool = False) -> tuple[Piece, ...]:
    judgement = view.judgement
    if not was_read(view.state):
        return (("⚕ ?" if short else "⚕ ? not all checked", "warning"),)
    found = sum(1 for finding in judgement.findings if not finding.acknowledged)
    if found:
        unchecked = (("?" if short else " ? not all checked"), "warning")
        pieces = (("⚕", "failed"), (f" {found}" if short else f" {found} found", "alarm"))
        return (*pieces, unchecked) if judgement.not_checked else pieces
    if judgement.not_checked:
        return (("⚕ ?" if short else "⚕ ? not all checked", "warning"),)
    return (("⚕ 0" if short else "⚕ all clear", "done"),)


def _gateway(state: FarmState) -> tuple[Piece, ...]:
    listing, status = state.crons, state.sources.get(_CRONS)
    if status is None:
        return (("gateway not asked", "muted"),)
    if not status.ok or not listing.known:
        return (("gateway ", ""), ("✗ no answer", "alarm"))
    if listing.source is CronSource.STORE:
        return (("gateway ", ""), ("▲ from disk", "warning"))
    return (("gateway ", ""), (f"● {_SOURCE_WORDS.get(listing.source, listing.source)}", "done"))


def _wasted(view: View) -> str:
    orphans = view.judgement.orphans
    if not orphans:
        return ""
    cost = sum(calls_per_hour(job) for job in view.state.crons.jobs if job.id in orphans)
    return f"⊘ {len(orphans)} orphaned, {cost:.0f} calls/h"


def _which(state: FarmState) -> str:
    place = state.paths.database
    return f"{short_path(place.path)} ({place.origin})"


def short_path(path: Path) -> str:
    """A path with home as ``~``, its middle left out where it is long."""
    text = str(path)
    home = str(Path.home())
    if text == home or text.startswith(home + "/"):
        text = "~" + text[len(home) :]
    text = safe_line(text)
    return text if len(text) <= _PATH_CELLS else f"…{text[-_PATH_CELLS:]}"


def _join(parts: Sequence[Part], width: int) -> tuple[Piece, ...]:
    kept = list(parts)
    for gap in ("   ", "  "):
        if _width(kept, gap) <= width:
            return _flat(kept, gap)
    while _width(kept, "  ") > width:
        worst = max(kept, key=lambda part: part.rank)
        if worst.rank == 0:
            break
        kept.remove(worst)
    if _width(kept, "  ") > width:
        kept = [Part(part.short or part.pieces, part.rank) for part in kept]
    return _flat(kept, "  ")


def _width(parts: Sequence[Part], gap: str) -> int:
    return 1 + sum(width_of(part.pieces) for part in parts) + len(gap) * (len(parts) - 1)


def _flat(parts: Sequence[Part], gap: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = [(" ", "")]
    for at, part in enumerate(parts):
        if at:
            pieces.append((gap, ""))
        pieces += part.pieces
    return tuple(pieces)


# ---------------------------------------------------------------- banner


def banner_pieces(view: View | None, now: datetime, width: int, silent_s: float = 0.0) -> tuple[Piece, ...]:
    """What cannot be read, and how old the picture is; () while all is well. Crons are left to the header."""
    if view is None:
        return ()
    failing = [status for name, status in view.state.sources.items() if not status.ok and name != _CRONS]
    failing.sort(key=lambda status: status.name != _DATABASE)
    # Without any data the whole screen says so.
    failing = [status for status in failing if status.name != _DATABASE or status.read_at is not None]
    if not failing:
        if silent_s > SILENCE_S:
            return ((f" ▲ Reading hangs: what you see is {duration(silent_s)} old.", "alarm"),)
        return ()
    more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
    worst = failing[0]
    tone = "alarm" if worst.name == _DATABASE else "warning"
    return ((f" ▲ {_trouble(worst, now, width - 3 - len(more))}{more}", tone),)


def _trouble(status: SourceStatus, now: datetime, width: int) -> str:
    name = "antfarm.db" if status.name == _DATABASE else status.name
    since = f" since {_clock_time(status.failing_since)}" if status.failing_since else ""
    shown = duration(seconds_since(status.read_at, now)) if status.read_at else None
    old = f" What you see is {shown} old." if shown else ""
    room = width - len(f"{name} not readable{since} ().{old}")
    if room < -3 and shown:
        old = f" This is {shown} old."
    # The reason gives way, and before it the folders in it: how old the picture is must stay.
    error = status.error or ""
    if cells(error) > room:
        error = _FOLDERS.sub("…/", error)
    reason = f" ({safe_line(error, room)})" if room > 8 else ""
    return f"{name} not readable{since}{reason}.{old}"


def _clock_time(moment: datetime) -> str:
    return f"{moment.astimezone():%H:%M}"


# ---------------------------------------------------------------- widgets


class Header(Line):
    """Host, live or stale, humans, findings, runs by lane, gateway, which farm."""

    DEFAULT_CSS = """
    Header { dock: top; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__("header")


class Banner(Line):
    """Says what is wrong with a source; takes no room while all is well."""

    DEFAULT_CSS = """
    Banner { display: none; }
    """

    def __init__(self) -> None:
        super().__init__("banner")

    def show(self, pieces: tuple[Piece, ...]) -> None:
        if self.display != bool(pieces):
            self.display = bool(pieces)
        super().show(pieces)
