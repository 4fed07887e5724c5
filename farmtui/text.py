"""Text from elsewhere → text that is safe to show, of known width, with secrets masked.

What reaches the terminal consists of characters that Rich, tmux and the C library measure alike
(compared character by character with tmux 3.3a and Rich 15), so that columns stay straight:

* control and format characters (escape sequences, bidi overrides, zero-width characters, tags, lone
  surrogates) become visible marks: ``␛`` or ``‹202E›``;
* emoji lose variation selectors, skin tones, keycaps and joiners, flags become letters;
* text is composed (NFC), at most two combining marks stay on a character, spacing marks go;
* what this Python does not know, and what is measured differently, becomes ``□``.

Markup is never interpreted here: whoever draws must not either.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

MASK = "••••••"
LEAST_SECRET = 6
ELLIPSIS = "…"
_BOX = "□"
_DOTTED = "◌"  # carries a combining mark that has nothing to stand on
_TAB_SIZE = 4
_MAX_MARKS = 2

# Nothing in these ranges needs a second look: letters, punctuation, arrows, box drawing, kana, Han, Hangul.
_SIMPLE = re.compile("[ -~¡-¬®-ʯͰ-ͷͺ-ͽͿΆΈ-ΊΌΎ-ΡΣ-҂Ҋ-ԯ‐-‧‰-⁞←-↓─-◻✓✗◼ぁ-ゖァ-ヺー、。一-鿋가-힣]*")
_EMOJI = "‼⁉™ℹ↔-⯿〰〽㊗㊙\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_KEYCAP = re.compile("(?<=[0-9#*])\ufe0f?\u20e3")
_SELECTOR = re.compile("[\ufe00-\ufe0f]")
_SKIN = re.compile(f"(?<=[{_EMOJI}])[\U0001f3fb-\U0001f3ff]+")
_JOINER = re.compile(f"(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])")
# Marks are neither word characters nor spaces, so a stack of them is inside such a run.
_STACK = re.compile(r"[^\x00-\x7f\w\s]{3,}")
_LINE_START = re.compile(r"^[^\x00-\x7f\w\s]", re.MULTILINE)

# Measured differently by Rich and tmux, or drawn as nothing though they are letters.
_CROOKED = re.compile(
    "[\u115f-\u11ff\ud7b0-\ud7fb\u3164\uffa0\u2630-\u2637\u268a-\u268f\u3248-\u324f\u4dc0-\u4dff"
    "\U0001d300-\U0001d356\U0001d360-\U0001d376\U0001f3fb-\U0001f3ff"
    # Emoji of Unicode 15 and later: terminals that do not know them draw them one or no cell wide.
    "\U0001f6d8-\U0001f6dc\U0001f774-\U0001f77f\U0001f7d9\U0001fa75-\U0001fa77\U0001fa87-\U0001fa8f"
    "\U0001faad-\U0001faaf\U0001fabb-\U0001fabf\U0001fac6-\U0001facf\U0001fada-\U0001fadf\U0001fae8-\U0001faef"
    "\U0001faf7-\U0001faff]"
)
_IGNORABLE_MARKS = frozenset([0x034F, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10)])
_REGIONAL_A = 0x1F1E6
_CACHED = 20_000


class _Table(dict[int, int | str | None]):
    """What to show for a character, worked out once each; for `str.translate`."""

    def __missing__(self, code: int) -> int | str | None:
        shown = _shown(code)
        if len(self) >= _CACHED:
            self.clear()
        self[code] = shown
        return shown


class _LineTable(_Table):
    def __missing__(self, code: int) -> int | str | None:
        if code == 0x0A:
            return "⏎"
        if code == 0x09:
            return "⇥"
        return super().__missing__(code)


class _TextTable(_Table):
    def __missing__(self, code: int) -> int | str | None:
        return code if code in (0x09, 0x0A) else super().__missing__(code)


class _Widths(dict[str, int]):
    def __missing__(self, character: str) -> int:
        width = _width(character)
        if len(self) >= _CACHED:
            self.clear()
        self[character] = width
        return width


_line_table = _LineTable()
_text_table = _TextTable()
_widths = _Widths()


def safe_line(text: str, limit: int | None = None) -> str:
    """One line that is safe to show: line breaks become ``⏎``, tabs ``⇥``.

    Args:
        limit: cells; longer text is cropped to it with an ellipsis, and no more is looked at than needed.
    """
    cut = limit is not None and len(text) > 4 * limit + 32
    if limit is not None and cut:
        text = text[: 4 * limit + 32]
    shown = text if _is_plain(text) else _simplify(text.replace("\r\n", "\n"), _line_table)
    if limit is None:
        return shown
    return crop(shown + ELLIPSIS if cut else shown, limit)


def safe_text(text: str) -> str:
    """Many lines that are safe to show: line feeds stay, tabs are expanded."""
    if _is_plain(text):
        return text
    return _simplify(text.replace("\r\n", "\n"), _text_table).expandtabs(_TAB_SIZE)


def cells(text: str) -> int:
    """The width of one line of safe text in terminal cells."""
    return len(text) if text.isascii() else sum(map(_widths.__getitem__, text))


def crop(text: str, width: int) -> str:
    """Safe text in at most `width` cells, ending with an ellipsis where something was left out."""
    if width <= 0:
        return ""
    if len(text) <= width and cells(text) <= width:
        return text
    if text[: width + 1].isascii():
        return text[: width - 1] + ELLIPSIS
    used = end = 0
    for index, character in enumerate(text):
        used += _widths[character]
        if used < width:
            end = index + 1
        elif used > width:
            return text[:end] + ELLIPSIS
    return text


def pad(text: str, width: int, align: Literal["left", "right", "center"] = "left") -> str:
    """Safe text in exactly `width` cells: cropped, or filled with spaces."""
    shown = crop(text, width)
    room = max(0, width - cells(shown))
    if align == "right":
        return " " * room + shown
    if align == "center":
        return " " * (room // 2) + shown + " " * (room - room // 2)
    return shown + " " * room


# ---------------------------------------------------------------- characters


def _is_plain(text: str) -> bool:
    return (text.isascii() and text.isprintable()) or _SIMPLE.fullmatch(text) is not None


def _simplify(text: str, table: _Table) -> str:
    if not text.isascii():
        text = _SELECTOR.sub("", _KEYCAP.sub("", text))
        text = _JOINER.sub("", _SKIN.sub("", text))
        # Stacks are cut before composing, which takes time in the square of their height.
        text = _STACK.sub(_unstack, text)
        text = _STACK.sub(_unstack, unicodedata.normalize("NFC", text))
    text = text.translate(table)
    if text.isascii():
        return text
    # Once more: with a mark left out, what stood on either side of it may compose.
    return _LINE_START.sub(_stand, unicodedata.normalize("NFC", text))


def _unstack(found: re.Match[str]) -> str:
    kept: list[str] = []
    height = 0
    for character in found.group():
        height = height + 1 if unicodedata.category(character)[0] == "M" else 0
        if height <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def _stand(found: re.Match[str]) -> str:
    character = found.group()
    return _DOTTED + character if unicodedata.category(character) == "Mn" else character


def _shown(code: int) -> int | str | None:
    """A code point as it may be shown: itself, a mark, or None where it is left out."""
    if 0x20 <= code < 0x7F:
        return code
    if code < 0x20:
        return 0x2400 + code
    if code == 0x7F:
        return "␡"
    character = chr(code)
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"‹{code:04X}›"
    if category in ("Mc", "Me"):
        return None
    if category == "Mn":
        return None if code in _IGNORABLE_MARKS or code >= 0xE0000 else code
    if _REGIONAL_A <= code < _REGIONAL_A + 26:
        return chr(ord("A") + code - _REGIONAL_A)
    if category == "Zs" and code != 0x3000:
        return " "
    if category in ("Cn", "Co") or _CROOKED.match(character):
        return _BOX
    return code


def _width(character: str) -> int:
    if unicodedata.category(character) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# ---------------------------------------------------------------- secrets

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = frozenset(
    "token secret secrets password passwords passwd passphrase passcode pwd pw credential credentials"  # noqa: SIM905
    " bearer jwt cookie authorization apikey authkey authtoken accesskey secretkey privatekey".split()
)
# How a key ends that is written in one word: GITHUBTOKEN, dbpassword.
_SECRET_ENDINGS = ("token", "secret", "password", "passwd", "apikey")
_SECRET_KEYS = frozenset(
    [
        "api",
        "access",
        "private",
        "signing",
        "encryption",
        "secret",
        "auth",
        "deploy",
        "ssh",
        "service",
        "master",
    ]
)
# Words that tell of a count, a place or a kind: MAX_TOKENS, TOKEN_COUNT, SECRETS_FOUND, PASSWORD_FILE.
_HARMLESS = frozenset(
    "count counts used usage limit limits max min total budget length ttl found scan scanned scanning"  # noqa: SIM905
    " scanner policy status expiry expires expired type name names file path".split()
)
_ASSIGNMENT = re.compile(
    r"(?P<lead>^[ \t]{0,40}(?:[-*>$][ \t]{1,8}|export[ \t]{1,8})?)?(?<![\w.-])(?P<key>[A-Za-z_][\w.-]{1,80})"
    r"\\?[\"']?[ \t]{0,8}[:=][ \t]{0,8}"
)
_VALUE = re.compile(r"(?P<open>\\?[\"'])(?P<quoted>[^\n]*?)(?P=open)|(?:(?:Bearer|Basic) )?[^\s,;&\"'\\]+")
# Every secret key has one of these in it.
_HINTS = ("token", "secret", "pass", "pw", "credential", "key", "bearer", "jwt", "cookie", "authorization")
_AUTH_FRAGMENT = re.compile(r"#auth=[^\s\"'<>]*", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)([^\s/:@\"']{0,100}):[^\s/@\"']{1,200}@")
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)(?:.{0,20000}?(-----END [A-Z ]{0,30}PRIVATE KEY-----)|[^-]*)",
    re.DOTALL,
)
_KNOWN_BEGINNINGS = (
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "eyJ",
)
_KNOWN_SHAPES = re.compile(
    r"\b(?:sk-[\w-]{20,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"
)


def is_secret_key(key: str) -> bool:
    """Whether a key's name says that its value is secret: TOKEN, githubToken, API_KEY, db-password."""
    words = [word.lower() for word in _WORDS.findall(key[:200])]
    if not words or not _HARMLESS.isdisjoint(words):
        return False
    if not _SECRET_WORDS.isdisjoint(words):
        return True
    if words[-1] == "pass" and len(words) > 1:
        return True
    if words[-1].endswith(_SECRET_ENDINGS):
        return True
    return any(two in ("key", "keys") and one in _SECRET_KEYS for one, two in pairwise(words))


