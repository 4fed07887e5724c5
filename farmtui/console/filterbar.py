"""The filter of a list: typed in a line of its own, and shown there while it is in force."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static


class FilterBar(Horizontal):
    """Takes no room while there is no filter.

    `Changed` comes with every letter, `Done` when what had the focus before has it again.
    """

    # With priority: a key typed right after Enter is the list's already, not a letter of the filter.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "clear", show=False, priority=True),
        Binding("enter,down", "done", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    FilterBar { height: 1; display: none; dock: bottom; background: $surface; }
    FilterBar #filter-sign { width: 10; color: $accent; text-style: bold; padding: 0 1; }
    FilterBar Input { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
    FilterBar Input:focus { border: none; background: $surface; }
    FilterBar #filter-count { width: auto; padding: 0 1; color: $tone-muted; }
    """

    class Changed(Message):
        """The filter is another one."""

        def __init__(self, pattern: str) -> None:
            super().__init__()
            self.pattern = pattern

    class Done(Message):
        """The operator goes back to the list."""

    def __init__(self) -> None:
        super().__init__(id="filter")
        self._returns_to: Widget | None = None
        self._input = Input(id="filter-input", compact=True, select_on_focus=False)
        self._input.cursor_blink = False
        self._count = Static("", id="filter-count", markup=False)

    def compose(self) -> ComposeResult:
        yield Static("filter /", id="filter-sign", markup=False)
        yield self._input
        yield self._count

    @property
    def pattern(self) -> str:
        """What is filtered by, in lower case; "" for nothing."""
        return self._input.value.strip().lower()

    def edit(self) -> None:
        """Open it for typing."""
        before = self.screen.focused
        if before is not self._input:
            self._returns_to = before
        self.display = True
        self.screen.set_focus(self._input, scroll_visible=False)

    def clear(self) -> bool:
        """Filter no more; False where there was no filter."""
        if not self.display:
            return False
        self._input.value = ""
        self._leave()
        self.display = False
        return True

    def say(self, shown: int, of: int) -> None:
        """How many rows the filter leaves."""
        text = f"{shown} of {of} · Esc clears"
        if self.display and self._count.content != text:
            self._count.update(text)

    def _leave(self) -> None:
        if self._input.has_focus and self._returns_to is not None:
            self.screen.set_focus(self._returns_to, scroll_visible=False)

    def action_clear(self) -> None:
        self.clear()
        self.post_message(self.Done())

    def action_done(self) -> None:
        if not self.pattern:
            self.clear()
        self._leave()
        self.post_message(self.Done())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self.pattern))
