"""Variables as openclaw.json may refer to them, and secrets given by reference.

From OpenClaw's documentation (help/environment, gateway/config-secrets-env): a variable comes from the
process, then ``.env`` in the working folder, then ``.env`` in the state folder, then the config's
``env`` block; none overrides an earlier one. The working folder is trusted less: what it says about
OpenClaw itself is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farmtui.openclaw.files import FileProblem, read_bounded

_DOTENV_LIMIT = 1 << 20
_REFERENCE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(['"`])(.*?)\1\s*(?:#.*)?""")
_NOT_VARIABLES = frozenset({"vars", "shellEnv"})


class Unresolved(Exception):
    """A value that rests on something farm cannot look up. One line that names it, never its value."""


def variables(environ: Mapping[str, str], cwd: Path, state_dir: Path, env_block: object) -> Mapping[str, str]:
    """All variables by name, in OpenClaw's order of precedence. Empty ones count as unset."""
    found: dict[str, str] = dict(_config_block(env_block))
    found.update(_dotenv(state_dir / ".env"))
    local = _dotenv(cwd / ".env") if cwd != state_dir else {}
    found.update({name: value for name, value in local.items() if not name.startswith("OPENCLAW_")})
    found.update({name: value for name, value in environ.items() if value})
    return found


def substitute(text: str, known: Mapping[str, str]) -> str:
    """``${VAR}`` replaced, ``$${VAR}`` made literal.

    Raises:
        Unresolved: a variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found[1]:
            return f"${{{found[2]}}}"
        if not known.get(found[2]):
            raise Unresolved(f"${{{found[2]}}} is not set")
        return known[found[2]]

    return _REFERENCE.sub(value, text)


def secret_text(value: object, known: Mapping[str, str]) -> str | None:
    """A secret as it stands in the config, looked up; None where there is none.

    Raises:
        Unresolved: it is a reference to a variable that is not set, or to a file, a command or
            OpenClaw's own secret store, which farm does not read.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return substitute(value, known)
    if isinstance(value, Mapping):
        source, name = value.get("source"), value.get("id")
        if source == "env" and isinstance(name, str):
            if not known.get(name):
                raise Unresolved(f"the variable {name} is not set")
            return known[name]
        if isinstance(source, str):
            provider = value.get("provider", "default")
            raise Unresolved(f"it is kept elsewhere ({source}: {provider} {name}), which farm does not open")
    raise Unresolved("it has a form that farm does not know")


def _config_block(block: object) -> Mapping[str, str]:
    if not isinstance(block, Mapping):
        return {}
    inner = block.get("vars")
    found: dict[str, Any] = {name: value for name, value in block.items() if name not in _NOT_VARIABLES}
    if isinstance(inner, Mapping):
        found.update(inner)
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


def _dotenv(path: Path) -> Mapping[str, str]:
    try:
        text = read_bounded(path, _DOTENV_LIMIT).decode(errors="replace")
    except FileProblem:
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _ASSIGNMENT.fullmatch(line):
            raw = match[2].strip()
            quoted = _QUOTED.fullmatch(raw)
            value = quoted[2] if quoted else raw.split(" #", 1)[0].strip()
            if value:
                found[match[1]] = value
    return found
