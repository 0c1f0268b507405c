"""Everything the scheduler is held to, in one table; a few minutes on a quiet machine.

    python -m benchmarks.plan [--without-database]

The last rows need PostgreSQL, as ``python -m benchmarks.schedule.run`` does, which
makes it. Each part can be run by itself: :mod:`.run`, :mod:`.guaranteed`,
:mod:`.longest` and :mod:`.explain`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.plan import explain, guaranteed, longest
from benchmarks.plan.run import measure, measure_memory, measure_pass, scan
from benchmarks.plan.snapshots import make_snapshot

SIZES = (
    (100, 100, 25_000, 20),
    (1000, 100, 20_000, 3),
    (10_000, 100, 10_000, 1),
    (1000, 500, 8000, 3),
)
"""Nodes, shapes, how many placements a second there should be, and turns."""

_MOST_MEMORY = 286
"""MiB, which are 300 MB."""


class Row(NamedTuple):
    """One figure beside what it should be at least, or at most."""

    figure: str
    value: float
    unit: str
    bound: float
    at_least: bool = False
    more: str = ""

    def show(self) -> str:
        """Write it as a row of a table."""
        holds = self.value >= self.bound if self.at_least else self.value <= self.bound
        sign = ">=" if self.at_least else "<="
        bound = f"{sign} {self.bound:,g}"
        told = "holds" if holds else "DOES NOT HOLD"
        value = f"{self.value:,g} {self.unit}"
        return f"{self.figure:<52} {value:>24} {bound:>10}  {told:<14} {self.more}"


def measure_plans() -> Iterator[Row]:
    for agents, shapes, least, turns in SIZES:
        snapshot = make_snapshot(agents, agents * (4 if agents <= 1000 else 2), shapes)
        _, seconds, plan = measure_pass(snapshot, turns)
        scanning, placed = measure(partial(scan, snapshot), min(turns, 5))
        each = len(plan.placements) / seconds
        yield Row(
            f"concentrated, {agents} nodes, {shapes} shapes",
            round(each),
            "placements/s",
            least,
            at_least=True,
            more=f"{each / (placed / scanning):.2f} plain scans",
        )
    for agents, least, turns in ((100, 25_000, 30), (1000, 20_000, 8)):
        found = guaranteed.measure(agents, turns)
        yield Row(
            f"concentrated, {agents} nodes, with guarantees",
            found["guaranteed_per_second"],
            "placements/s",
            least,
            at_least=True,
            more=f"{found['ratio']} times the speed without",
        )


def measure_longest() -> Iterator[Row]:
    for row in longest.measure():
        if row["placements"] == longest.SET_UP:
            continue
        name = f"fragmentation, {row['placements']}"
        yield Row(
            f"{name}: most of its own",
            row["own_most"] / 1000,
            "ms",
            1,
            more=f"of the processor: median {row['cpu_median']}, 99 % {row['cpu_p99']},"
            f" most {row['cpu_most']} µs;"
            f" by the clock: 99 % {row['wall_p99']}, most {row['wall_most']} µs",
        )


def measure_explanations() -> Iterator[Row]:
    for agents, pending in ((1000, 10_000), (10_000, 100_000)):
        row: dict[str, Any] = explain.measure_long(agents, pending)
        for name in ("first", "again", "dry_run", "dry_run_again"):
            yield Row(
                f"explain, {agents} nodes, {pending} pending: {name}",
                row[f"{name}_ms"],
                "ms",
                5,
                more=f"99 % {row[f'{name}_p99_ms']} ms; to prepare {row['prepare_ms']}",
            )


def measure_service(crowd: int = 0) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        found = Path(folder) / "found.json"
        counts = ("--quiet", "60", "--burst", "20", "--crowd", str(crowd))
        options = (*counts, "--json", str(found))
        command = (sys.executable, "-m", "benchmarks.schedule.run", *options)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        quiet = json.loads(found.read_text())["submit_to_scheduled_ms"]
    behind = f", {crowd:,} waiting for a quota" if crowd else ""
    name = f"request to SCHEDULED{behind}, 99 %"
    yield Row(name, quiet["p99"], "ms", 100, more=str(quiet))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--without-database", action="store_true")
    options = parser.parse_args()
    rows = [*measure_plans(), *measure_longest(), *measure_explanations()]
    _, value, _ = measure_memory(10_000, 100_000)[0]
    memory = float(value.split()[0])
    rows.append(
        Row("memory, 10,000 nodes, 100,000 pending", memory, "MiB", _MOST_MEMORY)
    )
    if not options.without_database:
        for crowd in (0, 10_000, 100_000):
            rows += measure_service(crowd)
    print()
    for row in rows:
        print(row.show())


if __name__ == "__main__":
    main()
