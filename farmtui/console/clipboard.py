"""Copying over SSH and in tmux.

tmux's default configuration drops OSC 52, so inside tmux the text goes through ``tmux load-buffer -w -``,
which also sets the outer terminal's clipboard; elsewhere OSC 52 is all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

# A tmux that hangs must not hold up the console.
_TMUX_S = 2.0


async def copy(text: str, environ: Mapping[str, str], osc52: Callable[[str], None]) -> str:
    """Copy a text; returns by which way: ``tmux`` or ``OSC 52``."""
    if environ.get("TMUX") and await _to_tmux(text):
        return "tmux"
    osc52(text)
    return "OSC 52"


async def _to_tmux(text: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux",
            "load-buffer",
            "-w",
            "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), _TMUX_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return False
    return process.returncode == 0
