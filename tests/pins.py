"""What constraints.txt is made from: the versions installed here of everything that farm and its tests need.

python -m tests.pins > constraints.txt
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement

BUILT_WITH = ("hatchling", "trove-classifiers")


def closure() -> dict[str, str]:
    """Name → version of farm's dependencies, those of its tests, and theirs in turn."""
    found: dict[str, str] = {}
    waiting = [("farmtui", "dev"), *((name, "") for name in BUILT_WITH)]
    visited = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in visited:
            continue
        visited.add((name, extra))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue
        if name != "farmtui":
            found[normal(name)] = installed.version
        waiting += _needed(installed.requires or [], extra)
    return dict(sorted(found.items()))


def normal(name: str) -> str:
    """A distribution's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _needed(requirements: list[str], extra: str) -> Iterator[tuple[str, str]]:
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement.name, ""
            yield from ((requirement.name, wanted) for wanted in requirement.extras)


if __name__ == "__main__":
    for name, version in closure().items():
        print(f"{name}=={version}")
