"""A command line run as a process: answers written out, errors told, exit codes chosen.

Nothing that goes wrong shows a traceback. Where ``FARM_TRACEBACK`` is set, a fault of farm's own does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from farmtui.cli.answer import Answer, masked, to_json
from farmtui.cli.call import Call
from farmtui.cli.exits import Exit, Stop
from farmtui.cli.options import Given, asks_json, only_globals
from farmtui.cli.screen import screen_for
from farmtui.text import ascii_json, safe_line

TRACEBACK = "FARM_TRACEBACK"


@dataclass(frozen=True, slots=True)
class _Output:
    """What is to be written: the answer, and lines for standard error."""

    code: int
    text: str = ""
    said: tuple[str, ...] = ()


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    _make_streams_writable()
    try:
        output = _answered(Call(), arguments)
        sys.stdout.write(output.text)
        sys.stdout.flush()
        for line in output.said:
            say(line)
    except BrokenPipeError:
        # Whoever read us has had enough. What is still buffered must not raise again at exit.
        _let_go_of_stdout()
        return Exit.FINE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        _let_go_of_stdout()
        say(f"the answer could not be written: {error.strerror or error}")
        return Exit.UNREAD
    return output.code


def _answered(call: Call, arguments: Sequence[str]) -> _Output:
    json = asks_json(arguments)
    try:
        answer = _perform(call, arguments)
        return _shown(call, answer) if isinstance(answer, Answer) else _Output(answer)
    except Stop as stop:
        return _stopped(call, str(stop), stop.code, json=json)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        if call.environ.get(TRACEBACK):
            traceback.print_exc()
        return _stopped(call, _fault(error), Exit.FAULT, json=json)


def _perform(call: Call, arguments: Sequence[str]) -> Answer | int:
    options = only_globals(arguments)
    if options is not None:
        from farmtui.cli.console import open_console

        call.given = Given(options)
        return open_console(call)
    from farmtui.cli.app import invoke

    return invoke(call, arguments)


def _shown(call: Call, answer: Answer) -> _Output:
    data = masked(answer.data, revealed=answer.revealed, scrub=call.scrub)
    errors = tuple(call.scrub(line) for line in answer.errors)
    if call.options.json:
        whole = to_json(call.envelope(), answer.kind, data, errors)
        return _Output(answer.code, ascii_json(whole, indent=2) + "\n")
    screen = screen_for(sys.stdout, call.environ, call.clock.now())
    text = "".join(f"{line}\n" for line in answer.lines(data, screen))
    return _Output(answer.code, text, errors)


def _stopped(call: Call, message: str, code: Exit, *, json: bool) -> _Output:
    message = call.scrub(message)
    if not (json or call.options.json):
        return _Output(code, said=(message,))
    others = (line for line in call.source_errors() if line.partition(": ")[2] not in message)
    errors = dict.fromkeys([message, *map(call.scrub, others)])
    data = masked(call.empty, revealed=False, scrub=call.scrub)
    whole = to_json(call.envelope(), call.kind, data, errors)
    return _Output(code, ascii_json(whole, indent=2) + "\n")


def _fault(error: Exception) -> str:
    kind = type(error).__name__
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = f" in {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else ""
    return f"a fault of farm's own: {kind}{place}. {TRACEBACK}=1 shows where; please report it"


def say(message: str) -> None:
    """One line for people on standard error, which may be closed as well."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"farm: {safe_line(message)}", file=sys.stderr, flush=True)


def _make_streams_writable() -> None:
    """Streams closed before we began swallow what is written; what an encoding lacks is replaced."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _let_go_of_stdout() -> None:
    with suppress(OSError, ValueError):
        void = os.open(os.devnull, os.O_WRONLY)
        os.dup2(void, sys.stdout.fileno())
        os.close(void)
