"""How the console acts: plan, show, ask, apply, say what came of it, and follow the step.

All that blocks runs in a thread. What an action was asked for stays its target, whatever refreshes
meanwhile: a target holds ids, and each plan is made from fresh data.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from farmtui.antfarm.schema import Unreadable
from farmtui.console.actions import Target, finding_of
from farmtui.console.input_dialog import InputDialog, Prompt
from farmtui.console.plan_dialog import PlanDialog, Question
from farmtui.operations.follow import Follow, FollowState, FollowStatus
from farmtui.operations.operator import Operator
from farmtui.operations.plan import CronAction, Outcome, OutcomeStatus, Plan, Refused
from farmtui.operations.words import describe
from farmtui.text import mask_text, safe_line

if TYPE_CHECKING:
    from farmtui.console.app import FarmApp

# How often a step that is followed is looked at.
FOLLOW_S = 2.0
# How long is said what came of an action, and of following a step: whoever waits may look away.
OUTCOME_S = 20.0
RESULT_S = 120.0
# From so many on, deleting crons asks for a phrase to be typed.
MANY_CRONS = 5
_PLAN_DIALOG, _INPUT_DIALOG = "plan-dialog", "input-dialog"


class Acting:
    """The operator's actions, one at a time.

    Args:
        app: where dialogs and messages are shown; its farm's desk plans and applies.
    """

    def __init__(self, app: FarmApp) -> None:
        self._app = app
        self._plan_dialog = PlanDialog()
        self._input_dialog = InputDialog()
        app.install_screen(self._plan_dialog, _PLAN_DIALOG)
        app.install_screen(self._input_dialog, _INPUT_DIALOG)
        self._busy: str | None = None
        self._drafts: dict[str, str] = {}

    def perform(self, action_id: str, target: Target) -> None:
        """Begin an action; what comes of it is said in the message line."""
        steps: dict[str, Callable[[Target], Coroutine[Any, Any, None]]] = {
            "reset": self._reset,
            "retry": self._retry,
            "delete_crons": self._delete_crons,
            "acknowledge": self._acknowledge,
            "undo": self._undo,
        }
        if self._busy is not None:
            self._say(f"one thing at a time: {self._busy} is not done yet", "warning")
            return
        self._busy = f"{action_id.replace('_', ' ')} {target.label}".strip()
        self._app.run_worker(
            self._guarded(steps[action_id](target)), name=action_id, group="acting", exit_on_error=False
        )

    # ------------------------------------------------------------ each action

    async def _reset(self, target: Target) -> None:
        step = target.step
        if step is None and (view := self._app.view) is not None:
            finding = finding_of(view, target)
            step = finding.step if finding is not None else None
        run = target.run
        if run is None or step is None:
            self._say("no step is selected", "warning")
            return
        await self._propose("Reset", lambda: self._app.farm.desk.reset(run, step))

    async def _retry(self, target: Target) -> None:
        run = target.run
        if run is None:
            return
        guidance = await self._ask(
            Prompt(
                f"Retry {target.label} with guidance",
                (
                    "What should the agents know this time? It is added to the step's input and stays.",
                    "Empty: retry as it is. Nothing is done before you have seen the plan.",
                ),
                "Preview",
                optional=True,
                text=self._drafts.get(run, ""),
            )
        )
        if guidance is None:
            self._say("cancelled: nothing was changed")
            return
        self._drafts[run] = guidance
        if await self._propose("Retry", lambda: self._app.farm.desk.retry(run, guidance or None)):
            del self._drafts[run]

    async def _delete_crons(self, target: Target) -> None:
        desk = self._app.farm.desk
        if target.crons:
            await self._propose("Delete", lambda: desk.delete_crons(target.crons))
        else:
            await self._propose("Delete", lambda: desk.delete_orphans(target.workflow))

    async def _acknowledge(self, target: Target) -> None:
        run = target.run
        if run is None:
            return
        signed = Operator.current(os.environ).name
        note = await self._ask(
            Prompt(
                f"Acknowledge {target.label}",
                (
                    f"It leaves the human lane until it changes. Signed: {signed}.",
                    "A note for the others (may be empty):",
                ),
                "Preview",
                optional=True,
            )
        )
        if note is None:
            self._say("cancelled: nothing was changed")
            return
        await self._propose("Acknowledge", lambda: self._app.farm.desk.acknowledge(run, note))

    async def _undo(self, target: Target) -> None:
        await self._propose("Undo", lambda: self._app.farm.desk.undo(None))

    # ------------------------------------------------------------ one way for all

    async def _propose(self, verb: str, plan_it: Callable[[], Plan]) -> bool:
        """Plan, show, ask, apply, and say what came of it; True where something was applied."""
        self._say("looking at what it would do …", stays=True)
        try:
            plan = await asyncio.to_thread(plan_it)
        except Refused as refused:
            self._say(f"not possible: {refused}", "warning")
            return False
        self._say("")
        self._plan_dialog.load(Question(plan.title, describe(plan), verb, _phrase(plan)))
        if not await self._app.push_screen_wait(_PLAN_DIALOG):
            self._say("cancelled: nothing was changed")
            return False
        self._say(f"{plan.title} …", stays=True)
        outcome = await asyncio.to_thread(self._app.farm.desk.apply, plan)
        self._app.farm.refresh()
        await self._tell(plan, outcome)
        if outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.PARTIAL):
            self._follow(plan)
            return True
        return False

    async def _ask(self, prompt: Prompt) -> str | None:
        self._input_dialog.load(prompt)
        return await self._app.push_screen_wait(self._input_dialog)

    async def _tell(self, plan: Plan, outcome: Outcome) -> None:
        """The outcome: a line where all went well, a page where something did not."""
        heads = {
            OutcomeStatus.APPLIED: "done",
            OutcomeStatus.PARTIAL: "PARTLY DONE",
            OutcomeStatus.REFUSED: "refused, nothing was written",
            OutcomeStatus.UNKNOWN: "UNKNOWN whether it was done",
        }
        head = heads[outcome.status]
        well = outcome.status is OutcomeStatus.APPLIED
        self._say(
            f"{head}: {outcome.detail}" + (" · u undoes it" if well else ""), "strong" if well else "alarm"
        )
        if outcome.problems:
            rows = (("what", outcome.detail), *(("problem", problem) for problem in outcome.problems))
            self._plan_dialog.load(Question(f"{head}: {plan.title}", rows, verb=""))
            await self._app.push_screen_wait(_PLAN_DIALOG)

    # ------------------------------------------------------------ following

    def _follow(self, plan: Plan) -> None:
        """Watch the step that was put back; an undo ends the watch over its run."""
        if plan.run is None:
            return
        group = f"follow-{plan.run}"
        self._app.workers.cancel_group(self._app, group)
        if plan.operation in ("reset", "retry") and plan.step is not None:
            self._app.run_worker(
                self._watch(plan.run, plan.step, plan.title), group=group, exit_on_error=False
            )

    async def _watch(self, run: str, step: str, title: str) -> None:
        desk = self._app.farm.desk
        try:
            follow = await asyncio.to_thread(desk.follow, run, step)
            while not (status := await asyncio.to_thread(_look, follow)).over:
                await asyncio.sleep(FOLLOW_S)
        except (Refused, Unreadable) as error:
            self._say(f"{title}: it cannot be followed: {error}", "warning")
            return
        run_now = self._app.view.state.run(run) if self._app.view is not None else None
        label = run_now.label if run_now is not None else run[:8]
        tone = "done" if status.state is FollowState.CLAIMED else "warning"
        self._say(f"{label}: {status.text}", tone, seconds=RESULT_S)

    async def _guarded(self, acting: Coroutine[Any, Any, None]) -> None:
        """No fault of ours ends the console: it is said."""
        try:
            await acting
        except Exception as error:  # said in the message line, whatever it is
            self._say(f"could not be done: {str(error) or type(error).__name__}", "alarm")
        finally:
            self._busy = None

    def _say(
        self, text: str, tone: str = "strong", *, stays: bool = False, seconds: float = OUTCOME_S
    ) -> None:
        self._app.say(safe_line(mask_text(text)), tone, stays=stays, seconds=seconds)


def _look(follow: Follow) -> FollowStatus:
    """A look; a database that cannot be read just now is looked at again."""
    try:
        return follow.look()
    except Unreadable as error:
        return FollowStatus(FollowState.WAITING, str(error))


def _removed(plan: Plan) -> int:
    return sum(call.action is CronAction.REMOVE for call in plan.crons)


def _phrase(plan: Plan) -> str | None:
    """What has to be typed for the big ones."""
    removed = _removed(plan)
    return f"delete {removed}" if removed >= MANY_CRONS else None
