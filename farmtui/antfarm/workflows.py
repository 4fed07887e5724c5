"""Installed workflows: workflow.yml as people write it, from a folder that may hold anything.

Every scalar is read as text and interpreted here. YAML's implicit types would turn ``on`` into a boolean,
huge integers into seconds of work, and merge keys (which Antfarm's own parser does not follow either) into
an explosion; aliases stay shared objects, and only known keys are looked into.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from farmtui.state import AgentSpec, StepSpec, Workflow

FILE_NAME = "workflow.yml"
MAX_BYTES = 1024 * 1024
MAX_DEPTH = 4  # folders below the workflows folder: some people sort workflows into groups
MAX_FOLDERS = 5000
MAX_ENTRIES = 1000  # steps or agents in one file: aliases can make millions out of little text
_SKIPPED_FOLDERS = frozenset({"agents", "node_modules", "workspaces", "__pycache__"})
_BACKUP = re.compile(r"(\.bak\d*|\.old|\.orig|~)$", re.IGNORECASE)
_SEPARATORS = "_-/"
# Base loaders construct str, list and dict, and nothing else.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def short_agent(agent_id: str, workflow_id: str) -> str:
    """An agent's name within its workflow: ``scout`` of ``relay_scout``, ``relay-scout`` or ``relay/scout``.

    An id of another form comes back as it is.
    """
    rest = agent_id[len(workflow_id) + 1 :]
    if rest and agent_id.startswith(workflow_id) and agent_id[len(workflow_id)] in _SEPARATORS:
        return rest
    return agent_id


# ---------------------------------------------------------------- the folder


def read_workflows(folder: Path) -> Mapping[str, Workflow]:
    """All workflows below `folder`, by id. {} where the folder is absent: then none are installed.

    Raises:
        OSError: the folder is there and cannot be listed.
    """
    return WorkflowFolder(folder).poll()


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What tells that a file changed, without reading it."""

    mtime_ns: int
    size: int
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class _Found:
    """A workflow.yml, and how far below the workflows folder it lies."""

    path: str
    folder: str
    depth: int
    stamp: _Stamp | None
    error: str | None = None


