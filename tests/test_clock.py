"""Both of Antfarm's time formats, and durations for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farmtui.clock import FixedClock, SystemClock, age, duration, iso, parse_time, seconds_since, sqlite_now

MOMENT = datetime(2026, 2, 15, 5, 15, 39, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    "value",
    [
        "2026-02-15T05:15:39.000Z",
        "2026-02-15 05:15:39",
        "2026-02-15T05:15:39",
        " 2026-02-15 05:15:39\n",
        "2026-02-15T06:15:39+01:00",
        1_771_132_539_000,
        1_771_132_539_000.0,
    ],
)
def test_every_form_is_the_same_moment_in_utc(value: object) -> None:
    parsed = parse_time(value)
    assert parsed == MOMENT
    assert parsed is not None
    assert parsed.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        True,
        [],
        1e300,
        float("nan"),
        float("inf"),
        "2026-02-15T05:15:39+99:00",
        "0001-01-01T00:00+14",
    ],
)
def test_what_is_no_time_is_none(value: object) -> None:
    assert parse_time(value) is None


def test_text_of_both_forms_sorts_wrongly_but_moments_do_not() -> None:
    earlier, later = "2026-02-15T05:15:39.123Z", "2026-02-15 05:15:40"
    assert later < earlier
    one, other = parse_time(earlier), parse_time(later)
    assert one is not None
    assert other is not None
    assert one < other


@given(st.text() | st.integers() | st.floats() | st.binary() | st.none())
def test_no_value_raises(value: object) -> None:
    parsed = parse_time(value)
    assert parsed is None or parsed.tzinfo is not None


@given(MOMENTS)
def test_what_is_written_is_read_back(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert parse_time(sqlite_now(moment)) == whole
    assert parse_time(iso(moment)) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_iso_is_utc_with_milliseconds_whatever_the_zone() -> None:
    there = MOMENT.astimezone(timezone(timedelta(hours=5)))
    assert iso(there) == "2026-02-15T05:15:39.000Z"
    assert iso(None) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (8.9, "8s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (7440, "2h 04m"),
        (86400 * 3 + 18000, "3d 5h"),
        (-5, "0s"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words
    assert duration(timedelta(seconds=seconds)) == words


def test_an_unknown_time_has_an_unknown_age_and_the_future_has_none() -> None:
    assert age(None, MOMENT) == "?"
    assert seconds_since(None, MOMENT) is None
    assert seconds_since(MOMENT + timedelta(minutes=1), MOMENT) == 0


def test_clocks() -> None:
    assert FixedClock(MOMENT).now() == MOMENT
    assert SystemClock().now().utcoffset() == timedelta(0)
