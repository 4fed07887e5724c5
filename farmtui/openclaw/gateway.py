"""A connection to OpenClaw's gateway: WebSocket, as its own backend clients speak it.

The one way to manage crons that works on every version measured: text frames of JSON, a challenge,
`connect` with the shared secret as ``gateway-client``/``backend``, then requests, answers and events.
Only loopback or the address in the config is contacted: no proxy, no redirect.
"""

from __future__ import annotations

import itertools
import json
import logging
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from farmtui import __version__
from farmtui.openclaw.config import OpenClawConfig
from farmtui.openclaw.trouble import READ, GatewayError, Trouble

# All protocol numbers of the versions measured: 3 up to 2026.4.29, 4 since 2026.6.11.
PROTOCOLS = (3, 4)
# A hello has 28 kB and each job 3 to 4 kB; the library's default of 1 MiB is too small for big farms.
MAX_FRAME = 32 << 20
_RETRY_S = 0.5
_CLOSE_S = 0.1

# The library writes frames, and so the secret, to its log at level DEBUG: it gets one that is off.
_silent = logging.Logger("farmtui.gateway.silent", logging.CRITICAL + 1)
_silent.disabled = True


@dataclass(frozen=True, slots=True)
class GatewayEvent:
    """An event that the gateway pushed: `cron`, `tick`, `shutdown`, …"""

    name: str
    payload: Mapping[str, Any]


class Gateway:
    """One connection, used by one thread.

    Args:
        config: where, and with what secret.
        scopes: the least that is needed: READ to list and watch, ADMIN to change jobs.

    Attributes:
        protocol: the number agreed on; 0 before `connect`.
        version: the gateway's own; None where it does not say.
        tick_s: how often it shows that it lives.
    """

    def __init__(self, config: OpenClawConfig, scopes: Iterable[str] = (READ,)) -> None:
        self._config = config
        self._scopes = tuple(scopes)
        self._stack = ExitStack()
        self._connection: ClientConnection | None = None
        self._ids = itertools.count(1)
        self.protocol = 0
        self.version: str | None = None
        self.tick_s = 30.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self, timeout: float) -> None:
        """Connect and authenticate; asks again while the gateway is starting, all within `timeout` seconds.

        Raises:
            GatewayError: down, hung, starting, secret, refused or protocol.
        """
        if self._config.unreachable is not None:
            raise GatewayError(Trouble.DOWN, self._config.unreachable)
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self._attempt(deadline)
            except GatewayError as error:
                self.close()
                pause = error.retry_after_s or _RETRY_S
                if error.trouble is not Trouble.STARTING or time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)

    def call(self, method: str, params: Mapping[str, Any] | None = None, timeout: float = 3.0) -> Any:
        """Ask, and wait for the answer; events in between are dropped.

        Returns:
            The answer's payload.

        Raises:
            GatewayError: the gateway's own error, or no answer in time.
        """
        return self._request(method, params or {}, time.monotonic() + timeout)

    def next_event(self, timeout: float) -> GatewayEvent | None:
        """The next event; None where none comes within `timeout` seconds.

        Raises:
            GatewayError: the connection is lost.
        """
        try:
            frame = self._receive(time.monotonic() + timeout)
        except TimeoutError:
            return None
        payload = frame.get("payload")
        return GatewayEvent(str(frame.get("event", "")), payload if isinstance(payload, Mapping) else {})

    def close(self) -> None:
        """Let go of the connection; safe to call again."""
        stack, self._stack, self._connection = self._stack, ExitStack(), None
        with suppress(OSError, WebSocketException):
            stack.close()

    # ------------------------------------------------------------ opening

    def _attempt(self, deadline: float) -> None:
        config, where = self._config, self._config.address
        try:
            self._open(deadline)
            challenge = self._receive(deadline)
        except TimeoutError:
            raise GatewayError(Trouble.HUNG, f"gateway at {where} does not answer") from None
        except ssl.SSLError as error:
            reason = error.reason or "failed"
            raise GatewayError(Trouble.PROTOCOL, f"TLS with the gateway at {where}: {reason}") from None
        except OSError as error:
            reason = "connection refused" if isinstance(error, ConnectionRefusedError) else _reason(error)
            raise GatewayError(Trouble.DOWN, f"gateway not reachable at {where} ({reason})") from None
        except (WebSocketException, EOFError, ValueError):
            raise GatewayError(
                Trouble.PROTOCOL, f"what listens at {where} is not OpenClaw's gateway"
            ) from None
        if challenge.get("event") != "connect.challenge":
            raise GatewayError(
                Trouble.PROTOCOL, f"what listens at {where} does not speak as OpenClaw's gateway"
            )
        if config.auth.problem is not None:
            raise GatewayError(Trouble.SECRET, config.auth.problem)
        try:
            hello = self._request("connect", self._connect_params(), deadline)
        except GatewayError as error:
            raise _of_connecting(error, config) from None
        self._greet(hello)

    def _open(self, deadline: float) -> None:
        config = self._config
        plain = socket.create_connection((config.host, config.port), timeout=_left(deadline))
        self._stack.callback(plain.close)
        # The library sets its own time-outs from here on.
        plain.settimeout(None)
        self._connection = self._stack.enter_context(
            connect(
                config.url,
                sock=plain,
                ssl=_tls(config),
                server_hostname=config.host if config.secure else None,
                compression=None,
                proxy=None,
                open_timeout=_left(deadline),
                ping_interval=None,
                close_timeout=_CLOSE_S,
                max_size=MAX_FRAME,
                logger=_silent,
            )
        )

    def _connect_params(self) -> dict[str, Any]:
        params: dict[str, Any] = {
            "minProtocol": PROTOCOLS[0],
            "maxProtocol": PROTOCOLS[-1],
            "client": {
                "id": "gateway-client",
                "version": __version__,
                "platform": "linux",
                "mode": "backend",
            },
            "role": "operator",
            "scopes": list(self._scopes),
            "caps": [],
        }
        if self._config.auth.secret is not None:
            key = "password" if self._config.auth.mode == "password" else "token"
            params["auth"] = {key: self._config.auth.secret.reveal()}
        return params

    def _greet(self, hello: Any) -> None:
        if not isinstance(hello, Mapping):
            raise GatewayError(
                Trouble.PROTOCOL, f"gateway at {self._config.address}: its greeting makes no sense"
            )
        protocol = hello.get("protocol")
        self.protocol = protocol if isinstance(protocol, int) else PROTOCOLS[0]
        server, policy = hello.get("server"), hello.get("policy")
        version = server.get("version") if isinstance(server, Mapping) else None
        # 2026.2.12 calls itself "dev".
        self.version = version if isinstance(version, str) and version != "dev" else None
        tick = policy.get("tickIntervalMs") if isinstance(policy, Mapping) else None
        if isinstance(tick, int) and tick > 0:
            self.tick_s = tick / 1000

    # ------------------------------------------------------------ frames

    def _request(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        request_id = str(next(self._ids))
        if self._connection is None:
            raise GatewayError(Trouble.LOST, f"not connected to the gateway at {self._config.address}")
        frame = {"type": "req", "id": request_id, "method": method, "params": dict(params)}
        try:
            self._connection.send(json.dumps(frame))
            while True:
                answer = self._receive(deadline)
                if answer.get("type") == "res" and answer.get("id") == request_id:
                    break
        except TimeoutError:
            raise GatewayError(
                Trouble.HUNG,
                f"gateway at {self._config.address} did not answer {method} in time",
                uncertain=True,
            ) from None
        except (OSError, WebSocketException):
            raise self._lost(method) from None
        except GatewayError as error:
            error.uncertain = True
            raise
        if answer.get("ok") is True:
            return answer.get("payload")
        raise self._refusal(method, answer.get("error"))

    def _receive(self, deadline: float) -> Mapping[str, Any]:
        """The next frame. Raises TimeoutError, or GatewayError where the connection is lost."""
        if self._connection is None:
            raise self._lost()
        try:
            data = self._connection.recv(timeout=_left(deadline))
        except (ConnectionClosed, EOFError):
            raise self._lost() from None
        try:
            frame = json.loads(data)
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, dict):
            raise GatewayError(
                Trouble.PROTOCOL, f"gateway at {self._config.address} sent what is no JSON frame"
            )
        return frame

    def _lost(self, method: str | None = None) -> GatewayError:
        during = f" during {method}" if method else ""
        return GatewayError(
            Trouble.LOST,
            f"gateway at {self._config.address} closed the connection{during}",
            uncertain=method is not None,
        )

    def _refusal(self, method: str, error: object) -> GatewayError:
        parts = error if isinstance(error, Mapping) else {}
        code, details = str(parts.get("code", "")), parts.get("details")
        detail = str(details.get("code", "")) if isinstance(details, Mapping) else ""
        text = self._config.scrub(str(parts.get("message", "no reason given")))[:400]
        after = parts.get("retryAfterMs")
        return GatewayError(
            _kind_of(code, detail, text),
            text,
            retry_after_s=after / 1000 if isinstance(after, int) and 0 <= after < 3_600_000 else None,
        )


