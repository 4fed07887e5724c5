"""The one registry of actions: it feeds key bindings, palette, `:`, help, hint line and tests.

What changes the farm is a capital letter and asks first (`a` and `u` excepted: they change no run by
themselves, and ask too). An action that is not possible just now says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farmtui.state import Finding, Lane

if TYPE_CHECKING:
    from farmtui.farm import View

BOARD, RUNS, RUN, ESCALATIONS, MEDIC, CRONS = "board", "runs", "run", "escalations", "medic", "crons"
SCREENS = (BOARD, RUNS, RUN, ESCALATIONS, MEDIC, CRONS)


@dataclass(frozen=True, slots=True)
class Target:
    """What an action is about: ids, and the words for them. It stays whatever refreshes meanwhile.

    Attributes:
        label: for people, e.g. ``#214 implement``; "" where nothing is selected.
        run: the run's id; `step` is a step's name.
        crons: ids of cron jobs: the selected one, or all that are marked.
        workflow: for all orphaned crons of one workflow; None for those of all.
        finding: the finding's id.
        texts: what `y` copies, by what it is ("run id", "step id", "message"), the usual one first.
    """

    label: str = ""
    run: str | None = None
    step: str | None = None
    crons: tuple[str, ...] = ()
    workflow: str | None = None
    finding: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)


WhyDisabled = Callable[["View | None", Target, bool], "str | None"]


def _always(view: View | None, target: Target, readonly: bool) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a key does.

    Attributes:
        id: what the program calls it; ``do_<id>`` of the screen, else of the app, or of `Acting`, does it.
        key: Textual's name of the key; `keys` are further keys for the same.
        words: what it does, for the palette and help; `hint` is the shorter form for the hint line.
        danger: it changes the farm: read-only mode takes it away.
        screens: where it is; empty means everywhere.
        why_disabled: (view, target, readonly) → why it cannot be done just now, or None.
        rank: its place in the hint line, 0 first; None leaves it out.
        command: what `:` takes for it; the id where "".
    """

    id: str
    key: str
    words: str
    keys: tuple[str, ...] = ()
    hint: str = ""
    danger: bool = False
    screens: frozenset[str] = frozenset()
    why_disabled: WhyDisabled = _always
    rank: int | None = None
    command: str = ""

    def on(self, screen: str) -> bool:
        """Whether the action is there on a screen."""
        return not self.screens or screen in self.screens

    @property
    def command_name(self) -> str:
        """What `:` takes for it."""
        return self.command or self.id.replace("_", "-")

    @property
    def shown_key(self) -> str:
        """The key as people write it."""
        return shown_key(self.key)


_KEY_WORDS = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "space": "Space",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
}


def shown_key(key: str) -> str:
    """Textual's name of a key as people write it: ``question_mark`` → ``?``, ``ctrl+r`` → ``Ctrl+R``."""
    if key.startswith("ctrl+"):
        return f"Ctrl+{key[5:].upper()}"
    return _KEY_WORDS.get(key, key)


# ---------------------------------------------------------------- why not


def _writes(check: Callable[[View, Target], str | None]) -> WhyDisabled:
    def why(view: View | None, target: Target, readonly: bool) -> str | None:
        if readonly:
            return "read-only: farm was started with --readonly, or its config says so"
        if view is None:
            return "the farm has not been read yet"
        return check(view, target)

    return why


def finding_of(view: View, target: Target) -> Finding | None:
    """The finding that the target names, else the worst one about its run."""
    if target.finding is not None:
        return next((found for found in view.judgement.findings if found.id == target.finding), None)
    if target.run is None:
        return None
    return next((found for found in view.judgement.findings if found.run == target.run), None)


def _reset(view: View, target: Target) -> str | None:
    if target.run is None:
        return "no run is selected"
    stale = [
        finding
        for finding in view.judgement.findings
        if finding.run == target.run and finding.fix is not None and finding.fix.action == "reset"
    ]
    if not stale:
        return "no stale claim here (farm reset --force resets a step that is not stale)"
    if target.step is not None and all(finding.step != target.step for finding in stale):
        return f"the stale claim is {stale[0].step}'s, not {target.step}'s"
    return None


def _retry(view: View, target: Target) -> str | None:
    if target.run is None:
        return "no escalation is selected"
    run = view.state.run(target.run)
    if run is None or run.status != "failed":
        return "only a failed run can be given back to its agents"
    return None


def _acknowledge(view: View, target: Target) -> str | None:
    if target.run is None:
        return "no run is selected"
    if view.judgement.lanes.get(target.run) is not Lane.HUMAN:
        return "it does not wait for a person"
    return None


def _delete_crons(view: View, target: Target) -> str | None:
    if not view.state.crons.known:
        return f"the crons could not be listed: {view.state.crons.note or 'no answer yet'}"
    if target.crons or target.workflow is not None:
        return None
    return None if view.judgement.orphans else "no cron is orphaned, and none is selected"


def _needs_run(view: View | None, target: Target, readonly: bool) -> str | None:
    return None if target.run is not None else "no run is selected"


def _needs_text(view: View | None, target: Target, readonly: bool) -> str | None:
    return None if target.texts else "nothing is selected"


def _in(*screens: str) -> frozenset[str]:
    return frozenset(screens)


