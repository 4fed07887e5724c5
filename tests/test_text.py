"""Text from outside: safe, of the width that Rich gives it, and without secrets."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from farmtui.text import (
    MASK,
    ascii_json,
    cells,
    crop,
    is_secret_key,
    mask_context,
    mask_text,
    mask_url,
    pad,
    safe_line,
    safe_text,
    secret_values,
    without,
)

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
# Characters that combine, join, override and hide, which random text hardly ever brings together.
NASTY = st.text(
    st.sampled_from(
        "a1# \t\r\n\x00\x1b\x7f\x9b‼❤👍👩🌾🏽🏳🌈🇩🇪"
        "\u200d\ufe0f\ufe0e\u20e3\u0301\u0345\u034f\u093f\u0915\u094d"
        "\u1100\u1161\u11a8\u202e\u2066\u061c\u00ad\u2028\ud800\udfff\ue000\U0001fac6\U000e0041日\u302a\u3164\u00a0‹□◌"
    )
)


def test_what_a_context_holds_in_secret_is_masked_wherever_it_is_repeated() -> None:
    context = {
        "api_key": "abc-123",
        "deep": [{"PASSWORD": "abc-123-long"}],
        "secret": {"inner": 1234567},
        "token": "short",
        "password": True,
        "branch": "fence-1",
    }
    secrets = secret_values(context)
    assert secrets == {"abc-123", "abc-123-long", "1234567"}
    said = "abc-123-long, abc-123, 1234567, short, fence-1"
    assert without(secrets, said) == f"{MASK}, {MASK}, {MASK}, short, fence-1"


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("bell\x07 null\x00 del\x7f", "bell␇ null␀ del␡"),
        ("c1 \x9b31m", "c1 ‹009B›31m"),
        ("a\nb\r\nc\rd\te", "a⏎b⏎c␍d⇥e"),
        ("user\u202egpj.exe\u2066x\u2069", "user‹202E›gpj.exe‹2066›x‹2069›"),
        ("zero\u200bwidth\ufeff\u061c", "zero‹200B›width‹FEFF›‹061C›"),
        ("line\u2028para\u2029", "line‹2028›para‹2029›"),
        ("tag\U000e0041", "tag‹E0041›"),
        ("half \ud83d", "half ‹D83D›"),
        ("[red]not markup[/]", "[red]not markup[/]"),
        ("naïve – “ja” ✓ → 日本語 한글", "naïve – “ja” ✓ → 日本語 한글"),
    ],
)
def test_what_controls_the_terminal_becomes_a_visible_mark(given_text: str, shown: str) -> None:
    assert safe_line(given_text) == shown


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("‼\ufe0f", "‼"),
        ("1\ufe0f\u20e3 #\u20e3", "1 #"),
        ("👍🏽", "👍"),
        ("👩🏽\u200d🌾", "👩🌾"),
        ("🇩🇪", "DE"),
        ("क्षि", "क्ष"),
        ("\U0001fac6", "□"),
        ("e\u0301", "é"),
        ("x" + "\u0301" * 50, "x\u0301\u0301"),
        ("\u0301lone", "◌\u0301lone"),
        ("\u1112\u1161\u11ab", "한"),
        ("lone \u1161", "lone □"),
        ("private \ue0b0", "private □"),
    ],
)
def test_what_terminals_measure_differently_is_simplified(given_text: str, shown: str) -> None:
    assert safe_line(given_text) == shown


def test_many_lines_keep_their_line_feeds_and_have_tabs_expanded() -> None:
    assert safe_text("a\tb\r\n\x1b[2Jc\n\u0301d") == "a   b\n␛[2Jc\n◌\u0301d"


@given(ANY_TEXT | NASTY)
@example("\u0378")
def test_no_text_gets_a_control_or_hidden_character_through(text: str) -> None:
    for shown in (safe_line(text), safe_text(text).replace("\n", "")):
        assert not {unicodedata.category(character) for character in shown} & {
            *("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mc", "Me")
        }


@given(ANY_TEXT | NASTY)
def test_width_is_what_rich_measures_line_by_line(text: str) -> None:
    shown = safe_line(text)
    assert cells(shown) == cell_len(shown)
    for line in safe_text(text).split("\n"):
        assert cells(line) == cell_len(line)


def test_width_is_what_rich_measures_for_every_character_there_is() -> None:
    for start in (*range(0, 0x20000, 0x100), 0x20000, 0x2FF00, 0x3FF00, 0xE0000, 0xE0100, 0xF0000, 0x10FF00):
        shown = safe_line("a".join(map(chr, range(start, start + 0x100))))
        assert cells(shown) == cell_len(shown), f"in U+{start:X}…"


@given(ANY_TEXT | NASTY)
def test_safe_text_is_not_changed_by_a_second_pass(text: str) -> None:
    assert safe_line(safe_line(text)) == safe_line(text)
    assert safe_text(safe_text(text)) == safe_text(text)


@given(ANY_TEXT | NASTY, st.integers(0, 30))
def test_cropped_and_padded_text_fits(text: str, width: int) -> None:
    shown = safe_line(text)
    cropped = crop(shown, width)
    assert cell_len(cropped) <= width
    if cell_len(shown) <= width:
        assert cropped == shown
    elif width:
        assert cropped.endswith("…")
        assert shown.startswith(cropped[:-1])
    for align in ("left", "right", "center"):
        assert cell_len(pad(shown, width, align)) == width
    assert cell_len(safe_line(text, width)) <= width


def test_a_limit_looks_at_no_more_of_a_long_text_than_it_needs() -> None:
    long_text = "word " * 1_000_000
    assert safe_line(long_text, 12) == "word word w…"
    assert safe_line("\u0301" * 1_000_000 + "x", 4).endswith("…")


def test_a_wide_character_is_never_halved() -> None:
    assert crop("日本語テキスト", 6) == "日本…"
    assert pad("日本", 6, "right") == "  日本"


@pytest.mark.parametrize(
    "key",
    "TOKEN github_token githubToken API_KEY apiKey APIKey db-password DB_PASS SECRET_KEY_BASE"  # noqa: SIM905
    " aws.secret.access.key SSH_PRIVATE_KEY Authorization client_secret GITHUBTOKEN dbpassword".split(),
)
def test_keys_that_name_a_secret(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    "status keyboard monkey author max_tokens TOKEN_COUNT secrets_found primary_key pass tokens"  # noqa: SIM905
    " password_policy key ___ tokenizer secretary".split(),
)
def test_keys_that_do_not(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("API_KEY: s3cr3t and more\nSTATUS: done", f"API_KEY: {MASK}\nSTATUS: done"),
        ("export DB_PASSWORD=hunter2", f"export DB_PASSWORD={MASK}"),
        ("run with token=abc, then go", f"run with token={MASK}, then go"),
        ('{"name": "x", "apiKey": "s3cr3t"}', f'{{"name": "x", "apiKey": "{MASK}"}}'),
        (r"{\"password\": \"a b\"}", rf"{{\"password\": \"{MASK}\"}}"),
        ("curl -H 'Authorization: Bearer abc.def' x", f"curl -H 'Authorization: {MASK}' x"),
        ("https://me:hunter2@host/x", f"https://me:{MASK}@host/x"),
        ("https://host/hook#auth=abc", f"https://host/hook#auth={MASK}"),
        ("used sk-abcdefghijklmnopqrstuvwxyz here", f"used {MASK} here"),
        ("MAX_TOKENS: 100\nNEXT: key ideas", "MAX_TOKENS: 100\nNEXT: key ideas"),
    ],
)
def test_secrets_in_text_are_masked_and_the_rest_stays(given_text: str, shown: str) -> None:
    assert mask_text(given_text) == shown


def test_a_private_key_block_is_masked() -> None:
    block = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----"
    masked = mask_text(f"before\n{block}\nafter")
    assert "b3BlbnNz" not in masked
    assert masked.startswith("before\n")
    assert masked.endswith("\nafter")


@given(ANY_TEXT, st.sampled_from(["TOKEN", "my_api_key", "PASSWORD"]))
def test_no_value_of_a_secret_line_survives(before: str, key: str) -> None:
    assert "hunter2xyz" not in mask_text(f"{before}\n{key}: hunter2xyz\n{key}=hunter2xyz")


@given(ANY_TEXT)
def test_masking_takes_any_text(text: str) -> None:
    assert isinstance(mask_text(text), str)
    assert "secret-part" not in mask_url(f"https://h/#auth=secret-part {text}")


def test_a_context_is_masked_at_any_depth_and_other_types_are_kept() -> None:
    context = {
        "port": 8080,
        "ok": True,
        "none": None,
        "token": "abc",
        "nested": {"db_password": 5, "name": "n"},
    }
    assert mask_context(context) == {
        "port": 8080,
        "ok": True,
        "none": None,
        "token": MASK,
        "nested": {"db_password": MASK, "name": "n"},
    }


@given(
    st.recursive(
        st.none() | st.floats() | ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner)
    )
)
def test_json_is_ascii_and_strict(value: object) -> None:
    written = ascii_json(value)
    assert written.isascii()
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
