"""Crons against a real WebSocket server in each of the states a gateway can be in."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from farmtui.demo.cronbook import RpcError, Version
from farmtui.demo.gateway import Mode, StandInGateway
from farmtui.openclaw import crons as crons_module
from farmtui.openclaw.crons import CronError, Crons
from farmtui.openclaw.kept import KeptJobs
from farmtui.paths import FarmPaths, locate
from farmtui.state import CronSource
from tests.openclaw.conftest import definition

HEARTBEAT = {
    "name": "heartbeat-main",
    "enabled": True,
    "schedule": {"kind": "cron", "expr": "0 * * * *"},
    "payload": {"kind": "systemEvent", "text": "beat"},
}


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it becomes true within a few seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.02)
    return False


# ---------------------------------------------------------------- listing


def test_jobs_are_listed_by_websocket(gateway: StandInGateway, crons: Crons) -> None:
    gateway.book.add(definition("scout"))
    gateway.book.add(definition("builder", enabled=False))
    gateway.book.add(HEARTBEAT)
    gateway.book.add({**HEARTBEAT, "name": "antfarm/medic"})

    listing = crons.list()

    assert listing.source is CronSource.WEBSOCKET
    assert listing.note is None
    assert [(job.agent, job.enabled) for job in listing.jobs] == [("builder", False), ("scout", True)]
    assert listing.others == 1
    assert listing.watchdog
    assert listing.version == ("2026.9.6" if gateway.version is Version.LATEST else None)


def test_only_the_right_to_read_is_asked_for(gateway: StandInGateway, crons: Crons) -> None:
    asked: list[frozenset[str]] = []
    answer = gateway.book.call
    gateway.book.call = lambda method, params, scopes: (  # type: ignore[method-assign]
        asked.append(frozenset(scopes)) or answer(method, params, scopes)
    )
    gateway.book.add(definition())

    crons.remove(crons.list().jobs[0].id)

    assert asked[0] == {"operator.read"}
    assert all("operator.admin" in scopes for scopes in asked[1:])


def test_a_frame_of_more_than_a_mebibyte_is_read(gateway: StandInGateway, crons: Crons) -> None:
    payload = {**definition()["payload"], "message": "x" * 300_000}
    for number in range(6):
        gateway.book.add(definition(f"agent{number}", payload=payload))

    assert len(crons.list().jobs) == 6


def test_pages_are_followed_to_the_end(start: Callable[..., StandInGateway], crons: Crons) -> None:
    gateway = start()
    for number in range(7):
        gateway.book.add(definition(f"agent{number}"))
    answer = gateway.book.call

    def paged(method: str, params: Any, scopes: Any) -> Any:
        return answer(method, {**params, "limit": 3} if method == "cron.list" else params, scopes)

    gateway.book.call = paged  # type: ignore[method-assign]

    assert len(crons.list().jobs) == 7


@pytest.mark.parametrize("auth", ["password", "none"])
def test_other_ways_to_authenticate(auth: str, start: Callable[..., StandInGateway], crons: Crons) -> None:
    gateway = start(auth=auth)
    gateway.book.add(definition())

    assert crons.list().source is CronSource.WEBSOCKET


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate, as the gateway makes one for itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=openclaw-gateway"
    subprocess.run([*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def test_tls_with_the_gateways_own_certificate_and_no_other(
    start: Callable[..., StandInGateway], crons: Crons, state: Path, certificate: tuple[Path, Path]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    start(tls=context).book.add(definition())

    unread = crons.list()
    assert unread.source is CronSource.NONE
    assert "gateway-cert.pem cannot be read" in str(unread.note)

    (state / "gateway" / "tls").mkdir(parents=True)
    shutil.copy(certificate[0], state / "gateway" / "tls" / "gateway-cert.pem")
    assert crons.list(timeout=20).source is CronSource.WEBSOCKET

    other = ssl.get_default_verify_paths().cafile
    if other is not None:
        shutil.copy(other, state / "gateway" / "tls" / "gateway-cert.pem")
        assert "TLS with the gateway" in str(crons.list().note)


def test_a_proxy_in_the_environment_is_not_used(
    gateway: StandInGateway, crons: Crons, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)

        assert crons.list().source is CronSource.WEBSOCKET


def test_gateway_down_is_said_and_the_store_is_read(
    start: Callable[..., StandInGateway], crons: Crons
) -> None:
    gateway = start(Version.FEB)
    gateway.book.add(definition())
    gateway.stop()

    listing = crons.list()

    assert listing.source is CronSource.STORE
    assert [job.agent for job in listing.jobs] == ["scout"]
    assert listing.note is not None
    assert f"not reachable at 127.0.0.1:{gateway.port} (connection refused)" in listing.note
    assert "store on disk" in listing.note


@pytest.mark.parametrize(
    ("mode", "words"), [(Mode.HUNG, "does not answer"), (Mode.STARTING, "still starting")]
)
def test_a_gateway_that_hangs_or_starts_does_not_hold_up_the_list(
    mode: Mode, words: str, start: Callable[..., StandInGateway], crons: Crons
) -> None:
    gateway = start(Version.FEB)
    gateway.book.add(definition())
    gateway.mode = mode

    began = time.monotonic()
    listing = crons.list(0.7)

    assert time.monotonic() - began < 3
    assert listing.source is CronSource.STORE
    assert listing.note is not None
    assert words in listing.note


def test_a_gateway_that_answers_no_list_is_given_up(
    start: Callable[..., StandInGateway], crons: Crons
) -> None:
    gateway = start(Version.FEB)
    gateway.book.add(definition())
    gateway.muted.add("cron.list")

    assert crons.list(0.5).source is CronSource.STORE


def test_a_starting_gateway_is_asked_again(
    gateway: StandInGateway, crons: Crons, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.mode = Mode.STARTING

    def ready(_seconds: float) -> None:
        gateway.mode = Mode.OK

    monkeypatch.setattr("farmtui.openclaw.gateway.time.sleep", ready)

    assert crons.list().source is CronSource.WEBSOCKET


def test_without_any_source_there_is_none_and_a_reason(
    crons: Crons, write_config: Callable[..., None]
) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        write_config({"gateway": {"port": nobody.getsockname()[1], "auth": {"token": "t"}}})
        listing = crons.list()

    assert listing.source is CronSource.NONE
    assert not listing.known
    assert listing.note is not None
    assert "connection refused" in listing.note
    assert "no job store" in listing.note


def test_no_gateway_is_contacted_without_its_config(
    start: Callable[..., StandInGateway], state: Path, paths: FarmPaths
) -> None:
    gateway = start(auth="none")
    (state / "openclaw.json").unlink()

    listing = Crons(paths, {"PATH": "", "OPENCLAW_GATEWAY_PORT": str(gateway.port)}).list()

    assert listing.source is CronSource.NONE
    assert listing.note is not None
    assert "there is no" in listing.note
    assert gateway.calls == []


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"\xff\xfe\x00"])
def test_what_is_no_gateway_is_said_to_be_none(
    reply: bytes, crons: Crons, write_config: Callable[..., None]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(reply)

        threading.Thread(target=answer, daemon=True).start()
        write_config({"gateway": {"port": server.getsockname()[1], "auth": {"token": "t"}}})
        note = crons.list(2).note

    assert note is not None
    assert "127.0.0.1" in note


def test_a_redirect_is_not_followed(
    start: Callable[..., StandInGateway], crons: Crons, write_config: Callable[..., None]
) -> None:
    elsewhere = start()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                client.sendall(
                    b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n"
                    b"location: ws://127.0.0.1:%d/\r\n\r\n" % elsewhere.port
                )

        threading.Thread(target=answer, daemon=True).start()
        write_config({"gateway": {"port": server.getsockname()[1], "auth": {"token": elsewhere.secret}}})
        listing = crons.list(2)

    assert listing.source is CronSource.NONE
    assert elsewhere.calls == []


# ---------------------------------------------------------------- removing


def test_a_job_is_removed(gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition("scout"))
    gateway.book.add(definition("builder"))

    result = crons.remove(job["id"])

    assert result.gone
    assert result.note is None
    assert [job["name"] for job in gateway.book.jobs] == ["antfarm/relay/builder"]


def test_a_job_that_is_not_there_counts_as_gone(gateway: StandInGateway, crons: Crons) -> None:
    result = crons.remove("4e0d7a52-0000-4000-8000-000000000000")

    assert result.gone
    assert result.note == "it was gone already"


@pytest.mark.parametrize(
    "error",
    [
        RpcError("INVALID_REQUEST", "invalid cron.remove params: id not found"),  # 2026.6.11
        RpcError("INVALID_REQUEST", "no", details={"code": "CRON_JOB_NOT_FOUND"}),
        RpcError("UNAVAILABLE", "Error: unknown cron job id: x"),
    ],
)
def test_each_versions_words_for_not_found_count_as_gone(
    error: RpcError, gateway: StandInGateway, crons: Crons
) -> None:
    job = gateway.book.add(definition())
    answer = gateway.book.call

    def not_found(method: str, params: Any, scopes: Any) -> Any:
        if method == "cron.remove":
            gateway.book.remove(job["id"])
            raise error
        return answer(method, params, scopes)

    gateway.book.call = not_found  # type: ignore[method-assign]

    result = crons.remove(job["id"])
    assert result.gone
    assert result.note == "it was gone already"


def test_other_refusals_are_told_in_the_gateways_words(gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition())
    answer = gateway.book.call

    def refuse(method: str, params: Any, scopes: Any) -> Any:
        if method == "cron.remove":
            raise RpcError("INTERNAL", "the disk is full")
        return answer(method, params, scopes)

    gateway.book.call = refuse  # type: ignore[method-assign]

    with pytest.raises(CronError, match="the disk is full") as refused:
        crons.remove(job["id"])
    assert not refused.value.uncertain


def test_not_found_at_the_last_moment_counts_as_gone(gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition())
    answer = gateway.book.call

    def raced(method: str, params: Any, scopes: Any) -> Any:
        if method == "cron.remove":
            gateway.book.remove(job["id"])
        return answer(method, params, scopes)

    gateway.book.call = raced  # type: ignore[method-assign]

    assert crons.remove(job["id"]).gone


@pytest.mark.parametrize(
    "name", ["heartbeat-main", "antfarm/medic", "antfarm/a/b/c", "Antfarm/a/b", "antfarm//b"]
)
def test_no_other_job_is_ever_removed(name: str, gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition(name=name))

    with pytest.raises(CronError, match="not a job of Antfarm's") as refused:
        crons.remove(job["id"])

    assert not refused.value.uncertain
    assert [kept["id"] for kept in gateway.book.jobs] == [job["id"]]
    assert "cron.remove" not in gateway.calls


def test_a_job_that_comes_back_is_said(gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition())
    gateway.book.comes_back = True

    result = crons.remove(job["id"])

    assert result.gone
    assert result.came_back == (gateway.book.jobs[0]["id"],)
    assert result.note is not None
    assert "came back" in result.note


def test_a_job_that_stays_is_said(gateway: StandInGateway, crons: Crons) -> None:
    job = gateway.book.add(definition())
    gateway.book.undeletable.add(job["id"])

    result = crons.remove(job["id"])

    assert not result.gone
    assert result.note is not None
    assert "still lists it" in result.note


@pytest.mark.parametrize("method", ["cron.remove", "cron.add"])
def test_no_answer_after_sending_is_uncertain(
    method: str, gateway: StandInGateway, crons: Crons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crons_module, "_CHANGE_S", 0.4)
    job = gateway.book.add(definition())
    gateway.muted.add(method)

    with pytest.raises(CronError) as unknown:
        crons.remove(job["id"]) if method == "cron.remove" else crons.add(definition("builder"))

    assert unknown.value.uncertain


def test_no_answer_to_the_list_before_is_not_uncertain(
    gateway: StandInGateway, crons: Crons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crons_module, "_CHANGE_S", 0.4)
    job = gateway.book.add(definition())
    gateway.muted.add("cron.list")

    with pytest.raises(CronError) as failed:
        crons.remove(job["id"])

    assert not failed.value.uncertain
    assert gateway.book.jobs


def test_with_the_gateway_down_nothing_is_removed_and_the_store_is_untouched(
    start: Callable[..., StandInGateway], crons: Crons, state: Path
) -> None:
    gateway = start(Version.FEB)
    job = gateway.book.add(definition())
    gateway.stop()
    before = (state / "cron" / "jobs.json").read_bytes()

    with pytest.raises(CronError, match="connection refused") as refused:
        crons.remove(job["id"])

    assert not refused.value.uncertain
    assert (state / "cron" / "jobs.json").read_bytes() == before


def test_a_pair_of_database_and_gateway_that_may_not_belong_together_removes_nothing(
    gateway: StandInGateway, state: Path, tmp_path: Path
) -> None:
    job = gateway.book.add(definition())
    split = locate(db=tmp_path / "elsewhere.db", environ={"OPENCLAW_STATE_DIR": str(state)}, home=tmp_path)

    with pytest.raises(CronError, match="--state-dir"):
        Crons(split, {"PATH": ""}).remove(job["id"])

    assert gateway.calls == []


# ---------------------------------------------------------------- adding


def test_a_removed_job_is_added_again_as_it_was(gateway: StandInGateway, crons: Crons) -> None:
    gateway.book.add(definition(enabled=False))
    job = crons.list().jobs[0]
    crons.remove(job.id)

    new_id = crons.add(job.definition)

    again = crons.list().jobs[0]
    assert again.id == new_id
    assert new_id != job.id
    assert (again.name, again.enabled, again.every_ms) == (job.name, False, 300_000)
    assert again.definition["payload"] == job.definition["payload"]


def test_a_definition_from_a_newer_gateway_is_cut_to_what_an_older_one_knows(
    start: Callable[..., StandInGateway], crons: Crons
) -> None:
    gateway = start(Version.FEB)
    newer = definition(
        payload={**definition()["payload"], "toolsAllow": ["*"]},
        delivery={"mode": "none", "channel": "last"},
    )

    crons.add(newer)

    assert gateway.book.jobs[0]["payload"] == definition()["payload"]


def test_more_jobs_than_a_gateway_takes_in_a_minute_are_refused_with_when_to_try_again(
    start: Callable[..., StandInGateway], crons: Crons
) -> None:
    start()
    for number in range(30):
        crons.add(definition(f"agent{number}"))

    with pytest.raises(CronError, match=r"rate limit exceeded.*try again in \d+s") as refused:
        crons.add(definition("one-more"))

    assert not refused.value.uncertain


def test_a_short_wait_that_the_gateway_asks_for_is_waited(
    start: Callable[..., StandInGateway], crons: Crons, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = start()
    waited: list[float] = []

    def busy() -> None:
        if not waited:
            raise RpcError("UNAVAILABLE", "rate limit exceeded for cron.add", retry_after_ms=700)

    monkeypatch.setattr(gateway.book, "_limit_adds", busy)
    monkeypatch.setattr("farmtui.openclaw.methods.time.sleep", waited.append)

    crons.add(definition())

    assert waited == [0.7]
    assert len(gateway.book.jobs) == 1


def test_an_agent_that_does_not_exist_is_said(start: Callable[..., StandInGateway], crons: Crons) -> None:
    start(agents=["main"])

    with pytest.raises(CronError, match="agent is unavailable: relay_scout"):
        crons.add(definition())


@pytest.mark.parametrize("wrong", [{}, {"name": "heartbeat-main"}, {"name": "antfarm/a/b"}])
def test_what_is_no_definition_is_not_sent(
    wrong: dict[str, Any], gateway: StandInGateway, crons: Crons
) -> None:
    with pytest.raises(CronError):
        crons.add(wrong)

    assert gateway.calls == []


# ---------------------------------------------------------------- keeping


def test_listed_jobs_are_kept_for_when_they_are_gone(
    gateway: StandInGateway, crons: Crons, paths: FarmPaths
) -> None:
    job = gateway.book.add(definition())
    crons.list()
    gateway.book.remove(job["id"])
    crons.list()

    kept = KeptJobs(paths.farm_dir).find("relay", "scout")

    assert kept is not None
    crons.add(kept)
    assert [again.name for again in crons.list().jobs] == ["antfarm/relay/scout"]


# ---------------------------------------------------------------- events


@pytest.fixture
def changes(crons: Crons, gateway: StandInGateway) -> Iterator[list[float]]:
    """When `watch` told of a change; it is connected when the test begins."""
    told: list[float] = []
    stop = threading.Event()
    thread = threading.Thread(target=crons.watch, args=(lambda: told.append(time.monotonic()), stop))
    thread.start()
    assert eventually(lambda: gateway.clients == 1)
    yield told
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def test_a_change_is_told(gateway: StandInGateway, changes: list[float]) -> None:
    gateway.book.add(definition())

    assert eventually(lambda: bool(changes))


def test_a_burst_of_events_is_one_change(gateway: StandInGateway, changes: list[float]) -> None:
    for number in range(20):
        gateway.book.add(definition(f"agent{number}"))

    assert eventually(lambda: bool(changes))
    assert len(changes) < 5


def test_a_gateway_that_goes_and_comes_back_is_told_and_watched_again(
    gateway: StandInGateway, changes: list[float]
) -> None:
    gateway.stop()
    assert eventually(lambda: len(changes) == 1)

    gateway.start()
    assert eventually(lambda: len(changes) == 2)

    gateway.book.add(definition())
    assert eventually(lambda: len(changes) == 3)


def test_a_gateway_that_hangs_is_noticed_by_its_silence(
    start: Callable[..., StandInGateway], crons: Crons
) -> None:
    gateway = start(tick_s=0.3)
    told: list[bool] = []
    stop = threading.Event()
    thread = threading.Thread(target=crons.watch, args=(lambda: told.append(True), stop))
    thread.start()
    assert eventually(lambda: gateway.clients == 1)

    gateway.mode = Mode.HUNG

    assert eventually(lambda: bool(told))
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


# ---------------------------------------------------------------- nothing left behind


def test_what_speaks_to_the_gateway_is_imported_when_it_is_first_used() -> None:
    script = "import sys, farmtui.openclaw.crons; print({'websockets', 'pyjson5'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "set()"


def test_no_thread_is_left(gateway: StandInGateway, crons: Crons) -> None:
    before = set(threading.enumerate())
    job = gateway.book.add(definition())
    for _ in range(3):
        crons.list()
    crons.remove(job["id"])

    assert eventually(lambda: set(threading.enumerate()) <= before)
