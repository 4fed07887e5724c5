"""Breaking one safe line between its words."""

from __future__ import annotations

from farmtui.text import cells, crop


def wrap(text: str, width: int, limit: int) -> list[str]:
    """Safe text broken between words into at most `limit` lines, the last one cropped where more is left."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < limit:
        line = words.pop(0)
        while words and cells(line) + 1 + cells(words[0]) <= width:
            line += f" {words.pop(0)}"
        lines.append(crop(line, width))
    if words:
        lines[-1] = crop(f"{lines[-1]} {' '.join(words)}", width)
    return lines
