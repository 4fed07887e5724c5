"""A secret that no repr, format, pickle or log line gives away."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any, NoReturn

MASK = "••••••"


class Secret:
    """A token or password. Only `reveal` gives it, to whoever sends it to the gateway."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself: for the frame that authenticates, and for nothing else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return MASK

    def __format__(self, _spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._value.encode(errors="replace"), other._value.encode(errors="replace")
        )

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


def scrub(text: str, secrets: Iterable[Secret]) -> str:
    """Text without these secrets in it, on one line: for messages that came from elsewhere."""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), MASK)
    return " ".join(text.split())