def _kind_of(code: str, detail: str, text: str) -> Trouble:
    """The kind of a gateway's error: the versions differ in code and words for the same thing."""
    words = text.lower()
    if detail == "CRON_JOB_NOT_FOUND" or any(
        phrase in words for phrase in ("unknown cron job id", "id not found", "automation not found")
    ):
        return Trouble.NOT_FOUND
    if detail == "MISSING_SCOPE" or "missing scope" in words:
        return Trouble.SCOPE
    if detail.startswith("AUTH_") or code in ("NOT_PAIRED", "UNAUTHORIZED") or "unauthorized" in words:
        return Trouble.REFUSED
    if "protocol mismatch" in words:
        return Trouble.PROTOCOL
    if code == "UNAVAILABLE":
        return Trouble.BUSY
    return Trouble.INVALID if code == "INVALID_REQUEST" else Trouble.FAILED


def _of_connecting(error: GatewayError, config: OpenClawConfig) -> GatewayError:
    """An error of `connect` in words about the gateway, and never uncertain: nothing was asked yet."""
    where = f"gateway at {config.address}"
    match error.trouble:
        case Trouble.BUSY:
            return GatewayError(
                Trouble.STARTING, f"{where} is still starting", retry_after_s=error.retry_after_s
            )
        case Trouble.REFUSED:
            return GatewayError(Trouble.REFUSED, f"{where} refused the secret ({error})")
        case Trouble.HUNG:
            return GatewayError(Trouble.HUNG, f"{where} does not answer")
        case Trouble.LOST:
            return GatewayError(Trouble.LOST, f"{where} closed the connection while logging in")
        case _:
            return GatewayError(error.trouble, f"{where} refused the connection ({error})")


def _tls(config: OpenClawConfig) -> ssl.SSLContext | None:
    if not config.secure:
        return None
    if config.certificate is None:
        return ssl.create_default_context()
    # Its own certificate, mostly self-signed, is read off the disk: exactly that one is trusted, whatever
    # name it carries.
    try:
        context = ssl.create_default_context(cafile=str(config.certificate))
    except (OSError, ValueError) as error:
        raise GatewayError(
            Trouble.SECRET,
            f"the gateway's certificate {config.certificate} cannot be read ({_reason(error)})",
        ) from None
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
