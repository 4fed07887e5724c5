"""Which run, step or cron a word names: never another one than was meant."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.cli.exits import NotFound
from farmtui.cli.naming import find_crons, find_run, find_step
from farmtui.state import CronJob, Run, Step


def run(run_id: str, number: int | None = None, steps: tuple[Step, ...] = ()) -> Run:
    return Run(0, run_id, number, "relay", "task", "running", None, None, steps)


def step(step_id: str, name: str) -> Step:
    return Step(0, step_id, "r", name, "a", 0, "single", "pending", 0, 2, 0, None, None, None, None)


RUNS = (
    run("662e2a56-acfb", 14),
    run("662e9999-acfb", 15),
    run("15aaaaaa-0000", 16),
    run("0123abcd-0000", 17),
    run("abc", 18),
    run("70000000-0000", 21),
    run("71000000-0000", 21),
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("14", "662e2a56-acfb"),
        ("#14", "662e2a56-acfb"),
        ("662e2", "662e2a56-acfb"),
        ("662e2a56-acfb", "662e2a56-acfb"),
        # A number, though an id begins so.
        ("15", "662e9999-acfb"),
        # A leading zero: no number.
        ("0123", "0123abcd-0000"),
        # A whole id may be short.
        ("abc", "abc"),
    ],
)
def test_a_run_is_named(word: str, expected: str) -> None:
    assert find_run(RUNS, word).id == expected


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("662e", "662e2a56-acfb, 662e9999-acfb"),
        ("21", "70000000-0000, 71000000-0000"),
        ("99", "99"),
        # Digits are a number even where an id begins so.
        ("7000", "7000"),
        ("15aaa0", "15aaa0"),
        ("15a", "4 characters"),
        ("", "4 characters"),
        ("0", "0"),
        ("zzzz", "zzzz"),
        ("9" * 5000, "no run has number 999"),
        ("%", "4 characters"),
    ],
)
def test_what_names_no_run_or_several_is_told(word: str, said: str) -> None:
    with pytest.raises(NotFound, match=re.escape(said)):
        find_run(RUNS, word)


def test_a_database_without_numbers_says_so() -> None:
    with pytest.raises(NotFound, match="no run numbers"):
        find_run((run("662e2a56-acfb"),), "6621")


@given(st.text(alphabet="0123456789abcdef-#", max_size=12))
def test_a_run_that_is_found_is_the_one_that_was_named(word: str) -> None:
    try:
        found = find_run(RUNS, word)
    except NotFound:
        return
    assert (
        str(found.number) == word.lstrip("#")
        or (len(word) >= 4 and found.id.startswith(word))
        or found.id == word
    )


def test_a_step_is_named_by_its_name_or_its_whole_id() -> None:
    named = run(
        "r" * 8, 1, (step("s-1", "plan"), step("s-2", "build"), step("s-3", "build"), step("s-4", "s-1"))
    )
    assert find_step(named, "plan").id == "s-1"
    assert find_step(named, "s-2").id == "s-2"
    # A name counts before an id.
    assert find_step(named, "s-1").id == "s-4"
    with pytest.raises(NotFound, match="s-2, s-3"):
        find_step(named, "build")
    with pytest.raises(NotFound, match="plan"):
        find_step(named, "pla")


def test_crons_are_named_by_id_name_or_beginning() -> None:
    first = CronJob(
        "aaaa-1", "antfarm/w/a", "w", "a", None, True, "every 5m", 300_000, None, None, None, None, 0, None
    )
    jobs = (first, replace(first, id="aaaa-2", name="antfarm/w/b"), replace(first, id="bbbb-1"))
    assert find_crons(jobs, ["bbbb", "aaaa-2", "aaaa-2", "antfarm/w/b"]) == ("bbbb-1", "aaaa-2")
    for word, said in (
        ("aaaa", "2 crons"),
        ("antfarm/w/a", "2 crons"),
        ("bbb", "no cron"),
        ("x" * 9, "no cron"),
    ):
        with pytest.raises(NotFound, match=said):
            find_crons(jobs, [word])
