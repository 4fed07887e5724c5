"""What happened on the demo's farm before it was opened: two days of runs, played by the real rules.

Each run is a list of visits (an agent claims a step and reports on it) spread over the time between
its beginning and its end, so that rows, events and progress files agree with one another.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from farmtui.demo.ants import Ants, Claim
from farmtui.demo.script import TASKS, Report, Script

# Waiting for the next poll, against the work itself.
_WAIT_SHARE = 0.2
_LOOP_WEIGHT = 2.5


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run of the past; times are hours before the farm is opened.

    Attributes:
        until: when it ended, or when its last step was claimed or became pending.
        claimed: halts with this step claimed, after so many of its stories were done.
        pending: halts with this step pending, likewise.
        gives_up: the step whose agent fails until its retries are used up.
        sent_back: the number of the story that the verifier sends back once; `exhausted`: always.
        stopped: somebody stops the run where it halts.
        without: a key that the agents leave out of their outputs.
    """

    workflow: str
    task: str
    began: float
    until: float
    claimed: tuple[str, int] | None = None
    pending: tuple[str, int] | None = None
    gives_up: str | None = None
    sent_back: int | None = None
    exhausted: bool = False
    stopped: bool = False
    without: str | None = None


PAST = (
    PastRun("bug-fix", "Search finds nothing for names with an apostrophe", 51, 50.2),
    PastRun("feature-dev", "Search suggestions while typing", 49, 45.4, sent_back=2),
    PastRun("security-audit", "Audit the admin pages", 44, 41.5),
    PastRun("bug-fix", "Mails are sent twice after a restart", 40, 39.1),
    PastRun("dependency-update", "Update the build tools", 37, 36.3),
    PastRun("feature-dev", "Rate limits for the public API", 30, 27.2),
    PastRun("dependency-update", "Update the shop's dependencies", 26, 25.2, gives_up="update"),
    PastRun("bug-fix", "Login loops when the cookie is stale", 22, 21.1),
    PastRun("bug-fix", "Prices are rounded twice in invoices", 20, 19.6, pending=("setup", 0), stopped=True),
    PastRun("feature-dev", "Gift cards at the checkout", 18, 14.6, sent_back=1),
    PastRun("bug-fix", "Stock goes below zero when two people buy at once", 12, 11.2),
    PastRun("feature-dev", "Dark mode for the settings pages", 9, 6.4),
    PastRun("security-audit", "Audit the payment service", 6, 1.8, sent_back=2, exhausted=True),
    PastRun("bug-fix", "Crash on an empty cart", 4, 3.2),
    PastRun("feature-dev", "Add OAuth login to the web shop", 3.5, 2.07, claimed=("implement", 2)),
    PastRun("bug-fix", "Fix the flaky checkout test", 2, 0.57, gives_up="fix"),
    PastRun(
        "security-audit",
        "Audit uploads and file names",
        1.4,
        0.42,
        pending=("verify", 1),
        without="TEST_CMD",
    ),
    PastRun("feature-dev", "Export orders as CSV", 0.8, 0.03, claimed=("implement", 2), sent_back=1),
    PastRun("bug-fix", "Weekly report is a day late in New Zealand", 0.1, 0.01, claimed=("investigate", 0)),
    PastRun("feature-dev", "Rate limits for the public API", 0.01, 0.01, pending=("plan", 0)),
    PastRun("bug-fix", "Prices are rounded twice in invoices", 0.004, 0.004, pending=("triage", 0)),
)
# The agents of these went away without a word; all other claims are still being worked on.
ABANDONED = frozenset({"Add OAuth login to the web shop"})


