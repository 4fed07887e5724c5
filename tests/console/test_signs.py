"""Signs and their ASCII stand-ins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from farmtui.console.signs import LANE_SIGNS, LANE_WORDS, SIGNS, AsciiFilter, sign, to_ascii, wants_ascii
from farmtui.state import Lane
from farmtui.text import cells, safe_line


def test_every_lane_has_a_sign_and_a_word() -> None:
    assert set(LANE_SIGNS) == set(LANE_WORDS) == set(Lane)


def test_every_sign_is_one_cell_and_has_its_own_ascii() -> None:
    for shown in (*SIGNS.values(), *LANE_SIGNS.values()):
        assert cells(shown) == 1
    stand_ins = {status: to_ascii(shown) for status, shown in SIGNS.items()}
    assert stand_ins["done"] == "*"
    assert (
        len({stand_ins[s] for s in ("done", "running", "pending", "waiting", "failed", "human", "skipped")})
        == 7
    )


def test_unknown_statuses_have_a_sign() -> None:
    assert sign("gate") == "?"


@given(st.text())
def test_ascii_text_is_as_wide_as_it_was(text: str) -> None:
    shown = safe_line(text)
    ascii_text = to_ascii(shown)
    assert ascii_text.isascii()
    assert len(ascii_text) == cells(shown) or any(cells(character) == 0 for character in shown)


def test_letters_lose_their_accents_only() -> None:
    assert to_ascii("Größe café ñ") == "Grosse cafe n".replace("Grosse", "Gro?e")


def test_the_filter_keeps_styles() -> None:
    style = Style(bold=True)
    assert AsciiFilter().apply([Segment("●", style), Segment("x", None)], Color(0, 0, 0)) == [
        Segment("*", style),
        Segment("x", None),
    ]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "POSIX"}, True),
        ({}, True),
        ({"FARM_ASCII": "0"}, False),
        ({"FARM_ASCII": "1", "LANG": "en_US.UTF-8"}, True),
    ],
)
def test_the_locale_decides(environ: dict[str, str], wanted: bool) -> None:
    assert wants_ascii(environ) is wanted
