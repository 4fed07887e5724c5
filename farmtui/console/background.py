"""Questions that block, asked in a thread: one at a time, and of those that wait only the last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from textual.dom import DOMNode
from textual.message import Message

Work = Callable[[], object]


class Answered(Message):
    """A question was answered.

    Attributes:
        key: what was asked; `topic` is the name of the `Asker`.
        value: the answer, None where there is an `error`: its words.
    """

    def __init__(self, topic: str, key: Hashable, value: Any, error: str | None) -> None:
        super().__init__()
        self.topic = topic
        self.key = key
        self.value = value
        self.error = error


class Asker:
    """Asks for one owner and topic; answers come to the owner as `Answered`.

    A thread cannot be cancelled. So that a slow disk does not pile them up, a question waits while
    another is open, and is forgotten when a later one comes.
    """

    def __init__(self, owner: DOMNode, topic: str) -> None:
        self._owner = owner
        self._topic = topic
        self._lock = threading.Lock()
        self._busy = False
        self._waiting: tuple[Hashable, Work] | None = None

    def ask(self, key: Hashable, work: Work) -> None:
        """Have `work` done in a thread; whatever it raises becomes the answer's error."""
        with self._lock:
            self._waiting = (key, work)
            if self._busy:
                return
            self._busy = True
        self._owner.run_worker(
            self._answer_all, thread=True, group=self._topic, name=self._topic, exit_on_error=False
        )

    @property
    def busy(self) -> bool:
        """Whether a question is open."""
        return self._busy

    def _answer_all(self) -> None:
        while True:
            with self._lock:
                waiting, self._waiting = self._waiting, None
                if waiting is None:
                    self._busy = False
                    return
            key, work = waiting
            try:
                answer = Answered(self._topic, key, work(), None)
            except Exception as error:  # said on the screen, whatever it is
                answer = Answered(self._topic, key, None, str(error) or type(error).__name__)
            self._owner.post_message(answer)
