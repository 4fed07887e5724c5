"""Typer's commands and groups with the options that stand anywhere, and help that is in sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from farmtui.cli.options import CONSOLE_OPTIONS, GLOBAL_OPTIONS, GlobalOption

COMMAND_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class FarmCommand(TyperCommand):
    """A command that also takes the options that stand anywhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_option(option) for option in GLOBAL_OPTIONS)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter, GLOBAL_OPTIONS)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _format_epilog(self.epilog, formatter)


class FarmGroup(TyperGroup):
    """A group of commands that also takes the options that stand anywhere."""

    own_options: Sequence[GlobalOption] = GLOBAL_OPTIONS

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.params.extend(_option(option) for option in self.own_options)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _format_options(self, ctx, formatter, self.own_options)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _format_epilog(self.epilog, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


class RootGroup(FarmGroup):
    """`farm` itself: its commands stand in sections, in the order in which people need them."""

    own_options = (*GLOBAL_OPTIONS, *CONSOLE_OPTIONS)
    sections: Sequence[tuple[str, Sequence[str]]] = ()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, self.commands), default=0)
        for title, names in self.sections:
            rows = [
                (name.ljust(widest), self.commands[name].get_short_help_str(limit=200))
                for name in names
                if name in self.commands
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _option(option: GlobalOption) -> TyperOption:
    def take(ctx: typer.Context, param: Any, value: Any) -> None:
        if ctx.obj is not None and not ctx.resilient_parsing:
            ctx.obj.given.take(option, value)

    valued = option.metavar is not None
    return TyperOption(
        param_decls=[option.flag],
        type=str if valued else None,
        metavar=option.metavar,
        is_flag=None if valued else True,
        default=None if valued else False,
        multiple=valued,
        expose_value=False,
        callback=take,
        help=option.help,
    )


def _format_options(
    command: Any, ctx: typer.Context, formatter: Any, anywhere: Sequence[GlobalOption]
) -> None:
    flags = {option.flag for option in anywhere}
    arguments: list[tuple[str, str]] = []
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        if param.param_type_name == "argument":
            arguments.append(record)
        else:
            (common if flags.intersection(param.opts) else own).append(record)
    for title, records in (
        ("Arguments", arguments),
        ("Options", own),
        ("Options of every command, before it or after it", common),
    ):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _format_epilog(epilog: str | None, formatter: Any) -> None:
    """The epilog line by line: examples are not to be flowed together."""
    if not epilog:
        return
    formatter.write_paragraph()
    for line in epilog.splitlines():
        formatter.write(f"{line}\n" if line else "\n")
