r"""What an agent hands in: keys for the context, and stories.

A key is a line ``KEY: value`` in capitals; its value goes on to the next key. Lines end at ``\n`` only,
and a line that ends in ``\r`` or holds U+2028 is no key, as in Antfarm, whose regular expressions are
JavaScript's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_STORIES = 20
_KEY = re.compile(r"([A-Z_]+):\s*([^\n\r\u2028\u2029]*)\Z")
_NEXT_KEY = re.compile(r"[A-Z_]+:\s")
_STORIES = "STORIES_JSON"


class BadStories(ValueError):
    """The list of stories cannot be taken. The message is what Antfarm tells the agent."""


@dataclass(frozen=True, slots=True)
class NewStory:
    """A story as handed in."""

    story_id: str
    title: str
    description: str
    criteria: tuple[str, ...]


def parse_keys(output: str) -> dict[str, str]:
    """The keys of an output in lower case, without stories; values are stripped."""
    values: dict[str, list[str]] = {}
    current: str | None = None
    for line in output.split("\n"):
        found = _KEY.match(line)
        if found:
            current = found[1]
            values[current] = [found[2]]
        elif current is not None:
            values[current].append(line)
    return {
        key.lower(): "\n".join(lines).strip() for key, lines in values.items() if not key.startswith(_STORIES)
    }


def parse_stories(output: str) -> tuple[NewStory, ...]:
    """The stories of an output; () where it holds no ``STORIES_JSON``.

    Raises:
        BadStories: no JSON array of at most 20 whole stories with ids of their own.
    """
    lines = output.split("\n")
    first = next((index for index, line in enumerate(lines) if line.startswith(f"{_STORIES}:")), None)
    if first is None:
        return ()
    text = [lines[first].removeprefix(f"{_STORIES}:")]
    for line in lines[first + 1 :]:
        if _NEXT_KEY.match(line):
            break
        text.append(line)
    try:
        listed = json.loads("\n".join(text).strip())
    except ValueError as error:
        raise BadStories(f"Failed to parse STORIES_JSON: {error}") from None
    except RecursionError:
        raise BadStories("Failed to parse STORIES_JSON: nested too deep") from None
    if not isinstance(listed, list):
        raise BadStories("STORIES_JSON must be an array")
    if len(listed) > MAX_STORIES:
        raise BadStories(f"STORIES_JSON has {len(listed)} stories, max is {MAX_STORIES}")
    stories = tuple(_story(index, raw) for index, raw in enumerate(listed))
    seen: set[str] = set()
    for story in stories:
        if story.story_id in seen:
            raise BadStories(f'STORIES_JSON has duplicate story id "{story.story_id}"')
        seen.add(story.story_id)
    return stories


def _story(index: int, raw: object) -> NewStory:
    story = raw if isinstance(raw, Mapping) else {}
    criteria = story.get("acceptanceCriteria", story.get("acceptance_criteria"))
    if not (
        story.get("id") and story.get("title") and story.get("description") and isinstance(criteria, list)
    ):
        raise BadStories(
            f"STORIES_JSON story at index {index} missing required fields "
            "(id, title, description, acceptanceCriteria)"
        )
    return NewStory(
        str(story["id"]), str(story["title"]), str(story["description"]), tuple(str(one) for one in criteria)
    )