class PastClock:
    """A clock that is set by hand."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment


@dataclass(frozen=True, slots=True)
class _Visit:
    """A step is claimed by its agent and reported on (`tries` before, from 0)."""

    step: str
    weight: float
    gives_up: bool = False
    sent_back: int | None = None


def play(ants: Ants, script: Script, clock: PastClock, now: datetime, rng: random.Random) -> list[Claim]:
    """Play `PAST` up to `now`; returns the claims on which agents are at work."""
    at_work = []
    with ants.at_once():
        for past in PAST:
            claim = _play_run(ants, script, clock, now, rng, past)
            if claim is not None and past.task not in ABANDONED:
                at_work.append(claim)
    return at_work


def _play_run(
    ants: Ants, script: Script, clock: PastClock, now: datetime, rng: random.Random, past: PastRun
) -> Claim | None:
    began, until = now - timedelta(hours=past.began), now - timedelta(hours=past.until)
    visits = list(_visits(ants, past))
    work = [visit.weight * rng.uniform(0.6, 1.4) for visit in visits]
    waits = [_WAIT_SHARE * rng.uniform(0.3, 1.7) for _ in visits]
    if past.claimed:
        work[-1] = 0.0
    unit = (until - began) / (sum(work) + sum(waits)) if visits else timedelta()
    clock.moment = began
    run_id = ants.start_run(past.workflow, past.task)
    agents = {str(step["step_id"]): str(step["agent_id"]) for step in ants.rows(run_id).steps}
    claim: Claim | None = None
    for visit, wait, duration in zip(visits, waits, work, strict=True):
        clock.moment += wait * unit
        claim = ants.claim(agents[visit.step], run_id)
        assert claim is not None, (past, visit)
        halted = bool(past.claimed) and visit is visits[-1]
        _write_progress(ants, script, claim, clock, lines=2 if halted else 5)
        if halted:
            return claim
        clock.moment += duration * unit
        _report(ants, script, claim, visit, past)
    if past.stopped:
        ants.stop(run_id)
    return None


def _visits(ants: Ants, past: PastRun) -> Iterator[_Visit]:
    """Every claim of the run in order, up to where it halts; where that is a claim, it is the last one."""
    steps = ants.workflows[past.workflow]["steps"]
    verifiers = {step["loop"]["verify_step"] for step in steps if "loop" in step}
    for step in steps:
        name = step["id"]
        if name in verifiers:
            continue
        if name == past.gives_up:
            yield from (_Visit(name, 1.0, gives_up=True) for _ in range(step.get("max_retries", 2) + 1))
            return
        stories = len(TASKS[past.workflow][past.task]) if "loop" in step else 0
        if not stories:
            if past.pending == (name, 0):
                return
            yield _Visit(name, 1.0)
            if past.claimed == (name, 0):
                return
            continue
        yield from (loop := _StoryVisits(name, step["loop"]["verify_step"], stories, past))
        if loop.halted:
            return


class _StoryVisits:
    """The visits of a loop: build, verify, story by story; `halted` once the run goes no further."""

    def __init__(self, name: str, verify: str, stories: int, past: PastRun) -> None:
        self._name, self._verify, self._stories, self._past = name, verify, stories, past
        self.halted = False

    def __iter__(self) -> Iterator[_Visit]:
        past = self._past
        for number in range(1, self._stories + 1):
            back = (3 if past.exhausted else 1) if number == past.sent_back else 0
            for tries in range(back):
                yield _Visit(self._name, _LOOP_WEIGHT)
                yield _Visit(self._verify, 0.7, sent_back=tries)
            self.halted = bool(back and past.exhausted)
            if self.halted:
                return
            yield _Visit(self._name, _LOOP_WEIGHT)
            self.halted = past.claimed == (self._name, number - 1) or past.pending == (self._verify, number)
            if self.halted:
                return
            yield _Visit(self._verify, 0.7)


def _report(ants: Ants, script: Script, claim: Claim, visit: _Visit, past: PastRun) -> None:
    if visit.gives_up:
        report = script.gave_up(claim)
    elif visit.sent_back is not None:
        report = script.sent_back(visit.sent_back)
    else:
        report = _left_out(script.done(claim), past.without)
    if report.output is None:
        ants.fail(claim.step_id, str(report.reason))
    else:
        ants.complete(claim.step_id, report.output)


def _left_out(report: Report, key: str | None) -> Report:
    if key is None or report.output is None:
        return report
    lines = report.output.split("\n")
    return Report(output="\n".join(line for line in lines if not line.startswith(f"{key}:")))


def _write_progress(ants: Ants, script: Script, claim: Claim, clock: PastClock, lines: int) -> None:
    path = ants.progress_file(claim.run_id)
    if claim.story is None or path is None:
        return
    with path.open("a", encoding="utf-8") as file:
        file.write(script.progress_head(claim))
        for number in range(lines):
            file.write(script.progress_line(claim, number))
    os.utime(path, (clock.moment.timestamp(), clock.moment.timestamp()))
