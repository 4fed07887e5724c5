"""The dialog that shows a plan before it is done, and asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from farmtui.text import safe_line, safe_text


@dataclass(frozen=True, slots=True)
class Question:
    """What the dialog shows.

    Attributes:
        title: what is done to what.
        rows: (label, text) for people, as `operations.words.describe` gives them.
        verb: the word on the button that does it; "" where there is nothing to do but read.
        phrase: what must be typed first, for the big ones; None where a key is enough.
    """

    title: str
    rows: tuple[tuple[str, str], ...]
    verb: str
    phrase: str | None = None


class PlanDialog(ModalScreen[bool]):
    """Shows one question at a time; dismissed with True only where the operator said yes.

    One instance is kept and loaded again: a dialog of its own for every question would pin dead widgets.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "answer(False)", show=False),
        Binding("y", "answer(True)", show=False),
        Binding("left,h", "focus_button('cancel')", show=False),
        Binding("right,l", "focus_button('apply')", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(8)", show=False),
        Binding("pageup", "scroll(-8)", show=False),
    ]
    DEFAULT_CSS = """
    PlanDialog { align: center middle; background: $background 60%; }
    PlanDialog #plan { width: 92%; max-width: 100; height: auto; max-height: 100%; border: round $primary;
        padding: 0 1; background: $surface; }
    PlanDialog #plan-rows { height: auto; scrollbar-size-vertical: 1; }
    PlanDialog #plan-text { height: auto; }
    PlanDialog #plan-more { height: 1; color: $tone-muted; }
    PlanDialog #plan-phrase { height: 1; border: none; padding: 0; }
    PlanDialog #plan-ask { height: auto; color: $warning; }
    PlanDialog #plan-buttons { height: 1; }
    PlanDialog #plan-keys { width: 1fr; height: 1; color: $tone-muted; }
    PlanDialog Button { margin-left: 2; min-width: 12; }
    """

    def __init__(self) -> None:
        super().__init__(id="plan-dialog")
        self._question = Question("", (), "")

    def load(self, question: Question) -> None:
        """What to show when it is pushed next."""
        self._question = question
        if self.is_mounted:
            self._fill()

    @property
    def question(self) -> Question:
        """What is shown."""
        return self._question

    def compose(self) -> ComposeResult:
        with Vertical(id="plan"):
            with VerticalScroll(id="plan-rows", can_focus=False):
                yield Static(id="plan-text", markup=False)
            yield Static("j k scrolls: there is more", id="plan-more", markup=False)
            yield Static(id="plan-ask", markup=False)
            phrase = Input(id="plan-phrase", compact=True)
            phrase.cursor_blink = False
            yield phrase
            with Horizontal(id="plan-buttons"):
                yield Static(id="plan-keys", markup=False)
                yield Button("Cancel", id="cancel", compact=True)
                yield Button("Do it", id="apply", compact=True)

    def on_mount(self) -> None:
        self._fill()

    def on_screen_resume(self) -> None:
        self.query_one("#plan-rows", VerticalScroll).scroll_home(animate=False)
        typed = self._question.phrase is not None
        self.query_one("#plan-phrase" if typed else "#cancel").focus()

    def _fill(self) -> None:
        question = self._question
        self.query_one("#plan", Vertical).border_title = Content(safe_line(question.title))
        self.query_one("#plan-text", Static).update(_table(question.rows))
        apply = self.query_one("#apply", Button)
        apply.label = Content(question.verb)
        apply.display = bool(question.verb)
        apply.disabled = question.phrase is not None or not question.verb
        self.query_one("#cancel", Button).label = "Cancel" if question.verb else "Close"
        self.query_one("#plan-keys", Static).update(_keys(question))
        phrase = self.query_one("#plan-phrase", Input)
        phrase.value = ""
        phrase.display = self.query_one("#plan-ask").display = question.phrase is not None
        self.query_one("#plan-ask", Static).update(f"Type “{question.phrase}” to go on:")
        self._fit()

    def _fit(self) -> None:
        """Leave the buttons on the screen however long the plan is."""
        rows = self.query_one("#plan-rows", VerticalScroll)
        rows.styles.max_height = max(3, self.size.height - (8 if self._question.phrase else 6))
        self.call_after_refresh(self._say_more)

    def _say_more(self) -> None:
        rows = self.query_one("#plan-rows", VerticalScroll)
        self.query_one("#plan-more").display = rows.max_scroll_y > 0

    def on_resize(self) -> None:
        self._fit()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.query_one("#apply", Button).disabled = event.value.strip() != self._question.phrase

    def on_input_submitted(self) -> None:
        self.action_answer(True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_answer(event.button.id == "apply")

    def action_answer(self, yes: bool) -> None:
        """Close with the answer; a yes that is not allowed yet is no answer."""
        if yes and self.query_one("#apply", Button).disabled:
            return
        self.dismiss(yes)

    def action_focus_button(self, name: str) -> None:
        self.query_one(f"#{name}", Button).focus()

    def action_scroll(self, rows: int) -> None:
        self.query_one("#plan-rows", VerticalScroll).scroll_relative(y=rows, animate=False)


def _keys(question: Question) -> str:
    if not question.verb:
        return "Esc closes"
    return "Esc cancels" if question.phrase is not None else "y does it · Esc cancels"


def _table(rows: Sequence[tuple[str, str]]) -> Table:
    """The rows with their labels on the left and a hanging indent; nothing in them is markup."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    last = None
    for label, text in rows:
        table.add_row(Text(label if label != last else "", "bold"), Text(safe_text(text)))
        last = label
    return table
