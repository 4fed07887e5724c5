"""A stand-in for OpenClaw's gateway: a real WebSocket server on loopback that speaks the measured protocol.

For `farm demo`, where its jobs wake the demo's agents, and for tests, where it can also hang, be
starting, or keep an answer to itself.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import socket
import ssl
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from farmtui.demo.cronbook import ADMIN, READ, CronBook, RpcError, RunReport, Version

_HANDSHAKE_S = 10.0
_SEND_S = 2
_LOOK_S = 0.25
_STARTING_MS = 500
_CLIENTS = frozenset({("gateway-client", "backend"), ("cli", "cli")})
_CLIENT_IDS = frozenset({"gateway-client", "cli", "test", "openclaw-control-ui"})
_CLIENT_MODES = frozenset({"backend", "cli", "ui", "test"})
_EVENTS = ("connect.challenge", "agent", "chat", "presence", "tick", "shutdown", "health", "cron")
_CONNECT_PARAMS = frozenset(
    {
        "minProtocol",
        "maxProtocol",
        "client",
        "role",
        "scopes",
        "caps",
        "auth",
        "device",
        "locale",
        "userAgent",
    }
)

_silent = logging.Logger("farmtui.demo.gateway.silent", logging.CRITICAL + 1)
_silent.disabled = True


class Mode(StrEnum):
    """How the gateway behaves.

    HUNG takes connections and says nothing, as a stopped process does; STARTING refuses log-ins for
    the moment.
    """

    OK = "ok"
    HUNG = "hung"
    STARTING = "starting"


@dataclass(slots=True, eq=False)
class _Session:
    """One client's connection, once it has logged in."""

    connection: ServerConnection
    scopes: frozenset[str] = frozenset()
    seq: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class StandInGateway:
    """A gateway on a free port of 127.0.0.1; a context manager, or `start` and `stop`.

    Args:
        version: whose protocol: 3 and its shapes for FEB, 4 for LATEST.
        auth: token, password or none.
        secret: the token or password; a random one where None.
        jobs: cron jobs to begin with, as a gateway lists them.
        agents: ids that jobs may name; None allows all.
        state_dir: where FEB keeps cron/jobs.json; None keeps no file.
        on_run: does a due job's turn. Jobs are only run where it is given, one after the other.
        tick_s: how often `tick` is sent.
        tls: the context to serve TLS with; None serves plainly.

    Attributes:
        mode: may be set at any time.
        muted: methods that are carried out and never answered.
        book: the jobs.
        calls: every method called, in order.
    """

    def __init__(
        self,
        version: Version = Version.LATEST,
        *,
        auth: str = "token",
        secret: str | None = None,
        jobs: Iterable[Mapping[str, Any]] = (),
        agents: Iterable[str] | None = None,
        state_dir: Path | None = None,
        on_run: Callable[[Mapping[str, Any]], RunReport] | None = None,
        tick_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.version = version
        self.mode = Mode.OK
        self.muted: set[str] = set()
        self.calls: list[str] = []
        self.secret = secret or secrets.token_hex(16)
        self._auth = auth
        self._on_run = on_run
        self._tick_s = tick_s
        self._tls = tls
        self._sessions: set[_Session] = set()
        self._lock = threading.Lock()
        self._cron_lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: Server | None = None
        self._threads: list[threading.Thread] = []
        self._port = 0
        self.book = CronBook(version, self._publish, jobs=jobs, agents=agents, state_dir=state_dir)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        """Where it listens; the same again after a restart."""
        return self._port

    @property
    def clients(self) -> int:
        """How many clients are logged in."""
        with self._lock:
            return len(self._sessions)

    def config(self) -> dict[str, Any]:
        """The section `gateway` of an openclaw.json that leads here."""
        auth: dict[str, Any] = {"mode": self._auth}
        if self._auth != "none":
            auth[self._auth] = self.secret
        section = {"mode": "local", "bind": "loopback", "port": self._port, "auth": auth}
        return section if self._tls is None else {**section, "tls": {"enabled": True}}

    def start(self) -> None:
        """Listen, and begin to run jobs."""
        self._stopping.clear()
        self._server = serve(
            self._serve,
            "127.0.0.1",
            self._port,
            ssl=self._tls,
            compression=None,
            process_request=self._hang,
            server_header=None,
            ping_interval=None,
            close_timeout=1,
            max_size=25 << 20,
            logger=_silent,
        )
        self._port = self._server.socket.getsockname()[1]
        self._threads = [
            threading.Thread(target=self._server.serve_forever, name="stand-in-gateway", daemon=True),
            threading.Thread(target=self._keep_time, name="stand-in-gateway-clock", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Close every connection and end all threads."""
        self._stopping.set()
        if self._server is not None:
            self._server.shutdown()
            self._server = None
        with self._lock:
            sessions = tuple(self._sessions)
        for session in sessions:
            with suppress(OSError, WebSocketException):
                session.connection.close(1012, "service restart")
        for thread in self._threads:
            thread.join(timeout=5)
        self._threads = []

    # ------------------------------------------------------------ clients

    def _hang(self, _connection: ServerConnection, _request: Request) -> Response | None:
        while self.mode is Mode.HUNG and not self._stopping.wait(_LOOK_S):
            pass
        return None

    def _serve(self, connection: ServerConnection) -> None:
        # A client that stops reading must not hold up what is sent to all.
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))
        session = _Session(connection)
        try:
            if self._log_in(session):
                with self._lock:
                    self._sessions.add(session)
                self._answer_all(session)
        except (OSError, TimeoutError, WebSocketException):
            return
        finally:
            with self._lock:
                self._sessions.discard(session)

    def _log_in(self, session: _Session) -> bool:
        nonce = str(uuid.uuid4())
        challenge: dict[str, Any] = {"nonce": nonce, "ts": int(time.time() * 1000)}
        if self.version is Version.LATEST:
            challenge["capabilities"] = ["model-catalog-snapshot"]
        self._send(session, {"type": "event", "event": "connect.challenge", "payload": challenge})
        try:
            frame = json.loads(session.connection.recv(timeout=_HANDSHAKE_S))
        except ValueError:
            session.connection.close(1000)
            return False
        try:
            hello = self._connect(session, frame)
        except RpcError as error:
            self._send(session, _refused(frame, error))
            session.connection.close(1008, str(error)[:100])
            return False
        self._send(session, {"type": "res", "id": frame["id"], "ok": True, "payload": hello})
        return True

    def _connect(self, session: _Session, frame: Any) -> dict[str, Any]:
        if not isinstance(frame, dict) or frame.get("method") != "connect":
            raise RpcError("INVALID_REQUEST", "invalid handshake: first request must be connect")
        params = frame.get("params") or {}
        client = params.get("client") or {}
        pair = (client.get("id"), client.get("mode"))
        if not params.keys() <= _CONNECT_PARAMS or pair[0] not in _CLIENT_IDS or pair[1] not in _CLIENT_MODES:
            raise RpcError("INVALID_REQUEST", "invalid connect params")
        protocol = 4 if self.version is Version.LATEST else 3
        if not params.get("minProtocol", 0) <= protocol <= params.get("maxProtocol", 0):
            raise RpcError("INVALID_REQUEST", "protocol mismatch", details={"expectedProtocol": protocol})
        if self.mode is Mode.STARTING:
            raise RpcError(
                "UNAVAILABLE",
                "gateway starting; retry shortly",
                details={"reason": "startup-sidecars"},
                retry_after_ms=_STARTING_MS,
            )
        self._authenticate(params.get("auth") or {})
        granted = self.version is Version.FEB or pair in _CLIENTS
        session.scopes = frozenset(params.get("scopes") or ()) if granted else frozenset()
        return self._hello(protocol, session)

    def _authenticate(self, auth: Mapping[str, Any]) -> None:
        if self._auth == "none":
            return
        # A password sent as `token` passes too.
        given = auth.get(self._auth) or auth.get("token")
        if given is None:
            raise self._refusal("NOT_PAIRED", "device identity required", "DEVICE_IDENTITY_REQUIRED")
        if not hmac.compare_digest(str(given).encode(), self.secret.encode()):
            raise self._refusal(
                "INVALID_REQUEST",
                f"unauthorized: gateway {self._auth} mismatch (provide gateway auth {self._auth})",
                f"AUTH_{self._auth.upper()}_MISMATCH",
            )

    def _refusal(self, code: str, message: str, detail: str) -> RpcError:
        return RpcError(code, message, details={"code": detail} if self.version is Version.LATEST else None)

    def _hello(self, protocol: int, session: _Session) -> dict[str, Any]:
        latest = self.version is Version.LATEST
        methods = ["health", "status", "cron.list", "cron.status", "cron.add", "cron.update", "cron.remove"]
        hello: dict[str, Any] = {
            "type": "hello-ok",
            "protocol": protocol,
            "server": {"version": "2026.9.6" if latest else "dev", "connId": str(uuid.uuid4())},
            "features": {
                "methods": [*methods, "cron.run", "cron.runs", *(["cron.get"] if latest else [])],
                "events": list(_EVENTS),
            },
            "snapshot": {},
            "policy": {
                "maxPayload": (25 if latest else 8) << 20,
                "maxBufferedBytes": 50 << 20,
                "tickIntervalMs": int(self._tick_s * 1000),
            },
        }
        if latest:
            hello["auth"] = {"role": "operator", "scopes": sorted(session.scopes)}
        return hello

    def _answer_all(self, session: _Session) -> None:
        while not self._stopping.is_set():
            try:
                frame = json.loads(session.connection.recv())
            except ConnectionClosed:
                return
            except ValueError:
                session.connection.close(1000)
                return
            method = str(frame.get("method", ""))
            self.calls.append(method)
            del self.calls[:-1000]
            try:
                payload = self._call(session, method, frame.get("params") or {})
                answer = {"type": "res", "id": frame.get("id"), "ok": True, "payload": payload}
            except RpcError as error:
                answer = _refused(frame, error)
            if method not in self.muted:
                self._send(session, answer)

    def _call(self, session: _Session, method: str, params: Mapping[str, Any]) -> Any:
        if method == "health":
            return {"ok": True, "ts": int(time.time() * 1000), "agents": []}
        if method == "status":
            return {"ok": True}
        if self.version is not Version.FEB or method not in ("cron.list", "cron.update", "cron.run"):
            return self.book.call(method, params, session.scopes)
        # There `cron.run` answers when the agent's turn is over, and holds up these until then.
        with self._cron_lock:
            answer = self.book.call(method, params, session.scopes)
            if method == "cron.run" and answer["ran"] and self._on_run is not None:
                self.book.run(str(params.get("id") or params.get("jobId")), self._on_run)
            return answer

    # ------------------------------------------------------------ time and events

    def _keep_time(self) -> None:
        """Run what is due, one job after the other, and tick."""
        ticked = time.monotonic()
        while not self._stopping.wait(_LOOK_S):
            if time.monotonic() - ticked >= self._tick_s:
                ticked = time.monotonic()
                self._broadcast("tick", {"ts": int(time.time() * 1000)})
            if self._on_run is None or self.mode is not Mode.OK:
                continue
            due, _ = self.book.due()
            for job_id in due:
                if self._stopping.is_set():
                    return
                self.book.run(job_id, self._on_run)

    def _publish(self, event: dict[str, Any]) -> None:
        self._broadcast("cron", event)

    def _broadcast(self, name: str, payload: Mapping[str, Any]) -> None:
        if self.mode is Mode.HUNG:
            return
        with self._lock:
            sessions = [session for session in self._sessions if session.scopes & {READ, ADMIN}]
        for session in sessions:
            session.seq += 1
            frame = {"type": "event", "event": name, "payload": payload, "seq": session.seq}
            try:
                self._send(session, frame)
            except (OSError, WebSocketException):
                with self._lock:
                    self._sessions.discard(session)

    def _send(self, session: _Session, frame: Mapping[str, Any]) -> None:
        with session.lock:
            session.connection.send(json.dumps(frame))


def _refused(frame: Any, error: RpcError) -> dict[str, Any]:
    request_id = frame.get("id") if isinstance(frame, dict) else None
    return {"type": "res", "id": request_id, "ok": False, "error": error.frame}
