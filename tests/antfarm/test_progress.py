"""Progress files: found where agents keep them, and nothing else is ever read."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farmtui.antfarm.progress import MOST_BYTES, ProgressError, read_progress
from farmtui.state import Progress

RUN = "662e2a56-0000"
OWN, OLD, ARCHIVED = f"progress-{RUN}.txt", "progress.txt", f"archive/{RUN}/progress.txt"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def _write(workspace: Path, name: str, text: str) -> Path:
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _read(workspace: Path) -> Progress:
    found = read_progress(RUN, workspace)
    assert found is not None
    return found


def _refused(workspace: Path, run_id: str = RUN) -> str:
    with pytest.raises(ProgressError) as caught:
        read_progress(run_id, workspace)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_runs_own_file_comes_before_the_archived_and_that_before_the_old_one(workspace: Path) -> None:
    assert read_progress(RUN, workspace) is None
    _write(workspace, OLD, "somebody's")
    found = _read(workspace)
    assert (found.text, found.shared, found.archived) == ("somebody's", True, False)
    _write(workspace, ARCHIVED, "archived")
    found = _read(workspace)
    assert (found.text, found.shared, found.archived) == ("archived", False, True)
    own = _write(workspace, OWN, "own ü\n")
    os.utime(own, (1_000, 1_000))
    assert _read(workspace) == Progress(
        str(own), "own ü\n", 7, False, False, datetime.fromtimestamp(1_000, UTC), shared=False
    )


def test_another_runs_files_are_not_read(workspace: Path) -> None:
    _write(workspace, "progress-other.txt", "x")
    _write(workspace, "archive/other/progress.txt", "x")
    assert read_progress(RUN, workspace) is None


def test_no_workspace_is_no_file(tmp_path: Path) -> None:
    assert read_progress(RUN, tmp_path / "gone") is None


def test_only_the_end_of_a_long_file_is_read(workspace: Path) -> None:
    lines = [f"line {number}" for number in range(200_000)]
    path = _write(workspace, OWN, "\n".join(lines))
    found = _read(workspace)
    assert found.truncated
    assert found.size == path.stat().st_size
    assert len(found.text) <= MOST_BYTES
    assert found.text.split("\n") == lines[-len(found.text.split("\n")) :]


def test_a_sparse_file_of_many_gigabytes_does_no_harm(workspace: Path) -> None:
    with (workspace / OWN).open("wb") as file:
        file.truncate(50 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast")
    found = _read(workspace)
    assert found.text == "last"
    assert found.truncated


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_long_file_of_one_line_is_not_taken_for_empty(workspace: Path, end: str) -> None:
    _write(workspace, OWN, "x" * (MOST_BYTES + 10) + end)
    assert _read(workspace).text == "x" * (MOST_BYTES - len(end)) + end


def test_bad_utf8_is_shown_as_such(workspace: Path) -> None:
    (workspace / OWN).write_bytes(b"ok \xff\n")
    assert _read(workspace).text == "ok \N{REPLACEMENT CHARACTER}\n"


def _link_file(workspace: Path, outside: Path) -> None:
    (workspace / OWN).symlink_to(outside / "secret")


def _link_inside(workspace: Path, outside: Path) -> None:
    (workspace / "notes").write_text("inside")
    (workspace / OWN).symlink_to(workspace / "notes")


def _link_dangling(workspace: Path, outside: Path) -> None:
    (workspace / OWN).symlink_to(outside / "gone")


def _hard_link(workspace: Path, outside: Path) -> None:
    (workspace / OWN).hardlink_to(outside / "secret")


def _link_archive(workspace: Path, outside: Path) -> None:
    (outside / RUN).mkdir()
    (outside / RUN / "progress.txt").write_text("TOP SECRET")
    (workspace / "archive").symlink_to(outside)


def _link_archived_run(workspace: Path, outside: Path) -> None:
    (outside / "progress.txt").write_text("TOP SECRET")
    (workspace / "archive").mkdir()
    (workspace / "archive" / RUN).symlink_to(outside)


def _link_old(workspace: Path, outside: Path) -> None:
    (workspace / OLD).symlink_to(outside / "secret")


@pytest.mark.parametrize(
    "trap",
    [_link_file, _link_inside, _link_dangling, _hard_link, _link_archive, _link_archived_run, _link_old],
)
def test_no_link_below_the_workspace_is_followed(
    tmp_path: Path, workspace: Path, trap: Callable[[Path, Path], None]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("TOP SECRET")
    trap(workspace, outside)
    assert "link" in _refused(workspace)


def test_the_workspace_itself_may_be_reached_through_a_link(tmp_path: Path, workspace: Path) -> None:
    _write(workspace, OWN, "here")
    link = tmp_path / "link"
    link.symlink_to(workspace)
    assert _read(link).text == "here"


def test_a_pipe_a_folder_and_a_device_are_not_waited_for(workspace: Path) -> None:
    os.mkfifo(workspace / OWN)
    assert "no regular file" in _refused(workspace)
    (workspace / OWN).unlink()
    (workspace / OWN).mkdir()
    assert "no regular file" in _refused(workspace)


@pytest.mark.parametrize(
    "run_id", ["", "..", "../../etc/passwd", "a/b", "/etc", "a\0b", "x" * 5000, "\ud800"]
)
def test_a_run_id_that_would_lead_elsewhere_is_refused(tmp_path: Path, workspace: Path, run_id: str) -> None:
    _write(tmp_path, "progress.txt", "TOP SECRET")
    _refused(workspace, run_id)
