"""FarmScreen: what all screens of the console share."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen

from farmtui.console.actions import Target, all_keys
from farmtui.console.header import Banner, Header
from farmtui.console.hints import Hints

if TYPE_CHECKING:
    from farmtui.console.app import FarmApp
    from farmtui.farm import View


class FarmScreen(Screen[None]):
    """A screen drawn from (View, now) and nothing else.

    A subclass sets `NAME` (one of `actions.SCREENS`), gives `compose_body`, `show` and `target`, and
    ``do_<action id>`` for the actions that are its own. `show` is called only while it is on top: with
    every publication, every 5 s, and every second while `lively`.

    Attributes:
        lively: something shown is younger than a minute, so its age is drawn every second.
    """

    NAME: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        # Screen binds some of these itself, so they are bound here and not in the app.
        Binding(key, f"app.press('{key}')", show=False)
        for key in all_keys()
    ]

    lively: bool = False

    if TYPE_CHECKING:

        @property
        def app(self) -> FarmApp: ...

    def __init__(self) -> None:
        super().__init__(name=self.NAME, id=self.NAME)

    # ------------------------------------------------------------ what a subclass gives

    def compose_body(self) -> ComposeResult:
        """What stands between the header and the hint line."""
        raise NotImplementedError

    def show(self, view: View, now: datetime) -> None:
        """Draw what is known now; cheap where nothing differs."""
        raise NotImplementedError

    def target(self) -> Target:
        """What an action started now would be about."""
        return Target()

    # ------------------------------------------------------------ shared

    def compose(self) -> ComposeResult:
        yield Header()
        yield Banner()
        with Vertical(id="body"):
            yield from self.compose_body()
        yield Hints()

    def selection_changed(self) -> None:
        """To be called when `target` answers otherwise than before: the hint line follows."""
        self.app.show_hints()

    def on_screen_resume(self) -> None:
        self.app.show_all()
