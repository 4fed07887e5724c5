"""A run's timeline: what it says of each step, how it folds, and bars only where events and rows agree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from farmtui.console.timeline import (
    Row,
    draw,
    draw_axis,
    entries,
    fold,
    layout,
    ordinal,
)
from farmtui.state import Event, LoopConfig, Run, Step, Story
from farmtui.text import cells

NOW = datetime(2026, 2, 15, 12, 0, tzinfo=UTC)
AGENTS = {"plan": "planner", "implement": "developer", "verify": "verifier", "test": "tester"}
SIGNS = {"done": "●", "running": "◐", "pending": "◌", "waiting": "○", "failed": "✗"}


def at(minutes_ago: float) -> datetime:
    return NOW - timedelta(minutes=minutes_ago)


def step(name: str, index: int, status: str, ago: float = 0, **more: object) -> Step:
    values: dict[str, object] = {
        "rowid": index + 1,
        "id": f"id-{name}",
        "run_id": "r1",
        "name": name,
        "agent_id": f"feature-dev_{AGENTS.get(name, name)}",
        "index": index,
        "type": "single",
        "status": status,
        "retry_count": 0,
        "max_retries": 2,
        "abandoned_count": 0,
        "current_story_id": None,
        "loop": None,
        "created_at": at(42),
        "updated_at": at(ago),
    }
    return Step(**{**values, **more})  # type: ignore[arg-type]


def story(number: int, status: str, ago: float = 0, retries: int = 0, title: str = "story") -> Story:
    return Story(
        number, f"story-{number}", "r1", number, f"S-{number}", title, status, retries, 2, at(42), at(ago)
    )


def event(name: str, ago: float, step_name: str | None = None, story_id: str | None = None) -> Event:
    return Event(at(ago), name, "r1", "feature-dev", step_name, None, story_id)


def run(*steps: Step, stories: Sequence[Story] = (), status: str = "running") -> Run:
    return Run(1, "r1", 214, "feature-dev", "Add OAuth", status, at(42), at(0), tuple(steps), tuple(stories))


LOOP = {"type": "loop", "loop": LoopConfig(True, "verify")}


def oauth() -> tuple[Run, list[Event]]:
    """The run of the sketch: planned, set up, three of seven stories, the fourth claimed 12 minutes ago."""
    farm = run(
        step("plan", 0, "done", 38),
        step("setup", 1, "done", 36),
        step("implement", 2, "running", 12, current_story_id="story-3", **LOOP),
        step("verify", 3, "waiting"),
        step("test", 4, "waiting"),
        step("pr", 5, "waiting"),
        stories=[
            story(1, "done", 30, title="users table"),
            story(2, "done", 13, retries=1, title="register endpoint"),
            story(3, "running", 12, title="login form"),
            *(story(number, "pending") for number in (4, 5, 6, 7)),
        ],
    )
    events = [
        event("run.started", 42),
        event("step.running", 42, "plan"),
        event("step.done", 38, "plan"),
        event("step.running", 38, "setup"),
        event("step.done", 36, "setup"),
        event("step.running", 35, "implement"),
        event("story.started", 35, "implement", "S-1"),
        event("story.done", 30, "implement", "S-1"),
        event("step.running", 28, "implement"),
        event("story.started", 28, "implement", "S-2"),
        event("story.done", 22, "implement", "S-2"),
        event("step.running", 21, "verify"),
        event("story.retry", 20, "verify"),
        event("step.running", 18, "implement"),
        event("story.started", 18, "implement", "S-2"),
        event("story.done", 13, "implement", "S-2"),
        event("step.running", 12, "implement"),
        event("story.started", 12, "implement", "S-3"),
    ]
    return farm, events


def picture(
    farm: Run,
    events: Sequence[Event] | None,
    width: int,
    height: int = 99,
    selected: tuple[str, str | None] | None = None,
    limit: float = 1800,
) -> list[str]:
    found = entries(farm, events, NOW, {item.id: limit for item in farm.steps})
    columns = layout(found, width)
    lines = [
        draw_axis(farm, NOW, columns),
        *(
            draw(row, farm, NOW, columns, SIGNS.get(row.entries[0].status, "?"))
            for row in fold(found, height, selected)
        ),
    ]
    return ["".join(text for text, _ in line) for line in lines]


def test_the_sketch_at_80_cells() -> None:
    farm, events = oauth()
    assert [line.rstrip() for line in picture(farm, events, 80)] == [
        "  step                  agent     0m        15m       30m  42m",
        "● plan                  planner   ▇▇▇                          done 4m",
        "● setup                 setup       ▇▇                         done 2m",
        "◐ implement             developer     ▇▇▇▇ ▇▇▇▇   ▇▇▇ ▇▇▇▇▇▇▇▇ 2 of 7 stories",
        "  ● S-1 users table                   ▇▇▇▇                     done 5m",
        "  ● S-2 register endpo…                    ▇▇▇▇   ▇▇▇          done 11m, 2nd try",
        "  ◐ S-3 login form                                    ▇▇▇▇▇▇▇▇ claim 12m of 30m",
        "  ◌ S-4 story                                                  pending",
        "  ◌ S-5 story                                                  pending",
        "  ◌ S-6 story                                                  pending",
        "  ◌ S-7 story                                                  pending",
        "○ verify                verifier                ▇              waiting",
        "○ test                  tester                                 waiting",
        "○ pr                    pr                                     waiting",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160, 200])
def test_every_line_is_as_wide_as_it_may_be(width: int) -> None:
    farm, events = oauth()
    assert {cells(line) <= width for line in picture(farm, events, width)} == {True}


def test_a_claim_past_its_time_out_is_an_alarm() -> None:
    farm, events = oauth()
    found = entries(farm, events, NOW, {"id-implement": 600})
    (claimed,) = [entry for entry in found if entry.alarm]
    assert claimed.key == ("id-implement", "story-3")
    assert claimed.note == "claim 12m of 10m"


def test_events_that_disagree_with_the_row_draw_the_work_as_unknown() -> None:
    """The row was moved back by two hours, as in the boxes: the claim's age is the row's."""
    farm = run(step("build", 0, "running", 25))
    lines = picture(farm, [event("step.running", 2, "build")], 80)
    assert "░" in lines[1]
    assert "▇" not in lines[1]
    assert "unknown" in lines[1]
    assert "claim 25m of 30m" in lines[1]


def test_a_done_step_without_events_is_unknown_and_says_no_duration() -> None:
    farm = run(step("plan", 0, "done", 30), step("build", 1, "pending", 30))
    plan = picture(farm, [], 80)[1]
    assert "unknown" in plan
    assert plan.rstrip().endswith("done")


def test_while_events_are_not_read_no_bar_is_drawn_and_nothing_is_called_unknown() -> None:
    farm, _ = oauth()
    assert not any("░" in line or "▇" in line or "unknown" in line for line in picture(farm, None, 80))


def test_a_try_that_failed_without_an_event_is_ended_by_the_next_claim() -> None:
    farm = run(step("build", 0, "running", 5, retry_count=1))
    events = [event("step.running", 20, "build"), event("step.running", 5, "build")]
    (entry,) = entries(farm, events, NOW, {})
    assert [span.end for span in entry.spans.spans] == [at(5), None]
    assert entry.note == "claim 5m, 2nd try"


def test_a_loop_that_waits_for_its_verify_step_says_so() -> None:
    farm = run(step("implement", 0, "running", 9, **LOOP), stories=[story(1, "done", 9)])
    assert entries(farm, [], NOW, {})[0].note == "1 of 1 stories, waits for verify"


def test_steps_failed_by_stopping_a_run_were_never_worked_on() -> None:
    farm = run(step("plan", 0, "failed", 0), status="cancelled")
    (entry,) = entries(farm, [event("run.failed", 0)], NOW, {})
    assert entry.spans.spans == ()


def test_attempts_and_abandonments_are_in_words() -> None:
    farm = run(
        step("plan", 0, "failed", 0, retry_count=3),
        step("build", 1, "pending", 4, retry_count=1, abandoned_count=2),
    )
    notes = [entry.note for entry in entries(farm, [], NOW, {})]
    assert notes == ["failed after 3 tries", "pending 4m, 2nd try, abandoned 2×"]


def test_short_of_room_what_matters_least_is_folded_first() -> None:
    farm, events = oauth()
    loose = picture(farm, events, 120, height=10)[1:]
    assert len(loose) == 10
    assert any("S-4 … S-7" in line for line in loose)
    assert any("S-2 register" in line for line in loose)
    tight = picture(farm, events, 120, height=6)
    assert [line[:20].rstrip() for line in tight[1:]] == [
        "● plan · setup",
        "◐ implement",
        "  ● S-1 … S-2",
        "  ◐ S-3 login form",
        "  ◌ S-4 … S-7",
        "○ verify · test · pr",
    ]


def test_the_selected_entry_is_never_folded_away() -> None:
    farm, events = oauth()
    found = entries(farm, events, NOW, {})
    for entry in found:
        rows = fold(found, 4, entry.key)
        assert Row((entry,)) in rows
        assert [item for row in rows for item in row.entries] == list(found)


def test_text_from_outside_is_safe_and_crops_to_its_column() -> None:
    farm = run(
        step("pl\x1b[31man", 0, "running", 3, current_story_id="story-1", **LOOP),
        stories=[story(1, "running", 3, title="row \u202eshalp\u202c\n[bold]x[/] " + "林檎" * 80)],
    )
    for width in (60, 80, 160):
        for line in picture(farm, [], width):
            assert not any(char in line for char in "\x1b\u202e\u202c\n")
            assert cells(line) <= width


def test_ordinals() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip
