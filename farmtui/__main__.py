"""`farm` and `python -m farmtui`: the way in.

Nothing heavy is imported before it is known to be needed: ``--version`` needs nothing, the bare
command goes straight to the console, everything else goes through Typer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: the arguments without the program's name; the process's own where None.

    Returns:
        The exit code: see `farmtui.cli.exits`.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        from farmtui import __version__

        sys.stdout.write(f"farm {__version__}\n")
        return 0
    from farmtui.cli.process import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
