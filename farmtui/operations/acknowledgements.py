"""Acknowledgements: that somebody has seen a failed run. ``farm/acknowledgements.jsonl``, append-only.

They change nothing in Antfarm's database. One holds while its run stays as it was; the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farmtui.clock import iso, parse_time
from farmtui.operations.lines import LineFile
from farmtui.operations.operator import Operator
from farmtui.state import Acknowledgement

_NAME = "acknowledgements.jsonl"


def append(farm_dir: Path, acknowledgement: Mapping[str, Any], operator: Operator, entry: str) -> None:
    """Write an acknowledgement, or take one back (`Plan.acknowledgement` tells the two shapes).

    Args:
        entry: the journal entry that it belongs to.

    Raises:
        Unwritable: it was not written.
    """
    LineFile(farm_dir / _NAME).append(
        {"entry": entry, "at": iso(datetime.now(UTC)), "by": operator.name, **acknowledgement}
    )


def read(farm_dir: Path) -> Mapping[str, Acknowledgement]:
    """The last acknowledgement of each run, by run id.

    Raises:
        Unreadable: the file is there and cannot be read.
    """
    return _latest(LineFile(farm_dir / _NAME).records())


class Acknowledgements:
    """The acknowledgements of one farm, read again only when the file changed."""

    def __init__(self, farm_dir: Path) -> None:
        self._file = LineFile(farm_dir / _NAME)
        self._stamp: tuple[int, int, int] | None = None
        self._latest: Mapping[str, Acknowledgement] = {}

    def poll(self) -> Mapping[str, Acknowledgement]:
        """The last acknowledgement of each run, by run id: the same object while nothing changed.

        Raises:
            Unreadable: the file is there and cannot be read.
        """
        stamp = self._file.stamp()
        if stamp != self._stamp:
            latest = _latest(self._file.records()) if stamp is not None else {}
            self._latest, self._stamp = latest, stamp
        return self._latest


def _latest(records: Iterable[Mapping[str, Any]]) -> Mapping[str, Acknowledgement]:
    standing: dict[str, dict[str, Acknowledgement]] = {}
    for record in records:
        run, entry, withdrawn = record.get("run"), record.get("entry"), record.get("withdraws")
        if not isinstance(run, str) or not isinstance(entry, str):
            continue
        if isinstance(withdrawn, str):
            standing.get(run, {}).pop(withdrawn, None)
        elif isinstance(record.get("run_status"), str):
            standing.setdefault(run, {})[entry] = _acknowledgement(run, entry, record)
    return {run: list(entries.values())[-1] for run, entries in standing.items() if entries}


def _acknowledgement(run: str, entry: str, record: Mapping[str, Any]) -> Acknowledgement:
    note, by = record.get("note"), record.get("by")
    return Acknowledgement(
        run=run,
        run_status=record["run_status"],
        run_updated_at=parse_time(record.get("run_updated_at")),
        note=note if isinstance(note, str) else "",
        by=by if isinstance(by, str) else "?",
        at=parse_time(record.get("at")),
        entry=entry,
    )
