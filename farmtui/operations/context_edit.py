"""Setting keys of a run's context without touching anything else in it.

The cell is edited as text: order, number forms, doubled keys and the values of other keys, which may be
secrets, stay byte for byte as they were, and undo needs to keep only what was edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from farmtui.operations.plan import Edit, Refused
from farmtui.operations.records import edited

_BLANKS = " \t\n\r"


def set_keys(text: str, values: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edits that give keys of a JSON object these values; a key that is not there goes at the end.

    Raises:
        Refused: the text is no JSON object.
    """
    context = parse_context(text)
    spans = _spans(text)
    edits: list[Edit] = []
    added = []
    for key, value in values.items():
        if key in spans:
            start, end = spans[key]
            if context[key] != value:
                edits.append(Edit(key, start, text[start:end], _json(value)))
        else:
            added.append((key, value))
    place = text.rindex("}")
    comma = "," if context else ""
    for key, value in added:
        edits.append(Edit(key, place, "", f"{comma}{_json(key)}:{_json(value)}"))
        comma = ","
    edits = _joined(edits)
    if json.loads(edited(text, edits)) != {**context, **values}:
        raise Refused("the run's context cannot be edited safely: it is JSON of an odd kind")
    return tuple(edits)


def parse_context(text: str) -> dict[str, Any]:
    """The context as an object.

    Raises:
        Refused: it is none.
    """
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        loaded = None
    if not isinstance(loaded, dict):
        raise Refused("the run's context is no JSON object, so nothing can be put into it")
    return loaded


def _spans(text: str) -> dict[str, tuple[int, int]]:
    """Where the value of each key of a JSON object stands; of a doubled key the last, which counts."""
    decoder, spans = JSONDecoder(), {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] != "}":
        key, at = scanstring(text, at + 1)
        start = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, start)
        spans[key] = (start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


def _joined(edits: list[Edit]) -> list[Edit]:
    """Insertions at one place as one edit, so that each place is edited once."""
    joined: list[Edit] = []
    for edit in edits:
        last = joined[-1] if joined else None
        if last is not None and not last.before and not edit.before and last.start == edit.start:
            joined[-1] = Edit(f"{last.key}, {edit.key}", last.start, "", last.after + edit.after)
        else:
            joined.append(edit)
    return joined


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
