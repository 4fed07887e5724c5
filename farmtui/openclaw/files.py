"""Reading OpenClaw's small files: regular ones, up to a bound, never blocking."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class FileProblem(Exception):
    """A file that cannot be read. One line: which, and why."""


def read_bounded(path: Path, limit: int) -> bytes:
    """A regular file's bytes.

    Raises:
        FileProblem: absent, no regular file, longer than `limit` bytes, or not readable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise FileProblem(f"there is no {path}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no file name"
        raise FileProblem(f"{path} cannot be opened: {reason}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileProblem(f"{path} is no regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileProblem(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise FileProblem(f"{path} is longer than {limit >> 10} KiB")
    return data
