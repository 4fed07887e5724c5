"""Waiting, after a reset or a retry, until an agent has claimed the step."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING

from farmtui.cli.call import Call
from farmtui.cli.screen import is_terminal
from farmtui.text import safe_line

if TYPE_CHECKING:
    from farmtui.operations.follow import Follow, FollowStatus

LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Followed:
    """What came of waiting.

    Attributes:
        state: claimed, gone, timeout, unknown, or waiting where the operator would wait no longer.
        text: one line for people.
    """

    state: str
    text: str

    @property
    def claimed(self) -> bool:
        """Whether an agent has it."""
        return self.state == "claimed"


def wait_for_claim(call: Call, run_id: str, step: str) -> Followed:
    """Look at the step until it is claimed, can be claimed no more, or two polls have gone by.

    Args:
        step: its name or id.
    """
    from farmtui.antfarm.schema import Unreadable
    from farmtui.operations.plan import Refused

    try:
        follow = call.farm.desk.follow(run_id, step)
    except (Refused, Unreadable) as error:
        return Followed("gone", str(error))
    told = False
    try:
        while True:
            status = _look(follow)
            if status is not None and status.over:
                return Followed(status.state.value, status.text)
            if not told and is_terminal(sys.stderr):
                told = True
                waiting = f"waiting until {follow.agent} claims {follow.step}; Ctrl+C waits no longer"
                print(safe_line(waiting), file=sys.stderr, flush=True)
            sleep(LOOK_S)
    except Unreadable as error:
        return Followed("unknown", f"whether it was claimed cannot be read: {error}")
    except KeyboardInterrupt:
        return Followed("waiting", f"{follow.step} was not claimed yet; nobody waits for it here any longer")


def _look(follow: Follow) -> FollowStatus | None:
    from farmtui.antfarm.schema import Unreadable

    try:
        return follow.look()
    except Unreadable:
        # Locked or replaced just now: the next look tells, and the deadline ends it in any case.
        if follow.clock() >= follow.deadline:
            raise
        return None
