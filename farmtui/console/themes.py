"""Themes: farm's own dark and light ones, and those of 16 colours."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES, Theme

DARK = "farm-dark"
LIGHT = "farm-light"
ANSI_DARK = "farm-16-dark"
ANSI_LIGHT = "farm-16-light"

_DARK = Theme(
    name=DARK,
    primary="#7aa2c8",
    secondary="#6cb6ff",
    warning="#f2b84b",
    error="#ff7b72",
    success="#7ec77f",
    accent="#e3c987",
    foreground="#dfe3e8",
    background="#14171a",
    surface="#1b1f23",
    panel="#23282d",
    dark=True,
    variables={
        "tone-muted": "#9aa4ae",
        "cursor": "#2f4050",
        "cursor-blurred": "#23292f",
        "cursor-text-style": "none",
    },
)
_LIGHT = Theme(
    name=LIGHT,
    primary="#2f5d8a",
    secondary="#0b61b0",
    warning="#8a5300",
    error="#b3261e",
    success="#1f6f34",
    accent="#6a4a00",
    foreground="#1b1f23",
    background="#fbfaf7",
    surface="#f1efe9",
    panel="#e6e3da",
    dark=False,
    variables={
        "tone-muted": "#565d64",
        "cursor": "#cfdcea",
        "cursor-blurred": "#e8e6df",
        "cursor-text-style": "none",
    },
)


def _ansi(name: str, base: str) -> Theme:
    theme = BUILTIN_THEMES[base]
    return Theme(
        name=name,
        ansi=True,
        primary=theme.primary,
        secondary="ansi_cyan",
        warning="ansi_yellow" if theme.dark else "ansi_magenta",
        error="ansi_bright_red" if theme.dark else "ansi_red",
        success="ansi_green",
        accent="ansi_bright_yellow" if theme.dark else "ansi_blue",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=theme.dark,
        variables={
            **theme.variables,
            "tone-muted": "ansi_default",
            # Of 16 colours none lies well under all the others.
            "cursor": "ansi_default",
            "cursor-blurred": "ansi_default",
            "cursor-text-style": "reverse",
        },
    )


THEMES: tuple[Theme, ...] = (
    _DARK,
    _LIGHT,
    _ansi(ANSI_DARK, "ansi-dark"),
    _ansi(ANSI_LIGHT, "ansi-light"),
)


def default_theme(environ: Mapping[str, str]) -> str:
    """The theme for a terminal: 16 colours where it promises no more.

    `FARM_THEME` names another one of `THEMES`.
    """
    names = {theme.name for theme in THEMES}
    if (wanted := environ.get("FARM_THEME")) and wanted in names:
        return wanted
    term = environ.get("TERM", "")
    many = "256color" in term or "truecolor" in term or environ.get("COLORTERM") in ("truecolor", "24bit")
    return DARK if many else ANSI_DARK
