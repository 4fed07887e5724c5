"""Append-only files of JSON lines in farm's folder, shared by several operators.

A line is appended whole, under a lock and synced, or not at all; the folder is 0700 and a file 0600.
A reader takes what it understands and leaves the rest.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farmtui.antfarm.schema import Unreadable
from farmtui.text import ascii_json

VERSION = 1
_LOCK_S = 2.0
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


class Unwritable(Exception):
    """A line could not be appended; nothing of it stays in the file. One line: what, where, why."""


class LineFile:
    """One file of JSON lines, each with its version as ``v``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record and sync it to the disk.

        Raises:
            Unwritable: the folder or the file cannot be written, or another process holds the lock.
        """
        line = (ascii_json({"v": VERSION, **record}) + "\n").encode("ascii")
        try:
            with self._opened() as descriptor, _locked(descriptor):
                _append(descriptor, line)
        except TimeoutError:
            raise Unwritable(f"{self.path} has been locked by another farm for {_LOCK_S:g} s") from None
        except OSError as error:
            raise Unwritable(f"cannot write {self.path}: {error.strerror or error}") from None

    def records(self) -> list[dict[str, Any]]:
        """All records, oldest first. Lines that are no JSON object, a half-written one too, are left out.

        Raises:
            Unreadable: the file is there and cannot be read.
        """
        try:
            raw = self._read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unreadable(f"cannot read {self.path}: {error.strerror or error}") from None
        return [record for line in raw.split(b"\n") if (record := _record(line)) is not None]

    def stamp(self) -> tuple[int, int, int] | None:
        """What tells that the file changed, without reading it; None where there is none."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(f"cannot reach {self.path}: {error.strerror or error}") from None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> bytes:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return file.read()

    @contextmanager
    def _opened(self) -> Iterator[int]:
        folder = self.path.parent
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(_FOLDER_MODE)
        fresh = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, _FILE_MODE)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if stat.S_IMODE(found.st_mode) != _FILE_MODE:
                os.fchmod(descriptor, _FILE_MODE)
            yield descriptor
            if fresh:
                _sync_folder(folder)
        finally:
            os.close(descriptor)


@contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    deadline = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _append(descriptor: int, line: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        # Somebody died in the middle of a line: begin a line of our own.
        line = b"\n" + line
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        loaded = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None
