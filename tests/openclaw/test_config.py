"""openclaw.json in the forms in which it stands on real machines."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmtui.openclaw.config import OpenClawConfig, read_config
from farmtui.openclaw.secret import Secret
from farmtui.paths import FarmPaths, locate
from tests.boxes import Box

WriteConfig = Callable[..., None]


@pytest.fixture
def read(paths: FarmPaths, write_config: WriteConfig, tmp_path: Path) -> Callable[..., OpenClawConfig]:
    """Writes a config and reads it back."""

    def run(config: Any = None, environ: dict[str, str] | None = None) -> OpenClawConfig:
        if config is not None:
            write_config(config)
        return read_config(paths, environ or {}, cwd=tmp_path)

    return run


# ---------------------------------------------------------------- the file


def test_json5_is_read(read: Callable[..., OpenClawConfig], state: Path) -> None:
    (state / "openclaw.json").write_text(
        "// ours\n{gateway: {port: 19001, auth: {token: 'abc',},}, /* more */ agents: {list: [{id: 'a'}]}}"
    )

    config = read()

    assert config.error is None
    assert config.port == 19001
    assert config.auth.secret == Secret("abc")
    assert list(config.agents) == ["a"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "neither JSON nor JSON5"),
        (b"{", "neither JSON nor JSON5"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe{}", "no UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":"' + b"x" * (3 << 20) + b'"}', "longer than"),
    ],
)
def test_a_config_that_cannot_be_read_is_said_in_one_line(
    text: bytes, words: str, read: Callable[..., OpenClawConfig], state: Path
) -> None:
    (state / "openclaw.json").write_bytes(text)

    config = read()

    assert config.error is not None
    assert words in config.error
    assert "\n" not in config.error
    assert config.unreachable == config.error


@pytest.mark.parametrize("comment", [b"", b"// ours\n"])
def test_a_bad_byte_does_not_lose_the_config(
    comment: bytes, read: Callable[..., OpenClawConfig], state: Path
) -> None:
    (state / "openclaw.json").write_bytes(
        comment + b'{"gateway":{"port":19001,"auth":{"token":"abc"}},'
        b'"agents":{"list":[{"id":"a","name":"caf\xe9","workspace":"/w"}]}}'
    )

    config = read()

    assert config.error is None
    assert (config.port, config.auth.secret) == (19001, Secret("abc"))
    assert config.agents["a"].workspace == "/w"


def test_an_absent_config_is_said(read: Callable[..., OpenClawConfig]) -> None:
    assert str(read().error).startswith("there is no ")


def test_a_fifo_or_folder_in_its_place_does_not_block(
    read: Callable[..., OpenClawConfig], state: Path
) -> None:
    os.mkfifo(state / "openclaw.json")
    assert "no regular file" in str(read().error)
    (state / "openclaw.json").unlink()
    (state / "openclaw.json").mkdir()
    assert "no regular file" in str(read().error)


def test_a_config_that_may_not_be_read(read: Callable[..., OpenClawConfig], state: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (state / "openclaw.json").write_text("{}")
    (state / "openclaw.json").chmod(0)
    assert "cannot be opened" in str(read().error)


# ---------------------------------------------------------------- includes


def test_included_files_are_merged(read: Callable[..., OpenClawConfig], state: Path) -> None:
    (state / "agents.json5").write_text("{list: [{id: 'a'}, {id: 'b'}]}")
    (state / "gw.json").write_text('{"port": 1, "auth": {"mode": "token", "token": "t"}}')

    config = read({"agents": {"$include": "./agents.json5"}, "gateway": {"$include": ["gw.json"], "port": 2}})

    assert sorted(config.agents) == ["a", "b"]
    assert config.port == 2
    assert config.auth.secret == Secret("t")
    assert config.problems == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../outside.json", "outside the config's folder"),
        ("/etc/hostname", "outside the config's folder"),
        ("link.json", "outside the config's folder"),
        ("absent.json", "there is no"),
        ("self.json", "levels deep"),
        (7, "names no file"),
    ],
)
def test_an_include_that_cannot_be_followed_is_reported(
    name: object, words: str, read: Callable[..., OpenClawConfig], state: Path
) -> None:
    (state.parent / "outside.json").write_text('{"port": 7}')
    (state / "link.json").symlink_to(state.parent / "outside.json")
    (state / "self.json").write_text('{"$include": "self.json"}')

    config = read({"gateway": {"$include": name, "port": 5}})

    assert config.port == 5
    assert words in " ".join(config.problems)


# ---------------------------------------------------------------- the gateway's address


def test_what_is_assumed_without_a_section(read: Callable[..., OpenClawConfig]) -> None:
    config = read({})

    assert config.url == "ws://127.0.0.1:18789"
    assert config.unsafe_bind is None
    assert config.auth.problem == "neither gateway.auth.token nor OPENCLAW_GATEWAY_TOKEN is set"


def test_the_port_of_the_environment_goes_first(read: Callable[..., OpenClawConfig]) -> None:
    config = {"gateway": {"port": 19001}}

    assert read(config).port == 19001
    assert read(config, {"OPENCLAW_GATEWAY_PORT": "19002"}).port == 19002


@pytest.mark.parametrize("port", ["x", 0, 70000, [], -1, "", 1e400])
def test_a_port_that_is_none_is_reported(port: object, read: Callable[..., OpenClawConfig]) -> None:
    config = read({"gateway": {"port": port}})

    assert config.port == 18789
    assert config.problems == ("gateway.port is no port",)


@pytest.mark.parametrize(
    ("gateway", "unsafe"),
    [
        ({"bind": "loopback"}, None),
        ({"bind": "auto"}, None),
        ({"bind": "lan"}, "lan"),
        ({"bind": "tailnet"}, "tailnet"),
        ({"bind": "0.0.0.0"}, "0.0.0.0"),
        ({"bind": "custom", "customBindHost": "10.1.2.3"}, "custom (10.1.2.3)"),
        ({"bind": "custom", "customBindHost": "127.0.0.1"}, None),
        ({"tailscale": {"mode": "serve"}}, None),
        ({"tailscale": {"mode": "funnel"}}, "tailscale funnel (public)"),
    ],
)
def test_a_gateway_open_to_others_is_reported(
    gateway: dict[str, Any], unsafe: str | None, read: Callable[..., OpenClawConfig]
) -> None:
    assert read({"gateway": gateway}).unsafe_bind == unsafe


def test_a_gateway_bound_to_all_interfaces_is_spoken_to_on_loopback(
    read: Callable[..., OpenClawConfig],
) -> None:
    assert read({"gateway": {"bind": "lan"}}).host == "127.0.0.1"
    assert read({"gateway": {"bind": "custom", "customBindHost": "0.0.0.0"}}).host == "127.0.0.1"
    assert read({"gateway": {"bind": "custom", "customBindHost": "10.1.2.3"}}).host == "10.1.2.3"


def test_tls_is_spoken_with_the_gateways_own_certificate(
    read: Callable[..., OpenClawConfig], state: Path
) -> None:
    config = read({"gateway": {"tls": {"enabled": True}}})

    assert config.url == "wss://127.0.0.1:18789"
    assert config.certificate == state / "gateway" / "tls" / "gateway-cert.pem"


def test_a_remote_gateway_is_contacted_only_where_the_secret_is_safe(
    read: Callable[..., OpenClawConfig],
) -> None:
    def remote(url: str) -> OpenClawConfig:
        return read({"gateway": {"mode": "remote", "remote": {"url": url, "token": "r"}}})

    assert remote("wss://box.example").url == "wss://box.example:443"
    assert remote("wss://box.example").unreachable is None
    assert remote("ws://127.0.0.1:18800").unreachable is None
    assert remote("ws://127.0.0.1:18800").auth.secret == Secret("r")
    assert "without TLS" in str(remote("ws://box.example:1").unreachable)
    assert "names no gateway" in str(remote("http://box.example").unreachable)
    assert "names no gateway" in str(remote("ws://[").unreachable)


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("auth", "environ", "mode", "secret"),
    [
        ({"mode": "token", "token": "t"}, {}, "token", "t"),
        ({"token": "t"}, {}, "token", "t"),
        ({"password": "p"}, {}, "password", "p"),
        ({"mode": "password", "password": "p", "token": "t"}, {}, "password", "p"),
        ({"mode": "none"}, {}, "none", None),
        ({"mode": "trusted-proxy", "password": "p"}, {}, "password", "p"),
        ({}, {"OPENCLAW_GATEWAY_TOKEN": "e"}, "token", "e"),
        ({}, {"OPENCLAW_GATEWAY_PASSWORD": "e"}, "password", "e"),
        ({"mode": "password"}, {"OPENCLAW_GATEWAY_PASSWORD": "e"}, "password", "e"),
        ({"token": "t"}, {"OPENCLAW_GATEWAY_TOKEN": "e"}, "token", "t"),
        ({"token": "${TOK}"}, {"TOK": "e"}, "token", "e"),
        ({"token": "a-${TOK}-b"}, {"TOK": "e"}, "token", "a-e-b"),
        ({"token": "$${TOK}"}, {"TOK": "e"}, "token", "${TOK}"),
        ({"token": "${tok}"}, {"tok": "e"}, "token", "${tok}"),
        ({"token": {"source": "env", "provider": "default", "id": "TOK"}}, {"TOK": "e"}, "token", "e"),
    ],
)
def test_the_secret_is_found(
    auth: dict[str, Any],
    environ: dict[str, str],
    mode: str,
    secret: str | None,
    read: Callable[..., OpenClawConfig],
) -> None:
    found = read({"gateway": {"auth": auth}}, environ).auth

    assert found.problem is None
    assert found.mode == mode
    assert found.secret == (None if secret is None else Secret(secret))


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ({"token": "${MISSING_TOK}"}, "${MISSING_TOK} is not set"),
        ({"token": {"source": "env", "id": "MISSING_TOK"}}, "MISSING_TOK is not set"),
        ({"token": {"source": "file", "provider": "filemain", "id": "/gw"}}, "file: filemain /gw"),
        ({"token": {"source": "exec", "provider": "vault", "id": "gw/token"}}, "exec: vault gw/token"),
        ({"token": {"source": "store", "id": "gw"}}, "store: default gw"),
        ({"mode": "password", "password": ["p"]}, "a form that farm does not know"),
        ({"mode": "trusted-proxy"}, "gateway.auth.mode is trusted-proxy"),
    ],
)
def test_a_secret_that_cannot_be_resolved_is_said_by_name_and_nothing_else_stands_in(
    auth: dict[str, Any], words: str, read: Callable[..., OpenClawConfig]
) -> None:
    found = read({"gateway": {"auth": auth}}, {"OPENCLAW_GATEWAY_TOKEN": "other"}).auth

    assert found.secret is None
    assert words in str(found.problem)


def test_variables_come_in_their_order_of_precedence(
    read: Callable[..., OpenClawConfig], state: Path, tmp_path: Path
) -> None:
    def token(environ: dict[str, str] | None = None) -> Secret | None:
        config = {"gateway": {"auth": {"token": "${TOK}"}}, "env": {"vars": {"TOK": "block"}}}
        return read(config, environ).auth.secret

    assert token() == Secret("block")
    (state / ".env").write_text("# ours\nexport TOK='state'\n")
    assert token() == Secret("state")
    (tmp_path / ".env").write_text('OTHER=1\nTOK="folder" # here\n')
    assert token() == Secret("folder")
    assert token({"TOK": "process"}) == Secret("process")
    assert token({"TOK": ""}) == Secret("folder")


def test_variables_may_stand_in_the_env_block_itself(read: Callable[..., OpenClawConfig]) -> None:
    config = {"gateway": {"auth": {"token": "${TOK}"}}, "env": {"TOK": "flat", "shellEnv": {"enabled": True}}}

    assert read(config).auth.secret == Secret("flat")


def test_a_working_folder_cannot_lead_to_another_gateway(
    read: Callable[..., OpenClawConfig], tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("OPENCLAW_GATEWAY_PORT=6666\nOPENCLAW_GATEWAY_TOKEN=theirs\n")

    config = read({"gateway": {"port": 18789}})

    assert config.port == 18789
    assert config.auth.secret is None


# ---------------------------------------------------------------- agents


def test_both_shapes_of_agents_are_read(read: Callable[..., OpenClawConfig]) -> None:
    older = read(
        {"agents": {"list": [{"id": "a", "name": "A", "workspace": "/w/a", "timeoutSeconds": 1800}]}}
    )
    newer = read({"agents": {"entries": {"a": {"name": "A", "workspace": "/w/a", "timeoutSeconds": 1800}}}})

    assert older.agents == newer.agents
    assert older.agents["a"].workspace == "/w/a"
    assert older.agents["a"].timeout_s == 1800


def test_agents_that_openclaw_will_drop_are_reported(read: Callable[..., OpenClawConfig]) -> None:
    config = read({"agents": {"list": [{"id": "a"}, {"id": "new"}], "entries": {"a": {}}}})

    assert sorted(config.agents) == ["a", "new"]
    assert "new" in config.problems[0]


def test_a_workspace_below_home(read: Callable[..., OpenClawConfig]) -> None:
    config = read({"agents": {"list": [{"id": "a", "workspace": "~/w"}]}}, {"HOME": "/h"})

    assert config.agents["a"].workspace == "/h/w"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["gateway", "auth", "token", "mode", "agents", "list", "entries", "id", "port",
                 "env", "vars", "remote", "url", "bind", "tls", "enabled",
                 "source", "$include", "workspace", "cron", "store"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(config=st.dictionaries(st.sampled_from(["gateway", "agents", "env", "cron", "$include"]), JSON))
def test_no_config_makes_reading_fail(config: dict[str, Any], tmp_path: Path) -> None:
    import json

    (tmp_path / "openclaw.json").write_text(json.dumps(config))
    paths = locate(state_dir=tmp_path, environ={}, home=tmp_path)

    found = read_config(paths, {}, cwd=tmp_path)

    assert 0 < found.port < 65536


def test_the_boxes_configs(box: Box) -> None:
    config = read_config(locate(state_dir=box.state_dir, environ={}, home=box.home), {})

    assert config.error is None
    assert config.problems == ()
    assert config.port in (18889, 18890)
    assert len(config.agents) == 12
    assert config.agents["relay_scout"].workspace == str(
        box.state_dir / "workspaces/workflows/relay/agents/scout"
    )
    assert config.auth.secret == Secret("REDACTED")


def test_reading_leaves_the_config_alone(read: Callable[..., OpenClawConfig], state: Path) -> None:
    read({})
    before = (state / "openclaw.json").stat()
    read()
    assert stat.S_IMODE(before.st_mode) == stat.S_IMODE((state / "openclaw.json").stat().st_mode)
    assert before.st_mtime_ns == (state / "openclaw.json").stat().st_mtime_ns
