"""`farm medic`: what is wrong with the farm, and mending it by the check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Stop, Unread, Usage
from farmtui.cli.findings import findings_data, medic_code, medic_lines
from farmtui.cli.screen import Screen
from farmtui.cli.writing import Asking, Done, DryRun, Yes, carry_out, done_lines, planned
from farmtui.state import Finding

if TYPE_CHECKING:
    from farmtui.farm import View
    from farmtui.operations.plan import Plan


def medic(
    ctx: typer.Context,
    fix: Annotated[
        str | None,
        typer.Option(
            "--fix", metavar="CHECK", help="Mend what this check found (stale-claim, orphaned-crons)."
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> Answer:
    """Check the farm and tell what is wrong; mend it with --fix."""
    call: Call = ctx.obj
    call.begin("medic", findings=[], not_checked=[])
    if fix is None and (dry_run or yes):
        raise Usage("--dry-run and --yes belong to --fix CHECK")
    from farmtui.medic.judge import CHECKS

    names = [name for name, _ in CHECKS]
    if fix is not None and fix not in names:
        raise Usage(f"no check {fix!r}: there are {', '.join(names)}")
    view = call.look(crons=True, needed=False)
    if fix is not None:
        return mend(call, view, fix, Asking(dry_run=dry_run, yes=yes))
    return Answer(
        "medic",
        findings_data(view, call.options.where),
        medic_lines,
        medic_code(view.judgement),
        call.source_errors(),
    )


def mend(call: Call, view: View, check: str, asking: Asking) -> Answer:
    """Mend what one check found: a plan for each finding, each asked for and applied by itself.

    Raises:
        Stop: the check could not be made, or farm knows no way to mend what it found.
    """
    unchecked = next((each for each in view.judgement.not_checked if each.check == check), None)
    found = [finding for finding in view.judgement.findings if finding.check == check]
    data = findings_data(view, call.options.where)
    call.empty = {**data, "fixes": []}
    if unchecked is not None:
        raise Unread(f"{check} could not be checked: {unchecked.reason}")
    mendable = [finding for finding in found if finding.fix is not None]
    if found and not mendable:
        raise Stop(
            f"refused: farm mends no {check} by itself; farm medic tells what is wrong with each", Exit.FOUND
        )
    fixes = [(finding, _mended(call, finding, asking)) for finding in mendable]
    return Answer(
        "medic",
        {**data, "fixes": [{"finding": finding.id, **done.data()} for finding, done in fixes]},
        lambda data, screen: _lines(call, check, [done for _, done in fixes], data, screen),
        max((done.code for _, done in fixes), default=Exit.FINE),
        (*call.source_errors(), *(problem for _, done in fixes for problem in done.problems)),
    )


def _mended(call: Call, finding: Finding, asking: Asking) -> Done:
    """One finding mended. A refusal does not keep the others from being mended."""
    try:
        plan = planned(call, lambda: _plan(call, finding))
        return carry_out(call, plan, asking)
    except Usage:
        raise
    except Stop as stop:
        return Done(None, "refused", detail=str(stop), problems=(str(stop),))


def _plan(call: Call, finding: Finding) -> Plan:
    desk = call.farm.desk
    if finding.fix is not None and finding.fix.action == "reset" and finding.run and finding.step:
        return desk.reset(finding.run, finding.step)
    return desk.delete_crons(finding.crons)


def _lines(
    call: Call, check: str, fixes: Sequence[Done], data: Mapping[str, Any], screen: Screen
) -> Iterator[str]:
    if not fixes:
        yield f"Nothing to mend: {check} found nothing."
    for done, told in zip(fixes, data["fixes"], strict=True):
        yield from done_lines(call, done, told, screen)
