"""openclaw.json as data: JSON, else JSON5; other files that it includes are merged in.

Includes as OpenClaw documents them (gateway/config-secrets-env): ``$include`` names one file or
several, inside the config's folder; keys beside it override what was included.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farmtui.openclaw.files import FileProblem, read_bounded

# OpenClaw's own bound for an included file; a config of a farm with 50 agents has 40 kB.
_LIMIT = 2 << 20
_DEPTH = 10
_INCLUDE = "$include"


def load_config(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The config, and one line for every include that could not be followed.

    Raises:
        FileProblem: the config itself cannot be read, or is no JSON5 object.
    """
    loaded = _parse(path)
    if not isinstance(loaded, dict):
        raise FileProblem(f"{path} holds no JSON object")
    problems: list[str] = []
    try:
        merged = _expand(loaded, path.parent, path.parent.resolve(), _DEPTH, problems)
    except RecursionError:
        raise FileProblem(f"{path} is nested too deeply") from None
    return merged if isinstance(merged, dict) else {}, tuple(problems)


def _parse(path: Path) -> Any:
    data = read_bounded(path, _LIMIT)
    try:
        return _parse_text(path, data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        pass
    try:
        # As OpenClaw itself reads it: a bad byte in one name must not lose every agent and the gateway.
        return _parse_text(path, data.decode("utf-8-sig", "replace"))
    except FileProblem:
        raise FileProblem(f"{path} is no UTF-8 text") from None


def _parse_text(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise FileProblem(f"{path} is nested too deeply") from None
    except ValueError:
        return _parse_json5(path, text)


def _parse_json5(path: Path, text: str) -> Any:
    import pyjson5  # only where it is needed: most configs are plain JSON

    try:
        return pyjson5.decode(text, maxdepth=200)
    except pyjson5.Json5Exception as error:
        # Its message may quote the text, which may be a secret: only what kind of fault it is, is told.
        raise FileProblem(f"{path} is neither JSON nor JSON5 ({type(error).__name__})") from None


def _expand(value: Any, folder: Path, boundary: Path, depth: int, problems: list[str]) -> Any:
    if isinstance(value, list):
        return [_expand(item, folder, boundary, depth, problems) for item in value]
    if not isinstance(value, dict):
        return value
    beside = {
        key: _expand(item, folder, boundary, depth, problems)
        for key, item in value.items()
        if key != _INCLUDE
    }
    if _INCLUDE not in value:
        return beside
    named = value[_INCLUDE]
    included: Any = {}
    for name in named if isinstance(named, list) else [named]:
        try:
            path, part = _included(name, folder, boundary, depth)
        except FileProblem as problem:
            problems.append(f"$include not followed: {problem}")
            continue
        included = _merge(included, _expand(part, path.parent, boundary, depth - 1, problems))
    return _merge(included, beside) if beside else included


def _included(name: object, folder: Path, boundary: Path, depth: int) -> tuple[Path, Any]:
    if not isinstance(name, str) or not name or "\0" in name:
        raise FileProblem("it names no file")
    if depth <= 0:
        raise FileProblem(f"{name} is included more than {_DEPTH} levels deep")
    try:
        path = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):
        raise FileProblem(f"{name} cannot be found") from None
    if not path.is_relative_to(boundary):
        raise FileProblem(f"{name} is outside the config's folder")
    return path, _parse(path)


def _merge(under: Any, over: Any) -> Any:
    if isinstance(under, Mapping) and isinstance(over, Mapping):
        merged = dict(under)
        for key, value in over.items():
            merged[key] = _merge(under[key], value) if key in under else value
        return merged
    return over
