"""The rules by which a run moves: pure functions from one run's rows to writes and events.

What Antfarm 0.5.1 does is recorded operation by operation; this does the same, except where that is
known to do harm: a step is reported once and only while it runs, a list of stories is taken whole or
not at all, and a verifier is judged by its own words. Whoever applies a `Move` decides whether its
writes go in one transaction or one by one.
"""

from farmtui.antfarm.engine.claims import Claimed, claim, start
from farmtui.antfarm.engine.moves import Move, NotAllowed, RowWrite
from farmtui.antfarm.engine.outputs import BadStories, parse_keys, parse_stories
from farmtui.antfarm.engine.reports import complete, fail

__all__ = [
    "BadStories",
    "Claimed",
    "Move",
    "NotAllowed",
    "RowWrite",
    "claim",
    "complete",
    "fail",
    "parse_keys",
    "parse_stories",
    "start",
]
