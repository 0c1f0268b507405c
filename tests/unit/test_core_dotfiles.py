"""Which dotfiles and scripts may be kept, and whose win."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.dotfiles import (
    BOOTSTRAP_BYTES,
    CLOSED,
    DOTFILES_BYTES,
    REQUEST_BOOTSTRAP_BYTES,
    RESERVED,
    Dotfile,
    check_bootstrap_script,
    check_dotfile,
    check_dotfile_path,
    check_dotfiles,
    merge_dotfiles,
    packed_size,
)
from backendai_hub.core.errors import InvalidRequestError

PARTS = st.sampled_from(["a", "b", ".c"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
SCOPES = st.lists(st.builds(Dotfile, path=PATHS, content=st.uuids().map(str)))


def is_allowed(path):
    try:
        check_dotfile_path(path)
    except InvalidRequestError:
        return False
    return True


@pytest.mark.parametrize(
    "path",
    [".bashrc", "notes.txt", ".config/git/config", ".ssh/config", ".local/bin/go", "é"],
)
def test_ordinary_places_are_allowed(path):
    check_dotfile_path(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "0 characters"),
        ("a" * 257, "257 characters"),
        ("/etc/passwd", "relative to the home"),
        ("~/.bashrc", "relative to the home"),
        ("../x", "no '..'"),
        ("a/../../x", "no '..'"),
        ("a//b", "no empty part"),
        ("./a", "no '.'"),
        ("a/", "no empty part"),
        ("a\\b", "backslash"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\u202eb", "invisible"),
        ("a\ud800", "control"),
        ("e\u0301", "normal form C"),
        ("/".join("abcdefghi"), "9 parts deep"),
        ("ü" * 128, "longer than 255 bytes"),
        (".ssh/authorized_keys/x", "reserved"),
        (".backendai", "reserved"),
        (".backendai/dotfiles.json", "reserved"),
        *((path, "reserved") for path in sorted(RESERVED)),
    ],
)
def test_places_that_are_not_the_users_are_refused_and_told_why(path, why):
    with pytest.raises(InvalidRequestError, match=why):
        check_dotfile_path(path)


def test_the_longest_and_the_deepest_place_are_allowed():
    check_dotfile_path("a" * 255)
    check_dotfile_path("a" * 127 + "/" + "b" * 128)
    check_dotfile_path("/".join("abcdefgh"))


@given(st.text(max_size=30) | st.text(alphabet="ab./\\~ü\u0308\0", max_size=12))
def test_what_is_allowed_stays_in_the_home_and_is_spelt_in_one_way(path):
    if is_allowed(path):
        place = PurePosixPath("/home/work") / path
        assert str(place) == f"/home/work/{path}"
        assert ".." not in place.parts
        assert unicodedata.normalize("NFC", path) == path
        assert not any(ord(c) < 32 or "\x7f" <= c <= "\x9f" for c in path)
        assert not any(path == c or path.startswith(f"{c}/") for c in CLOSED)


@pytest.mark.parametrize(
    "permission", ["", "7", "0644", "4755", "888", "rwx", "64 ", "644\n", "٦٤٤"]
)
def test_a_permission_is_three_octal_digits(permission):
    check_dotfile(Dotfile(path=".a", permission="600"))
    with pytest.raises(InvalidRequestError, match="three octal digits"):
        check_dotfile(Dotfile(path=".a", permission=permission))


@pytest.mark.parametrize("content", ["a\0b", "\ud800"])
def test_content_is_text(content):
    check_dotfile(Dotfile(path=".a", content="ü\r\n\t\x1b"))
    with pytest.raises(InvalidRequestError, match="its text holds"):
        check_dotfile(Dotfile(path=".a", content=content))


def test_how_much_is_too_much_is_said():
    room = DOTFILES_BYTES - packed_size([Dotfile(path=".a", content="x" * 40_000)])
    full = [Dotfile(path=".a", content="x" * (40_000 + room))]
    assert packed_size(full) == DOTFILES_BYTES
    check_dotfiles(full)
    with pytest.raises(InvalidRequestError, match="3 more than the 64 KiB"):
        check_dotfiles([Dotfile(path=".a", content="x" * (40_003 + room))])


def test_one_scope_has_each_path_once_and_no_file_as_a_folder():
    with pytest.raises(InvalidRequestError, match="there already"):
        check_dotfiles([Dotfile(path=".a"), Dotfile(path=".a")])
    for paths in ([".a", ".a/b/c"], [".a/b/c", ".a"], [".a/b/c", ".a/b"]):
        with pytest.raises(InvalidRequestError, match="both a file and a folder"):
            check_dotfiles([Dotfile(path=path) for path in paths])
    check_dotfiles([Dotfile(path=path) for path in (".a/b", ".a/c", ".ab", ".a.b")])


def test_scripts_have_an_end():
    check_bootstrap_script("x" * BOOTSTRAP_BYTES)
    check_bootstrap_script("x" * REQUEST_BOOTSTRAP_BYTES, most=REQUEST_BOOTSTRAP_BYTES)
    with pytest.raises(InvalidRequestError, match="1 more than the 64 KiB"):
        check_bootstrap_script("x" * BOOTSTRAP_BYTES + "y")
    with pytest.raises(InvalidRequestError, match="2 more than the 16 KiB"):
        check_bootstrap_script(
            "ü" * (REQUEST_BOOTSTRAP_BYTES // 2) + "ü", most=REQUEST_BOOTSTRAP_BYTES
        )
    with pytest.raises(InvalidRequestError, match="NUL"):
        check_bootstrap_script("echo \0")


# -- whose win ---------------------------------------------------------------------


def test_the_keypairs_file_wins_over_the_projects_over_the_domains():
    def of(scope, *paths):
        return [Dotfile(path=path, content=scope) for path in paths]

    merged = merge_dotfiles(
        keypair=of("keypair", ".a"),
        project=of("project", ".b", ".a"),
        domain=of("domain", ".c", ".a", ".b"),
    )
    assert [(f.path, f.content) for f in merged.files] == [
        (".a", "keypair"),
        (".b", "project"),
        (".c", "domain"),
    ]
    assert merged.clashes == []


def test_a_file_in_the_way_of_a_more_specific_one_is_left_out_and_told_of():
    merged = merge_dotfiles(
        keypair=[Dotfile(path=".vim")],
        project=[Dotfile(path=".vim/colors/x"), Dotfile(path=".git/x")],
        domain=[Dotfile(path=".git"), Dotfile(path=".fine")],
    )
    assert [file.path for file in merged.files] == [".vim", ".git/x", ".fine"]
    assert [(c.scope, c.path, c.winner) for c in merged.clashes] == [
        ("project", ".vim/colors/x", ".vim"),
        ("domain", ".git", ".git/x"),
    ]
    assert "the domain's dotfile '.git' is left out" in str(merged.clashes[1])


@given(keypair=SCOPES, project=SCOPES, domain=SCOPES)
def test_merging_loses_nothing_without_a_reason(keypair, project, domain):
    merged = merge_dotfiles(keypair=keypair, project=project, domain=domain)
    everything = [*keypair, *project, *domain]
    kept = [file.path for file in merged.files]
    left_out = {clash.path for clash in merged.clashes}

    assert len(kept) == len(set(kept))
    assert {file.path for file in everything} == {*kept, *left_out}
    assert left_out.isdisjoint(kept)
    for path in kept:
        assert not any(other.startswith(f"{path}/") for other in kept)
    for file in merged.files:  # the first of its path, in the order of precedence
        assert file == next(f for f in everything if f.path == file.path)
    for clash in merged.clashes:
        shorter, longer = sorted([clash.path, clash.winner], key=len)
        assert longer.startswith(f"{shorter}/")
        assert clash.winner in kept
    assert [f for f in keypair if f in merged.files][:1] == keypair[:1]


@given(scope=SCOPES)
def test_what_one_scope_may_have_reaches_the_session_whole(scope):
    try:
        check_dotfiles(scope)
    except InvalidRequestError:
        return
    assert merge_dotfiles(domain=scope).files == scope
