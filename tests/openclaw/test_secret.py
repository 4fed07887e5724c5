"""No way of showing, logging or writing gives a secret away."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from farmtui.demo.cronbook import RpcError, Version
from farmtui.demo.gateway import Mode, StandInGateway
from farmtui.openclaw.config import read_config
from farmtui.openclaw.crons import CronError, Crons
from farmtui.openclaw.gateway import Gateway
from farmtui.openclaw.secret import Secret, scrub
from farmtui.openclaw.trouble import GatewayError
from farmtui.paths import FarmPaths
from tests.openclaw.conftest import TOKEN, definition


def test_a_secret_does_not_show() -> None:
    secret = Secret(TOKEN)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>20}", repr([secret])]

    assert not any(TOKEN in text for text in shown)
    assert TOKEN not in json.dumps(shown)
    assert secret.reveal() == TOKEN


def test_a_secret_is_not_pickled_and_copies_stay_secrets() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(TOKEN))
    assert copy.deepcopy(Secret(TOKEN)) == Secret(TOKEN)


def test_secrets_compare_by_value() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert not Secret("")


def test_scrubbing_leaves_one_line_without_the_secret() -> None:
    assert scrub(f"bad token\n {TOKEN}!", [Secret(TOKEN), Secret("")]) == "bad token ••••••!"


def test_a_config_does_not_show_its_secret(paths: FarmPaths, write_config: Callable[..., None]) -> None:
    write_config({"gateway": {"auth": {"mode": "token", "token": TOKEN}}})
    config = read_config(paths, {})

    assert config.auth.secret == Secret(TOKEN)
    assert TOKEN not in repr(config)
    assert TOKEN not in str(asdict(config))


def test_a_broken_config_does_not_show_its_text(paths: FarmPaths, state: Path) -> None:
    (state / "openclaw.json").write_text(f'{{"gateway": {{"auth": {{"token": "{TOKEN}" !!}}}}')

    assert TOKEN not in repr(read_config(paths, {}))


@pytest.mark.parametrize("mode", [Mode.OK, Mode.STARTING])
@pytest.mark.parametrize("version", list(Version))
def test_no_log_note_or_exception_holds_the_token(
    version: Version,
    mode: Mode,
    start: Callable[..., StandInGateway],
    crons: Crons,
    caplog: pytest.LogCaptureFixture,
    state: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = start(version)
    gateway.book.add(definition())
    gateway.mode = mode
    seen: list[Any] = [crons.list(0.4)]

    def loud(method: str, params: Any, scopes: Any) -> Any:
        raise RpcError("INVALID_REQUEST", f"the token {TOKEN} is yours")

    gateway.book.call = loud  # type: ignore[method-assign]
    seen.append(crons.list(0.4))
    with pytest.raises(CronError) as failed:
        crons.add(definition("builder"))
    seen += [str(failed.value), "".join(traceback.format_exception(failed.value)), crons]

    assert TOKEN not in repr(seen)
    assert TOKEN not in caplog.text
    for path in (state / "farm").rglob("*"):
        assert TOKEN not in path.read_text()


def test_a_refused_secret_is_not_shown(
    start: Callable[..., StandInGateway], paths: FarmPaths, write_config: Callable[..., None]
) -> None:
    gateway = start()
    wrong = "wrong-9d1c4b7e"
    write_config({"gateway": {**gateway.config(), "auth": {"mode": "token", "token": wrong}}})

    with Gateway(read_config(paths, {})) as client, pytest.raises(GatewayError) as refused:
        client.connect(2)

    text = "".join(traceback.format_exception(refused.value))
    assert "token mismatch" in text
    assert wrong not in text
