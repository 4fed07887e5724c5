"""openclaw.json: which agents there are, where the gateway listens, and how it is talked to.

Facts: docs.openclaw.ai, gateway/config-gateway, gateway/remote ("Credential precedence") and
help/environment; both shapes of `agents` were read off real files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from farmtui.openclaw.configfile import load_config
from farmtui.openclaw.files import FileProblem
from farmtui.openclaw.secret import Secret, scrub
from farmtui.openclaw.variables import Unresolved, secret_text, substitute, variables
from farmtui.paths import FarmPaths
from farmtui.state import Agent

DEFAULT_PORT = 18789
LOOPBACK = "127.0.0.1"
_LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost", "::1"})
_EVERYWHERE = frozenset({"0.0.0.0", "::", "lan", "all"})


@dataclass(frozen=True, slots=True)
class GatewayAuth:
    """How to authenticate.

    Attributes:
        mode: token, password, none, or whatever else the config says.
        secret: the token or password.
        problem: why there is no usable secret, by the name of what is missing; None where all is well.
    """

    mode: str
    secret: Secret | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class OpenClawConfig:
    """What farm takes from openclaw.json and the environment.

    Attributes:
        error: why the config could not be read; the rest is then what OpenClaw assumes without one.
        problems: what else is wrong in it, one a line.
        agents: by id.
        host, port, secure: where the gateway listens, and whether by TLS.
        certificate: the gateway's own certificate, which a TLS connection must present.
        unreachable: why farm does not contact the gateway at all, though one is configured.
        unsafe_bind: what the gateway is bound to where that is more than loopback.
        job_store: the file of jobs, where the config names one.
    """

    path: Path
    error: str | None = None
    problems: tuple[str, ...] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict)
    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    secure: bool = False
    certificate: Path | None = None
    auth: GatewayAuth = GatewayAuth("token")
    unreachable: str | None = None
    unsafe_bind: str | None = None
    job_store: Path | None = None

    @property
    def address(self) -> str:
        """``127.0.0.1:18789``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The gateway's WebSocket."""
        return f"{'wss' if self.secure else 'ws'}://{self.address}"

    def scrub(self, text: str) -> str:
        """One line of text without the secret in it."""
        return scrub(text, (self.auth.secret,) if self.auth.secret else ())


def read_config(paths: FarmPaths, environ: Mapping[str, str], *, cwd: Path | None = None) -> OpenClawConfig:
    """Read the config. Never raises: what is wrong stands in `error` and `problems`.

    Args:
        environ: the process's environment.
        cwd: where a ``.env`` may lie; the working folder where None.
    """
    path = paths.config.path
    error: str | None = None
    raw: dict[str, Any] = {}
    problems: list[str] = []
    try:
        raw, include_problems = load_config(path)
        problems.extend(include_problems)
    except FileProblem as problem:
        error = str(problem)
    known = variables(environ, cwd or _working_folder(), paths.state_dir.path, raw.get("env"))
    return _Reading(paths, raw, known, problems).config(error)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


