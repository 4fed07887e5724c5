"""The registry: what it promises to bindings, palette, help, hint line; and why an action is not possible."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from importlib import import_module
from typing import Any

import pytest
from textual.keys import KEY_NAME_REPLACEMENTS, _character_to_key

from farmtui.console.actions import (
    ACTIONS,
    BOARD,
    CRONS,
    ESCALATIONS,
    MEDIC,
    RUN,
    RUNS,
    SCREENS,
    Target,
    action_for,
    actions_on,
    all_keys,
    shown_key,
)
from farmtui.console.app import _SCREENS, FarmApp
from farmtui.console.hints import hint_pieces
from farmtui.console.screen import FarmScreen
from tests.console.support import a_view, busy_view

STALE = Target("#214 implement", run="run-214", step="implement")
ESCALATED = Target("#209 verify", run="run-209", step="verify")
RESERVED = {
    "1": BOARD,
    "2": RUNS,
    "3": ESCALATIONS,
    "4": MEDIC,
    "5": CRONS,
    "question_mark": "help",
    "slash": "filter",
    "colon": "palette",
    "ctrl+p": "palette",
    "y": "copy",
    "ctrl+r": "refresh",
    "u": "undo",
    "q": "quit",
    "escape": "back",
}


@pytest.mark.parametrize("screen", SCREENS)
def test_reserved_keys_mean_the_same_everywhere(screen: str) -> None:
    for key, action_id in RESERVED.items():
        found = action_for(key, screen, busy_view(), Target(), False)
        assert found is not None, key
        # What `/` narrows down is a list, or a text that is searched.
        assert found.id == ("search" if (key, screen) == ("slash", RUN) else action_id)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_key_means_one_thing_for_a_target(screen: str) -> None:
    """Several actions may share a key only where no target allows two of them."""
    by_key = defaultdict(list)
    for action in actions_on(screen):
        for key in (action.key, *action.keys):
            by_key[key].append(action)
    for key, sharing in by_key.items():
        for target in (Target(), STALE, ESCALATED):
            possible = [a.id for a in sharing if a.why_disabled(busy_view(), target, False) is None]
            assert len(set(possible)) <= 1, f"{key} on {screen}: {possible}"


def test_what_changes_a_run_is_a_capital_letter() -> None:
    for action in ACTIONS:
        if action.danger and action.id not in ("acknowledge", "undo"):
            assert action.key.isupper(), action
            assert len(action.key) == 1, action
        if len(action.key) == 1 and action.key.isupper():
            assert action.danger or action.key in "GN", action


def test_ids_and_words_are_whole() -> None:
    for action in ACTIONS:
        assert action.words[0].islower(), action
        assert len(action.words) < 70, action
        assert action.rank is None or action.hint, action


def test_keys_are_what_textual_calls_them() -> None:
    for key in all_keys():
        last = key.rsplit("+", 1)[-1]
        assert len(last) == 1 or last in KEY_NAMES, key


KEY_NAMES = {"enter", "escape", "space", "tab"} | {
    KEY_NAME_REPLACEMENTS.get(name, name) for name in (_character_to_key(c) for c in "?/:[]")
}


@pytest.mark.parametrize("screen", SCREENS)
def test_every_action_has_somebody_who_does_it(screen: str) -> None:
    module, _, name = _SCREENS[screen].partition(":")
    cls: Any = getattr(import_module(module), name)
    acting = import_module("farmtui.console.acting").Acting
    for action in actions_on(screen):
        if action.id in SCREENS:
            continue
        if action.danger:
            assert hasattr(acting, f"_{action.id}"), action.id
        else:
            assert hasattr(cls, f"do_{action.id}") or hasattr(FarmApp, f"do_{action.id}"), (screen, action.id)
        assert issubclass(cls, FarmScreen)


# ---------------------------------------------------------------- why not


def why(action_id: str, target: Target, readonly: bool = False, **changes: Any) -> str | None:
    action = next(action for action in ACTIONS if action.id == action_id)
    return action.why_disabled(busy_view(**changes), target, readonly)


def test_a_stale_claim_can_be_reset_and_nothing_else() -> None:
    assert why("reset", STALE) is None
    assert why("reset", Target(run="run-214")) is None
    assert "not verify" in (why("reset", Target(run="run-214", step="verify")) or "")
    assert "no stale claim" in (why("reset", Target(run="run-213", step="test")) or "")
    assert why("reset", Target()) == "no run is selected"


def test_only_failed_runs_are_retried_and_only_escalations_acknowledged() -> None:
    assert why("retry", ESCALATED) is None
    assert why("retry", Target(run="run-208")) is None
    assert "failed" in (why("retry", STALE) or "")
    assert "failed" in (why("retry", Target(run="gone")) or "")
    assert why("acknowledge", ESCALATED) is None
    assert why("acknowledge", Target(run="run-208")) is not None


def test_crons_are_deleted_only_where_they_are_known() -> None:
    assert why("delete_crons", Target()) is None
    assert why("delete_crons", Target(crons=("x",))) is None
    assert "connection refused" in (why("delete_crons", Target(crons=("x",)), crons=None) or "")
    fine = dataclasses.replace(busy_view())
    none = next(a for a in ACTIONS if a.id == "delete_crons").why_disabled(
        a_view([r for r in fine.state.runs if r.active]), Target(), False
    )
    assert none == "no cron is orphaned, and none is selected"


def test_readonly_takes_every_write_away_and_says_so() -> None:
    for action in ACTIONS:
        reason = action.why_disabled(busy_view(), ESCALATED, True)
        assert (reason is not None and "read-only" in reason) or not action.danger, action.id


def test_nothing_is_written_before_the_farm_was_read() -> None:
    for action in ACTIONS:
        if action.danger:
            assert action.why_disabled(None, ESCALATED, False) == "the farm has not been read yet"


# ---------------------------------------------------------------- the hint line


def hints(screen: str, target: Target, width: int = 80, readonly: bool = False) -> str:
    return "".join(text for text, _ in hint_pieces(screen, busy_view(), target, readonly, width))


def test_hints_say_what_keys_do_for_the_selection() -> None:
    assert "R reset" in hints(BOARD, STALE)
    assert "R retry" in hints(BOARD, ESCALATED)
    assert "a acknowledge" in hints(BOARD, ESCALATED)
    assert "R " not in hints(BOARD, Target(run="run-213"))
    assert "R " not in hints(BOARD, STALE, readonly=True)
    assert "Enter" not in hints(BOARD, Target())


@pytest.mark.parametrize("width", range(20, 121, 7))
def test_hints_fit_and_keep_the_way_to_help(width: int) -> None:
    for screen in SCREENS:
        line = hints(screen, ESCALATED, width)
        assert len(line) <= width
        assert "? help" in line


def test_keys_are_shown_as_people_write_them() -> None:
    assert [shown_key(key) for key in ("question_mark", "ctrl+r", "enter", "R", "left_square_bracket")] == [
        "?",
        "Ctrl+R",
        "Enter",
        "R",
        "[",
    ]
