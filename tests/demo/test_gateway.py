"""The stand-in gateway's own fidelity: what a plain client of the protocol sees, by version."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from farmtui.demo.cronbook import RunReport, Version
from farmtui.demo.gateway import Mode, StandInGateway
from tests.openclaw.conftest import definition

LATEST, FEB = Version.LATEST, Version.FEB
SCOPES = ["operator.read", "operator.admin"]


class Client:
    """Sends frames as they are, and gives back whole answers."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self.ids = itertools.count()
        self.challenge = self.receive()

    def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=5))
        return frame

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        request_id = f"r{next(self.ids)}"
        frame = {"type": "req", "id": request_id, "method": method, "params": params or {}}
        self.connection.send(json.dumps(frame))
        while True:
            answer = self.receive()
            if answer.get("type") == "res":
                assert answer["id"] == request_id
                return answer
            self.events.append(answer)

    def log_in(self, gateway: StandInGateway, **changes: Any) -> dict[str, Any]:
        params = {
            "minProtocol": 3,
            "maxProtocol": 4,
            "client": {"id": "gateway-client", "version": "0", "platform": "linux", "mode": "backend"},
            "role": "operator",
            "scopes": SCOPES,
            "caps": [],
            "auth": {"token": gateway.secret},
            **changes,
        }
        return self.ask("connect", {key: value for key, value in params.items() if value is not None})


@contextmanager
def client(gateway: StandInGateway) -> Iterator[Client]:
    with connect(f"ws://127.0.0.1:{gateway.port}", proxy=None, compression=None) as connection:
        yield Client(connection)


@pytest.fixture(params=[FEB, LATEST])
def gateway(request: pytest.FixtureRequest) -> Iterator[StandInGateway]:
    with StandInGateway(request.param) as running:
        yield running


