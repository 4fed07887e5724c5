"""An Answer: what a command has to say, for scripts and for people alike, and how it is written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from farmtui.cli.exits import Exit
from farmtui.cli.screen import Screen
from farmtui.clock import iso
from farmtui.state import SourceStatus
from farmtui.text import mask_context, mask_url

VERSION = 1

Lines = Callable[[Mapping[str, Any], Screen], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say.

    Attributes:
        kind: names the shape of `data`, e.g. ``runs``.
        data: the fields of the JSON answer beside the envelope.
        lines: the same for people: a function of the data, as masked, and the screen.
        errors: what could not be had, one a line.
        revealed: secrets of a run's context are shown; the gateway's never are.
    """

    kind: str
    data: Mapping[str, Any]
    lines: Lines
    code: Exit = Exit.FINE
    errors: tuple[str, ...] = ()
    revealed: bool = False


@dataclass(frozen=True, slots=True)
class Envelope:
    """What stands in every JSON answer.

    Attributes:
        generated_at: the moment that the answer judges by.
        database: path of the database; None where the command line does not even tell which.
        sources: how each source that was read does.
    """

    generated_at: datetime
    database: str | None
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def to_json(
    envelope: Envelope, kind: str, data: Mapping[str, Any], errors: Iterable[str]
) -> Mapping[str, Any]:
    """A whole JSON answer."""
    return {
        "schema": f"farm.{kind}/{VERSION}",
        "generated_at": iso(envelope.generated_at),
        "database": envelope.database,
        "sources": dict(envelope.sources),
        "errors": list(errors),
        **data,
    }


def source_status(status: SourceStatus, wall: datetime) -> dict[str, Any]:
    """How one source does, for scripts; `age_s` is since it was last read well, null if never."""
    age = None if status.read_at is None else max(0.0, (wall - status.read_at).total_seconds())
    return {
        "ok": status.ok,
        "age_s": None if age is None else round(age, 3),
        "error": status.error,
    }


def masked(data: Mapping[str, Any], *, revealed: bool, scrub: Callable[[str], str]) -> dict[str, Any]:
    """The data without secrets: ``#auth=`` parts and the gateway's secret always, others unless revealed."""
    hide: Callable[[Any], Any] = mask_context if not revealed else _without_auth
    hidden: dict[str, Any] = _each_text(hide(data), scrub)
    return hidden


def _without_auth(data: Any) -> Any:
    return _each_text(data, mask_url)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(held, change) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(held, change) for held in value]
    return value
