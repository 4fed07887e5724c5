"""Undo: every cell comes back exactly, or it is refused and says what has moved."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farmtui.operations import acknowledgements
from farmtui.operations.plan import OutcomeStatus, Refused
from tests.farms import MINUTE, Farmyard, StepRow, StoryRow
from tests.operations.kit import LOOP, ListedCrons, cells, desk_on, job


@pytest.fixture
def yard(tmp_path: Path) -> Farmyard:
    return Farmyard(tmp_path)


def stale(yard: Farmyard, **more: object) -> str:
    steps = [StepRow("scout", status="done"), StepRow("build", "builder", "running", age=99 * MINUTE)]
    return yard.add_run("relay", steps=steps, **more)  # type: ignore[arg-type]


STATUSES = st.sampled_from(["waiting", "pending", "running", "done", "failed", "skipped", "gate"])
COUNTS = st.integers(0, 6)


@st.composite
def farms(draw: st.DrawFn) -> tuple[str, list[StepRow], list[StoryRow], str]:
    """Any run at all: statuses that do not belong together, counters over their limits, old schemas."""
    stories = [
        StoryRow(
            f"S-{number}", status=draw(STATUSES), retry_count=draw(COUNTS), output=draw(st.none() | OUTPUT)
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    current = draw(st.sampled_from([None, "S-0", "S-1", "nosuch"]))
    steps = [
        StepRow(
            name,
            status=draw(STATUSES),
            loop=LOOP if name == "grow" else None,
            current_story=current if name == "grow" else None,
            retry_count=draw(COUNTS),
            abandoned_count=draw(COUNTS),
            output=draw(st.none() | OUTPUT),
            age=timedelta(minutes=draw(st.integers(0, 200))),
        )
        for name in ("plan", "grow", "verify", "pack")
    ]
    context = draw(
        st.sampled_from(["{}", '{"task":"t", "API_KEY" : "k"}', '{"verify_feedback":"old"}', "no"])
    )
    return draw(st.sampled_from(["0.1", "0.2.1", "0.5.1", "fork"])), steps, stories, context


OUTPUT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20)


@given(farms(), st.sampled_from(["running", "failed"]), st.none() | OUTPUT, st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_apply_then_undo_gives_back_every_cell(
    farm: tuple[str, list[StepRow], list[StoryRow], str],
    status: str,
    guidance: str | None,
    data: st.DataObject,
) -> None:
    schema, steps, stories, context = farm
    with tempfile.TemporaryDirectory() as folder:
        yard = Farmyard(Path(folder), schema=schema)
        run = yard.add_run("orchard", status=status, context=context, steps=steps, stories=stories)
        crons = ListedCrons([job("orchard", "pack")])
        desk = desk_on(yard.paths, crons)
        before, listed = yard.dump(), crons.names()
        try:
            if status == "failed":
                plan = desk.retry(run, guidance)
            else:
                plan = desk.reset(run, data.draw(st.sampled_from(steps)).name, force=True)
        except Refused:
            assert yard.dump() == before
            return
        assert desk.apply(plan).status is OutcomeStatus.APPLIED
        after = yard.dump()
        assert after != before
        assert yard.execute("SELECT 1 FROM runs WHERE status = 'failed'") == []
        assert desk.apply(desk.undo()).status is OutcomeStatus.APPLIED
        assert yard.dump() == before
        assert crons.names() == listed
        # And undone once more it is as it was after: all but the ids of crons.
        again = desk.apply(desk.undo(desk.entries()[-1].id))
        assert again.status is OutcomeStatus.APPLIED
        assert yard.dump() == after


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE steps SET status = 'running', updated_at = datetime('now') WHERE step_id = 'build'",
            "step build: status was pending, is running",
        ),
        # Claimed, given up and put back in between: it looks the same but for its time.
        (
            "UPDATE steps SET updated_at = '2030-01-01 00:00:00' WHERE step_id = 'build'",
            "step build: updated was",
        ),
        ("UPDATE steps SET abandoned_count = 4 WHERE step_id = 'build'", "abandoned was 1, is 4"),
        ("DELETE FROM steps", "step build is gone"),
    ],
)
def test_what_has_moved_since_is_named_and_nothing_is_undone(
    yard: Farmyard, statement: str, told: str
) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "build"))
    yard.execute(statement)
    before = yard.dump()
    with pytest.raises(Refused, match=f"cannot be undone, since it has moved on: .*{told}"):
        desk.undo()
    assert yard.dump() == before


def test_an_agent_that_claims_while_the_undo_is_shown_wins(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "build"))
    plan = desk.undo()
    yard.execute("UPDATE steps SET status = 'running', updated_at = datetime('now') WHERE step_id = 'build'")
    before = yard.dump()
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert "status was pending, is running" in outcome.detail
    assert yard.dump() == before


def test_a_reset_is_not_undone_into_a_run_that_has_ended(yard: Farmyard) -> None:
    run = stale(yard)
    desk = desk_on(yard.paths)
    desk.apply(desk.reset(run, "build"))
    yard.execute("UPDATE runs SET status = 'failed'")
    outcome = desk.apply(desk.undo())
    assert outcome.status is OutcomeStatus.REFUSED
    assert "run: status was running, is failed" in outcome.detail


def test_a_context_that_changed_since_is_named_without_its_text(yard: Farmyard) -> None:
    run = yard.add_run(
        "relay", status="failed", context={"API_KEY": "k3y"}, steps=[StepRow("build", status="failed")]
    )
    desk = desk_on(yard.paths, ListedCrons([job("relay", "build")]))
    desk.apply(desk.retry(run, "hello"))
    yard.execute("UPDATE runs SET context = '{\"other\":1}'")
    with pytest.raises(Refused, match=r"run #1: context was changed") as refused:
        desk.undo()
    assert "k3y" not in str(refused.value)


def test_the_latest_that_can_be_undone_is_meant(yard: Farmyard) -> None:
    desk = desk_on(yard.paths)
    first, second = stale(yard), stale(yard)
    for run in (first, second):
        desk.apply(desk.reset(run, "build"))
    assert desk.undo().run == second
    desk.apply(desk.undo())
    # Not the undo itself: that would only do it again.
    assert desk.undo().run == first
    desk.apply(desk.undo())
    with pytest.raises(Refused, match="nothing was done to this farm that could be undone"):
        desk.undo()
    assert [entry.undone_by is not None for entry in desk.entries()] == [True, True, False, False]


def test_by_id_by_beginning_and_by_end(yard: Farmyard) -> None:
    desk = desk_on(yard.paths)
    run = stale(yard)
    entry = desk.apply(desk.reset(run, "build")).entry
    for name in (entry, entry[:-1], entry[-4:]):
        assert desk.undo(name).undoes == entry
    for name in ("nosuch", entry[-3:], ""):
        with pytest.raises(Refused, match="no entry is called"):
            desk.undo(name)
    desk.apply(desk.undo(entry))
    with pytest.raises(Refused, match=f"{entry} was undone already"):
        desk.undo(entry)
    # With the undo taken back it can be undone once more.
    desk.apply(desk.undo(desk.entries()[-1].id))
    assert desk.undo(entry).undoes == entry


def test_a_refused_entry_has_nothing_to_undo(yard: Farmyard) -> None:
    desk = desk_on(yard.paths)
    run = stale(yard)
    plan = desk.reset(run, "build")
    yard.execute("UPDATE steps SET status = 'done'")
    entry = desk.apply(plan).entry
    with pytest.raises(Refused, match="was refused and changed nothing"):
        desk.undo(entry)


def test_what_was_done_to_another_database_is_not_undone_here(tmp_path: Path) -> None:
    from dataclasses import replace

    yard, other = Farmyard(tmp_path / "a"), Farmyard(tmp_path / "b")
    run = stale(yard)
    desk = desk_on(yard.paths)
    entry = desk.apply(desk.reset(run, "build")).entry
    here = desk_on(replace(other.paths, farm_dir=yard.paths.farm_dir))
    with pytest.raises(Refused, match="nothing was done to this farm"):
        here.undo()
    with pytest.raises(Refused, match="was done to another database"):
        here.undo(entry)


def test_an_entry_of_a_newer_farm_is_left_alone(yard: Farmyard) -> None:
    desk = desk_on(yard.paths)
    run = stale(yard)
    entry = desk.apply(desk.reset(run, "build")).entry
    journal = yard.state_dir / "farm" / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"v": 1', '"v": 2'))
    with pytest.raises(Refused, match=f"{entry} is not understood: written by another version"):
        desk.undo(entry)
    with pytest.raises(Refused, match="nothing was done"):
        desk.undo()


def test_an_acknowledgement_is_taken_back_and_given_again(yard: Farmyard) -> None:
    run = yard.add_run("relay", status="failed", number=5)
    desk = desk_on(yard.paths)
    before = yard.dump()
    outcome = desk.apply(desk.acknowledge(run, "looking into it"))
    assert (outcome.status, outcome.detail) == (OutcomeStatus.APPLIED, "acknowledged")
    folder = yard.paths.farm_dir
    found = acknowledgements.read(folder)[run]
    assert (found.note, found.by, found.run_status) == ("looking into it", "alice", "failed")
    assert found.entry == outcome.entry
    assert desk.apply(desk.undo()).detail == "taken back"
    assert acknowledgements.read(folder) == {}
    desk.apply(desk.undo(desk.entries()[-1].id))
    assert acknowledgements.read(folder)[run].note == "looking into it"
    assert yard.dump() == before


def test_only_failed_runs_as_they_are_are_acknowledged(yard: Farmyard) -> None:
    desk = desk_on(yard.paths)
    with pytest.raises(Refused, match="is running: only a failed run"):
        desk.acknowledge(stale(yard), "x")
    run = yard.add_run("relay", status="failed")
    with pytest.raises(Refused, match="2001 characters"):
        desk.acknowledge(run, "x" * 2001)
    plan = desk.acknowledge(run, "")
    yard.execute("UPDATE runs SET status = 'running', updated_at = datetime('now') WHERE id = ?", run)
    outcome = desk.apply(plan)
    assert outcome.status is OutcomeStatus.REFUSED
    assert acknowledgements.read(yard.paths.farm_dir) == {}


def test_crons_that_another_run_needs_meanwhile_stay(yard: Farmyard) -> None:
    run = yard.add_run("relay", status="failed", steps=[StepRow("build", status="failed")])
    crons = ListedCrons([job("relay", "scout")])
    desk = desk_on(yard.paths, crons)
    desk.apply(desk.retry(run))
    assert "antfarm/relay/build" in crons.names()
    other = yard.add_run("relay", number=8)
    plan = desk.undo()
    assert any("antfarm/relay/build, which it created, stays: #8 needs it" in note for note in plan.notes)
    yard.execute("UPDATE runs SET status = 'completed' WHERE id = ?", other)
    plan = desk.undo()
    assert [call.name for call in plan.crons] == ["antfarm/relay/build"]
    assert desk.apply(plan).status is OutcomeStatus.APPLIED
    assert crons.names() == ["antfarm/relay/scout"]
    assert cells(yard, "runs", run, "status") == ("failed",)
