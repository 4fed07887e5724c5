"""The header line and the banner: what they say, and what gives way as it narrows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from farmtui.console.header import banner_pieces, header_pieces
from farmtui.console.notice import notice_lines
from farmtui.console.tones import width_of
from farmtui.farm import View
from farmtui.state import CronListing, CronSource, SourceStatus
from tests.console.support import a_run, a_view, ago, busy_view, relay_run
from tests.farms import NOW


def header(view: View | None, width: int = 200, **kwargs: object) -> str:
    return "".join(text for text, _ in header_pieces(view, NOW, width, **kwargs))  # type: ignore[arg-type]


def banner(view: View, width: int = 100, **kwargs: object) -> str:
    return "".join(text for text, _ in banner_pieces(view, NOW, width, **kwargs))  # type: ignore[arg-type]


def with_source(view: View, status: SourceStatus) -> View:
    sources = {**view.state.sources, status.name: status}
    return replace(view, state=replace(view.state, sources=sources))


def failing(**span: float) -> SourceStatus:
    return SourceStatus("database", ago(**span), "disk I/O error", ago(minutes=2))


def test_a_wide_header_says_everything() -> None:
    line = header(busy_view())
    for part in ("gw-box", "● live", "‼ 1 human", "⚕ 2 found", "▶ 2", "◌ 1", "✗ 1", "✓ 2", "gateway ● ws"):
        assert part in line
    assert "⊘ 3 orphaned, 36 calls/h" in line
    assert "/home/op/.openclaw/antfarm/antfarm.db (--state-dir)" in line


@pytest.mark.parametrize("width", range(30, 180))
def test_it_fits_every_width_and_keeps_what_matters(width: int) -> None:
    view = with_source(busy_view(), failing(minutes=4))
    pieces = header_pieces(view, NOW, width, readonly=True)
    line = "".join(text for text, _ in pieces)
    assert width_of(pieces) <= width
    assert "▲ stale 4m" in line
    assert "‼ 1" in line
    assert "⚕ 2" in line


def test_parts_drop_out_from_the_right() -> None:
    view = busy_view()
    parts = ("gw-box", "▶ 2", "◌ 1", "✗ 1", "✓ 2", "gateway", "orphaned", "antfarm.db")
    kept = [sum(part in header(view, width) for part in parts) for width in range(40, 200)]
    assert kept == sorted(kept)
    for width in range(40, 200):
        there = [part in header(view, width) for part in parts]
        assert there == sorted(there, reverse=True), f"at {width}: {header(view, width)}"


def test_readonly_is_visible_at_sixty_columns() -> None:
    assert "READ-ONLY" in header(busy_view(), 60, readonly=True)
    assert "READ-ONLY" not in header(busy_view(), 200)


def test_all_clear_only_where_everything_was_checked() -> None:
    well = [relay_run(1, "Fine", 1, "running", moment=ago(minutes=1))]
    assert "⚕ all clear" in header(a_view(well))
    unseen = header(a_view(well, crons=None))
    assert "not all checked" in unseen
    assert "all clear" not in unseen


def test_findings_and_unchecked_are_both_said() -> None:
    line = header(busy_view(crons=None))
    assert "found ? not all checked" in line
    assert "gateway ✗ no answer" in line


def test_nobody_needed_is_said_too() -> None:
    assert "‼ 0 humans" in header(a_view([a_run(1, "x", status="completed")]))


def test_a_list_from_disk_is_marked() -> None:
    view = busy_view()
    listing = CronListing(CronSource.STORE, view.state.crons.jobs, read_at=NOW, note="connection refused")
    assert "gateway ▲ from disk" in header(replace(view, state=replace(view.state, crons=listing)))


def test_an_open_gateway_is_reported() -> None:
    assert "gateway open to lan" in header(busy_view(unsafe_bind="lan"))


def test_loading_empty_stale_and_failed_are_four_pictures() -> None:
    empty = a_view([])
    absent = with_source(
        empty, SourceStatus("database", None, "no database at /home/op/.openclaw/antfarm/antfarm.db", NOW)
    )
    stale = with_source(busy_view(), failing(minutes=4))
    pictures = [
        "\n".join(text for line in notice_lines(view, 76) for text, _ in line)
        for view in (None, empty, absent, stale)
    ]
    assert "Reading the farm" in pictures[0]
    assert "No runs yet." in pictures[1]
    assert "✗ No antfarm.db under /home/op/.openclaw/antfarm. Is this the gateway box?" in pictures[2]
    assert "--state-dir" in pictures[2]
    assert pictures[3] == ""
    assert "What you see is 4m old" in banner(stale)
    assert banner(empty) == ""
    assert "reading" in header(None)
    assert "✗ no data  ‼ ? humans  ⚕ ? not all checked" in header(absent, 80)


def test_a_database_that_is_there_but_broken_does_not_count_as_absent() -> None:
    broken = with_source(a_view([]), SourceStatus("database", None, "file is not a database", NOW))
    picture = "\n".join(text for line in notice_lines(broken, 76) for text, _ in line)
    assert "cannot be read" in picture
    assert "file is not a database" in picture
    assert "No antfarm.db" not in picture


def test_the_banner_says_what_since_when_and_how_old() -> None:
    line = banner(with_source(busy_view(), failing(minutes=4)))
    since = f"{ago(minutes=2).astimezone():%H:%M}"
    assert line == f" ▲ antfarm.db not readable since {since} (disk I/O error). What you see is 4m old."


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_reason_gives_way_to_how_old_it_is(width: int) -> None:
    status = replace(failing(minutes=4), error="cannot reach the database " + "/very/long" * 30)
    line = banner(with_source(busy_view(), status), width)
    assert len(line) <= width
    assert line.endswith("is 4m old.")


def test_other_sources_get_a_banner_and_the_database_stands_first() -> None:
    events = SourceStatus("events", ago(minutes=9), "permission denied", ago(minutes=9))
    view = with_source(busy_view(), events)
    assert "events not readable" in banner(view)
    assert "antfarm.db not readable" in banner(with_source(view, failing(minutes=4)))
    assert "(and 1 more)" in banner(with_source(view, failing(minutes=4)))


def test_a_gateway_that_does_not_answer_is_no_banner() -> None:
    assert banner(busy_view(crons=None)) == ""


def test_reading_that_hangs_is_stale() -> None:
    assert "▲ stale 40s" in header(busy_view(), silent_s=40)
    assert "Reading hangs" in banner(busy_view(), silent_s=40)
    assert "● live" in header(busy_view(), silent_s=6)


def test_hostile_names_stay_on_the_line() -> None:
    view = busy_view(host="gw\x1b[31m\nbox\u202e")
    line = header(view)
    assert "\x1b" not in line
    assert "\n" not in line
    assert "\u202e" not in line
    view = with_source(view, replace(failing(minutes=1), error="bad \x1b]0;x\x07 thing"))
    assert "\x1b" not in banner(view)


def test_stale_counts_from_the_last_good_read() -> None:
    view = with_source(busy_view(), replace(failing(), read_at=NOW - timedelta(hours=2, minutes=5)))
    assert "▲ stale 2h 05m" in header(view)


def test_the_reason_in_the_banner_is_not_lost_to_the_path_before_it() -> None:
    error = "/home/op/somewhere/.openclaw/antfarm/antfarm.db is not an SQLite database"
    status = SourceStatus("database", ago(minutes=4), error, ago(minutes=2))
    line = banner(with_source(busy_view(), status), width=100)
    assert "(…/antfarm.db is not an" in line
    assert line.endswith("What you see is 4m old.")
    assert error in banner(with_source(busy_view(), status), width=160)