@dataclass(slots=True)
class _Reading:
    """One reading of a config: the data, the variables, and what was found wrong."""

    paths: FarmPaths
    raw: Mapping[str, Any]
    known: Mapping[str, str]
    problems: list[str]

    def config(self, error: str | None) -> OpenClawConfig:
        gateway = _mapping(self.raw.get("gateway"))
        agents = self.agents()
        common: dict[str, Any] = {
            "path": self.paths.config.path,
            "error": error,
            "agents": agents,
            "job_store": self.file(_mapping(self.raw.get("cron")).get("store"), "cron.store"),
        }
        if gateway.get("mode") == "remote":
            common |= self.remote(_mapping(gateway.get("remote")))
        else:
            common |= self.local(gateway)
        if error is not None:
            # Another farm's gateway may listen where this one's is assumed.
            common["unreachable"] = error
        return OpenClawConfig(problems=tuple(self.problems), **common)

    # ------------------------------------------------------------ the gateway

    def local(self, gateway: Mapping[str, Any]) -> dict[str, Any]:
        tls = _mapping(gateway.get("tls"))
        secure = tls.get("enabled") is True
        certificate = self.file(tls.get("certPath"), "gateway.tls.certPath")
        if secure and certificate is None:
            certificate = self.paths.state_dir.path / "gateway" / "tls" / "gateway-cert.pem"
        return {
            "host": self.host(gateway),
            "port": self.port(gateway),
            "secure": secure,
            "certificate": certificate if secure else None,
            "auth": self.auth(gateway),
            "unsafe_bind": _unsafe_bind(gateway),
        }

    def remote(self, remote: Mapping[str, Any]) -> dict[str, Any]:
        try:
            address = urlsplit(substitute(_text(remote.get("url")) or "", self.known))
            host, port = address.hostname, address.port
        except (ValueError, Unresolved):
            address, host, port = urlsplit(""), None, None
        secure = address.scheme == "wss"
        unreachable = None
        if host is None or address.scheme not in ("ws", "wss"):
            unreachable = "gateway.mode is remote and gateway.remote.url names no gateway"
        elif not secure and host not in _LOOPBACK_NAMES:
            unreachable = (
                f"gateway.remote.url ({host}) is remote without TLS, so the secret is not sent to it"
            )
        return {
            "host": host or LOOPBACK,
            "port": port or (443 if secure else DEFAULT_PORT),
            "secure": secure,
            "auth": self.remote_auth(remote),
            "unreachable": unreachable,
        }

    def host(self, gateway: Mapping[str, Any]) -> str:
        # Every kind of bind but a custom address also listens on loopback for clients on the same host.
        custom = _text(gateway.get("customBindHost"))
        if gateway.get("bind") == "custom" and custom and custom not in _EVERYWHERE:
            return custom
        return LOOPBACK

    def port(self, gateway: Mapping[str, Any]) -> int:
        for value, name in (
            (self.known.get("OPENCLAW_GATEWAY_PORT"), "OPENCLAW_GATEWAY_PORT"),
            (gateway.get("port"), "gateway.port"),
        ):
            if value is None:
                continue
            try:
                number = int(substitute(value, self.known) if isinstance(value, str) else value)
            except (TypeError, ValueError, OverflowError, Unresolved):
                number = 0
            if 0 < number < 65536:
                return number
            self.problems.append(f"{name} is no port")
        return DEFAULT_PORT

    def auth(self, gateway: Mapping[str, Any]) -> GatewayAuth:
        auth = _mapping(gateway.get("auth"))
        mode = _text(auth.get("mode"))
        if mode == "none":
            return GatewayAuth("none")
        if mode == "trusted-proxy" and auth.get("password"):
            # The documented way in for callers on the same host.
            return self.secret("trusted-proxy", "password", auth)
        if mode is None:
            given = "password" if auth.get("password") and not auth.get("token") else "token"
            if not auth.get("token") and not auth.get("password"):
                unset_token = not self.known.get("OPENCLAW_GATEWAY_TOKEN")
                given = "password" if unset_token and self.known.get("OPENCLAW_GATEWAY_PASSWORD") else "token"
            return self.secret(given, given, auth)
        if mode in ("token", "password"):
            return self.secret(mode, mode, auth)
        return GatewayAuth(mode, None, f"gateway.auth.mode is {mode}, by which farm cannot log in")

    def secret(self, mode: str, kind: str, auth: Mapping[str, Any]) -> GatewayAuth:
        variable = f"OPENCLAW_GATEWAY_{kind.upper()}"
        try:
            text = secret_text(auth.get(kind), self.known) or self.known.get(variable)
        except Unresolved as problem:
            return GatewayAuth(mode, None, f"gateway.auth.{kind} cannot be read: {problem}")
        if not text:
            return GatewayAuth(mode, None, f"neither gateway.auth.{kind} nor {variable} is set")
        return GatewayAuth("password" if kind == "password" else mode, Secret(text))

    def remote_auth(self, remote: Mapping[str, Any]) -> GatewayAuth:
        for kind in ("token", "password"):
            if remote.get(kind):
                try:
                    return GatewayAuth(kind, Secret(secret_text(remote[kind], self.known) or ""))
                except Unresolved as problem:
                    return GatewayAuth(kind, None, f"gateway.remote.{kind} cannot be read: {problem}")
        return self.auth(_mapping(self.raw.get("gateway")))

    # ------------------------------------------------------------ agents

    def agents(self) -> Mapping[str, Agent]:
        section = _mapping(self.raw.get("agents"))
        entries, listed = section.get("entries"), section.get("list")
        found = {agent.id: agent for agent in self.listed(listed)}
        if isinstance(entries, Mapping):
            lost = sorted(found.keys() - entries.keys())
            if lost:
                self.problems.append(
                    "agents.list stands beside agents.entries: OpenClaw drops it at its next start, and with "
                    f"it {', '.join(lost)}"
                )
            found.update({agent.id: agent for agent in self.entered(entries)})
        return found

    def listed(self, listed: object) -> Iterator[Agent]:
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, Mapping) and (agent_id := _text(entry.get("id"))):
                yield self.agent(agent_id, entry)

    def entered(self, entries: Mapping[Any, Any]) -> Iterator[Agent]:
        for agent_id, entry in entries.items():
            if isinstance(agent_id, str) and agent_id and isinstance(entry, Mapping):
                yield self.agent(agent_id, entry)

    def agent(self, agent_id: str, entry: Mapping[str, Any]) -> Agent:
        workspace = self.file(entry.get("workspace"), f"the workspace of {agent_id}")
        timeout = entry.get("timeoutSeconds")
        return Agent(
            id=agent_id,
            name=_text(entry.get("name")),
            workspace=str(workspace) if workspace else None,
            timeout_s=timeout
            if isinstance(timeout, int) and not isinstance(timeout, bool) and timeout > 0
            else None,
        )

    def file(self, value: object, what: str) -> Path | None:
        text = _text(value)
        if text is None:
            return None
        try:
            text = substitute(text, self.known)
        except Unresolved as problem:
            self.problems.append(f"{what} cannot be told: {problem}")
            return None
        if "\0" in text:
            return None
        if text == "~" or text.startswith("~/"):
            home = self.known.get("OPENCLAW_HOME") or self.known.get("HOME") or str(Path.home())
            return Path(home + text[1:])
        return Path(text)


def _unsafe_bind(gateway: Mapping[str, Any]) -> str | None:
    """What lets others than this machine reach the gateway; None where nothing does."""
    bind = _text(gateway.get("bind"))
    if bind == "custom":
        custom = _text(gateway.get("customBindHost"))
        if custom and custom not in _LOOPBACK_NAMES:
            return f"custom ({custom})"
    elif bind in ("lan", "tailnet") or (bind is not None and bind in _EVERYWHERE):
        return bind
    # `serve` keeps to the tailnet and its own log-in; a funnel is the public internet.
    if _mapping(gateway.get("tailscale")).get("mode") == "funnel":
        return "tailscale funnel (public)"
    return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
