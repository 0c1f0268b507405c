"""Pages of a folder: in order, complete, and quick with very many entries."""

from __future__ import annotations

import os
import stat
import tracemalloc
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs import listing
from backendai_hub.safefs.errors import StoppedError
from backendai_hub.safefs.listing import Listing, Order
from backendai_hub.safefs.paths import show_name
from backendai_hub.safefs.tree import Tree
from tests.unit.safefs_trees import folder, names, path, tree, write

__all__ = ["folder", "tree"]

MANY = 50_000


def all_pages(tree: Tree, **listing) -> list[str]:
    found, after = [], ""
    while True:
        page = tree.list((), Listing(after=after, **listing))
        found += names(page.entries)
        after = page.after
        if not after:
            return found


def fill(folder: Path) -> None:
    """Make files whose orders by name, size and time are all different."""
    for place, (name, size) in enumerate(
        [
            ("b", 3),
            ("A", 3),
            ("a", 1),
            ("B", 9),
            ("ä", 0),
            ("_", 3),
            ("10", 2),
            ("9", 2),
        ]
    ):
        (folder / name).write_bytes(b"x" * size)
        os.utime(folder / name, (place % 3, place % 3))
    (folder / "zoo").mkdir()
    os.utime(folder / "zoo", (9, 9))


EXPECTED = {
    Order.NAME: ["10", "9", "_", "A", "a", "B", "b", "zoo", "ä"],
    Order.KIND: ["zoo", "10", "9", "_", "A", "a", "B", "b", "ä"],
    Order.SIZE: ["zoo", "ä", "a", "10", "9", "_", "A", "b", "B"],
    Order.MODIFIED: ["10", "B", "b", "9", "A", "ä", "_", "a", "zoo"],
}


@pytest.mark.parametrize("sort", Order)
@pytest.mark.parametrize("limit", [1, 2, 3, 8, 9, 10, 200])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_put_together_are_the_whole_in_order(
    tree, folder, sort, limit, descending
):
    fill(folder)
    expected = EXPECTED[sort][::-1] if descending else EXPECTED[sort]
    assert all_pages(tree, sort=sort, limit=limit, descending=descending) == expected


def test_names_that_differ_in_case_or_bytes_alone_are_all_there(tree, folder):
    for name in (
        "readme",
        "README",
        "Readme",
        os.fsdecode(b"\xff"),
        os.fsdecode(b"\xfe"),
    ):
        (folder / name).write_text("")
    for limit in (1, 2):
        assert len(set(all_pages(tree, limit=limit))) == 5


def test_a_page_says_how_many_there_are_and_whether_more_follow(tree, folder):
    fill(folder)
    page = tree.list((), Listing(limit=9))
    assert (page.total, page.after) == (9, "")
    page = tree.list((), Listing(limit=8))
    assert page.total == 9
    assert page.after
    assert tree.list((), Listing(limit=8, after=page.after)).total == 9
    assert tree.list(path("zoo")).entries == ()


def test_what_is_searched_is_a_part_of_the_name_in_any_case(tree, folder):
    for name in ("Notes.md", "old-NOTES", "other", "Straße", "*"):
        (folder / name).write_text("")
    assert all_pages(tree, search="notes") == ["Notes.md", "old-NOTES"]
    assert all_pages(tree, search="STRASSE") == ["Straße"]
    assert all_pages(tree, search="*") == ["*"]
    assert tree.list((), Listing(search="notes")).total == 2
    assert all_pages(tree, search="nothing like it") == []


def test_names_can_be_left_out(tree, folder):
    write(tree, "seen")
    (folder / ".backendai").mkdir()
    assert all_pages(tree, hidden=frozenset({".backendai"})) == ["seen"]


def test_pages_go_on_although_entries_come_and_go(tree, folder):
    for name in "abcdef":
        write(tree, name)
    first = tree.list((), Listing(limit=2))
    for name in "bc":
        (folder / name).unlink()
    write(tree, "aa")
    second = tree.list((), Listing(limit=2, after=first.after))
    assert names(second.entries) == ["d", "e"]


