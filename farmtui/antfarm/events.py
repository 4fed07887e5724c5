"""Antfarm's event log, ``events.jsonl``: followed as it grows, searched for one run, appended to.

Above 10 MB Antfarm renames it to ``events.jsonl.1`` and begins anew. A line is
``{"ts", "event", "runId", "workflowId"?, "stepId"?, "agentId"?, "storyId"?, "storyTitle"?, "detail"?}``;
lines that are none are passed over, and bytes that are no UTF-8 are replaced.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any

from farmtui.antfarm.schema import Unreadable
from farmtui.clock import iso, parse_time
from farmtui.state import Event

# The first look reads this much of the end: some 1,500 events, in a few milliseconds.
FIRST_LOOK_BYTES = 256 * 1024
# A log that grew by more than this between two looks is taken up at its end again.
_MOST_GROWTH = 8 * 1024 * 1024
_MOST_SEARCHED = 64 * 1024 * 1024
RECENT = 2_000
_MOST_OF_ONE_RUN = 20_000
_CLAIMS = frozenset({"step.running", "story.started"})
# Enough of the text before the place last read to tell whether it is still the same log.
_ANCHOR = 64
_LONGEST_LINE = 4 * 1024 * 1024
_NO_LINE = b"\x00"  # makes what follows it no JSON
_RECENT_CHARACTERS = 2_000
_DETAIL_CHARACTERS = 200_000


class EventLog:
    """Follows one event log; belongs to one thread. An absent log is an empty one.

    Attributes:
        recent: the newest events, oldest first, long details cut.
        last_claims: when each agent last claimed a step or story, as far back as was read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recent: tuple[Event, ...] = ()
        self.last_claims: dict[str, datetime] = {}
        self._events: deque[Event] = deque(maxlen=RECENT)
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._anchor = b""
        self._partial = b""

    def poll(self) -> bool:
        """Read what was appended since; True where there was something.

        Raises:
            Unreadable: there is a log, but it cannot be read.
        """
        with _opened(self.path) as file:
            if file is None:
                return False
            found = os.fstat(file.fileno())
            identity = (found.st_dev, found.st_ino)
            changed = False
            if self._file is not None and identity != self._file:
                changed = self._finish_rotated()
                self._begin(identity, 0)
            elif self._file is None:
                self._begin(identity, max(0, found.st_size - FIRST_LOOK_BYTES))
            elif not self._continues(file, found.st_size):
                self._begin(identity, 0)
            if found.st_size - self._offset > _MOST_GROWTH:
                self._begin(identity, found.st_size - FIRST_LOOK_BYTES)
            changed = self._take(file, found.st_size) or changed
        if changed:
            self.recent = tuple(self._events)
        return changed

    def _begin(self, identity: tuple[int, int], offset: int) -> None:
        self._file, self._offset, self._anchor = identity, offset, b""
        # Begun in the middle, the first line is most likely a part of one: that fails to parse.
        self._partial = b"" if offset == 0 else _NO_LINE

    def _continues(self, file: FileIO, size: int) -> bool:
        if size < self._offset:
            return False
        file.seek(self._offset - len(self._anchor))
        return file.read(len(self._anchor)) == self._anchor

    def _finish_rotated(self) -> bool:
        """What was appended to the old log between the last look and its renaming."""
        with _opened(_rotated(self.path)) as file:
            if file is None:
                return False
            found = os.fstat(file.fileno())
            if (found.st_dev, found.st_ino) != self._file or found.st_size - self._offset > _MOST_GROWTH:
                return False
            return self._take(file, found.st_size)

    def _take(self, file: FileIO, size: int) -> bool:
        if size <= self._offset:
            return False
        file.seek(self._offset)
        data = file.read(size - self._offset)
        self._offset += len(data)
        self._anchor = (self._anchor + data)[-_ANCHOR:]
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LONGEST_LINE:
            self._partial = _NO_LINE
        changed = False
        for line in lines:
            event = _event(line, _RECENT_CHARACTERS)
            if event is not None:
                self._add(event)
                changed = True
        return changed

    def _add(self, event: Event) -> None:
        self._events.append(event)
        if event.event in _CLAIMS and event.agent_id and event.ts is not None:
            before = self.last_claims.get(event.agent_id)
            self.last_claims[event.agent_id] = event.ts if before is None else max(before, event.ts)


