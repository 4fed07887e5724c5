"""The crons that a failed run needs again: Antfarm removed them when it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farmtui.medic.steps import FINISHED
from farmtui.openclaw.jobs import add_params
from farmtui.openclaw.kept import KeptJobs, definition_for
from farmtui.operations.facts import Facts
from farmtui.operations.plan import CronAction, CronCall, Refused
from farmtui.state import CronSource, Step


def additions(
    found: Facts, kept: KeptJobs, *, without_crons: bool
) -> tuple[tuple[CronCall, ...], tuple[str, ...]]:
    """The crons to create for the agents of a run's unfinished steps, and what is to be said of them.

    Each is made from its kept definition, else from a job of another agent of the workflow, listed or kept.
    The agents of finished steps get theirs too where there is something to make them from, as Antfarm's own
    resume does: the next run of the workflow begins without any while one of its crons is listed.

    Args:
        without_crons: leave out what cannot be created, and say so, rather than refuse.

    Raises:
        Refused: crons are missing, or it is not known which are, and they cannot be created.
    """
    steps = {found.agent(step): step for step in found.run.steps if step.status not in FINISHED}
    unknown = found.crons_unknown
    if unknown is not None:
        if not without_crons:
            raise Refused(
                f"which crons {found.run.workflow} has is not known ({unknown}); {_otherwise(found)}"
            )
        return (), (f"which crons there are is not known ({unknown}): without them nobody goes on",)
    missing = {agent: step for agent, step in _without_job(found).items() if agent in steps}
    notes = [
        f"{agent}'s cron is disabled: nobody claims its steps until it is enabled"
        for agent, step in steps.items()
        if (job := found.job(step)) is not None and not job.enabled
    ]
    if not _may_create(found):
        if not missing:
            return (), tuple(notes)
        if not without_crons:
            raise Refused(
                f"{_crons(missing)} missing, and the gateway cannot be asked to create any "
                f"({found.crons.note if found.crons is not None else 'no answer'}); {_otherwise(found)}"
            )
        return (), (*notes, f"{_crons(missing)} missing and will not be created: nobody claims these steps")
    calls, lost = [], {}
    for agent, step in _without_job(found).items():
        definition = _definition(found, kept, agent, step)
        if definition is not None:
            calls.append(CronCall(CronAction.ADD, str(definition["name"]), None, definition))
        elif agent in missing:
            lost[agent] = step
    if lost and not without_crons:
        raise Refused(
            f"{_crons(lost)} missing, and farm knows no job of {found.run.workflow} to make any from; "
            f"{_otherwise(found)}"
        )
    if lost:
        notes.append(f"{_crons(lost)} missing and will not be created: nobody claims these steps")
    return tuple(calls), tuple(notes)


def _without_job(found: Facts) -> dict[str, Step]:
    """The agents of the run's steps that no listed cron wakes, in the order of the steps."""
    return {found.agent(step): step for step in found.run.steps if found.job(step) is None}


def _definition(found: Facts, kept: KeptJobs, agent: str, step: Step) -> Mapping[str, Any] | None:
    workflow = found.run.workflow
    own = kept.find(workflow, agent)
    if own is not None:
        return {**add_params(own), "enabled": True}
    listed = found.crons.jobs if found.crons is not None else ()
    siblings = [job.definition for job in listed if job.workflow == workflow]
    if (sibling := kept.sibling(workflow)) is not None:
        siblings.append(sibling)
    adapted = (definition_for(sibling, agent, step.agent_id) for sibling in siblings)
    return next((definition for definition in adapted if definition is not None), None)


def _may_create(found: Facts) -> bool:
    return found.crons is not None and found.crons.source in (CronSource.WEBSOCKET, CronSource.CLI)


def _crons(agents: Mapping[str, Step]) -> str:
    names = ", ".join(agents)
    return f"the cron of {names} is" if len(agents) == 1 else f"the crons of {names} are"


def _otherwise(found: Facts) -> str:
    workflow = found.run.workflow
    return (
        "give the run back with --without-crons, then make them with "
        f"antfarm workflow ensure-crons {workflow}"
    )
