"""`farm` without a command: the console."""

from __future__ import annotations

import sys

from farmtui.cli.call import Call
from farmtui.cli.exits import Usage
from farmtui.cli.screen import is_terminal


def open_console(call: Call) -> int:
    """Open the console; returns its exit code when it is left.

    Raises:
        Usage: there is no terminal to open it in, or it was to answer in JSON.
    """
    if call.options.json:
        raise Usage("--json needs a command, such as farm runs --json")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise Usage("the console needs a terminal; farm runs, farm medic and farm --help work without one")
    # Reading begins before Textual is imported: the first rows are there when the screen is.
    farm = call.farm
    raise Usage(f"the console of {farm.paths.database.path} cannot be opened yet")
