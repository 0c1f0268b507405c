"""Pages that are told again without reading the folder: quickly, and never stale."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backendai_hub.safefs import kernel, remembered
from backendai_hub.safefs.listing import Listing, Order, Page
from backendai_hub.safefs.remembered import LONGEST, SETTLED, Memory, Moment
from backendai_hub.safefs.tree import Tree
from tests.unit.safefs_trees import folder, names, tree

__all__ = ["folder", "tree"]

_COARSE = 5
"""CLOCK_REALTIME_COARSE, by which files are stamped."""


class Clock:
    """Both clocks as they would be some time from now, by when folders are settled."""

    def __init__(self) -> None:
        self.ahead = 2 * SETTLED
        self.passed = 0

    def __call__(self) -> Moment:
        now = Moment.now()
        passed = self.passed
        return Moment(now.wall + self.ahead + passed, now.steady + passed)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Memory:
    return Memory(clock, fewest=1)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note how often folders are read."""
    noted: list[object] = []
    real = os.scandir

    def scan(place):
        noted.append(place)
        return real(place)

    monkeypatch.setattr(os, "scandir", scan)
    return noted


def tick() -> None:
    """Let the clock of files go on, so that the next change has another time."""
    before = time.clock_gettime_ns(_COARSE)
    while time.clock_gettime_ns(_COARSE) == before:
        pass


def fill(folder: Path) -> None:
    for name in ("b", "a", "c"):
        (folder / name).write_text("")
    (folder / "d").mkdir()


def ask(tree: Tree, memory: Memory | None, **asked) -> Page:
    return tree.list((), Listing(**asked), memory=memory)


@pytest.mark.parametrize("sort", [Order.NAME, Order.KIND])
@pytest.mark.parametrize("descending", [False, True])
def test_a_page_is_told_again_without_reading_the_folder(
    tree, folder, memory, reads, sort, descending
):
    fill(folder)
    asked = {"sort": sort, "descending": descending, "limit": 3}
    page = ask(tree, memory, **asked)
    after = ask(tree, memory, **asked, after=page.after)
    assert page == ask(tree, memory, **asked) == ask(tree, None, **asked)
    assert after == ask(tree, memory, **asked, after=page.after)
    assert len(reads) == 3, "both pages once, and once without a memory"


def test_what_is_told_of_entries_is_looked_at_anew(tree, folder, memory):
    fill(folder)
    assert ask(tree, memory).entries[0].size == 0
    (folder / "a").write_text("longer")
    assert ask(tree, memory).entries[0].size == 6


@pytest.mark.parametrize("sort", [Order.SIZE, Order.MODIFIED])
def test_what_depends_on_more_than_names_is_read_each_time(
    tree, folder, memory, reads, sort
):
    fill(folder)
    ask(tree, memory, sort=sort, descending=True)
    (folder / "b").write_text("now the largest and the latest")
    found = names(ask(tree, memory, sort=sort, descending=True).entries)
    assert "b" in found[: 1 + (sort is Order.MODIFIED)]
    assert len(reads) == 2


def _make(folder: Path, name: str) -> None:
    (folder / name).write_text("")


def _remove(folder: Path, name: str) -> None:
    (folder / name).unlink()


def _rename(folder: Path, name: str) -> None:
    (folder / name).rename(folder / f"{name}{name}")


def _move_out(folder: Path, name: str) -> None:
    (folder / name).rename(folder / "d" / name)


