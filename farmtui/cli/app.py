"""The command line's grammar: which commands there are, and how one is found and invoked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer
from typer.main import get_command

from farmtui import __version__
from farmtui.cli.answer import Answer
from farmtui.cli.call import Call
from farmtui.cli.changes import ack, reset, resolve, undo
from farmtui.cli.crons import crons
from farmtui.cli.crons_delete import delete
from farmtui.cli.demo import demo
from farmtui.cli.doctor import doctor
from farmtui.cli.epilogs import epilog
from farmtui.cli.escalations import escalations
from farmtui.cli.exits import EXIT_WORDS, Exit, Usage
from farmtui.cli.grammar import COMMAND_SETTINGS, FarmCommand, FarmGroup, RootGroup
from farmtui.cli.journal import journal
from farmtui.cli.medic import medic
from farmtui.cli.runs import runs
from farmtui.cli.show import show

# In typer's releases that we allow, this class is public under no name of its own.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

LOOKING = "Looking"
MENDING = "Mending"
OTHER = "More"


class FarmRoot(RootGroup):
    """`farm`, with its commands in sections."""

    sections = (
        (LOOKING, ("runs", "show", "medic", "escalations", "crons", "journal", "doctor")),
        (MENDING, ("reset", "resolve", "ack", "undo")),
        (OTHER, ("demo",)),
    )


app = typer.Typer(
    cls=FarmRoot,
    name="farm",
    help="The console that keeps an Antfarm agent farm running. Without a command it opens in the terminal.",
    epilog="Which farm: --db > --state-dir > $ANTFARM_DB_PATH > $OPENCLAW_STATE_DIR > ~/.openclaw\n\n"
    f"{EXIT_WORDS}",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=COMMAND_SETTINGS,
)


@app.callback()
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print farm's version and leave.")] = False,
) -> int | None:
    if version:
        typer.echo(f"farm {__version__}")
        raise typer.Exit
    return None


_commands: Mapping[str, Callable[..., Answer | int]] = {
    "runs": runs,
    "show": show,
    "medic": medic,
    "escalations": escalations,
    "journal": journal,
    "doctor": doctor,
    "reset": reset,
    "resolve": resolve,
    "ack": ack,
    "undo": undo,
    "demo": demo,
}
for _name, _function in _commands.items():
    app.command(_name, cls=FarmCommand, epilog=epilog(_name))(_function)

_crons = typer.Typer(
    cls=FarmGroup, invoke_without_command=True, rich_markup_mode=None, context_settings=COMMAND_SETTINGS
)
_crons.callback()(crons)
_crons.command("delete", cls=FarmCommand, epilog=epilog("crons delete"))(delete)
app.add_typer(_crons, name="crons", epilog=epilog("crons"))


def invoke(call: Call, arguments: Sequence[str]) -> Answer | int:
    """Find the command that the arguments name and run it.

    Returns:
        Its answer, or an exit code where all is said already.

    Raises:
        Stop: the command ends with an error that is told in one line.
    """
    command = get_command(app)
    try:
        with command.make_context("farm", list(arguments), obj=call) as context:
            answer = command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        return Exit.INTERRUPTED
    except _UsageError as error:
        raise Usage(_usage_words(error)) from None
    if answer is None:
        raise Usage("name a command; farm --help lists them")
    if not isinstance(answer, Answer | int):
        raise TypeError(f"a command answered with {type(answer).__name__}")
    return answer


def _usage_words(error: Exception) -> str:
    words = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{words} (see {context.command_path} --help)" if context is not None else words
