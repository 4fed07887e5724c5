"""Which run, step or cron a word on the command line names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from farmtui.cli.exits import NotFound
from farmtui.state import CronJob, Run, Step

LEAST_PREFIX = 4
_NUMBER = re.compile(r"#?([1-9][0-9]*|0)")
_SHOWN = 8


def find_run(runs: Sequence[Run], word: str) -> Run:
    """The run that `word` names: a number, else an id, else the unambiguous beginning of one.

    Digits without a leading zero are always a number, never an id: a mistyped number must not hit another
    run whose id happens to begin so.

    Raises:
        NotFound: no run, or several; these are told with their ids, since numbers are not unique.
    """
    number = _NUMBER.fullmatch(word)
    if number is not None:
        # Compared as text: Python refuses to make a number of thousands of digits.
        wanted = number[1]
        return _only([run for run in runs if str(run.number) == wanted], word, f"number {wanted}", runs)
    exact = [run for run in runs if run.id == word]
    if exact:
        return exact[0]
    if len(word) < LEAST_PREFIX:
        raise NotFound(
            f"no run {word!r}: name a number, an id, or the first {LEAST_PREFIX} characters of one or more"
        )
    return _only([run for run in runs if run.id.startswith(word)], word, f"an id that begins {word}", runs)


def find_step(run: Run, word: str) -> Step:
    """The step of a run that `word` names: its name, else its id.

    Raises:
        NotFound: no such step, or several of that name.
    """
    for found in (
        [step for step in run.steps if step.name == word],
        [step for step in run.steps if step.id == word],
    ):
        if len(found) > 1:
            raise NotFound(
                f"run {run.label} has {len(found)} steps {word}; name one by its id: {_ids(found)}"
            )
        if found:
            return found[0]
    names = ", ".join(step.name for step in run.steps) or "none"
    raise NotFound(f"run {run.label} has no step {word!r}; it has {names}")


def find_crons(jobs: Sequence[CronJob], words: Iterable[str]) -> tuple[str, ...]:
    """The ids of the jobs that the words name: an id, a name, or the unambiguous beginning of an id.

    Raises:
        NotFound: a word names no job of Antfarm's, or several.
    """
    return tuple(dict.fromkeys(_cron(jobs, word).id for word in words))


def _cron(jobs: Sequence[CronJob], word: str) -> CronJob:
    exact = [job for job in jobs if job.id == word] or [job for job in jobs if job.name == word]
    found = exact
    if not found and len(word) >= LEAST_PREFIX:
        found = [job for job in jobs if job.id.startswith(word)]
    if not found:
        raise NotFound(f"no cron {word!r} named antfarm/<workflow>/<agent>; farm crons lists them")
    if len(found) > 1:
        raise NotFound(f"{len(found)} crons are named by {word!r}: {_ids(found)}")
    return found[0]


def _only(found: Sequence[Run], word: str, what: str, runs: Sequence[Run]) -> Run:
    if not found:
        hint = "there are no runs yet" if not runs else "farm runs --limit 0 lists all"
        if word.lstrip("#").isdigit() and runs and all(run.number is None for run in runs):
            hint = "this database has no run numbers; name it by its id with a letter in it"
        raise NotFound(f"no run has {what}; {hint}")
    if len(found) > 1:
        raise NotFound(f"{len(found)} runs have {what}; name one by its id: {_ids(found)}")
    return found[0]


def _ids(found: Sequence[Run | Step | CronJob]) -> str:
    shown = ", ".join(each.id for each in found[:_SHOWN])
    return shown + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
