"""The texts of the Run screen's tabs: what is shown, what is marked, and never a page without a word."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from farmtui.antfarm.templates import key_table
from farmtui.console import run_tabs
from farmtui.console.run_tabs import Tone
from farmtui.state import Event, Progress, Run, RunDetail, Step, StepText
from farmtui.text import MASK

NOW = datetime(2026, 2, 15, 12, 0, tzinfo=UTC)


def step(name: str, index: int, status: str) -> Step:
    moment = NOW - timedelta(minutes=9)
    return Step(
        index, f"id-{name}", "r1", name, f"relay_{name}er", index, "single", status, 0, 2, 0, None, None,
        moment, moment,
    )  # fmt: skip


SCOUT, BUILD, CLOSE = step("scout", 0, "done"), step("build", 1, "pending"), step("close", 2, "waiting")


def detail(context: dict[str, Any] | None = None, **more: Any) -> RunDetail:
    run = Run(
        1, "r1", 14, "relay", "Mend it", "running", NOW - timedelta(hours=1), NOW, (SCOUT, BUILD, CLOSE)
    )
    texts = {
        SCOUT.id: StepText("Scout {{task}}. Answer REPO:", "REPO", "REPO: /srv/fence\nGATE_TOKEN: hunter2"),
        BUILD.id: StepText(
            "Build in {{repo}} on {{branch}} with {{gate_token}}", "STATUS: done\nPR: url", None
        ),
        CLOSE.id: StepText("Close {{pr}} of {{repo}}", "STATUS: done", None),
    }
    given = {"task": "Mend it", "repo": "/srv/fence", "gate_token": "hunter2"}
    found = RunDetail(run, given if context is None else context, None, texts, {}, (), None, None, NOW)
    return replace(found, **more)


def test_output_is_the_steps_own() -> None:
    shown = run_tabs.output(detail(), SCOUT, None, NOW)
    assert shown.text.startswith("REPO: /srv/fence")
    assert shown.tone is Tone.TEXT


def test_no_output_says_why() -> None:
    pending = run_tabs.output(detail(), BUILD, None, NOW)
    assert pending.tone is Tone.NOTICE
    assert pending.text == "no output yet: builder has not claimed it, pending for 9m"
    running = run_tabs.output(detail(), replace(BUILD, status="running"), None, NOW)
    assert running.text == "no output yet: builder claimed it 9m ago"
    assert "waits" in run_tabs.output(detail(), CLOSE, None, NOW).text


def test_input_is_todays_and_says_so_with_what_is_missing() -> None:
    shown = run_tabs.input_of(detail(), BUILD)
    assert "Build in /srv/fence on [missing: branch]" in shown.text
    assert shown.marks == ("[missing: branch]",)
    assert shown.label == ("MISSING branch · resolved against today's context, not what the agent got")
    assert "STATUS: done" in shown.text


def test_input_shows_no_secret_of_the_context() -> None:
    assert f"with {MASK}" in run_tabs.input_of(detail(), BUILD).text


def test_what_a_waiting_step_lacks_is_awaited() -> None:
    shown = run_tabs.input_of(detail(), CLOSE)
    assert "Close [awaited from build: pr] of /srv/fence" in shown.text
    assert "MISSING" not in shown.label


def test_context_puts_what_is_missing_on_top_and_masks_secrets() -> None:
    found = detail()
    shown = run_tabs.context(found, key_table(found, None), 100)
    lines = shown.text.splitlines()
    assert lines[0].split() == ["key", "given", "by", "needed", "by", "value"]
    assert lines[1].split() == ["branch", "nobody", "build", "MISSING"]
    assert lines[2].split() == ["pr", "-", "close", "awaited", "from", "build"]
    assert "hunter2" not in shown.text
    assert MASK in shown.text
    assert shown.label == "MISSING branch"


def test_a_long_value_follows_in_full() -> None:
    found = detail({"task": "a task of\ntwo lines, " + "long " * 30 + "END"})
    shown = run_tabs.context(found, key_table(found, None), 60)
    table, _, values = shown.text.partition("── task ──")
    assert "END" not in table
    assert values.endswith("END")


@pytest.mark.parametrize("width", [30, 60, 80, 160])
def test_the_table_of_the_context_fits(width: int) -> None:
    found = detail({"task": "x" * 200, "a_key_with_quite_a_long_name_for_a_column": "y"})
    table = run_tabs.context(found, key_table(found, None), width).text.partition("──")[0]
    assert all(len(line) <= max(width, 46) for line in table.splitlines())


def test_a_broken_context_is_an_alarm_not_an_empty_table() -> None:
    shown = run_tabs.context(detail({}, context_error="the context is no JSON object"), (), 80)
    assert shown.tone is Tone.ALARM


def test_progress_names_the_file_and_whether_it_is_archived_or_cut() -> None:
    held = Progress("/ws/archive/r1/progress.txt", "done", 3 << 20, True, True, NOW - timedelta(minutes=2))
    shown = run_tabs.progress(detail(progress=held), NOW)
    assert shown.label.startswith("last 0 of 3072 KiB · archived · /ws/archive/r1/progress.txt")
    assert shown.label.endswith("written 2m ago")
    assert run_tabs.progress(detail(), NOW).tone is Tone.NOTICE
    refused = run_tabs.progress(detail(progress_error="progress.txt is a link"), NOW)
    assert (refused.tone, refused.text) == (Tone.ALARM, "progress.txt is a link")


def test_events_name_steps_by_their_name_and_keep_details() -> None:
    found = detail(
        events=(
            Event(NOW, "step.running", "r1", "relay", "build", "relay_builder"),
            Event(NOW, "step.failed", "r1", None, BUILD.id, None, detail="no paint\nshop is shut"),
            Event(None, "odd", "r1"),
        )
    )
    lines = run_tabs.events(found).text.splitlines()
    assert lines[0] == "02-15 12:00:00  step.running  build  builder"
    assert lines[1] == "02-15 12:00:00  step.failed   build  no paint"
    assert lines[2].strip() == "shop is shut"
    assert lines[3].startswith("??????????????  odd")
    assert run_tabs.events(detail()).tone is Tone.NOTICE
