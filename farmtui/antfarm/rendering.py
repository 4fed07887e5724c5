"""Templates as Antfarm 0.5.1 renders them when a step is claimed: ``{{key}}`` and the flat ``{{key.sub}}``.

A key is ASCII word characters without blanks, looked up as it is written and then in lower case, all in
one pass: what a value brings in is not looked at again. Antfarm is JavaScript, so values that are not
text come out as JavaScript writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_KEY = re.compile(r"\{\{(\w+(?:\.\w+)*)\}\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A rendered template. `missing` are the keys that became ``[missing: key]``, as written, each once."""

    text: str
    missing: tuple[str, ...]


def required_keys(template: str) -> tuple[str, ...]:
    """The keys that a template names, as written, each once, in order."""
    return tuple(dict.fromkeys(_KEY.findall(template)))


def name_in(context: Mapping[str, Any], key: str) -> str | None:
    """The name under which a template's key is found in a context; None where it is not."""
    return next((name for name in (key, key.lower()) if name in context), None)


def resolve(template: str, context: Mapping[str, Any]) -> Resolved:
    """Render a template with a context, as a claim would."""
    missing: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        name = name_in(context, match[1])
        if name is not None:
            return js_text(context[name])
        missing[match[1]] = None
        return missing_mark(match[1])

    return Resolved(_KEY.sub(value, template), tuple(missing))


def missing_mark(key: str) -> str:
    """The text that stands in a rendered template where a key was missing."""
    return f"[missing: {key}]"


def js_text(value: Any) -> str:
    """A JSON value as JavaScript turns it into text: ``8080``, ``true``, ``null``, ``a,b``."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _js_number(value)
    if isinstance(value, list | tuple):
        return ",".join("" if item is None else js_text(item) for item in value)
    return "[object Object]"


def _js_number(value: float) -> str:
    """A number as JavaScript writes it: all are doubles, and exponents begin at 1e21 and 1e-7."""
    try:
        number = float(value)
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    shortest = Decimal(repr(number)).normalize()
    if 1e-6 <= abs(number) < 1e21:
        return f"{shortest:f}"
    mantissa, exponent = f"{shortest:e}".split("e")
    return f"{mantissa}e{int(exponent):+d}"
