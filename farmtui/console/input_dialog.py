"""The dialog that asks for words: guidance for an agent, or a note beside an acknowledgement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static, TextArea

from farmtui.text import safe_line, safe_text


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked for.

    Attributes:
        title: what it is about.
        lines: what should be known while writing, one a line.
        verb: the word on the button that goes on.
        optional: an empty answer is one.
        text: what stands there to begin with.
    """

    title: str
    lines: tuple[str, ...]
    verb: str
    optional: bool = False
    text: str = ""


class InputDialog(ModalScreen[str | None]):
    """Asks for text of several lines; dismissed with it, or with None. One instance is loaded again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", show=False, priority=True),
        Binding("ctrl+s", "go_on", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    InputDialog { align: center middle; background: $background 60%; }
    InputDialog #ask { width: 92%; max-width: 100; height: auto; max-height: 100%; border: round $primary;
        padding: 0 1; background: $surface; }
    InputDialog #ask-lines { height: auto; max-height: 8; }
    InputDialog TextArea { height: 8; border: none; padding: 0; margin: 1 0; background: $panel; }
    InputDialog #ask-refused { height: auto; color: $error; }
    InputDialog #ask-buttons { height: 1; }
    InputDialog #ask-keys { width: 1fr; height: 1; color: $tone-muted; }
    InputDialog Button { margin-left: 2; min-width: 12; }
    """

    def __init__(self) -> None:
        super().__init__(id="input-dialog")
        self._prompt = Prompt("", (), "")

    def load(self, prompt: Prompt) -> None:
        """What to ask when it is pushed next."""
        self._prompt = prompt
        if self.is_mounted:
            self._fill()

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Static(id="ask-lines", markup=False)
            area = TextArea(id="ask-text", soft_wrap=True, tab_behavior="focus", compact=True)
            area.cursor_blink = False
            yield area
            yield Static(id="ask-refused", markup=False)
            with Horizontal(id="ask-buttons"):
                yield Static("Ctrl+S goes on · Esc cancels", id="ask-keys", markup=False)
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Continue", id="go-on", compact=True)

    def on_mount(self) -> None:
        self._fill()

    def on_screen_resume(self) -> None:
        self.query_one(TextArea).focus()

    def _fill(self) -> None:
        prompt = self._prompt
        self.query_one("#ask", Vertical).border_title = Content(safe_line(prompt.title))
        self.query_one("#ask-lines", Static).update(Content(safe_text("\n".join(prompt.lines))))
        self.query_one("#go-on", Button).label = Content(prompt.verb)
        self.query_one("#ask-refused", Static).update("")
        self.query_one(TextArea).load_text(prompt.text)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "go-on":
            self.action_go_on()
        else:
            self.action_cancel()

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_go_on(self) -> None:
        text = self.query_one(TextArea).text.strip()
        if not text and not self._prompt.optional:
            self.query_one("#ask-refused", Static).update("Write something first, or cancel.")
            return
        self.dismiss(text)
