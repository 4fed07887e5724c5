"""Following a step after it was put back: until an agent claims it, or two polls have gone by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from farmtui.antfarm.rows import NoSuchRun, RunRows
from farmtui.antfarm.schema import text_of
from farmtui.clock import duration
from farmtui.text import safe_line

POLLS = 2
# A poll is a model's session: from its start to the claim in the database takes a while.
SLACK = timedelta(minutes=1)


class FollowState(StrEnum):
    """How it stands with a step that is followed."""

    WAITING = "waiting"
    CLAIMED = "claimed"
    GONE = "gone"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class FollowStatus:
    """What a look at the step gave. `text` is one line for people; GONE: it can no longer be claimed."""

    state: FollowState
    text: str

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.state is not FollowState.WAITING


@dataclass(frozen=True, slots=True)
class Follow:
    """A step that is followed.

    Attributes:
        step: its name; `step_id` is its row's id.
        agent: who should claim it.
        since: when it was put back.
        updated_at: what its `updated_at` held then: a pending step with another one was claimed meanwhile.
        poll: the time between two polls of its agent.
        read: reads the run's rows; raises Unreadable.
        clock: the machine's time.
    """

    run_id: str
    step_id: str
    step: str
    agent: str
    since: datetime
    updated_at: str
    poll: timedelta
    read: Callable[[], RunRows]
    clock: Callable[[], datetime]

    @property
    def deadline(self) -> datetime:
        """When two polls have gone by."""
        return self.since + POLLS * self.poll + SLACK

    def look(self) -> FollowStatus:
        """Read the rows and say how it stands. Blocks for milliseconds.

        Raises:
            Unreadable: the database cannot be read just now.
        """
        try:
            rows = self.read()
        except NoSuchRun:
            return FollowStatus(FollowState.GONE, "its run is gone")
        return self.check(rows, self.clock())

    def check(self, rows: RunRows, now: datetime) -> FollowStatus:
        """How it stands with the step in these rows."""
        row = rows.step(self.step_id)
        if row is None:
            return FollowStatus(FollowState.GONE, f"{self.step} is gone")
        status, run_status = text_of(row["status"]), text_of(rows.run["status"])
        waited = duration(now - self.since)
        if status == "running":
            return FollowStatus(FollowState.CLAIMED, f"{self.agent} claimed {self.step} after {waited}")
        if status == "done" or (status == "pending" and text_of(row.get("updated_at")) != self.updated_at):
            return FollowStatus(FollowState.CLAIMED, f"{self.agent} claimed {self.step}, it is {status}")
        if status != "pending":
            return FollowStatus(FollowState.GONE, f"{self.step} is {safe_line(status, 40)} now")
        if run_status != "running":
            return FollowStatus(FollowState.GONE, f"the run is {safe_line(run_status, 40)} now")
        if now >= self.deadline:
            return FollowStatus(
                FollowState.TIMEOUT,
                f"nobody claimed {self.step} in {waited}, two polls of {self.agent} ({duration(self.poll)} "
                "each): see farm medic and farm crons",
            )
        return FollowStatus(
            FollowState.WAITING, f"{self.step} waits for {self.agent}, {waited} of {duration(self._whole)}"
        )

    @property
    def _whole(self) -> timedelta:
        return self.deadline - self.since