def _make_a_folder_of_it(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()


def _exchange(folder: Path, name: str) -> None:
    (folder / name).rename(folder / "d" / name)
    (folder / "d").rename(folder / name)


Change = Callable[[Path, str], None]
CHANGES: list[tuple[Change, str]] = [
    (_make, "aa"),
    (_remove, "a"),
    (_rename, "a"),
    (_move_out, "a"),
    (_make_a_folder_of_it, "c"),
    (_exchange, "b"),
]


@pytest.mark.parametrize(("change", "name"), CHANGES)
@pytest.mark.parametrize("sort", [Order.NAME, Order.KIND])
def test_a_change_is_seen_at_once(tree, folder, memory, change, name, sort):
    fill(folder)
    before = ask(tree, memory, sort=sort)
    times = folder.stat().st_atime_ns, folder.stat().st_mtime_ns
    tick()
    change(folder, name)
    os.utime(folder, ns=times)  # somebody hides it as well as they can
    after = ask(tree, memory, sort=sort)
    assert after == ask(tree, None, sort=sort) != before


@settings(max_examples=40, deadline=None)
@given(
    history=st.lists(
        st.tuples(
            st.sampled_from(["make", "remove", "rename", "look", "next", "kind"]),
            st.sampled_from("abcdef"),
        ),
        max_size=14,
    )
)
def test_with_a_memory_any_history_looks_as_without(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("history")
    fill(folder)
    memory = Memory(Clock(), fewest=1)
    with Tree.at(folder) as tree:
        for what, name in history:
            there = folder / name
            tick()
            if what == "make" and not there.exists():
                there.write_text("")
            elif what == "remove" and there.is_file():
                there.unlink()
            elif what == "rename" and there.is_file():
                there.rename(folder / f"{name}2")
            asked = {
                "look": Listing(limit=2),
                "next": Listing(limit=2, after=f"0/{name}"),
                "kind": Listing(sort=Order.KIND, descending=True),
            }.get(what, Listing())
            assert tree.list((), asked, memory=memory) == tree.list((), asked)


def test_a_folder_that_was_changed_lately_is_read_again(
    tree, folder, memory, clock, reads
):
    clock.ahead = 0
    fill(folder)
    ask(tree, memory)
    ask(tree, memory)
    assert len(reads) == 2


@pytest.mark.parametrize("seconds", [-2, 2])
def test_after_the_clock_was_set_nothing_is_certain(
    tree, folder, memory, clock, reads, seconds
):
    fill(folder)
    ask(tree, memory)
    clock.ahead += seconds * 10**9
    ask(tree, memory)
    assert len(reads) == 2
    ask(tree, memory)
    assert len(reads) == 2, "from then on it is known again"


def test_a_clock_that_is_a_little_wrong_hinders_nothing(
    tree, folder, memory, clock, reads
):
    fill(folder)
    ask(tree, memory)
    clock.ahead += 10**8
    clock.passed += LONGEST // 2
    ask(tree, memory)
    assert len(reads) == 1


def test_a_page_is_kept_for_some_minutes(tree, folder, memory, clock, reads):
    fill(folder)
    ask(tree, memory)
    clock.passed += LONGEST + 1
    ask(tree, memory)
    assert len(reads) == 2


def test_times_in_whole_seconds_are_not_trusted(
    tree, folder, memory, reads, monkeypatch
):
    fill(folder)
    real = os.fstat

    def look(descriptor):
        found = real(descriptor)
        seconds = found.st_ctime_ns // 10**9 * 10**9
        known = {n: getattr(found, n) for n in dir(found) if n.startswith("st_")}
        return type("Found", (), {**known, "st_ctime_ns": seconds})

    monkeypatch.setattr(remembered.os, "fstat", look)
    ask(tree, memory)
    ask(tree, memory)
    assert len(reads) == 2


def test_file_systems_that_others_write_to_are_not_trusted(tree, memory):
    assert memory.begin(tree.fileno()) is not None
    other = os.open("/sys/kernel", os.O_RDONLY)
    try:
        assert memory.begin(other) is None
    finally:
        os.close(other)


def test_file_systems_are_known_by_their_numbers(tree, folder):
    command = ["stat", "-f", "-c", "%t", folder]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert kernel.type_of_filesystem(tree.fileno()) == int(said, 16)


def test_small_folders_are_not_kept(tree, folder, clock, reads):
    fill(folder)
    for fewest, expected in ((5, 2), (4, 1)):
        memory = Memory(clock, fewest=fewest)
        reads.clear()
        ask(tree, memory)
        ask(tree, memory)
        assert len(reads) == expected


def test_what_is_searched_for_is_not_kept(tree, folder, memory, reads):
    fill(folder)
    for _ in range(2):
        assert names(ask(tree, memory, search="B").entries) == ["b"]
    assert len(reads) == 2


def test_of_many_pages_those_told_last_are_kept(
    tree, folder, memory, reads, monkeypatch
):
    monkeypatch.setattr(remembered, "MOST_NAMES", 8)
    fill(folder)
    first, second = Listing(limit=1), Listing(limit=2)
    for asked in (first, second, first, Listing(limit=3)):
        tree.list((), asked, memory=memory)  # of 2, 3 and 4 names, and 1 for each
    reads.clear()
    for asked in (first, Listing(limit=3)):
        tree.list((), asked, memory=memory)
    assert len(reads) == 0
    tree.list((), second, memory=memory)
    assert len(reads) == 1


def test_pages_of_two_folders_are_two(tree, folder, memory):
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / f"of {name}").write_text("")
    for _ in range(2):
        for name in ("one", "two"):
            page = tree.list((name,), Listing(), memory=memory)
            assert names(page.entries) == [f"of {name}"]
