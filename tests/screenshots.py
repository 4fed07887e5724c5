"""Pictures of the console on the demo's farm, for the README: ``python -m tests.screenshots [DIR]``.

The farm is held still at one moment, so the same program draws the same pictures; ``--check`` says which of
those in DIR (``screenshots/`` where none is named) are out of date. ``--png`` draws PNGs as well, to look at.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from farmtui.clock import FixedClock
from farmtui.console.app import FarmApp
from farmtui.demo.run import DemoFarm
from farmtui.farm import Farm

FOLDER = Path(__file__).resolve().parents[1] / "screenshots"
MOMENT = datetime(2026, 2, 15, 12, 0, 0, tzinfo=UTC)
HOST = "gw-box"
# The header shows where the farm is, so that is the same each time too.
SHOWN = Path("/tmp/farm-demo")
WAIT_S = 20.0
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the keys that lead there, and a word that stands there when it is drawn.

    A key ``to WORD`` moves down until the chosen row holds that word.
    """

    keys: tuple[str, ...]
    shows: str
    size: tuple[int, int] = (120, 32)


PICTURES: Mapping[str, Picture] = {
    "board": Picture((), "Export orders", (160, 36)),
    "run": Picture(("2", "slash", *"OAuth", "enter", "enter", "tab", "tab", "tab"), "## S-3", (120, 34)),
    "medic": Picture(("4", "to stale-claim"), "story S-3 running", (120, 18)),
    "plan": Picture(("4", "to stale-claim", "R"), "Cancel", (100, 26)),
    "escalations": Picture(("3",), "sent back"),
    "crons": Picture(("5",), "model not allowed"),
    "board-80": Picture((), "OAuth", (80, 24)),
}


def draw(farm: DemoFarm, picture: Picture) -> str:
    """The picture as SVG."""
    clock = FixedClock(MOMENT)
    app = FarmApp(
        Farm(farm.paths, clock=clock, environ=farm.environ),
        clock=clock,
        environ={"TERM": "xterm-256color", "LANG": "C.UTF-8"},
    )

    async def drawn() -> str:
        async with app.run_test(size=picture.size) as pilot:
            await _until(pilot, lambda: _settled(app))
            for key in picture.keys:
                if key.startswith("to "):
                    await _choose(pilot, key.removeprefix("to "))
                else:
                    await pilot.press(key)
                    await pilot.pause()
            await _until(pilot, lambda: picture.shows in _text(app))
            await pilot.pause(0.3)
            return app.export_screenshot(title="farm demo")

    return asyncio.run(drawn())


def draw_all() -> dict[str, str]:
    """Every picture by name."""
    with DemoFarm(SHOWN, still=MOMENT) as farm:
        try:
            return {name: draw(farm, picture) for name, picture in PICTURES.items()}
        finally:
            shutil.rmtree(SHOWN)


def _settled(app: FarmApp) -> bool:
    """All that the demo has to show is known; what crons contradict is only told at a second look."""
    view = app.view
    found = {finding.check for finding in view.judgement.findings} if view is not None else set()
    return view is not None and view.state.tallied and {"missing-crons", "orphaned-crons"} <= found


def _text(app: App[int]) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def _choose(pilot: Pilot[int], word: str) -> None:
    await pilot.press("g")
    for _ in range(40):
        await pilot.pause()
        if any(line.startswith("▌") and word in line for line in _text(pilot.app).splitlines()):
            return
        await pilot.press("j")
    raise SystemExit(f"no row with {word!r}:\n{_text(pilot.app)}")


async def _until(pilot: Pilot[int], there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not there():
        if time.monotonic() > deadline:
            raise SystemExit(f"it is not on the screen after {WAIT_S:.0f} s:\n{_text(pilot.app)}")
        await pilot.pause(0.05)


def main() -> None:
    """Draw, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument(
        "--check", action="store_true", help="draw nothing; exit 1 where a picture is out of date"
    )
    parser.add_argument("--png", type=Path, metavar="DIR", help="draw PNGs into this folder too")
    options = parser.parse_args()
    socket.gethostname = lambda: HOST
    drawn = draw_all()
    if options.check:
        stale = [name for name, svg in drawn.items() if _old(options.folder / f"{name}.svg") != svg]
        sys.exit(f"out of date: {', '.join(stale)} (python -m tests.screenshots)" if stale else 0)
    options.folder.mkdir(exist_ok=True)
    for name, svg in drawn.items():
        (options.folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        if options.png is not None:
            _write_png(svg, options.png / f"{name}.png")


def _old(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _write_png(svg: str, path: Path) -> None:
    import resvg_py

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(resvg_py.svg_to_bytes(svg_string=_FONTS.sub("", svg))))


if __name__ == "__main__":
    main()
