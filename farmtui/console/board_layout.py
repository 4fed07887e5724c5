"""How wide each lane of the board is: open, or folded to its number. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farmtui.state import Lane

# From this width on every lane is open and a preview stands on the right.
WIDE = 160
OPEN_CELLS = 24
_PREVIEW_MIN, _PREVIEW_SHARE = 40, 0.32
# Which lanes stay open where not all fit, beside the one in focus.
_URGENCY = (Lane.HUMAN, Lane.RUNNING, Lane.PENDING, Lane.FAILED, Lane.OTHER, Lane.DONE)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Widths in cells, border counted.

    Attributes:
        widths: by lane, from left to right.
        folded: the lanes that show their number only.
        preview: 0 where there is no room for one.
    """

    widths: Mapping[Lane, int]
    folded: frozenset[Lane]
    preview: int


def arrange(
    lanes: Sequence[Lane], counts: Mapping[Lane, int], shown: Mapping[Lane, int], focused: Lane, width: int
) -> Arrangement:
    """Give `width` cells to the lanes and, where it is wide, to the preview.

    The lane in focus is always open. Of the others those with cards are, the urgent ones first.

    Args:
        counts: runs in each lane; `shown`: those that a filter leaves.
    """
    wide = width >= WIDE
    preview = (
        max(_PREVIEW_MIN, min(int(width * _PREVIEW_SHARE), width - OPEN_CELLS * len(lanes))) if wide else 0
    )
    room = width - preview
    if wide or room // len(lanes) >= OPEN_CELLS:
        open_lanes = set(lanes)
    else:
        fold = {lane: _folded_width(counts.get(lane, 0)) for lane in lanes}
        urgent = [lane for lane in _URGENCY if lane in fold and lane is not focused and shown.get(lane)]
        open_lanes = {focused}
        left = room - sum(fold.values()) + fold[focused] - OPEN_CELLS
        for lane in urgent:
            left -= OPEN_CELLS - fold[lane]
            if left < 0:
                break
            open_lanes.add(lane)
    widths = {lane: _folded_width(counts.get(lane, 0)) for lane in lanes if lane not in open_lanes}
    spare = room - sum(widths.values())
    opened = [lane for lane in lanes if lane in open_lanes]
    for place, lane in enumerate(opened):
        widths[lane] = spare // len(opened) + (1 if place < spare % len(opened) else 0)
    return Arrangement(
        {lane: widths[lane] for lane in lanes}, frozenset(lanes) - frozenset(open_lanes), preview
    )


def _folded_width(count: int) -> int:
    """Border, blank, sign, blank, number, blank."""
    return 5 + len(str(count))
