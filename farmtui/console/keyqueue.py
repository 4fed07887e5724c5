"""One key at a time.

Textual hands a key to the widget in focus and goes on to the next key before anybody has acted on the
first: of ``/relay⏎G`` in one burst, as a slow SSH line delivers it, letters would reach the list as
commands. So the next key waits until the one before has gone all the way up.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App, ScreenStackError
from textual.message import Message

# A widget that is removed while it has the key never tells that it is done.
_PATIENCE_S = 0.5


class KeyDone(Message):
    """Follows a key through the same queues up to the app: what reaches it after the key."""


if TYPE_CHECKING:
    _Base = App[int]
else:
    _Base = object


class OneKeyAtATime(_Base):
    """For an App: keys are handed on one after the other. To be named before `App` among the bases."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._keys_waiting: deque[events.Key] = deque()
        self._key_since: float | None = None

    async def on_event(self, event: events.Event) -> None:
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        else:
            self._keys_waiting.append(event)
            if self._key_since is None or time.monotonic() - self._key_since > _PATIENCE_S:
                await self._next_key()

    async def _next_key(self) -> None:
        event = self._keys_waiting.popleft()
        self._key_since = time.monotonic()
        try:
            target = self.focused or self.screen
        except ScreenStackError:
            # Typed while the app was closing.
            return
        await super().on_event(event)
        if not target.post_message(KeyDone()):
            self.post_message(KeyDone())

    async def on_key_done(self) -> None:
        self._key_since = None
        if self._keys_waiting:
            await self._next_key()
