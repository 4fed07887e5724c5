"""Time: both of Antfarm's formats to aware UTC, ages, and durations for people.

Antfarm inserts rows with ``2026-02-15T05:15:39.123Z`` and updates them with
``2026-02-15 05:15:39`` (SQLite's ``datetime('now')``: UTC, no zone, whole seconds), so one
column holds both. Nothing else in farm parses or compares such text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where `now` comes from; passed in, so that judging can be held still."""

    def now(self) -> datetime:
        """The time to judge by, aware UTC."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """One moment for ever: what ``--now`` sets, and what tests hold."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def parse_time(value: object) -> datetime | None:
    """A cell or JSON value as aware UTC; None where it is no time.

    Takes ISO 8601 with or without a zone, SQLite's form, and integer or float milliseconds
    since the epoch (OpenClaw's form). Text without a zone is UTC.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return from_ms(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        # SQLite's form: to parse it with a zone takes half as long as to add one afterwards.
        parsed = datetime.fromisoformat(f"{text}+00:00" if len(text) == 19 and text[16] == ":" else text)
    except ValueError:
        return None
    if parsed.tzinfo is UTC:
        return parsed
    try:
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (OverflowError, ValueError):
        return None


def from_ms(value: float) -> datetime | None:
    """Milliseconds since the epoch as aware UTC; None where out of range."""
    try:
        return datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 with milliseconds and Z, as scripts get it; None stays None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sqlite_now(moment: datetime) -> str:
    """The form of SQLite's ``datetime('now')``, which is what farm writes into rows."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def seconds_since(moment: datetime | None, now: datetime) -> float | None:
    """Age in seconds, never below zero (clocks differ); None where the time is unknown."""
    return None if moment is None else max(0.0, (now - moment).total_seconds())


def duration(value: timedelta | float | None) -> str:
    """A span for people in at most two units: ``8s``, ``42m``, ``2h 04m``, ``3d 5h``; ``?`` for None."""
    if value is None:
        return "?"
    total = int(value.total_seconds() if isinstance(value, timedelta) else value)
    total = max(0, total)
    if total < 60:
        return f"{total}s"
    minutes = total // 60
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes:02d}m"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h"


def age(moment: datetime | None, now: datetime) -> str:
    """`duration` since a moment; ``?`` where the moment is unknown."""
    return duration(seconds_since(moment, now))
