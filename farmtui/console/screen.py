"""FarmScreen: what all screens of the console share."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen

from farmtui.console.actions import Target, all_keys
from farmtui.console.header import Banner, Header, banner_pieces, header_pieces
from farmtui.console.hints import Hints
from farmtui.console.notice import Notice, notice_lines

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

    # Whether there is nothing to show without runs: then loading, an empty farm and a failure are told.
    NEEDS_RUNS: ClassVar[bool] = False

    lively: bool = False

    @property
    def farm_app(self) -> FarmApp:
        """The app, by its own type."""
        return cast("FarmApp", self.app)

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
        yield Hints()
        yield Banner()
        yield Notice()
        with Vertical(id="body"):
            yield from self.compose_body()

    def show_frame(self, view: View | None, now: datetime, *, readonly: bool, silent_s: float) -> None:
        """Draw header, banner and, where there are no runs, the notice."""
        width = self.app.size.width
        header = header_pieces(view, now, width, readonly=readonly, silent_s=silent_s)
        self.query_one(Header).show(header)
        self.query_one(Banner).show(banner_pieces(view, now, width, silent_s))
        lines = notice_lines(view, width - 4) if self.NEEDS_RUNS or view is None else ()
        body = self.query_one("#body")
        self.query_one(Notice).show(lines)
        if body.display == bool(lines):
            body.display = not lines

    def selection_changed(self) -> None:
        """To be called when `target` answers otherwise than before: the hint line follows."""
        self.farm_app.show_hints()

    def on_screen_resume(self) -> None:
        self.farm_app.show_all()
