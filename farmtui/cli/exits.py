"""Exit codes, and the errors that end a command with one of them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the exit code of a command says."""

    FINE = 0
    FOUND = 1  # findings; or refused, or not found
    USAGE = 2
    UNREAD = 3  # could not read or check
    FAULT = 70  # a fault of farm's own (EX_SOFTWARE)
    INTERRUPTED = 130


EXIT_WORDS = """\
Exit codes:
   0  fine
   1  findings; refused, declined or done only in part; not found
   2  usage
   3  could not read or check
  70  a fault of farm's own"""


class Stop(Exception):
    """A command ends here, with one line that says what, where, and what to do."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


class Usage(Stop):
    """The command line itself is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)


class NotFound(Stop):
    """What was named is not there, or is named by more than one thing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.FOUND)


class Unread(Stop):
    """What the answer rests on could not be read."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNREAD)