def events_of(path: Path, run_id: str) -> tuple[Event, ...]:
    """One run's events, oldest first, the rotated log included.

    Raises:
        Unreadable: a log cannot be read.
    """
    found: list[Event] = []
    for log in (_rotated(path), path):
        with _opened(log) as file:
            if file is None:
                continue
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _MOST_SEARCHED))
            found += (
                event
                for line in _lines_with(file.read(_MOST_SEARCHED), run_id)
                if (event := _event(line, _DETAIL_CHARACTERS)) is not None and event.run_id == run_id
            )
    return tuple(found[-_MOST_OF_ONE_RUN:])


def append_events(path: Path, events: Iterable[Mapping[str, Any]], now: datetime) -> None:
    """Append events as Antfarm does, in one write; nothing is sent anywhere.

    Args:
        events: without `ts`; keys whose value is None are left out.

    Raises:
        OSError: the log could not be written.
    """
    lines = [
        json.dumps(
            {"ts": iso(now), **{key: value for key, value in event.items() if value is not None}},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for event in events
    ]
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate becomes the escape that JSON has for it.
    data = ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is no regular file: events are not written to it")
        if not _ends_well(handle):
            data = b"\n" + data  # somebody's line was cut off: ours must not be part of it
        written = os.write(handle, data)
        if written != len(data):
            raise OSError(f"only {written} of {len(data)} bytes could be written to {path}")
    finally:
        os.close(handle)


def _ends_well(handle: int) -> bool:
    """Whether the log is empty or ends with a whole line. One that is being written just now may finish."""
    for wait in (0.0, 0.005, 0.01, 0.02):
        time.sleep(wait)
        size = os.fstat(handle).st_size
        if size == 0 or os.pread(handle, 1, size - 1) == b"\n":
            return True
    return False


def _event(line: bytes, most_characters: int) -> Event | None:
    try:
        loaded = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("event"), str):
        return None

    def text(key: str) -> str | None:
        value = loaded.get(key)
        if value is None:
            return None
        return (value if isinstance(value, str) else json.dumps(value))[:most_characters]

    return Event(
        ts=parse_time(loaded.get("ts")),
        event=loaded["event"][:most_characters],
        run_id=text("runId"),
        workflow=text("workflowId"),
        step=text("stepId"),
        agent_id=text("agentId"),
        story=text("storyId"),
        story_title=text("storyTitle"),
        detail=text("detail"),
    )


def _lines_with(data: bytes, run_id: str) -> Iterator[bytes]:
    """The lines in which the run id occurs: to parse every line of 20 MB would take a second."""
    if not run_id.isascii() or not run_id.isprintable() or set(run_id) & set('"\\') or not run_id:
        yield from data.split(b"\n")  # such an id may be written in several ways
        return
    needle = run_id.encode()
    position = 0
    while (hit := data.find(needle, position)) >= 0:
        start = data.rfind(b"\n", 0, hit) + 1
        end = data.find(b"\n", hit)
        position = end + 1 if end >= 0 else len(data)
        yield data[start : position if end < 0 else end]


def _rotated(path: Path) -> Path:
    return path.with_name(path.name + ".1")


@contextmanager
def _opened(path: Path) -> Iterator[FileIO | None]:
    """The log for reading, without waiting where it is a pipe; None where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot read the event log {path}: {_words(error)}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unreadable(f"the event log {path} is no regular file")
    with FileIO(handle, "rb") as raw:
        try:
            yield raw
        except OSError as error:
            raise Unreadable(f"cannot read the event log {path}: {_words(error)}") from error


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
