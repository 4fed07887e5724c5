"""Live events: one connection that is held, and a call whenever the gateway says that a job changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from farmtui.openclaw.config import OpenClawConfig
from farmtui.openclaw.gateway import Gateway
from farmtui.openclaw.trouble import READ, GatewayError

_CONNECT_S = 3.0
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
# How soon a stop is noticed.
_LISTEN_S = 0.5
# Events come in bursts (started, finished, updated): what follows within this is told with the first.
_QUIET_S = 0.2
_BURST_S = 1.0
# A gateway that hangs keeps its connections open: silence for this many of its ticks is the end.
_SILENT_TICKS = 3


def watch_gateway(read: Callable[[], OpenClawConfig], on_change: Callable[[], None], stop: Event) -> None:
    """Watch until `stop` is set. Reads the config again before each connection.

    `on_change` is also called when a connection is lost, and when one is made again: the list is then
    due in any case.
    """
    pause = _FIRST_PAUSE_S
    first = True
    while not stop.is_set():
        began = time.monotonic()
        with Gateway(read(), (READ,)) as gateway:
            try:
                gateway.connect(_CONNECT_S)
            except GatewayError:
                connected = False
            else:
                connected = True
                if not first:
                    on_change()
                _listen(gateway, on_change, stop)
        first = False
        if stop.is_set():
            return
        if connected:
            on_change()
            # One that drops its clients at once is not asked every second.
            if time.monotonic() - began > _LONGEST_PAUSE_S:
                pause = _FIRST_PAUSE_S
        stop.wait(pause)
        pause = min(_LONGEST_PAUSE_S, pause * 2)


def _listen(gateway: Gateway, on_change: Callable[[], None], stop: Event) -> None:
    """Until stop, or until the connection is lost or silent."""
    heard = time.monotonic()
    try:
        while not stop.is_set():
            event = gateway.next_event(_LISTEN_S)
            if event is None:
                if time.monotonic() - heard > _SILENT_TICKS * gateway.tick_s:
                    return
                continue
            heard = time.monotonic()
            if event.name == "cron":
                _drain(gateway, stop)
                on_change()
    except GatewayError:
        return


def _drain(gateway: Gateway, stop: Event) -> None:
    """Take what follows closely, so that a burst is one change. A loss shows at the next read."""
    until = time.monotonic() + _BURST_S
    while not stop.is_set() and time.monotonic() < until:
        if gateway.next_event(_QUIET_S) is None:
            return
