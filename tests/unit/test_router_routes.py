"""Routes: which one is found, how they are shown, and what outlives the router."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.api.agents import Route, RouteTable
from backendai_hub.router.public import strip_prefix
from backendai_hub.router.routes import RouteStore, format_time, parse_time
from backendai_hub.router.state import StateFile
from backendai_hub.router.table import SessionTable
from backendai_hub.router.targets import BadTargetError, parse_target
from backendai_hub.router.trie import PrefixTrie, decode_path

LOG = logging.getLogger(__name__)
paths = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)


def is_prefix(prefix: str, path: str) -> bool:
    return prefix in {"/", path} or path.startswith(f"{prefix}/")


@given(st.dictionaries(paths, st.integers()), st.sets(paths), paths)
def test_the_longest_prefix_of_whole_segments_is_found(added, removed, path):
    trie: PrefixTrie[tuple[str, int]] = PrefixTrie()
    for prefix, value in added.items():
        trie.add(prefix, (prefix, value))
    for prefix in removed:
        trie.remove(prefix)
        added.pop(prefix, None)

    matching = [prefix for prefix in added if is_prefix(prefix, path)]
    found = trie.find(path)

    if not matching:
        assert found is None
    else:
        longest = max(matching, key=len)
        assert found == (longest, added[longest])


def test_what_is_removed_leaves_no_branches_behind():
    trie: PrefixTrie[int] = PrefixTrie()
    trie.add("/a/b/c", 1)
    trie.add("/a", 2)
    trie.remove("/a/b/c")
    trie.remove("/not/there")

    assert trie.find("/a/b/c/d") == 2
    assert not trie._root.branches["a"].branches


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/user/ann", "/user/ann"),
        ("/user/ann/", "/user/ann"),
        ("//user/ann/x", "/user/ann"),
        ("/user/anna", "/"),
        ("/user", "/"),
        ("/user/a@b/x", "/"),
        ("/user/a%40b%20c/x", "/user/a@b c"),
        ("/user%2Fann/x", "/user/ann"),
    ],
)
def test_paths_are_looked_up_decoded(path, found):
    store = RouteStore(clock=lambda: 0.0, host_routing=False)
    for prefix in ("/", "/user/ann/", "/user/a@b c"):
        store.add(prefix, {"target": "http://a:1"})

    route = store.find(decode_path(path))

    assert route is not None
    assert route.prefix == found


def test_use_is_remembered_and_disuse_is_found():
    now = 1000.0
    store = RouteStore(clock=lambda: now, host_routing=False)
    used = store.add("/used", {"target": "http://a:1", "user": "ann"})
    store.add("/idle", {"target": "http://a:1"})
    now = 2000.5
    store.touch(used)

    assert list(store.document(inactive_since=1500.0)) == ["/idle"]
    assert store.document()["/used"] == {
        "target": "http://a:1",
        "user": "ann",
        "last_activity": "1970-01-01T00:33:20.500Z",
    }


@given(st.integers(0, 4_000_000_000_000))
def test_times_survive_being_written(milliseconds):
    assert parse_time(format_time(milliseconds / 1000)) == pytest.approx(
        milliseconds / 1000, abs=0.0011
    )


@pytest.mark.parametrize(
    "text", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05"]
)
def test_times_are_read_as_python_and_javascript_write_them(text):
    assert format_time(parse_time(text)) == "2026-01-02T03:04:05.000Z"


@pytest.mark.parametrize(
    ("text", "authority", "url"),
    [
        ("http://a", "a", "http://a/x%2Fy?"),
        ("http://a:8080/", "a:8080", "http://a:8080/x%2Fy?"),
        ("https://a:443/base/", "a", "https://a/base/x%2Fy?"),
        ("http://[::1]:8080", "[::1]:8080", "http://[::1]:8080/x%2Fy?"),
        ("http+unix://%2Frun%2Fx/base", "localhost", "http://localhost/base/x%2Fy?"),
    ],
)
def test_targets_are_asked_with_the_path_untouched(text, authority, url):
    target = parse_target(text)

    assert target.authority == authority
    assert str(target.url("/x%2Fy?")) == url


@pytest.mark.parametrize(
    "text", ["", "a:1", "ftp://a", "http://", "http://a:port", "http+unix:///x"]
)
def test_what_is_no_target_is_refused(text):
    with pytest.raises(BadTargetError):
        parse_target(text)


@pytest.mark.parametrize(
    ("raw", "segments", "rest"),
    [
        ("/a/b/c", 2, "/c"),
        ("/a/b", 2, "/"),
        ("/a/b/", 2, "/"),
        ("/a%2Fx/b/c%2Fd?e=/f", 2, "/c%2Fd?e=/f"),
        ("/?q", 0, "/?q"),
        ("/a/b", 0, "/a/b"),
    ],
)
def test_a_prefix_is_cut_off_by_segments(raw, segments, rest):
    assert strip_prefix(raw, segments) == rest


async def test_routes_come_back_from_the_state_file(tmp_path):
    path = tmp_path / "run" / "routes.json"
    store = RouteStore(clock=lambda: 5.0, host_routing=True)
    store.add("/ann.example", {"target": "http://a:1", "user": "ann"})
    state = StateFile(path, collect=lambda: {"routes": store.document()}, log=LOG)
    await state.save()

    again = RouteStore(clock=lambda: 9.0, host_routing=True)
    saved = StateFile(path, collect=dict, log=LOG).load()

    assert again.restore(saved["routes"]) == 1
    assert again.document() == store.document()
    found = again.find("/x", host="ann.example")
    assert found is not None
    assert found.target == parse_target("http://a:1")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["routes.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 99}', '{"routes": {}}', "\x00"]
)
def test_a_state_file_that_makes_no_sense_is_as_good_as_none(tmp_path, text):
    path = tmp_path / "routes.json"
    path.write_text(text)

    assert StateFile(path, collect=dict, log=LOG).load() == {}


async def test_a_disk_that_is_full_does_not_stop_routing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    state = StateFile(tmp_path / "file" / "x", collect=dict, log=LOG)

    await state.save()

    assert "Could not write" in caplog.text


def test_routes_that_cannot_be_restored_are_left_out():
    store = RouteStore(clock=lambda: 0.0, host_routing=False)
    good = {"target": "http://a:1", "last_activity": "2026-01-02T03:04:05Z"}

    restored = store.restore(
        {"/a": good, "/b": {"target": 1}, "/c": {**good, "target": "x"}, "/d": "x"}
    )

    assert restored == 1
    assert store.get("/a") is not None


def make_table(version: int, *prefixes: str) -> RouteTable:
    return RouteTable(
        version=version,
        routes=[
            Route(prefix=prefix, agent_id="a", agent_url="https://n:1", container="c")
            for prefix in prefixes
        ],
    )


async def test_whoever_asks_a_moment_early_is_answered_when_the_route_comes():
    table = SessionTable()
    table.adopt(make_table(1))

    async def publish():
        table.adopt(make_table(2, "/other/"))
        table.adopt(make_table(3, "/user/a%40b/"))

    async with asyncio.TaskGroup() as group:
        early = group.create_task(table.find_soon("/user/a@b/api", patience=10))
        group.create_task(publish())

    assert early.result() is not None
    assert await table.find_soon("/nobody", patience=0) is None
    assert table.agents == {"a"}


def test_a_saved_table_is_adopted_and_nonsense_is_not():
    table, again = SessionTable(), SessionTable()
    table.adopt(make_table(7, "/user/ann/"))

    assert again.restore(json.loads(json.dumps(table.document()))) == 1
    assert again.version == 7
    assert again.restore({"version": "x"}) == 0
    assert again.restore(None) == 0
    assert again.version == 7