def test_what_disappears_while_it_is_listed_is_not_shown(tree, folder, monkeypatch):
    for name in "abc":
        write(tree, name)
    real = os.stat

    def stat_late(name, **options):
        (folder / "b").unlink(missing_ok=True)
        return real(name, **options)

    monkeypatch.setattr(os, "stat", stat_late)
    assert names(tree.list(()).entries) == ["a", "c"]


@pytest.mark.parametrize("sort", [Order.SIZE, Order.MODIFIED])
def test_what_disappears_while_it_is_sorted_is_not_shown(
    tree, folder, monkeypatch, sort
):
    for name in "abc":
        write(tree, name)
    real = os.scandir

    @contextmanager
    def scan_late(place):
        with real(place) as entries:
            found = list(entries)
        (folder / "b").unlink()
        yield iter(found)

    monkeypatch.setattr(os, "scandir", scan_late)
    page = tree.list((), Listing(sort=sort))
    assert (sorted(names(page.entries)), page.total) == (["a", "c"], 2)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_has_a_sensible_size(tree, limit):
    with pytest.raises(InvalidRequestError, match="1 to 1000"):
        tree.list((), Listing(limit=limit))


@pytest.mark.parametrize(
    "after", ["a", "/", "0/", "x/a", "0/..", "0/a/b", "1e5/a", "٣/a", "9" * 30 + "/a"]
)
def test_a_place_to_go_on_from_is_one_that_a_page_told(tree, after):
    with pytest.raises(InvalidRequestError):
        tree.list((), Listing(after=after))


@settings(max_examples=60)
@given(
    wanted=st.sets(st.text("aAbBß\u0131\u0130", min_size=1, max_size=3), max_size=9),
    limit=st.integers(1, 4),
    sort=st.sampled_from(Order),
    descending=st.booleans(),
)
def test_no_name_is_lost_or_told_twice(
    tmp_path_factory, wanted, limit, sort, descending
):
    folder = tmp_path_factory.mktemp("names")
    for name in wanted:
        (folder / name).write_text("")
    with Tree.at(folder) as tree:
        found = all_pages(tree, limit=limit, sort=sort, descending=descending)
    assert sorted(found) == sorted(wanted)


def value_of(path: Path, sort: Order) -> int:
    found = path.lstat()
    return {
        Order.NAME: 0,
        Order.KIND: 0 if stat.S_ISDIR(found.st_mode) else 1,
        Order.SIZE: found.st_size if stat.S_ISREG(found.st_mode) else 0,
        Order.MODIFIED: found.st_mtime_ns,
    }[sort]


def list_plainly(folder: Path, asked: Listing) -> tuple[list[str], int, str]:
    """Say what a page is: all that matches, in order, cut to what was asked for."""
    keys = sorted(
        (value_of(path, asked.sort), name.casefold(), name)
        for path, name in ((path, path.name) for path in folder.iterdir())
        if name not in asked.hidden and asked.search.casefold() in name.casefold()
    )
    total = len(keys)
    keys = keys[::-1] if asked.descending else keys
    if asked.after:
        value, _, shown = asked.after.partition("/")
        name = os.fsdecode(show_back(shown))
        last = (int(value), name.casefold(), name)
        keys = [k for k in keys if (k < last if asked.descending else k > last)]
    page = keys[: asked.limit]
    more = len(keys) > asked.limit
    after = f"{page[-1][0]}/{show_name(page[-1][2])}" if more else ""
    return [show_name(key[2]) for key in page], total, after


def show_back(shown: str) -> bytes:
    pieces = (
        bytes([ord(c) - 0x10FF00]) if "\U0010ff80" <= c <= "\U0010ffff" else c.encode()
        for c in shown
    )
    return b"".join(pieces)


