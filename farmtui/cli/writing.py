"""How a command changes the farm: the plan is made, shown, agreed to, applied, and told what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Stop, Unread, Usage
from farmtui.cli.follow import Followed
from farmtui.cli.screen import Screen, is_terminal, screen_for
from farmtui.cli.table import pairs
from farmtui.clock import iso, parse_time
from farmtui.text import mask_text, safe_line

if TYPE_CHECKING:
    from farmtui.operations.plan import Outcome, Plan

DRY_RUN = "dry-run"
DECLINED = "declined"

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where there is no terminal.")]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until an agent has claimed the step, or two polls have gone by.")
]


class NotAgreed(Usage):
    """There is nobody to ask."""

    def __init__(self) -> None:
        super().__init__("nothing was changed: there is no terminal to ask on, so --yes is needed")


@dataclass(frozen=True, slots=True)
class Asking:
    """How agreement to a plan is come by.

    Attributes:
        stdin_taken: standard input holds something else than answers.
    """

    dry_run: bool
    yes: bool
    stdin_taken: bool = False

    @property
    def can_ask(self) -> bool:
        """Whether there is somebody at a terminal."""
        return not self.stdin_taken and is_terminal(sys.stdin) and is_terminal(sys.stderr)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one plan.

    Attributes:
        outcome: applied, partial, refused, unknown, dry-run or declined.
        detail: one line; `problems` what did not work.
        followed: what came of waiting for an agent; None where nobody waited.
    """

    plan: Plan | None
    outcome: str
    entry: str | None = None
    detail: str = ""
    problems: tuple[str, ...] = ()
    after: Mapping[str, Any] | None = None
    followed: Followed | None = None

    @property
    def code(self) -> Exit:
        """The exit code that tells of it; a step that was followed and that nobody claimed is a finding."""
        if self.outcome == "unknown":
            return Exit.UNREAD
        if self.outcome not in ("applied", DRY_RUN):
            return Exit.FOUND
        return Exit.FINE if self.followed is None or self.followed.claimed else Exit.FOUND

    def data(self) -> dict[str, Any]:
        """The same for scripts."""
        from farmtui.operations.words import plan_json

        return {
            "plan": None if self.plan is None else plan_json(self.plan),
            "outcome": self.outcome,
            "entry": self.entry,
            "after": None if self.after is None else iso_times(self.after),
            "detail": self.detail,
            "problems": list(self.problems),
            "followed": None if self.followed is None else asdict(self.followed),
        }


def iso_times(value: Any) -> Any:
    """Rows as read again, with the times in their ``…_at`` cells in ISO form as everywhere in an answer."""
    if isinstance(value, Mapping):
        return {
            key: (iso(parse_time(held)) or held) if str(key).endswith("_at") else iso_times(held)
            for key, held in value.items()
        }
    return [iso_times(held) for held in value] if isinstance(value, list | tuple) else value


def planned(call: Call, make: Callable[[], Plan]) -> Plan:
    """Make a plan.

    Raises:
        Stop: it is refused, or what it rests on cannot be read.
    """
    from farmtui.antfarm.rows import NoSuchRun
    from farmtui.antfarm.schema import Unreadable
    from farmtui.operations.plan import Refused

    try:
        plan = make()
    except Refused as refusal:
        call.empty = {**call.empty, "outcome": "refused"}
        raise Stop(f"refused: {refusal}", Exit.FOUND) from None
    except NoSuchRun as error:
        raise Stop(str(error), Exit.FOUND) from None
    except Unreadable as error:
        raise Unread(str(error)) from None
    call.hide_secrets_of(plan.run)
    return plan


def carry_out(call: Call, plan: Plan, asking: Asking) -> Done:
    """Show the plan, ask, and apply it.

    Raises:
        Stop: nobody could be asked, or writing is not possible at all.
    """
    if asking.dry_run:
        return Done(plan, DRY_RUN, detail="nothing was changed")
    if not asking.yes:
        if not asking.can_ask:
            raise NotAgreed
        if not _agreed(call, plan):
            return Done(plan, DECLINED, detail="nothing was changed")
    outcome = _applied(call, plan)
    return Done(
        plan,
        str(outcome.status),
        outcome.entry or None,
        outcome.detail,
        outcome.problems,
        dict(outcome.after),
    )


def change(call: Call, plan: Plan, asking: Asking) -> Done:
    """`carry_out`, with the plan in the answer even where it ends in an error."""
    from farmtui.operations.words import plan_json

    call.empty = {**call.empty, "plan": plan_json(plan)}
    return carry_out(call, plan, asking)


def told(call: Call, kind: str, done: Done) -> Answer:
    """The answer that tells what became of a plan."""
    return Answer(
        kind,
        done.data(),
        lambda data, screen: done_lines(call, done, data, screen),
        done.code,
        tuple(done.problems) if done.outcome in ("partial", "unknown", "refused") else (),
    )


def done_lines(call: Call, done: Done, data: Mapping[str, Any], screen: Screen) -> Iterator[str]:
    """What became of a plan, for people. The plan itself where it was not shown before."""
    if done.outcome == DRY_RUN and done.plan is not None:
        yield from plan_lines(call, done.plan, screen)
        yield ""
    title = done.plan.title if done.plan is not None else ""
    yield safe_line(call.scrub(mask_text(f"{done.outcome}: {title}")))
    if data["detail"]:
        yield f"  {safe_line(data['detail'])}"
    if data["followed"]:
        yield f"  {safe_line(data['followed']['text'])}"
    claimed = done.followed is not None and done.followed.claimed
    if done.outcome in ("applied", "partial") and done.entry and not claimed:
        yield f"  farm undo {safe_line(done.entry)} takes it back"


def plan_lines(call: Call, plan: Plan, screen: Screen) -> Iterator[str]:
    """The plan for people, as the console's dialog shows it."""
    from farmtui.operations.words import describe

    yield screen.strong(safe_line(call.scrub(mask_text(plan.title))))
    yield from pairs(
        [(label, call.scrub(mask_text(text))) for label, text in describe(plan)], screen, indent=2
    )


def _agreed(call: Call, plan: Plan) -> bool:
    """Show the plan on standard error, which leaves standard output to the answer, and ask."""
    screen = screen_for(sys.stderr, call.environ, call.clock.now())
    for line in plan_lines(call, plan, screen):
        print(line, file=sys.stderr)
    print("Do it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _applied(call: Call, plan: Plan) -> Outcome:
    from farmtui.antfarm.schema import Unreadable
    from farmtui.operations.plan import Refused

    try:
        return call.farm.desk.apply(plan)
    except Refused as refusal:
        call.empty = {**call.empty, "outcome": "refused"}
        raise Stop(f"refused: {refusal}", Exit.FOUND) from None
    except Unreadable as error:
        raise Unread(str(error)) from None
