"""The console on a big farm, as a person meets it: ``python -m tests.benchmarks.bench_console``.

Runs the real program in a pseudo-terminal and prints a table: how long until the board stands there, how
soon another process's commit is on the screen, and what an idle console costs. Each time stands beside that
of the same program on a farm of one run, measured in the same run.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.benchmarks.generate import generate
from tests.benchmarks.terminal import Terminal
from tests.farms import Farmyard, StepRow

ROUNDS = 5
IDLE_S = 30.0
SETTLE_S = 65.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds to watch an idle console")
    parser.add_argument("--settle", type=float, default=SETTLE_S, help="seconds before that")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small_folder, big_folder = Path(folder, "small"), Path(folder, "big")
        small_folder.mkdir()
        big_folder.mkdir()
        small = Farmyard(small_folder)
        small.add_run("relay", "The only run", number=1, steps=[StepRow("build", status="running")])
        print(f"generating {options.runs} runs …", flush=True)
        big = generate(big_folder, options.runs)
        starts = {
            name: [_start(yard, wanted) for _ in range(options.rounds + 1)][1:]  # the first warms the cache
            for name, yard, wanted in (("small", small, "#1 "), ("big", big, f"#{options.runs} "))
        }
        latencies, idle = _live(big, options)
    ratio = statistics.median(starts["big"]) / statistics.median(starts["small"])
    print(f"{'what':<46}{'median':>10}{'worst':>10}{'limit':>10}")
    _row("start to board, 1 run", starts["small"], "s", None)
    _row(f"start to board, {options.runs} runs", starts["big"], "s", 1.0)
    print(f"{'  ratio big / small':<46}{ratio:>9.2f}×")
    _row("commit of another process to screen", latencies, "s", 0.25)
    cpu, resident, written = idle
    print(f"{f'idle over {options.idle:.0f} s: one core':<46}{cpu:>9.2f}%{'':>10}{'1.00%':>10}")
    print(f"{'idle: resident memory':<46}{resident:>7.0f} MB{'':>10}{'150 MB':>10}")
    print(f"{'idle: written to the terminal':<46}{written:>6.0f} B/s")


def _row(what: str, values: list[float], unit: str, limit: float | None) -> None:
    bound = f"{limit:.2f} {unit}" if limit is not None else ""
    print(f"{what:<46}{statistics.median(values):>8.3f} {unit}{max(values):>8.3f} {unit}{bound:>10}")


def _open(yard: Farmyard) -> Terminal:
    environ = {**os.environ, "HOME": str(yard.home)}
    argv = [sys.executable, "-m", "farmtui", "--state-dir", str(yard.state_dir)]
    return Terminal(argv, environ)


def _start(yard: Farmyard, wanted: str) -> float:
    terminal = _open(yard)
    try:
        return terminal.until(wanted)
    finally:
        terminal.close()


def _live(yard: Farmyard, options: argparse.Namespace) -> tuple[list[float], tuple[float, float, float]]:
    """How long commits take to be drawn, and what doing nothing costs: CPU %, MB, bytes a second."""
    terminal = _open(yard)
    try:
        terminal.until(f"#{options.runs} ")
        # The first minute's sweep through the ended runs is not idleness.
        terminal.drain(options.settle)
        cpu, sent, began = terminal.cpu_seconds(), terminal.bytes_read, time.perf_counter()
        terminal.drain(options.idle)
        passed = time.perf_counter() - began
        idle = (
            100 * (terminal.cpu_seconds() - cpu) / passed,
            terminal.resident_mb(),
            (terminal.bytes_read - sent) / passed,
        )
        latencies = []
        with closing(sqlite3.connect(yard.database, isolation_level=None, timeout=0)) as connection:
            for round_ in range(options.rounds):
                mark = f"mark-{round_}-{time.time_ns() % 1000}"
                terminal.drain(1.3)
                began = time.perf_counter()
                connection.execute("UPDATE runs SET task = ? WHERE run_number = ?", (mark, options.runs))
                terminal.until(mark)
                latencies.append(time.perf_counter() - began)
        return latencies, idle
    finally:
        terminal.close()


if __name__ == "__main__":
    main()
