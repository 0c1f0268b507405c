"""What is put into a session's home where its folders are going to be."""

from __future__ import annotations

import os
import stat

import pytest

from backendai_agent.runtimes.base import RuntimeFailure, ShownFolder
from backendai_agent.runtimes.places import make_links, make_places


def shown(target, source="/srv/folder"):
    return ShownFolder(source, target)


def test_places_are_made_below_the_home_only(tmp_path):
    targets = ("/home/work/a", "/home/work/b/c", "/data/x", "/home/work")
    for _ in range(2):
        make_places(tmp_path, map(shown, targets), None)
    made = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert made == ["a", "b", "b/c"]


def test_places_are_open_whatever_the_umask(tmp_path):
    before = os.umask(0o077)
    try:
        make_places(tmp_path, [shown("/home/work/b/c")], None)
    finally:
        os.umask(before)
    for path in (tmp_path / "b", tmp_path / "b/c"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_what_is_there_already_is_left_as_it_is(tmp_path):
    (tmp_path / "b").mkdir(mode=0o700)
    make_places(tmp_path, [shown("/home/work/b/c")], None)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("target", ["/home/work/b", "/home/work/b/c"])
def test_no_place_is_made_through_a_link_or_a_file(tmp_path, target):
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    for make in (
        lambda: (home / "b").symlink_to(outside),
        lambda: (home / "b").symlink_to("../outside"),
        (home / "b").touch,
    ):
        make()
        with pytest.raises(RuntimeFailure, match="'b' is no folder"):
            make_places(home, [shown(target)], None)
        (home / "b").unlink()
    assert list(outside.iterdir()) == []


def test_links_lead_to_folders_and_can_be_made_again(tmp_path):
    folders = [shown("/home/work/a", "/srv/1"), shown("/home/work/b/c", "/srv/2")]
    for _ in range(2):
        make_links(tmp_path, folders, None)
    assert str((tmp_path / "a").readlink()) == "/srv/1"
    assert str((tmp_path / "b/c").readlink()) == "/srv/2"


def test_a_link_takes_nobodys_place(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/srv/other")
    for name in ("file", "folder", "link"):
        with pytest.raises(RuntimeFailure, match="taken by something else"):
            make_links(tmp_path, [shown(f"/home/work/{name}")], None)
