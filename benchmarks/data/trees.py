"""What the safe file system costs: opening, and folders of very many entries.

    python -m benchmarks.data.trees [--entries 1000000] [--rounds 5] [--folder DIR]

Entries are names of a few empty files: they cost a directory what files cost it, and
are made and removed sooner. Times are the best of the rounds; "processor" is what this
process and the kernel worked for it, whatever else the machine does.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from backendai_hub.safefs.listing import Listing, Order
from backendai_hub.safefs.opening import Way, choose_way, open_beneath, open_root
from backendai_hub.safefs.tree import Tree

NAMES_OF_ONE = 50_000  # ext4 gives a file no more than 65,000


def fill(folder: Path, entries: int) -> None:
    """Make so many names in a folder."""
    here = os.open(folder, os.O_RDONLY)
    for number in range(entries):
        name = f"entry-{number * 7919 % entries:08}.txt"
        if number % NAMES_OF_ONE == 0:
            first = name
            os.mknod(first, dir_fd=here)
        else:
            os.link(first, name, src_dir_fd=here, dst_dir_fd=here)
    os.close(here)


def measure(name: str, work: Callable[[], object], rounds: int, times: int = 1) -> None:
    """Print how long *work* takes, which does the same thing *times* over."""
    found = []
    for _ in range(rounds):
        began, worked = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - began, time.process_time() - worked))
    wall, processor = (
        1000 * min(column) / times for column in zip(*found, strict=True)
    )
    print(f"{name:44} {wall:10.3f} ms {processor:10.3f} ms processor", flush=True)


def measure_opening(folder: Path, rounds: int) -> None:
    """Compare the ways to open a file four folders down."""
    times = 2000
    parts = ("a", "b", "c", "d")
    (folder / "a/b/c").mkdir(parents=True)
    folder.joinpath(*parts).write_text("")
    root = open_root(folder)

    def beneath() -> None:
        for _ in range(times):
            os.close(open_beneath(root, parts, os.O_RDONLY))

    def resolved() -> None:
        for _ in range(times):
            path = folder.joinpath(*parts).resolve()
            if path.is_relative_to(folder):
                os.close(os.open(path, os.O_RDONLY))

    for way in Way:
        choose_way(way)
        measure(f"open a file, by {way}", beneath, rounds, times)
    choose_way(None)
    measure("open a file, by resolving (and raced)", resolved, rounds, times)
    os.close(root)


def measure_folder(folder: Path, entries: int, rounds: int) -> None:
    """Measure what people do with a folder of so many entries."""
    began = time.perf_counter()
    fill(folder, entries)
    print(f"{entries:,} entries, made in {time.perf_counter() - began:.1f} s")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    middle = f"0/entry-{entries // 2:08}.txt"
    with Tree.at(folder) as tree:
        for what, listing in {
            "first page by name": Listing(),
            "last page by name": Listing(descending=True),
            "page in the middle": Listing(after=middle),
            "search": Listing(search="99999"),
            "first page, folders first": Listing(sort=Order.KIND),
            "first page by size": Listing(sort=Order.SIZE),
        }.items():
            measure(what, lambda asked=listing: tree.list((), asked), rounds)
        measure("usage", tree.usage, 1)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"memory grown by {grown / 1024:.1f} MiB")
        measure("remove all", lambda: tree.remove(()), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where to make the folders")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as made:
        measure_opening(Path(made), asked.rounds)
    for entries in asked.entries:
        with tempfile.TemporaryDirectory(dir=asked.folder) as made:
            measure_folder(Path(made), entries, asked.rounds)


if __name__ == "__main__":
    main()