def test_challenge_and_greeting(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        hello = peer.log_in(gateway)["payload"]

    latest = gateway.version is LATEST
    assert peer.challenge["event"] == "connect.challenge"
    assert ("capabilities" in peer.challenge["payload"]) is latest
    assert hello["type"] == "hello-ok"
    assert hello["protocol"] == (4 if latest else 3)
    assert hello["server"]["version"] == ("2026.9.6" if latest else "dev")
    assert ("auth" in hello) is latest
    assert hello["policy"]["tickIntervalMs"] == 30_000


@pytest.mark.parametrize(
    ("changes", "code", "words", "detail"),
    [
        ({"auth": {"token": "no"}}, "INVALID_REQUEST", "token mismatch", "AUTH_TOKEN_MISMATCH"),
        ({"auth": None}, "NOT_PAIRED", "device identity required", "DEVICE_IDENTITY_REQUIRED"),
        ({"client": {"id": "foo", "mode": "bar"}}, "INVALID_REQUEST", "invalid connect params", None),
        ({"unknown": 1}, "INVALID_REQUEST", "invalid connect params", None),
    ],
)
def test_refused_connections(
    changes: Mapping[str, Any], code: str, words: str, detail: str | None, gateway: StandInGateway
) -> None:
    with client(gateway) as peer:
        error = peer.log_in(gateway, **changes)["error"]

        assert error["code"] == code
        assert words in error["message"]
        expected = detail if gateway.version is LATEST else None
        assert error.get("details", {}).get("code") == expected
        with pytest.raises(ConnectionClosed) as closed:
            peer.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


def test_a_protocol_that_does_not_fit(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        error = peer.log_in(gateway, minProtocol=1, maxProtocol=2)["error"]

    assert error["details"]["expectedProtocol"] == (4 if gateway.version is LATEST else 3)


def test_the_first_frame_must_be_connect(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        assert "first request must be connect" in peer.ask("cron.list")["error"]["message"]


def test_a_starting_gateway_says_when_to_try_again(gateway: StandInGateway) -> None:
    gateway.mode = Mode.STARTING
    with client(gateway) as peer:
        error = peer.log_in(gateway)["error"]

    assert (error["code"], error["retryable"], error["retryAfterMs"]) == ("UNAVAILABLE", True, 500)


def test_a_pair_that_is_not_trusted_gets_no_scopes_on_the_newer_one(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        peer.log_in(gateway, client={"id": "test", "version": "0", "platform": "x", "mode": "test"})
        answer = peer.ask("cron.list")

    assert answer["ok"] is (gateway.version is FEB)


def test_reading_does_not_allow_changing(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        peer.log_in(gateway, scopes=["operator.read", "operator.write"])
        assert peer.ask("cron.list")["ok"]
        error = peer.ask("cron.remove", {"id": "x"})["error"]

    assert error["message"] == "missing scope: operator.admin"
    assert error["code"] == ("FORBIDDEN" if gateway.version is LATEST else "INVALID_REQUEST")


def test_the_life_of_a_job(gateway: StandInGateway) -> None:
    latest = gateway.version is LATEST
    with client(gateway) as peer:
        peer.log_in(gateway)
        job = peer.ask("cron.add", definition())["payload"]
        peer.ask("cron.update", {"id": job["id"], "patch": {"enabled": False}})
        hidden = peer.ask("cron.list", {})["payload"]["jobs"]
        listed = peer.ask("cron.list", {"includeDisabled": True})["payload"]
        removed = peer.ask("cron.remove", {"jobId": job["id"]})["payload"]
        again = peer.ask("cron.remove", {"id": job["id"]})

    assert hidden == []
    assert [entry["enabled"] for entry in listed["jobs"]] == [False]
    assert "nextRunAtMs" not in listed["jobs"][0]["state"]
    assert ("hasMore" in listed) is latest
    assert ("toolsAllow" in listed["jobs"][0]["payload"]) is latest
    assert removed["removed"] is True
    if latest:
        assert again["error"]["details"]["code"] == "CRON_JOB_NOT_FOUND"
    else:
        assert again["payload"] == {"ok": True, "removed": False}
    actions = [event["payload"]["action"] for event in peer.events if event["event"] == "cron"]
    assert actions == ["added", "updated", "removed"]
    assert all(("job" in event["payload"]) is latest for event in peer.events)


def test_unknown_methods_and_properties(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        peer.log_in(gateway)
        paged = peer.ask("cron.list", {"limit": 1})
        errors = [
            peer.ask("nope")["error"]["message"],
            peer.ask("cron.list", {"foo": 1})["error"]["message"],
            peer.ask("cron.add", definition(foo=1))["error"]["message"],
            peer.ask("cron.add", {"name": "x"})["error"]["message"],
        ]
        found = peer.ask("cron.get", {"id": "x"})["error"]["message"]

    assert errors[0] == "unknown method: nope"
    assert "unexpected property 'foo'" in errors[1]
    assert "unexpected property 'foo'" in errors[2]
    assert "must have required property 'schedule'" in errors[3]
    assert paged["ok"] is (gateway.version is LATEST)
    assert ("unknown method" in found) is (gateway.version is FEB)


def test_runs_are_listed_in_each_versions_order(gateway: StandInGateway) -> None:
    job = gateway.book.add(definition())
    for summary in ("first", "second"):
        gateway.book.run(job["id"], lambda _job, said=summary: RunReport(summary=said))  # type: ignore[misc]

    with client(gateway) as peer:
        peer.log_in(gateway)
        entries = peer.ask("cron.runs", {"id": job["id"], "limit": 5})["payload"]["entries"]

    said = [entry["summary"] for entry in entries]
    assert said == (["second", "first"] if gateway.version is LATEST else ["first", "second"])


def test_due_jobs_wake_their_agents(tmp_path: Path) -> None:
    woken: list[str] = []
    twice = threading.Event()

    def turn(job: Mapping[str, Any]) -> RunReport:
        woken.append(job["agentId"])
        if len(woken) == 2:
            twice.set()
        raise RuntimeError("no model")

    with StandInGateway(FEB, state_dir=tmp_path, on_run=turn) as gateway:
        gateway.book.add(definition("idle", enabled=False))
        gateway.book.add(definition(schedule={"kind": "every", "everyMs": 100, "anchorMs": 0}))
        assert twice.wait(10)
        time.sleep(0.05)
        stored = json.loads((tmp_path / "cron" / "jobs.json").read_text())

    assert set(woken) == {"relay_scout"}
    by_name = {job["name"]: job["state"] for job in stored["jobs"]}
    assert by_name["antfarm/relay/idle"] == {}
    assert by_name["antfarm/relay/scout"]["lastError"] == "RuntimeError: no model"
    assert by_name["antfarm/relay/scout"]["consecutiveErrors"] >= 1


def test_a_job_run_by_hand_holds_up_the_older_gateway_only(gateway: StandInGateway) -> None:
    ended = threading.Event()
    gateway._on_run = lambda _job: RunReport() if ended.wait(10) else RunReport("error")
    job = gateway.book.add(definition())
    answers: dict[str, dict[str, Any]] = {}

    def ask(method: str, params: Any, done: Callable[[], None]) -> None:
        with client(gateway) as peer:
            peer.log_in(gateway)
            answers[method] = peer.ask(method, params)
            done()

    run_by_hand = threading.Thread(
        target=ask, args=("cron.run", {"id": job["id"], "mode": "force"}, lambda: None)
    )
    run_by_hand.start()
    while "runningAtMs" not in gateway.book.jobs[0]["state"]:
        time.sleep(0.01)
    listed = threading.Event()
    listing = threading.Thread(target=ask, args=("cron.list", {}, listed.set))
    listing.start()

    assert listed.wait(0.5) is (gateway.version is LATEST)
    ended.set()
    run_by_hand.join(5)
    listing.join(5)
    assert answers["cron.run"]["payload"]["ok"]
    assert len(answers["cron.list"]["payload"]["jobs"]) == 1


def test_it_stops_with_clients_and_leaves_no_thread(gateway: StandInGateway) -> None:
    with client(gateway) as peer:
        peer.log_in(gateway)
        gateway.stop()
        with pytest.raises(ConnectionClosed):
            peer.receive()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any("stand-in" in one.name for one in threading.enumerate()):
        time.sleep(0.02)
    assert not [one.name for one in threading.enumerate() if "stand-in" in one.name]


def test_it_comes_back_on_the_same_port(gateway: StandInGateway) -> None:
    port = gateway.port
    gateway.stop()
    gateway.start()

    assert gateway.port == port
    with client(gateway) as peer:
        assert peer.log_in(gateway)["ok"]