NAMES = st.one_of(
    st.text("aAbBß\u0131\u0130z\U0001f600", min_size=1, max_size=3),
    st.binary(min_size=1, max_size=2)
    .filter(lambda name: not set(name) & set(b"\0/."))
    .map(os.fsdecode),
)
TIMES = st.sampled_from([-(10**9) - 1, -1, 0, 1, 1, 10**9 + 7])


@settings(max_examples=100, deadline=None)
@given(
    entries=st.dictionaries(
        NAMES, st.tuples(st.sampled_from("fldp"), st.integers(0, 3), TIMES), max_size=14
    ),
    asked=st.builds(
        Listing,
        limit=st.integers(1, 6),
        sort=st.sampled_from(Order),
        descending=st.booleans(),
        search=st.sampled_from(["", "", "A", "ss", "z"]),
        hidden=st.frozensets(NAMES, max_size=2),
    ),
    at_once=st.integers(1, 5),
    strange=st.one_of(
        st.none(), st.tuples(st.integers(-2, 2), NAMES), st.just((10**20 - 1, "z"))
    ),
)
def test_every_page_is_what_its_definition_says(
    tmp_path_factory, entries, asked, at_once, strange
):
    folder = tmp_path_factory.mktemp("entries")
    for name, (kind, size, at) in entries.items():
        make(folder / name, kind, size)
        os.utime(folder / name, ns=(at, at), follow_symlinks=False)
    if strange is not None:  # what nobody was told, but is well written
        value, name = strange
        asked = replace(asked, after=f"{value}/{show_name(name)}")
    with pytest.MonkeyPatch.context() as patch, Tree.at(folder) as tree:
        patch.setattr(listing, "_AT_ONCE", at_once)
        while True:
            page = tree.list((), asked)
            expected = list_plainly(folder, asked)
            assert (names(page.entries), page.total, page.after) == expected
            if not page.after:
                break
            asked = replace(asked, after=page.after)


def make(path: Path, kind: str, size: int) -> None:
    if kind == "f":
        path.write_bytes(b"x" * size)
    elif kind == "l":
        path.symlink_to("nowhere")
    elif kind == "d":
        path.mkdir()
    else:
        os.mkfifo(path)


def test_a_list_that_nobody_waits_for_is_given_up(crowded):
    with pytest.raises(StoppedError):
        crowded.list((), cancelled=lambda: True)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A folder with very many names of one file: quick to make and to remove."""
    folder = tmp_path_factory.mktemp("crowded")
    here = os.open(folder, os.O_RDONLY)
    for batch in range(0, MANY, MANY // 2):
        first = f"{batch:06}"
        os.mknod(first, dir_fd=here)
        for number in range(batch + 1, batch + MANY // 2):
            os.link(first, f"{number:06}", src_dir_fd=here, dst_dir_fd=here)
    os.close(here)
    with Tree.at(folder) as tree:
        yield tree
        assert tree.remove(()) == MANY


def test_a_page_of_very_many_costs_little_memory(crowded):
    tracemalloc.start()
    try:
        page = crowded.list((), Listing(limit=200))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert page.total == MANY
    assert names(page.entries) == [f"{number:06}" for number in range(200)]
    assert peak < 2_000_000


def test_only_what_is_shown_of_very_many_is_looked_at(crowded, monkeypatch):
    looked = []
    real = os.stat

    def count(*args, **options):
        looked.append(args)
        return real(*args, **options)

    monkeypatch.setattr(os, "stat", count)
    after = crowded.list((), Listing(limit=5)).after
    middle = crowded.list((), Listing(limit=100, after=f"0/{MANY // 2:06}"))
    assert names(middle.entries)[0] == f"{MANY // 2 + 1:06}"
    assert after == "0/000004"
    assert len(looked) == 105


def test_very_many_are_measured_as_the_few_files_they_are(crowded):
    assert crowded.usage().entries == MANY
    assert crowded.usage().bytes == 0
