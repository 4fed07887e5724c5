"""The options that every command takes, before it and after it alike.

They are added to the root, to every group and to every command, so each `--help` shows them and Typer
cannot drop one silently. All that were given are collected on the way; the same option twice with
different values is a usage error, wherever it stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from farmtui.cli.exits import Usage
from farmtui.clock import parse_time


@dataclass(frozen=True, slots=True)
class GlobalOption:
    """One of the options that stand anywhere.

    Attributes:
        flag: as typed.
        key: its field in `Globals`.
        metavar: what its value is called in help; None for a switch.
    """

    flag: str
    key: str
    metavar: str | None
    help: str


GLOBAL_OPTIONS = (
    GlobalOption("--json", "json", None, "Answer in JSON (pure ASCII), errors too."),
    GlobalOption("--state-dir", "state_dir", "DIR", "OpenClaw's state folder: this farm and no other."),
    GlobalOption("--db", "db", "FILE", "Antfarm's database: this one and no other."),
    GlobalOption("--now", "now", "ISO", "Judge as of this moment; what is written gets the real time."),
    GlobalOption("--readonly", "readonly", None, "Take every write away."),
    GlobalOption("--no-gateway", "no_gateway", None, "Do not contact OpenClaw's gateway."),
)
CONSOLE_OPTIONS = (
    GlobalOption("--no-mouse", "no_mouse", None, "Leave the mouse to the terminal (console only)."),
)


@dataclass(frozen=True, slots=True)
class Globals:
    """The values of the options that stand anywhere, as typed; None and False where not given."""

    json: bool = False
    state_dir: str | None = None
    db: str | None = None
    now: str | None = None
    readonly: bool = False
    no_gateway: bool = False
    no_mouse: bool = False

    def with_value(self, option: GlobalOption, value: str | bool) -> Globals:
        """These with one more value given.

        Raises:
            Usage: the option was given before with another value.
        """
        before = getattr(self, option.key)
        if option.metavar is not None and before is not None and before != value:
            raise Usage(f"{option.flag} is given twice, as {before!r} and as {value!r}")
        changes: dict[str, str | bool] = {option.key: value}
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def moment(self) -> datetime | None:
        """`now` as aware UTC.

        Raises:
            Usage: it is no ISO 8601 time.
        """
        if self.now is None:
            return None
        moment = parse_time(self.now)
        if moment is None:
            raise Usage(f"--now {self.now!r} is no ISO 8601 time, such as 2026-02-15T05:15:39Z")
        return moment

    @property
    def database(self) -> Path | None:
        """`db` as a path.

        Raises:
            Usage: it is empty.
        """
        return _path("--db", self.db)

    @property
    def state_folder(self) -> Path | None:
        """`state_dir` as a path.

        Raises:
            Usage: it is empty.
        """
        return _path("--state-dir", self.state_dir)

    @property
    def where(self) -> tuple[str, ...]:
        """The options that name the farm, to be repeated in a command line that farm proposes."""
        named = (("--state-dir", self.state_dir), ("--db", self.db))
        return tuple(part for flag, value in named if value is not None for part in (flag, value))


def _path(flag: str, value: str | None) -> Path | None:
    if value is None:
        return None
    if not value or "\0" in value:
        raise Usage(f"{flag} names no path")
    return Path(value)


@dataclass(slots=True)
class Given:
    """The options met so far while a command line is read."""

    globals: Globals = field(default_factory=Globals)

    def take(self, option: GlobalOption, values: Sequence[str] | bool) -> None:
        """Add what one level of the command line gave for an option.

        Raises:
            Usage: as `Globals.with_value`.
        """
        if isinstance(values, bool):
            if values:
                self.globals = self.globals.with_value(option, True)
            return
        for value in values:
            self.globals = self.globals.with_value(option, value)


def only_globals(arguments: Sequence[str]) -> Globals | None:
    """The options of a command line that has nothing but them, well formed; else None.

    This is how the console is opened without importing Typer.
    """
    by_flag = {option.flag: option for option in (*GLOBAL_OPTIONS, *CONSOLE_OPTIONS)}
    given = Given()
    rest = iter(arguments)
    for argument in rest:
        flag, equals, value = argument.partition("=")
        option = by_flag.get(flag)
        if option is None or (option.metavar is None and equals):
            return None
        if option.metavar is None:
            given.take(option, True)
            continue
        if not equals:
            following = next(rest, None)
            if following is None:
                return None
            value = following
        given.take(option, [value])
    return given.globals


def asks_json(arguments: Sequence[str]) -> bool:
    """Whether a command line that could not be understood was to be answered in JSON."""
    before_end = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
    return "--json" in before_end
