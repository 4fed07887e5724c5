"""Details of runs by hand, and a desk that plays its part, for tests of the inner screens."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from farmtui.farm import View
from farmtui.operations.follow import FollowState, FollowStatus
from farmtui.operations.plan import Outcome, OutcomeStatus, Plan, Refused, RowChange
from farmtui.state import Event, Progress, RunDetail, StepText
from tests.console.support import a_step, a_story, ago
from tests.farms import NOW

HOSTILE = "\x1b[31mred\x1b[0m [bold]b[/bold] [red \u202eshalp\u202c \x07\x9b2J end"
# What must never be in the text that leaves for the terminal.
RAW = "\x1b\x07\x9b\u202e\u202c"


def an_event(
    name: str, minutes: float, step: str | None = None, story: str | None = None, **more: Any
) -> Event:
    """An event of run 214."""
    agents = {"plan": "relay_planner", "implement": "relay_developer", "verify": "relay_verifier"}
    return Event(ago(minutes=minutes), name, "run-214", "relay", step, agents.get(step or ""), story, **more)


EVENTS = (
    an_event("run.started", 180),
    an_event("step.running", 175, "plan"),
    an_event("step.done", 161, "plan"),
    an_event("step.running", 160, "implement"),
    an_event("story.started", 160, "implement", "S-1"),
    an_event("story.done", 140, "implement", "S-1"),
    an_event("step.running", 139, "verify"),
    an_event("story.retry", 138, "verify", detail="no regression test"),
    an_event("step.running", 124, "implement"),
    an_event("story.started", 124, "implement", "S-2"),
)


def detail_of(view: View, run_id: str = "run-214", **changes: Any) -> RunDetail:
    """The long texts of a run of `busy_view`."""
    run = view.state.run(run_id)
    assert run is not None
    texts = {
        step.id: StepText(
            f"Do {step.name} of {{{{task}}}} in {{{{repo}}}} on {{{{branch}}}}", "STATUS: done", None
        )
        for step in run.steps
    }
    plan = f"{run_id}-plan"
    if plan in texts:
        texts[plan] = StepText(
            "Plan {{task}}. REPO: where",
            "REPO",
            "STATUS: done\nREPO: /srv/shop\nGATE_TOKEN: hunter2\nPlanned.",
        )
    found = RunDetail(
        run=run,
        context={"task": run.task, "repo": "/srv/shop", "gate_token": "hunter2"},
        context_error=None,
        step_texts=texts,
        story_outputs={f"{run_id}-s1": "STATUS: done\nThe users table is there."},
        events=EVENTS,
        progress=Progress(
            "/ws/progress-run-214.txt", "11:00 began\n11:20 half\n", 24, False, False, ago(minutes=40)
        ),
        progress_error=None,
        read_at=NOW,
    )
    return replace(found, **changes)


def failed_detail(view: View) -> RunDetail:
    """Run 209 of `busy_view`: its verify step sent the story back three times."""
    run = view.state.run("run-209")
    assert run is not None
    steps = (
        a_step("run-209", "plan", "done", agent="planner", at=ago(hours=2)),
        a_step(
            "run-209", "implement", "failed", agent="developer", index=1, verify="verify", at=ago(minutes=34)
        ),
        a_step("run-209", "verify", agent="verifier", index=2, at=ago(minutes=34)),
        a_step("run-209", "test", agent="tester", index=3),
    )
    stories = (replace(a_story("run-209", 1, "The race", "failed", retries=3), updated_at=ago(minutes=34)),)
    sent_back = ("no regression test", "the test passes without the fix")
    events = (
        *(
            Event(ago(minutes=58 - 19 * at), "story.retry", "run-209", "relay", "verify", detail=words)
            for at, words in enumerate(sent_back)
        ),
        Event(ago(minutes=34), "story.failed", "run-209", "relay", "verify"),
    )
    return detail_of(
        view,
        "run-209",
        run=replace(run, steps=steps, stories=stories),
        step_texts={step.id: StepText("", "", None) for step in steps},
        story_outputs={"run-209-s1": "The race is in the payment stub; I moved the await."},
        context={"verify_feedback": "same as before"},
        events=events,
        progress=None,
    )


def a_plan(**changes: Any) -> Plan:
    """A reset as the desk plans one."""
    return replace(
        Plan(
            "reset",
            "Reset the stale claim of #214 implement",
            "running 2h 04m without a word; developer's limit is 30m (+5m)",
            run="run-214",
            step="implement",
            changes=(
                RowChange("steps", "s", "status", "running", "pending", "step implement", "status"),
                RowChange("stories", "t", "status", "running", "pending", "story S-2", "status"),
            ),
            events=({"event": "step.timeout"},),
            notes=("developer's cron polls in 3m 12s",),
        ),
        **changes,
    )


APPLIED = Outcome(OutcomeStatus.APPLIED, "e1", "step implement is pending")
CLAIMED = FollowStatus(FollowState.CLAIMED, "developer claimed implement after 8s")


@dataclass
class PlayedFollow:
    """Gives these statuses one after the other, the last one for ever."""

    statuses: list[FollowStatus]

    def look(self) -> FollowStatus:
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@dataclass
class PlayedDesk:
    """A desk that answers each question with what was laid ready, and notes what it was asked.

    Attributes:
        plan: what every planning method gives; where it is Refused, that is raised.
        held: cleared, it holds up whoever plans.
    """

    plan: Plan | Refused = field(default_factory=a_plan)
    outcome: Outcome = APPLIED
    follows: Sequence[FollowStatus] = (CLAIMED,)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    applied: list[Plan] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.held.set()

    def _answer(self, *question: Any) -> Plan:
        self.asked.append(question)
        self.held.wait(10)
        if isinstance(self.plan, Refused):
            raise self.plan
        return self.plan

    def reset(self, run_id: str, step: str, *, force: bool = False) -> Plan:
        return self._answer("reset", run_id, step)

    def retry(self, run_id: str, guidance: str | None = None, *, without_crons: bool = False) -> Plan:
        return self._answer("retry", run_id, guidance)

    def delete_crons(self, job_ids: Sequence[str]) -> Plan:
        return self._answer("delete_crons", tuple(job_ids))

    def delete_orphans(self, workflow: str | None = None) -> Plan:
        return self._answer("delete_orphans", workflow)

    def acknowledge(self, run_id: str, note: str) -> Plan:
        return self._answer("acknowledge", run_id, note)

    def undo(self, entry: str | None = None) -> Plan:
        return self._answer("undo", entry)

    def apply(self, plan: Plan) -> Outcome:
        self.applied.append(plan)
        return self.outcome

    def follow(self, run_id: str, step: str) -> PlayedFollow:
        return PlayedFollow(list(self.follows))
