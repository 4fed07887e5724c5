"""The event log: followed as it grows, searched for one run, appended to as Antfarm does."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.antfarm import events
from farmtui.antfarm.events import FIRST_LOOK_BYTES, RECENT, EventLog, append_events, events_of
from farmtui.antfarm.schema import Unreadable
from farmtui.clock import iso
from farmtui.state import Event
from tests.boxes import Box
from tests.farms import NOW, Farmyard


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def _line(event: str = "step.done", run: str = "r1", **more: object) -> str:
    return json.dumps({"ts": iso(NOW), "event": event, "runId": run, **more}) + "\n"


def _append(path: Path, *texts: str | bytes) -> None:
    with path.open("ab") as file:
        for text in texts:
            file.write(text.encode() if isinstance(text, str) else text)


def _names(log: EventLog) -> list[str]:
    return [event.event for event in log.recent]


# ---------------------------------------------------------------- following


def test_an_absent_log_is_an_empty_one_until_it_appears(path: Path) -> None:
    log = EventLog(path)
    assert not log.poll()
    assert log.recent == ()
    _append(path, _line("run.started"))
    assert log.poll()
    assert _names(log) == ["run.started"]


def test_every_field_is_read(path: Path) -> None:
    _append(
        path,
        _line(
            "story.started",
            workflowId="relay",
            stepId="build",
            agentId="relay_dev",
            storyId="S-1",
            storyTitle="One",
            detail="d",
        ),
    )
    log = EventLog(path)
    log.poll()
    assert log.recent == (
        Event(NOW, "story.started", "r1", "relay", "build", "relay_dev", "S-1", "One", "d"),
    )


def test_only_what_was_appended_is_told(path: Path) -> None:
    log = EventLog(path)
    _append(path, _line("a"))
    assert log.poll()
    before = log.recent
    assert not log.poll()
    assert log.recent is before
    _append(path, _line("b"), _line("c"))
    assert log.poll()
    assert _names(log) == ["a", "b", "c"]


def test_a_line_is_read_once_it_is_whole(path: Path) -> None:
    log = EventLog(path)
    whole = _line("split", detail="ü" * 10).encode()
    for place in range(1, len(whole)):
        _append(path, whole[place - 1 : place])
        assert not log.poll()
    _append(path, b"\n")
    assert log.poll()
    assert _names(log) == ["split"]


def test_bad_lines_are_passed_over(path: Path) -> None:
    _append(
        path,
        "\n",
        "{half\n",
        "[1]\n",
        "5\n",
        '{"ts": 1}\n',
        '{"event": 7}\n',
        b"\xff\xfe\n",
        "[" * 5000 + "\n",
    )
    _append(path, _line("good", detail=b"\xc3\xbc".decode()))
    _append(path, '{"event": "odd", "ts": "soon", "runId": 5, "detail": {"a": [1]}, "agentId": null}\n')
    log = EventLog(path)
    log.poll()
    assert [(event.event, event.ts, event.run_id, event.detail) for event in log.recent] == [
        ("good", NOW, "r1", "ü"),
        ("odd", None, "5", '{"a": [1]}'),
    ]


def test_a_bad_byte_loses_no_event(path: Path) -> None:
    _append(path, b'{"event":"step.failed","runId":"r1","detail":"caf\xe9 closed"}\n')
    log = EventLog(path)
    log.poll()
    assert [event.detail for event in log.recent] == ["caf\ufffd closed"]
    assert [event.detail for event in events_of(path, "r1")] == ["caf\ufffd closed"]


def test_a_line_of_a_megabyte_is_cut_not_lost(path: Path) -> None:
    _append(path, _line("early"), _line("long", detail="x" * 100_000))
    log = EventLog(path)
    log.poll()
    _append(path, _line("longer", detail="y" * 1_000_000), _line("late"))
    log.poll()
    assert _names(log) == ["early", "long", "longer", "late"]
    assert all(len(event.detail or "") <= 2_000 for event in log.recent)


def test_a_line_that_never_ends_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_LONGEST_LINE", 1000)
    log = EventLog(path)
    _append(path, _line("a"))
    log.poll()
    for _ in range(5):
        _append(path, '{"event": "endless", "detail": "' + "x" * 600)
        assert not log.poll()
    _append(path, '"}\n', _line("b"))
    log.poll()
    assert _names(log) == ["a", "b"]


def test_the_first_look_reads_the_end_only(path: Path) -> None:
    lines = [_line(f"e{number}", detail="x" * 400) for number in range(2_000)]
    _append(path, *lines)
    log = EventLog(path)
    log.poll()
    told = _names(log)
    assert told[-1] == "e1999"
    assert FIRST_LOOK_BYTES // len(lines[-1]) - 2 <= len(told) <= FIRST_LOOK_BYTES // len(lines[-1])


def test_recent_events_are_bounded(path: Path) -> None:
    log = EventLog(path)
    log.poll()
    _append(path, _line("first"))
    log.poll()
    _append(path, *(_line(f"e{number}") for number in range(RECENT)))
    log.poll()
    assert len(log.recent) == RECENT
    assert log.recent[0].event == "e0"


def test_a_log_that_grew_by_far_too_much_is_taken_up_at_its_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_MOST_GROWTH", 1_000_000)
    _append(path, _line("first"))
    log = EventLog(path)
    log.poll()
    _append(path, *(_line(f"e{number}", detail="x" * 1000) for number in range(2_000)))
    log.poll()
    assert log.recent[-1].event == "e1999"
    assert len(log.recent) < 300


def test_rotation_loses_nothing(path: Path) -> None:
    log = EventLog(path)
    _append(path, _line("a"))
    log.poll()
    _append(path, _line("b"))
    path.rename(path.with_name("events.jsonl.1"))
    _append(path, _line("c"))
    assert log.poll()
    assert _names(log) == ["a", "b", "c"]
    _append(path, _line("d"))
    log.poll()
    assert _names(log) == ["a", "b", "c", "d"]


def test_between_renaming_and_beginning_anew_nothing_is_lost(path: Path) -> None:
    log = EventLog(path)
    _append(path, _line("a"))
    log.poll()
    _append(path, _line("b"))
    path.rename(path.with_name("events.jsonl.1"))
    assert not log.poll()
    _append(path, _line("c"))
    log.poll()
    assert _names(log) == ["a", "b", "c"]


@pytest.mark.parametrize("text", [_line("x"), _line("another", detail="longer than what was there before")])
def test_a_log_that_was_emptied_or_written_anew_is_read_from_its_beginning(path: Path, text: str) -> None:
    log = EventLog(path)
    _append(path, _line("before"), _line("before2"))
    log.poll()
    path.write_text(text)
    log.poll()
    path.write_text(text * 5)
    log.poll()
    assert _names(log)[:3] == ["before", "before2", json.loads(text)["event"]]


def test_the_last_claim_of_each_agent(path: Path) -> None:
    def claim(event: str, agent: str, minutes: int) -> str:
        return (
            json.dumps({"ts": iso(NOW + timedelta(minutes=minutes)), "event": event, "agentId": agent}) + "\n"
        )

    _append(
        path, claim("step.running", "a", 1), claim("story.started", "a", 5), claim("step.running", "a", 2)
    )
    _append(path, claim("step.done", "a", 9), claim("step.running", "b", 3))
    log = EventLog(path)
    log.poll()
    assert log.last_claims == {"a": NOW + timedelta(minutes=5), "b": NOW + timedelta(minutes=3)}


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_told_without_waiting(path: Path, kind: str) -> None:
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    log = EventLog(path)
    for _ in range(2):
        with pytest.raises(Unreadable, match="no regular file"):
            log.poll()
    with pytest.raises(Unreadable, match="no regular file"):
        events_of(path, "r1")
    path.unlink() if kind == "pipe" else path.rmdir()
    _append(path, _line("well"))
    assert log.poll()


def test_a_log_that_may_not_be_read(path: Path) -> None:
    path.symlink_to(path)
    with pytest.raises(Unreadable, match=r"cannot read the event log .*events\.jsonl"):
        EventLog(path).poll()


# ---------------------------------------------------------------- one run


def test_one_runs_events_from_both_logs_oldest_first(path: Path) -> None:
    rotated = path.with_name("events.jsonl.1")
    _append(rotated, _line("one"), _line("other", "r2"), _line("two"))
    _append(
        path, "broken r1\n", _line("three"), _line("mentioned", "r2", detail="r1"), _line("four").rstrip("\n")
    )
    assert [event.event for event in events_of(path, "r1")] == ["one", "two", "three", "four"]
    assert events_of(path, "nobody") == ()
    assert events_of(path.with_name("absent"), "r1") == ()


@given(
    st.lists(st.sampled_from(["r1", "r11", 'q"uote', "ü", "", "new\nline"])),
    st.sampled_from(["r1", 'q"uote', "ü", "", "new\nline"]),
)
def test_the_quick_search_finds_what_parsing_every_line_finds(runs: list[str], wanted: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        _append(path, *(_line(str(number), run) for number, run in enumerate(runs)))
        found = [int(event.event) for event in events_of(path, wanted)]
    assert found == [number for number, run in enumerate(runs) if run == wanted]


def test_the_boxes_logs_are_read_whole(box: Box) -> None:
    path = box.state_dir / "antfarm" / "events.jsonl"
    log = EventLog(path)
    log.poll()
    assert len(log.recent) == box.snapshot["events"]
    run_ids = {event.run_id for event in log.recent if event.run_id}
    assert sum(len(events_of(path, run_id)) for run_id in run_ids) == box.snapshot["events"]


# ---------------------------------------------------------------- appending


def test_events_are_appended_as_antfarm_writes_them(path: Path) -> None:
    moment = datetime(2026, 2, 15, 5, 15, 39, 123_456, tzinfo=UTC)
    append_events(
        path, [{"event": "step.timeout", "runId": "r", "stepId": "bauen – ü", "detail": None}], moment
    )
    append_events(path, [{"event": "a"}, {"event": "b"}], moment)
    assert path.read_text(encoding="utf-8") == (
        '{"ts":"2026-02-15T05:15:39.123Z","event":"step.timeout","runId":"r","stepId":"bauen – ü"}\n'
        '{"ts":"2026-02-15T05:15:39.123Z","event":"a"}\n'
        '{"ts":"2026-02-15T05:15:39.123Z","event":"b"}\n'
    )


def test_the_form_is_the_boxes(feb: Box) -> None:
    first = (feb.state_dir / "antfarm" / "events.jsonl").read_text().splitlines()[0]
    loaded = json.loads(first)
    moment = datetime.fromisoformat(loaded.pop("ts"))
    path = feb.home / "own.jsonl"
    append_events(path, [loaded], moment)
    assert path.read_text() == first + "\n"


def test_no_events_make_no_file_and_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.jsonl"
    append_events(path, [], NOW)
    assert not path.parent.exists()
    append_events(path, [{"event": "a"}], NOW)
    assert len(path.read_text().splitlines()) == 1


def test_a_line_cut_off_by_somebody_else_does_not_swallow_ours(path: Path) -> None:
    path.write_text('{"ts":"2026')
    append_events(path, [{"event": "ours"}], NOW)
    log = EventLog(path)
    log.poll()
    assert _names(log) == ["ours"]


def test_nothing_is_written_where_there_is_no_file(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file"):
        append_events(path, [{"event": "a"}], NOW)


def test_lines_written_at_once_by_many_stay_whole(path: Path) -> None:
    def write(number: int) -> None:
        for turn in range(50):
            append_events(path, [{"event": f"{number}.{turn}", "detail": "x" * 3000}], NOW)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert sorted(names) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(50))


@given(st.dictionaries(st.text(), st.text(st.characters(codec=None, exclude_categories=()))))
def test_whatever_is_appended_is_one_line_that_can_be_read(more: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        event = {**more, "event": "any"}
        append_events(path, [event], NOW)
        (line,) = path.read_bytes().split(b"\n")[:-1]
    assert json.loads(line) == {"ts": iso(NOW), **event}


def test_what_we_append_the_farms_log_shows(tmp_path: Path) -> None:
    yard = Farmyard(tmp_path)
    yard.add_events({"event": "run.started", "runId": "r"})
    append_events(yard.events, [{"event": "step.timeout", "runId": "r", "stepId": "build"}], NOW)
    assert [event.event for event in events_of(yard.paths.events.path, "r")] == [
        "run.started",
        "step.timeout",
    ]
