"""Editing a context as text: nothing else in it may change, and it must lead back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.operations.context_edit import set_keys
from farmtui.operations.plan import Refused
from farmtui.operations.records import edited, reversed_edits

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["task", "a", "é", 'q"uote', "verify_feedback", "operator_guidance", "back\\slash"])
contexts = st.dictionaries(keys, values, max_size=6)
separators = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n\t", " :\r\n ")])
# Antfarm is JavaScript, so what is read from the database is never a lone surrogate.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(
    contexts,
    separators,
    st.booleans(),
    st.dictionaries(st.sampled_from(["verify_feedback", "operator_guidance"]), texts, min_size=1),
)
def test_set_and_back(
    context: dict[str, object], how: tuple[str, str], escaped: bool, new: dict[str, str]
) -> None:
    text = json.dumps(context, separators=how, ensure_ascii=escaped)
    edits = set_keys(text, new)
    after = edited(text, edits)
    assert json.loads(after) == {**context, **new}
    assert list(json.loads(after)) == list({**context, **new})
    assert edited(after, reversed_edits(edits)) == text
    assert set_keys(after, new) == ()


def test_what_is_not_set_stays_byte_for_byte() -> None:
    text = '{ "n": 1.50e3, "big": 123456789012345678901234567890, "d":1, "d":2, "t":"\\u00e9" }'
    after = edited(text, set_keys(text, {"d": "three", "operator_guidance": "é"}))
    assert after == (
        '{ "n": 1.50e3, "big": 123456789012345678901234567890, "d":1, "d":"three", "t":"\\u00e9" '
        ',"operator_guidance":"é"}'
    )


@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "{", '{"a":1', "{" * 50_000])
def test_no_object_no_edit(text: str) -> None:
    with pytest.raises(Refused, match="no JSON object"):
        set_keys(text, {"a": "b"})


def test_an_edit_that_does_not_find_its_text_is_an_error() -> None:
    edits = set_keys('{"a":"old"}', {"a": "new"})
    with pytest.raises(ValueError, match="another one"):
        edited('{"a":"odd"}', edits)