ACTIONS: tuple[Action, ...] = (
    # Where to go.
    Action(BOARD, "1", "go to the Board: runs by lane", hint="Board"),
    Action(RUNS, "2", "go to Runs: a table to sort and filter", hint="Runs"),
    Action(ESCALATIONS, "3", "go to Escalations: runs that wait for a human", hint="escalations", rank=4),
    Action(MEDIC, "4", "go to Medic: what is wrong", hint="medic", rank=4),
    Action(CRONS, "5", "go to Crons: who is woken when, and what it costs", hint="crons"),
    Action(
        "open",
        "enter",
        "open the selected run",
        hint="open",
        screens=_in(BOARD, RUNS, ESCALATIONS, MEDIC),
        why_disabled=_needs_run,
        rank=0,
    ),
    Action("back", "escape", "go back, or clear the filter"),
    # What changes the farm.
    Action(
        "reset",
        "R",
        "reset the stale claim: its step becomes pending again",
        hint="reset",
        danger=True,
        screens=_in(BOARD, RUNS, RUN, MEDIC),
        why_disabled=_writes(_reset),
        rank=1,
    ),
    Action(
        "retry",
        "R",
        "retry with guidance: give a failed run back to its agents",
        hint="retry",
        danger=True,
        screens=_in(BOARD, RUNS, RUN, ESCALATIONS),
        why_disabled=_writes(_retry),
        rank=1,
    ),
    Action(
        "delete_crons",
        "X",
        "delete the selected or marked crons, else all orphaned ones",
        hint="delete crons",
        danger=True,
        screens=_in(MEDIC, CRONS),
        why_disabled=_writes(_delete_crons),
        rank=2,
    ),
    Action(
        "acknowledge",
        "a",
        "acknowledge the escalation: note and name; it leaves the human lane",
        hint="acknowledge",
        danger=True,
        screens=_in(BOARD, RUNS, RUN, ESCALATIONS),
        why_disabled=_writes(_acknowledge),
        rank=3,
    ),
    Action(
        "undo",
        "u",
        "undo the last change",
        hint="undo",
        danger=True,
        why_disabled=_writes(lambda view, target: None),
    ),
    # What only looks.
    Action(
        "filter",
        "slash",
        "filter the list",
        hint="filter",
        screens=_in(*(screen for screen in SCREENS if screen != RUN)),
        rank=5,
    ),
    Action("search", "slash", "search the text", hint="search", screens=_in(RUN), rank=5),
    Action("next", "n", "next match", screens=_in(RUN)),
    Action("previous", "N", "previous match", screens=_in(RUN)),
    Action("mark", "space", "mark or unmark the row", hint="mark", screens=_in(CRONS), rank=4),
    Action("mark_orphans", "m", "mark all orphaned crons, or none", hint="mark orphans", screens=_in(CRONS)),
    Action("sort", "s", "sort by the next column", hint="sort", screens=_in(RUNS), rank=4),
    Action("reverse", "o", "turn the order round", screens=_in(RUNS)),
    Action(
        "follow", "f", "follow: keep the end of the text in sight", hint="follow", screens=_in(RUN), rank=4
    ),
    Action("wrap", "w", "wrap long lines, or not", screens=_in(RUN)),
    Action(
        "next_tab",
        "tab",
        "next tab; on the board the next lane",
        keys=("right_square_bracket",),
        screens=_in(BOARD, RUN),
    ),
    Action(
        "previous_tab",
        "shift+tab",
        "previous tab or lane",
        keys=("left_square_bracket",),
        screens=_in(BOARD, RUN),
    ),
    Action("copy", "y", "copy the id of what is selected", hint="copy", why_disabled=_needs_text, rank=8),
    Action("refresh", "ctrl+r", "read everything again"),
    Action("palette", "colon", "commands, and go to a run", keys=("ctrl+p",), hint="command", rank=6),
    Action("help", "question_mark", "help for where you are", hint="help", rank=9),
    Action("quit", "q", "quit", keys=("ctrl+q", "ctrl+c"), hint="quit", rank=10),
)


def actions_on(screen: str) -> tuple[Action, ...]:
    """The actions of a screen, in the registry's order."""
    return tuple(action for action in ACTIONS if action.on(screen))


def action_for(key: str, screen: str, view: View | None, target: Target, readonly: bool) -> Action | None:
    """What a key does on a screen for a target: the first action that is possible, else the first."""
    found = [action for action in actions_on(screen) if key == action.key or key in action.keys]
    possible = (action for action in found if action.why_disabled(view, target, readonly) is None)
    return next(possible, found[0] if found else None)


def not_here(key: str) -> str:
    """What is said to a key of the registry where no action has it: which screens it is for."""
    screens = {name for action in ACTIONS if key in (action.key, *action.keys) for name in action.screens}
    keys = {action.id: action.key for action in ACTIONS}
    # A run has no number: it is opened.
    places = ", ".join(
        f"{keys[name]} {name}" if name in keys else "a run" for name in SCREENS if name in screens
    )
    return f"{shown_key(key)} does nothing here; it is for {places}"


def all_keys() -> tuple[str, ...]:
    """Every key of the registry, once."""
    return tuple(dict.fromkeys(key for action in ACTIONS for key in (action.key, *action.keys)))