def mask_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """A run's context with secret values masked, at any depth; booleans, null and "" stay as they are."""
    return {key: _mask_value(key, value) for key, value in context.items()}


def secret_values(context: Mapping[str, Any]) -> frozenset[str]:
    """The values of a context's secret keys, at any depth, to be masked wherever they are repeated.

    What is shorter than `LEAST_SECRET` is left out: it is in too many words to be looked for in texts.
    """
    return frozenset(_secrets_in(context, secret=False))


def without(secrets: Iterable[str], text: str) -> str:
    """Text with each of these values masked."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def mask_url(text: str) -> str:
    """Text without the ``#auth=…`` of notify URLs and without passwords in URLs."""
    return _USERINFO.sub(rf"\1:{MASK}@", _AUTH_FRAGMENT.sub(f"#auth={MASK}", text))


def mask_text(text: str) -> str:
    """Text with secrets masked.

    Masked are ``KEY: value`` and ``KEY=value`` where the key looks secret, private keys, the shapes of
    well-known tokens, and what `mask_url` masks.

    At the start of a line the whole rest of it is the value, as Antfarm reads it; elsewhere one word or one
    quoted text is.
    """
    if "//" in text or "#" in text:
        text = mask_url(text)
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub(rf"\1{MASK}\2", text)
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        text = "\n".join(
            _mask_assignments(line) if any(hint in low for hint in _HINTS) else line
            for line, low in zip(text.split("\n"), lowered.split("\n"), strict=True)
        )
    if any(beginning in text for beginning in _KNOWN_BEGINNINGS):
        text = _KNOWN_SHAPES.sub(MASK, text)
    return text


