"""`farm show` for people: the steps as a table, then what was said last, cropped with a hint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from farmtui.cli.runs import label
from farmtui.cli.screen import Screen
from farmtui.cli.table import Column, pairs, table
from farmtui.clock import duration
from farmtui.text import crop, safe_line, safe_text

_FEW_LINES = 12
_FEW_EVENTS = 10
_VALUE_CELLS = 60


def show_lines(data: Mapping[str, Any], screen: Screen, *, full: bool) -> Iterator[str]:
    """The lines; long texts are cut to a few lines each unless `full`."""
    run, steps = data["run"], data["steps"]
    title = f"{label(run['number'], run['id'])} {run['workflow']}"
    yield screen.strong(safe_line(f"{title}  {run['task']}"))
    yield from pairs(
        [
            ("run", run["id"]),
            ("status", run["status"]),
            ("lane", run["lane"]),
            ("began", f"{run['created_at']} ({screen.age(run['created_at'])} ago)"),
            ("changed", f"{run['updated_at']} ({screen.age(run['updated_at'])} ago)"),
        ],
        screen,
        indent=2,
    )
    yield from _section("Steps", screen)
    yield from _steps(steps, screen)
    if data["stories"]:
        yield from _section("Stories", screen)
        yield from _stories(data["stories"], screen)
    yield from _context(run["context"], screen, full=full)
    spoke = _last_to_speak(steps, data["stories"])
    for title, text in spoke:
        yield from _text(title, text, screen, full=full)
    for step in steps:
        if step["missing_keys"]:
            yield ""
            yield safe_line(f"{step['step_name']} lacks {', '.join(step['missing_keys'])}")
    if full:
        for step in steps:
            if step["status"] in ("pending", "running"):
                about = f"Input of {step['step_name']} (resolved against today's context)"
                yield from _text(about, step["input"], screen, full=True)
    yield from _events(data["events"], screen, full=full)
    if data["progress"] is not None:
        about = f"Progress, {data['progress']['path']}"
        yield from _text(about, data["progress"]["text"], screen, full=full, tail=True)


def _steps(steps: Sequence[Mapping[str, Any]], screen: Screen) -> Iterator[str]:
    yield from table(
        [
            Column("STEP"),
            Column("AGENT"),
            Column("STATUS", state=True),
            Column("STORY"),
            Column("RETRIES", right=True),
            Column("ABANDONED", right=True),
            Column("CLAIM", right=True),
            Column("LIMIT", right=True),
            Column("CHANGED", right=True),
            Column("MISSING", flexible=True),
        ],
        [
            (
                step["step_name"],
                step["agent"],
                step["status"],
                step["current_story"],
                f"{step['retry_count']}/{step['max_retries']}" if step["retry_count"] else None,
                step["abandoned_count"] or None,
                None if step["claim_age_s"] is None else duration(step["claim_age_s"]),
                None if step["claimed_at"] is None else duration(step["timeout_s"]),
                screen.age(step["updated_at"]),
                ", ".join(step["missing_keys"]),
            )
            for step in steps
        ],
        screen,
    )


def _stories(stories: Sequence[Mapping[str, Any]], screen: Screen) -> Iterator[str]:
    yield from table(
        [
            Column("STORY"),
            Column("STATUS", state=True),
            Column("RETRIES", right=True),
            Column("CHANGED", right=True),
            Column("TITLE", flexible=True),
        ],
        [
            (
                story["story_id"],
                story["status"],
                f"{story['retry_count']}/{story['max_retries']}" if story["retry_count"] else None,
                screen.age(story["updated_at"]),
                story["title"],
            )
            for story in stories
        ],
        screen,
    )


def _context(context: Mapping[str, Any], screen: Screen, *, full: bool) -> Iterator[str]:
    if not context:
        return
    yield from _section("Context", screen)
    rows = [(safe_line(str(key)), safe_line(_plain(value))) for key, value in context.items()]
    yield from pairs(
        [(key, text if full else crop(text, _VALUE_CELLS)) for key, text in rows], screen, indent=2
    )


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _last_to_speak(
    steps: Sequence[Mapping[str, Any]], stories: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """The last output of a step and of a story, the later last."""
    spoke = []
    for name, kind, each in (("step_name", "step", steps), ("story_id", "story", stories)):
        said = [entry for entry in each if entry["output"]]
        if said:
            last = max(said, key=lambda entry: (entry["updated_at"] or "", entry["index"]))
            spoke.append((last["updated_at"] or "", f"Output of {kind} {last[name]}", last["output"]))
    return [(title, text) for _, title, text in sorted(spoke, key=lambda entry: entry[0])]


def _events(events: Sequence[Mapping[str, Any]], screen: Screen, *, full: bool) -> Iterator[str]:
    if not events:
        return
    shown = events if full else events[-_FEW_EVENTS:]
    yield from _section("Events", screen)
    if len(shown) < len(events):
        yield f"  … {len(events) - len(shown)} earlier ones: --full"
    yield from table(
        [Column("TIME"), Column("EVENT"), Column("STEP"), Column("STORY"), Column("DETAIL", flexible=True)],
        [(event["ts"], event["event"], event["step"], event["story"], event["detail"]) for event in shown],
        screen,
    )


def _text(title: str, text: str, screen: Screen, *, full: bool, tail: bool = False) -> Iterator[str]:
    lines = safe_text(text).rstrip("\n").split("\n")
    shown = lines if full else lines[-_FEW_LINES:] if tail else lines[:_FEW_LINES]
    yield from _section(title, screen)
    if tail and len(shown) < len(lines):
        yield f"  … {len(lines) - len(shown)} lines before: --full"
    for line in shown:
        yield "  " + (line if screen.width is None or full else crop(line, max(1, screen.width - 2)))
    if not tail and len(shown) < len(lines):
        yield f"  … {len(lines) - len(shown)} more lines: --full"


def _section(title: str, screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.strong(safe_line(title))
