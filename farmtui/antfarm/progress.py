"""Progress files, which agents write into their workspace as they go through a run's stories.

Agents run models, so a workspace is hostile ground: only a regular file that lies inside it is read,
through no link anywhere below the workspace folder, without ever waiting, and no more than its end.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from farmtui.state import Progress

MOST_BYTES = 1024 * 1024
_OLD_NAME = "progress.txt"
_LONGEST_ID = 200


class ProgressError(Exception):
    """There is a progress file, or something in its place, that is not read. One line says why."""


def read_progress(run_id: str, workspace: Path) -> Progress | None:
    """The run's progress file, else its archived one, else the old `progress.txt`; None where there is none.

    Args:
        workspace: of the agent of the run's first loop step. It may itself be reached through a link.

    Raises:
        ProgressError: what is there is no regular file, a link, not to be read, or the run's id would lead
            out of the workspace.
    """
    if not run_id or len(run_id) > _LONGEST_ID or "/" in run_id or "\0" in run_id or ".." in run_id:
        raise ProgressError("no progress file: the run's id is no file name")
    for parts, archived in (
        ((f"progress-{run_id}.txt",), False),
        (("archive", run_id, _OLD_NAME), True),
        ((_OLD_NAME,), False),
    ):
        try:
            found = _read(workspace, parts, archived=archived)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise ProgressError(_explain(workspace.joinpath(*parts), error)) from error
        return found
    return None


def _read(workspace: Path, parts: tuple[str, ...], *, archived: bool) -> Progress:
    path = workspace.joinpath(*parts)
    with ExitStack() as opened:

        def keep(handle: int) -> int:
            opened.callback(os.close, handle)
            return handle

        folder = keep(os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            folder = keep(os.open(part, flags, dir_fd=folder))
        handle = keep(
            os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        )
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ProgressError(f"{path} is no regular file: not read")
        if found.st_nlink > 1:
            raise ProgressError(f"{path} is a link (a hard one): not read")
        data = os.pread(handle, MOST_BYTES, max(0, found.st_size - MOST_BYTES))
    truncated = found.st_size > MOST_BYTES
    if truncated:
        # The first line is most likely a part of one; where it is all that there is, it is shown.
        data = data[data.find(b"\n") + 1 :] or data
    return Progress(
        path=str(path),
        text=data.decode("utf-8", "replace"),
        size=found.st_size,
        truncated=truncated,
        archived=archived,
        modified_at=datetime.fromtimestamp(found.st_mtime, UTC),
        shared=parts == (_OLD_NAME,),
    )


def _explain(path: Path, error: Exception) -> str:
    code = getattr(error, "errno", None)
    if code in (errno.ELOOP, errno.ENOTDIR):
        return f"{path} is a link, or leads through one: not read"
    if code in (errno.ENXIO, errno.ENODEV):
        return f"{path} is no regular file: not read"
    return f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
