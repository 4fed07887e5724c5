"""The Escalations screen: oldest first, the whole story of the chosen one, and what a retry would do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farmtui.farm import View
from farmtui.operations.plan import CronAction, CronCall, Plan, Refused, RowChange
from farmtui.state import Acknowledgement, SourceStatus, Tally
from tests.console.details import HOSTILE, RAW, PlayedDesk, failed_detail
from tests.console.support import (
    SIZES,
    FakeFarm,
    a_run,
    a_view,
    ago,
    busy_view,
    check_golden,
    press,
    settled,
    shown,
    text_of,
    until,
)

RETRY = Plan(
    "retry",
    "Retry #209",
    "verify sent it back three times",
    run="run-209",
    step="implement",
    changes=(RowChange("stories", "s", "retry_count", 3, 0, "story S-1", "retries"),),
    crons=tuple(
        CronCall(CronAction.ADD, f"antfarm/relay/{name}", None, {}) for name in ("developer", "tester")
    ),
)


def prepare(farm: FakeFarm, view: View, plan: Plan | Refused = RETRY) -> None:
    farm.details["run-209"] = failed_detail(view)
    farm.desk = PlayedDesk(plan=plan)


@pytest.mark.parametrize("size", SIZES)
async def test_escalations(size: tuple[int, int]) -> None:
    view = busy_view()
    async with shown(view, size) as (app, farm, pilot):
        prepare(farm, view)
        await press(app, pilot, "3")
        await until(lambda: "reading …" not in text_of(app) and "looking at what" not in text_of(app))
        await settled(app)
        check_golden(f"escalations-{size[0]}x{size[1]}", text_of(app))


async def test_what_a_retry_resets_and_creates_is_told_beforehand() -> None:
    view = busy_view()
    async with shown(view, (100, 30)) as (app, farm, pilot):
        prepare(farm, view)
        await press(app, pilot, "3")
        await until(lambda: "story S-1 retries 3 → 0" in text_of(app))
        assert "creates 2 missing crons: developer, tester" in text_of(app)
        assert ("retry", "run-209", None) in farm.desk.asked


async def test_secrets_of_the_context_are_not_repeated() -> None:
    view = busy_view()
    async with shown(view, (100, 30)) as (app, farm, pilot):
        prepare(farm, view)
        found = failed_detail(view)
        feedback = "the push with s3cret-token-77 was refused"
        context = {**found.context, "api_token": "s3cret-token-77", "verify_feedback": feedback}
        farm.details["run-209"] = replace(found, context=context)
        await press(app, pilot, "3")
        await until(lambda: "the push with •••••• was refused" in text_of(app))
        assert "s3cret-token-77" not in text_of(app)


async def test_an_unread_database_does_not_pass_for_an_empty_inbox() -> None:
    view = a_view([])
    absent = SourceStatus("database", None, "there is no antfarm.db", ago(minutes=2))
    state = replace(view.state, sources={**view.state.sources, "database": absent})
    async with shown(replace(view, state=state)) as (app, _, pilot):
        await press(app, pilot, "3")
        assert "Not known who waits for a human" in text_of(app)
        assert "Nothing waits" not in text_of(app)


async def test_a_retry_that_is_not_possible_says_why() -> None:
    view = busy_view()
    async with shown(view, (100, 30)) as (app, farm, pilot):
        prepare(farm, view, Refused("no definition of antfarm/relay/developer is kept"))
        await press(app, pilot, "3")
        await until(lambda: "not possible: no definition of antfarm/relay" in text_of(app))


async def test_the_oldest_stands_first_and_acknowledged_ones_last() -> None:
    tally = Tally(2, 4, 0, 0, ("done", "done", "failed", "failed"), ("verify",))
    runs = [
        a_run(number, f"task {number}", status="failed", tally=tally, changed=ago(hours=hours))
        for number, hours in ((3, 1), (2, 5), (1, 9))
    ]
    seen = Acknowledgement("run-1", "failed", ago(hours=9), "on it", "op", ago(hours=8), "e1")
    view = a_view(runs, acknowledgements={"run-1": seen})
    async with shown(view) as (app, farm, pilot):
        farm.desk = PlayedDesk(plan=Refused("not now"))
        await press(app, pilot, "3")
        assert "2 wait for a human · 1 acknowledged" in text_of(app)
        lines = [line for line in text_of(app).splitlines() if "‼ #" in line]
        assert ["#2" in lines[0], "#3" in lines[1], "#1" in lines[2]] == [True, True, True]
        await press(app, pilot, "G")
        assert "by op 8h 00m ago: on it" in text_of(app)


async def test_an_empty_inbox_says_what_comes_here() -> None:
    async with shown(a_view([])) as (app, _, pilot):
        await press(app, pilot, "3")
        assert "Nothing waits for a human" in text_of(app)


async def test_hostile_text_is_shown_as_marks() -> None:
    view = busy_view()
    async with shown(view, (160, 45)) as (app, farm, pilot):
        prepare(farm, view)
        found = farm.details["run-209"]
        farm.details["run-209"] = replace(
            found,
            story_outputs={"run-209-s1": HOSTILE},
            context={"verify_feedback": HOSTILE},
            events=tuple(replace(event, detail=HOSTILE) for event in found.events),
        )
        await press(app, pilot, "3")
        await until(lambda: "[bold]b[/bold]" in text_of(app))
        assert not any(char in text_of(app) for char in RAW)


async def test_what_a_retry_would_do_is_asked_again_when_the_crons_differ() -> None:
    view = busy_view()
    async with shown(view, (100, 30)) as (app, farm, pilot):
        prepare(farm, view, Refused("which crons relay has is not known"))
        await press(app, pilot, "3")
        await until(lambda: "not possible: which crons" in text_of(app))
        farm.desk.plan = RETRY
        assert farm.publish is not None
        farm.publish(replace(view, state=replace(view.state, crons=busy_view(crons=()).state.crons)))
        await until(lambda: "story S-1 retries 3 → 0" in text_of(app))
