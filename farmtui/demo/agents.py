"""The demo's agents: woken by their crons they claim steps, work on them for some seconds, and report.

Most goes well. A verifier sends something back now and then, an agent gives up and is tried again, one
run in some fails for good, and one agent at a time goes away without a word. A run that was retried
after it had failed goes through.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farmtui.antfarm.engine import NotAllowed
from farmtui.demo.ants import Ants, Claim
from farmtui.demo.cronbook import RunReport
from farmtui.demo.crons import Keeper
from farmtui.demo.script import TASKS, Report, Script

LOOK_S = 0.25
RUNNING = 8
START_EVERY_S = 15.0
# Old runs go, so that the farm can run for weeks; with those that run it holds well under 200.
ENDED_KEPT = 150
FORGET_EVERY_S = 60.0
FAILED_AT_MOST = 4
_STARTED = ("feature-dev", "bug-fix", "security-audit")
# One cron of the workflow that nobody runs any more fails, as crons do whose model was taken away.
BROKEN_AGENT = "dependency-update_checker"
BROKEN = "model not allowed: anthropic/claude-retired (agents.defaults.models)"


@dataclass(slots=True)
class _Work:
    """A claim that an agent works on; times are of time.monotonic()."""

    claim: Claim
    due: float
    next_line: float
    lines: int = 0


class Agents:
    """All agents of the demo's farm; `poll` is what its gateway calls, `look` what moves work on.

    Args:
        ants: shared under `lock` by the threads that call `poll` and `look`.
        keeper: knows which crons there are.
        seed: for everything that is left to chance.
        pace: how much quicker than usual they work.
    """

    def __init__(self, ants: Ants, keeper: Keeper, script: Script, *, seed: int, pace: float = 1.0) -> None:
        self._ants = ants
        self._keeper = keeper
        self._script = script
        self._rng = random.Random(f"{seed}/agents")
        self._pace = pace
        self._lock = threading.Lock()
        self._work: dict[str, _Work] = {}
        self._doomed: set[str] = set()
        self._mended: set[str] = set()
        self._silent: Claim | None = None
        self._started_at = self._forgot_at = time.monotonic()

    def adopt(self, claims: list[Claim]) -> None:
        """Work on what was claimed before the farm was opened."""
        for claim in claims:
            self._begin(claim)

    def poll(self, job: Mapping[str, Any]) -> RunReport:
        """A cron wakes its agent: it takes a pending step, unless it is at work on one."""
        agent = str(job.get("agentId"))
        if agent == BROKEN_AGENT:
            return RunReport("error", "", BROKEN)
        with self._lock:
            if agent in self._work or not self._ants.peek(agent):
                return RunReport()
            claim = self._ants.claim(agent)
            if claim is None:
                return RunReport()
            if not self._goes_away(claim):
                self._begin(claim)
        return RunReport(summary=f"Handed {claim.step} of run {claim.run_id[:8]} to a session of its own.")

    def look(self) -> None:
        """Report what is done, write progress, start a run where there is room, forget old ones."""
        with self._lock:
            now = time.monotonic()
            for agent, work in tuple(self._work.items()):
                if not self._ants.holds(work.claim):
                    del self._work[agent]
                elif now >= work.due:
                    del self._work[agent]
                    self._report(work.claim)
                elif now >= work.next_line:
                    self._write_progress(work)
            if now - self._started_at >= START_EVERY_S / self._pace:
                self._started_at = now
                self._start_run()
            if now - self._forgot_at >= FORGET_EVERY_S / self._pace:
                self._forgot_at = now
                self._ants.forget(ENDED_KEPT)

    # ------------------------------------------------------------ work

    def _begin(self, claim: Claim) -> None:
        now = time.monotonic()
        seconds = self._script.dice(claim, "time").uniform(5, 16) / self._pace
        work = _Work(claim, now + seconds, now + seconds / 4)
        self._work[claim.agent_id] = work
        path = self._ants.progress_file(claim.run_id)
        if claim.story is not None and path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(self._script.progress_head(claim))

    def _write_progress(self, work: _Work) -> None:
        path = self._ants.progress_file(work.claim.run_id)
        work.next_line = time.monotonic() + (work.due - time.monotonic()) / 2 + LOOK_S
        if work.claim.story is None or path is None:
            return
        with path.open("a", encoding="utf-8") as file:
            file.write(self._script.progress_line(work.claim, work.lines))
        work.lines += 1

    def _goes_away(self, claim: Claim) -> bool:
        """Whether the agent goes away without a word: one at a time, and never on a run that was mended."""
        if claim.run_id in self._mended or (self._silent and self._ants.holds(self._silent)):
            return False
        if claim.step not in ("implement", "fix") or self._script.dice(claim, "leave").random() > 0.02:
            return False
        self._silent = claim
        return True

    def _report(self, claim: Claim) -> None:
        report = self._decide(claim)
        try:
            if report.output is None:
                answer = self._ants.fail(claim.step_id, str(report.reason))
            else:
                answer = self._ants.complete(claim.step_id, report.output)
        except NotAllowed:
            return
        if answer.get("runFailed") or self._ants.rows(claim.run_id).run["status"] == "failed":
            # Whoever retries it shall see it go through.
            self._mended.add(claim.run_id)
            self._doomed.discard(claim.run_id)

    def _decide(self, claim: Claim) -> Report:
        if claim.run_id in self._mended or "operator_guidance" in claim.context:
            return self._script.done(claim)
        doomed = claim.run_id in self._doomed
        chance = self._script.dice(claim, "report").random()
        # Where no loop sends its stories back, a verifier's "retry" would pass for "done".
        if claim.step == "verify" and claim.workflow != "bug-fix":
            tries = self._tries_of_story(claim)
            if doomed or (tries == 0 and chance < 0.2):
                return self._script.sent_back(tries)
        elif (doomed and claim.step == "fix") or (claim.tries == 0 and chance < 0.04):
            return self._script.gave_up(claim)
        return self._script.done(claim)

    def _tries_of_story(self, claim: Claim) -> int:
        current = claim.context.get("current_story_id")
        stories = self._ants.rows(claim.run_id).stories
        return next((int(row["retry_count"] or 0) for row in stories if row["story_id"] == current), 0)

    # ------------------------------------------------------------ new runs

    def _start_run(self) -> None:
        rows = self._ants.connection.execute(
            "SELECT status, workflow_id, task FROM runs WHERE status IN ('running', 'failed')"
        ).fetchall()
        running = {(workflow, task) for status, workflow, task in rows if status == "running"}
        if len(running) >= RUNNING:
            return
        names = self._keeper.names()
        chosen = [
            (workflow, task)
            for workflow in _STARTED
            if self._wakeable(workflow, names)
            for task in TASKS[workflow]
            if (workflow, task) not in running
        ]
        if not chosen:
            return
        run_id = self._ants.start_run(*self._rng.choice(chosen))
        failed = sum(status == "failed" for status, _, _ in rows)
        if failed + len(self._doomed) < FAILED_AT_MOST and self._rng.random() < 0.3:
            self._doomed.add(run_id)

    def _wakeable(self, workflow: str, names: frozenset[str]) -> bool:
        """Whether all its agents have crons, or none has: then they are made."""
        needed = {f"antfarm/{workflow}/{agent['id']}" for agent in self._ants.workflows[workflow]["agents"]}
        return needed <= names or not needed & names