class WorkflowFolder:
    """The workflows folder, read again only where a file's stat changed.

    Attributes:
        shadowed: one line for each file that is not used, because a folder nearer to the top has its id.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shadowed: tuple[str, ...] = ()
        self._parsed: dict[str, tuple[_Found, Workflow]] = {}
        self._workflows: Mapping[str, Workflow] = {}

    def poll(self) -> Mapping[str, Workflow]:
        """The workflows by id; the very same mapping while nothing changed.

        A file that cannot be read or understood is there as a Workflow with `error` set.

        Raises:
            OSError: the folder is there and cannot be listed. The next call tries again.
        """
        found = {entry.path: entry for entry in _find(self.path)}
        if found != {path: entry for path, (entry, _) in self._parsed.items()}:
            parsed = {}
            for path, entry in found.items():
                before = self._parsed.get(path)
                parsed[path] = before if before and before[0] == entry else (entry, _read(entry))
            self._parsed = parsed
            self._workflows, self.shadowed = _by_id(list(parsed.values()))
        return self._workflows


def _find(top: Path) -> Iterator[_Found]:
    """Every workflow.yml below `top`, each folder once, however it is linked."""
    try:
        queue = [(path, 1) for path in sorted(top.iterdir())]
    except FileNotFoundError:
        return
    seen: set[tuple[int, int]] = set()
    while queue and len(seen) < MAX_FOLDERS:
        folder, depth = queue.pop(0)
        name = folder.name
        if name.startswith(".") or name in _SKIPPED_FOLDERS or _BACKUP.search(name):
            continue
        try:
            at = folder.stat()
        except OSError:
            continue
        if not stat.S_ISDIR(at.st_mode) or (at.st_dev, at.st_ino) in seen:
            continue
        seen.add((at.st_dev, at.st_ino))
        file = folder / FILE_NAME
        try:
            below = sorted(folder.iterdir())
            if file in below:
                to = file.stat()
                stamp = _Stamp(to.st_mtime_ns, to.st_size, to.st_dev, to.st_ino)
                yield _Found(str(file), name, depth, stamp)
        except OSError as error:
            yield _Found(str(file), name, depth, None, f"cannot be read: {error.strerror or error}")
            continue
        if depth < MAX_DEPTH:
            queue += [(path, depth + 1) for path in below]


def _read(found: _Found) -> Workflow:
    if found.error is not None:
        return _unusable(found.folder, found.path, found.error)
    try:
        # O_NONBLOCK: a FIFO in a file's place must not hang the reader.
        handle = os.open(found.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _unusable(found.folder, found.path, "is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        return _unusable(found.folder, found.path, f"cannot be read: {error.strerror or error}")
    if len(data) > MAX_BYTES:
        return _unusable(found.folder, found.path, "is larger than 1 MiB")
    return parse_workflow(data.decode("utf-8", "replace"), found.path, found.folder)


def _by_id(parsed: list[tuple[_Found, Workflow]]) -> tuple[Mapping[str, Workflow], tuple[str, ...]]:
    """One workflow an id: nearest to the top, then the folder of that very name, then by path."""
    parsed.sort(key=lambda pair: (pair[0].depth, pair[0].folder != pair[1].id, pair[0].path))
    workflows: dict[str, Workflow] = {}
    shadowed = []
    for found, workflow in parsed:
        first = workflows.setdefault(workflow.id, workflow)
        if first is not workflow:
            shadowed.append(f"{found.path}: not used, {first.path} has the id {workflow.id} too")
    return workflows, tuple(shadowed)


# ---------------------------------------------------------------- the file


def parse_workflow(text: str, path: str, folder_name: str) -> Workflow:
    """A workflow.yml's text as a record. Never raises: `error` tells in one line what is wrong with it.

    Args:
        text: the file's whole text.
        path: where it was read, for people.
        folder_name: the id where the file gives none.
    """
    try:
        data = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        return _unusable(folder_name, path, f"is not valid YAML: {_yaml_fault(error)}")
    except (RecursionError, MemoryError, ValueError, TypeError) as error:
        return _unusable(folder_name, path, f"is not usable YAML: {type(error).__name__}")
    if not isinstance(data, dict):
        return _unusable(folder_name, path, "is not a mapping of id, agents and steps")
    identity = _text(data.get("id")).strip() or folder_name
    steps, agents = data.get("steps"), _list(data.get("agents"))
    if not isinstance(steps, list):
        return _unusable(identity, path, "has no list of steps")
    if len(steps) > MAX_ENTRIES or len(agents) > MAX_ENTRIES:
        return _unusable(identity, path, f"has more than {MAX_ENTRIES} steps or agents")
    return Workflow(
        id=identity,
        name=_text(data.get("name")) or identity,
        path=path,
        agents=tuple(agent for entry in agents if (agent := _agent(entry))),
        steps=tuple(step for entry in steps if (step := _step(entry))),
        cron_interval_ms=_positive(_mapping(data.get("cron")).get("interval_ms")),
        context_keys=tuple(key for key in _mapping(data.get("context")) if isinstance(key, str)),
    )


def _unusable(identity: str, path: str, error: str) -> Workflow:
    return Workflow(id=identity, name=identity, path=path, error=error)


def _yaml_fault(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        where = f"line {mark.line + 1}: " if mark else ""
        return where + (error.problem or error.context or "cannot be parsed")
    return " ".join(str(error).split())[:200]


def _agent(entry: Any) -> AgentSpec | None:
    data = _mapping(entry)
    identity = _text(data.get("id")).strip()
    if not identity:
        return None
    return AgentSpec(
        id=identity,
        role=_text(data.get("role")) or None,
        timeout_s=_positive(data.get("timeoutSeconds")),
        base_dir=_text(_mapping(data.get("workspace")).get("baseDir")) or None,
    )


def _step(entry: Any) -> StepSpec | None:
    data = _mapping(entry)
    identity = _text(data.get("id")).strip()
    if not identity:
        return None
    loop = _mapping(data.get("loop"))
    on_fail = data.get("on_fail")
    retries = next(
        (
            count
            for value in (data.get("max_retries"), data.get("retries"), _mapping(on_fail).get("max_retries"))
            if (count := _count(value)) is not None
        ),
        None,
    )
    verify_step = _text(loop.get("verify_step")) or _text(loop.get("verifyStep")) or None
    verify_each = _text(loop.get("verify_each")) or _text(loop.get("verifyEach"))
    escalates, policy = _policy(on_fail)
    return StepSpec(
        id=identity,
        agent=_text(data.get("agent")).strip(),
        type="loop" if _text(data.get("type")) == "loop" else "single",
        input=_text(data.get("input")),
        expects=_expects(data.get("expects")),
        verify_each=verify_each.lower() in ("true", "yes", "on"),
        verify_step=verify_step,
        max_retries=retries,
        escalates=escalates,
        policy=policy,
    )


def _expects(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(_text(item)[:500] for item in value[:20]) or None
    return _text(value) or None


def _policy(on_fail: Any) -> tuple[bool, str]:
    """Whether `on_fail` names a human, in any spelling, and the policy in words."""
    if isinstance(on_fail, str):
        words = " ".join(on_fail[:80].split())
        return _names_human(words), f"on_fail: {words}" if words else ""
    data = _mapping(on_fail)
    target = data.get("escalate_to")
    if _names_human(target):
        return True, "escalate_to: human"
    exhausted = data.get("on_exhausted")
    if _names_human(exhausted) or _names_human(_mapping(exhausted).get("escalate_to")):
        return True, "on_exhausted: escalate_to human"
    if back := _text(data.get("retry_step")):
        return False, f"retry_step: {back[:80]}"
    return False, f"escalate_to: {_text(target)[:80]}" if _text(target) else ""


def _names_human(value: Any) -> bool:
    if isinstance(value, list):
        return any(isinstance(item, str) and _names_human(item) for item in value[:20])
    return isinstance(value, str) and "human" in re.split(r"[^a-z]+", value[:80].lower())


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value not in ("~", "null") else ""


def _count(value: Any) -> int | None:
    """A whole number of at least 0 from its text; None where it is none."""
    text = _text(value).strip()
    if not re.fullmatch(r"\d{1,9}(\.\d{1,3})?", text, re.ASCII):
        return None
    return int(float(text))


def _positive(value: Any) -> int | None:
    return _count(value) or None
