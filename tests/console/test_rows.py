"""What the lists of Medic, Escalations and Crons say, as data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from farmtui.console import cron_rows, escalation_text, medic_rows
from farmtui.operations.plan import CronAction, CronCall, Plan, RowChange
from farmtui.state import (
    Acknowledgement,
    CronJob,
    CronListing,
    CronSource,
    Escalation,
    Event,
    Finding,
    Judgement,
    MissingCron,
    NotChecked,
    Run,
    RunDetail,
    Severity,
    Step,
    StepText,
    Story,
)

NOW = datetime(2026, 2, 15, 12, 0, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def judgement(
    *findings: Finding,
    not_checked: tuple[NotChecked, ...] = (),
    orphans: dict[str, str] | None = None,
    missing: tuple[MissingCron, ...] = (),
) -> Judgement:
    return Judgement(ago(0.05), {}, findings, not_checked, (), orphans or {}, missing)


def finding(check: str, severity: Severity, minutes: float, **more: object) -> Finding:
    values: dict[str, object] = {"id": f"{check}:{minutes}", "check": check, "severity": severity}
    values |= {"message": f"{check} it is", "since": ago(minutes)}
    return Finding(**{**values, **more})  # type: ignore[arg-type]


def job(agent: str, *, job_id: str = "", **more: object) -> CronJob:
    values: dict[str, object] = {
        "id": job_id or f"id-{agent}",
        "name": f"antfarm/meadow/{agent}",
        "workflow": "meadow",
        "agent": agent,
        "agent_id": f"meadow_{agent}",
        "enabled": True,
        "schedule": "every 5m",
        "every_ms": 300_000,
        "next_run_at": NOW + timedelta(seconds=41),
        "last_run_at": ago(4),
        "last_status": "ok",
        "last_error": None,
        "consecutive_errors": 0,
        "running_since": None,
    }
    return CronJob(**{**values, **more})  # type: ignore[arg-type]


# ---------------------------------------------------------------- Medic


def test_findings_come_by_kind_the_worst_kind_and_the_oldest_first() -> None:
    rows = medic_rows.medic_rows(
        judgement(
            finding("waiting-for-verify", Severity.INFO, 300),
            finding("stale-claim", Severity.CRITICAL, 40),
            finding("orphaned-crons", Severity.WARNING, 900),
            finding("stale-claim", Severity.CRITICAL, 124),
            not_checked=(NotChecked("missing-crons", "the crons could not be listed"),),
        )
    )
    assert [(row.check, row.count) for row in rows] == [
        ("stale-claim", 2),
        ("stale-claim", 0),
        ("orphaned-crons", 1),
        ("waiting-for-verify", 1),
        ("missing-crons", 0),
    ]
    assert rows[0].finding is not None
    assert rows[0].finding.since == ago(124)
    assert "could not be checked: the crons could not be listed" in medic_rows.evidence(rows[-1], "")


def test_all_clear_needs_every_check() -> None:
    missed = (NotChecked("missing-crons", "no answer"),)
    assert medic_rows.summary(judgement(), 8, NOW) == "All clear: 8 checks, looked 3s ago"
    assert medic_rows.summary(judgement(not_checked=missed), 8, NOW) == (
        "Nothing found · 1 of 8 checks could not be made · looked 3s ago"
    )
    found = finding("stale-claim", Severity.CRITICAL, 9)
    assert medic_rows.summary(judgement(found), 8, NOW) == "1 finding · looked 3s ago"


def test_a_finding_names_its_subject() -> None:
    about = finding("stale-claim", Severity.CRITICAL, 9, run="662e2a56-a", run_number=9, step="build")
    assert medic_rows.subject(about) == "#9 build"
    assert (
        medic_rows.subject(finding("x", Severity.INFO, 1, run="662e2a56-a", step="build")) == "662e2a56 build"
    )
    assert medic_rows.subject(finding("x", Severity.INFO, 1, workflow="meadow")) == "meadow"


# ---------------------------------------------------------------- Crons


def test_crons_say_how_they_do() -> None:
    listing = CronListing(
        CronSource.WEBSOCKET,
        (
            job("planner"),
            job("grower", enabled=False),
            job("taster", consecutive_errors=3, last_status="error", last_error="model not allowed"),
            job("packer", running_since=ago(2)),
            job("weeder", last_run_at=None),
            job("scout"),
        ),
        read_at=ago(0.1),
    )
    judged = judgement(orphans={"id-scout": "no-active-run"}, missing=(MissingCron("orchard", "picker"),))
    rows = {row.agent: row for row in cron_rows.cron_rows(listing, judged, NOW)}
    assert {agent: row.words for agent, row in rows.items()} == {
        "planner": "ok",
        "grower": "off",
        "taster": "failed 3×",
        "packer": "running 2m",
        "weeder": "not run yet",
        "scout": "orphan: no run is active",
        "picker": "missing",
    }
    assert "model not allowed" in cron_rows.describe(rows["taster"], NOW)
    assert "12 calls/h for nothing" in cron_rows.describe(rows["scout"], NOW)
    assert "wait for ever" in cron_rows.describe(rows["picker"], NOW)
    assert cron_rows.next_and_last(rows["planner"], NOW) == ("in 41s", "4m ago")


def test_the_summary_counts_what_is_for_nothing() -> None:
    listing = CronListing(
        CronSource.WEBSOCKET, (job("a"), job("b"), job("c", enabled=False)), 14, ago(0.1), version="2026.9.6"
    )
    assert cron_rows.summary(listing, {"id-a": "no-active-run"}, NOW) == (
        "websocket OpenClaw 2026.9.6, 6s ago · 24 calls/h, 12 for nothing · 3 of ours, 14 others hidden"
    )


def test_crons_that_could_not_be_listed_are_not_none() -> None:
    listing = CronListing(CronSource.NONE, note="gateway: connection refused")
    assert cron_rows.summary(listing, {}, NOW) == "The crons could not be listed: gateway: connection refused"


# ---------------------------------------------------------------- Escalations


def detail() -> RunDetail:
    step = Step(
        1, "s1", "r1", "fix", "bug-fix_fixer", 0, "loop", "failed", 2, 2, 1, None, None, ago(60), ago(34)
    )
    story = Story(1, "st1", "r1", 0, "S-1", "The race", "failed", 3, 2, ago(60), ago(34))
    run = Run(1, "r1", 209, "bug-fix", "Fix flaky test", "failed", ago(60), ago(34), (step,), (story,))
    events = (
        Event(ago(58), "story.retry", "r1", detail="no regression test"),
        Event(ago(39), "story.retry", "r1", detail="the test passes\nwithout the fix"),
        Event(ago(34), "story.failed", "r1"),
    )
    return RunDetail(
        run,
        {"verify_feedback": "same as before"},
        None,
        {"s1": StepText("", "", "STATUS: done")},
        {"st1": "The race is in the payment stub"},
        events,
        None,
        None,
        NOW,
    )


ESCALATION = Escalation(
    "r1", 209, "bug-fix", "Fix flaky test", "fix", "S-1", "verify sent it back 3 times", ago(34), False
)


def test_an_escalation_tells_why_what_was_tried_and_the_last_words() -> None:
    ack = Acknowledgement("r1", "failed", ago(34), "looking", "op", ago(3), "e1")
    rows = escalation_text.facts(ESCALATION, ack, NOW) + escalation_text.history(ESCALATION, detail(), NOW)
    assert escalation_text.as_text(rows).splitlines() == [
        "why       verify sent it back 3 times",
        "since     34m ago",
        "seen      by op 3m ago: looking",
        "where     step fix (fixer), retries 2 of 2, abandoned 1×",
        "          story S-1 The race, retries 3 of 2",
        "tried     1  58m ago  sent back: no regression test",
        "          2  39m ago  sent back: the test passes",
        "          without the fix",
        "          3  34m ago  given up",
        "last      The race is in the payment stub",
        "feedback  same as before",
    ]


def test_a_retry_says_what_it_resets_and_whether_crons_exist() -> None:
    changes = (
        RowChange("steps", "s1", "status", "failed", "pending", "step fix", "status"),
        RowChange("steps", "s1", "retry_count", 2, 0, "step fix", "retries"),
        RowChange("stories", "st1", "retry_count", 3, 0, "story S-1", "retries"),
    )
    calls = tuple(
        CronCall(CronAction.ADD, f"antfarm/bug-fix/{name}", None, {}) for name in ("fixer", "verifier")
    )
    rows = escalation_text.retry_rows(Plan("retry", "t", "r", changes=changes, crons=calls))
    assert escalation_text.as_text(rows).splitlines() == [
        "retry     resets step fix retries 2 → 0; story S-1 retries 3 → 0",
        "          creates 2 missing crons: fixer, verifier",
    ]
    assert "the crons are there" in escalation_text.as_text(
        escalation_text.retry_rows(Plan("retry", "t", "r"))
    )