def ascii_json(value: Any, indent: int | None = None) -> str:
    """JSON in pure ASCII, whatever is in it: not-a-number becomes null, unknown objects their text."""
    try:
        return json.dumps(value, ensure_ascii=True, indent=indent, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=True, indent=indent, default=str)


def _secrets_in(value: object, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, held in value.items():
            yield from _secrets_in(held, secret=secret or is_secret_key(str(key)))
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _secrets_in(held, secret=secret)
    elif secret and isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value)
        if len(text) >= LEAST_SECRET:
            yield text


def _mask_value(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(inner): _mask_value(str(inner), held) for inner, held in value.items()}
    if isinstance(value, list | tuple):
        return [_mask_value(key, held) for held in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    if is_secret_key(key):
        return MASK
    return mask_text(value) if isinstance(value, str) else value


def _mask_assignments(line: str) -> str:
    pieces: list[str] = []
    done = 0
    while found := _ASSIGNMENT.search(line, done):
        start = end = found.end()
        hidden = ""
        if is_secret_key(found["key"]):
            value = _VALUE.match(line, start)
            if value is not None and value["open"]:
                start, end, hidden = value.start("quoted"), value.end("quoted"), MASK
            elif value is not None:
                end, hidden = (value.end() if found["lead"] is None else len(line)), MASK
        pieces += (line[done:start], hidden)
        done = end
    return "".join(pieces) + line[done:]


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    return value
