"""What is written into a home that is somebody else's, and what is left alone."""

from __future__ import annotations

import json
import os
import stat

import pytest

from backendai_lab.dotfiles import File, write_dotfiles


@pytest.fixture
def home(tmp_path):
    path = tmp_path / "home"
    path.mkdir()
    return path


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def file(path=".bashrc", content="ours", permission="644"):
    return File(path, permission, content)


def leftovers(home):
    return [p.name for p in home.rglob("*") if p.name.startswith(".backendai-")]


def test_files_are_written_with_their_folders_and_permissions(home):
    before = os.umask(0o077)
    try:
        lines = write_dotfiles(
            home, [file(), file(".config/git/config", "grüß\r\n", "640")]
        )
    finally:
        os.umask(before)
    assert lines == []
    assert (home / ".bashrc").read_text() == "ours"
    assert mode_of(home / ".bashrc") == 0o644
    assert (home / ".config/git/config").read_bytes() == "grüß\r\n".encode()
    assert mode_of(home / ".config/git/config") == 0o640
    assert mode_of(home / ".config") == mode_of(home / ".config/git") == 0o700
    assert leftovers(home) == []


def test_what_we_wrote_and_nobody_changed_follows_the_settings(home):
    write_dotfiles(home, [file(content="first")])
    assert write_dotfiles(home, [file(content="second", permission="600")]) == []
    assert (home / ".bashrc").read_text() == "second"
    assert mode_of(home / ".bashrc") == 0o600


def test_what_the_user_made_or_changed_stays(home):
    (home / ".vimrc").write_text("mine")
    write_dotfiles(home, [file(content="first")])
    (home / ".bashrc").write_text("first, and mine")

    lines = write_dotfiles(home, [file(content="second"), file(".vimrc"), file(".new")])

    assert (home / ".bashrc").read_text() == "first, and mine"
    assert (home / ".vimrc").read_text() == "mine"
    assert (home / ".new").read_text() == "ours"
    assert ["which you made or changed" in line for line in lines] == [True, True]


def test_a_file_of_the_users_that_is_the_same_does_not_become_ours(home):
    (home / ".bashrc").write_text("ours")
    assert write_dotfiles(home, [file()]) == []
    [line] = write_dotfiles(home, [file(content="later")])
    assert "made or changed" in line
    assert (home / ".bashrc").read_text() == "ours"


def test_what_the_user_removed_comes_again(home):
    write_dotfiles(home, [file()])
    (home / ".bashrc").unlink()
    assert write_dotfiles(home, [file()]) == []
    assert (home / ".bashrc").read_text() == "ours"


def test_a_file_that_is_not_among_the_settings_any_more_is_remembered(home):
    write_dotfiles(home, [file(), file(".vimrc")])
    write_dotfiles(home, [file()])
    assert write_dotfiles(home, [file(".vimrc", "later")]) == []
    assert (home / ".vimrc").read_text() == "later"


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/x", "a//x", "", ".", "..", "a/.", "a\0b"]
)
def test_no_path_leads_out_of_the_home(home, path):
    [line] = write_dotfiles(home, [file(path)])
    assert "leads out of the home" in line
    assert sorted(p.name for p in home.parent.iterdir()) == ["home"]


def test_no_link_is_followed(home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    (home / ".config").symlink_to(outside)
    (home / ".link").symlink_to(outside / "file")
    (home / ".dangling").symlink_to(outside / "made")
    (home / ".deep").mkdir()
    (home / ".deep/in").symlink_to(outside, target_is_directory=True)

    paths = [".config/file", ".config/new", ".link", ".dangling", ".deep/in/new"]
    lines = write_dotfiles(home, [file(path) for path in paths])

    assert len(lines) == len(paths)
    assert [p.name for p in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "theirs"
    assert (home / ".link").is_symlink()


def test_our_own_notes_are_not_written_through_a_link_either(home, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / ".backendai").symlink_to(outside)
    assert write_dotfiles(home, [file()]) == []
    assert (home / ".bashrc").read_text() == "ours"
    assert list(outside.iterdir()) == []


def test_odd_things_in_the_way_keep_nobody_waiting(home):
    (home / ".folder").mkdir()
    os.mkfifo(home / ".pipe")
    (home / ".file").write_text("mine")
    (home / ".large").write_bytes(b"x" * ((1 << 20) + 1))

    lines = write_dotfiles(
        home,
        [file(".folder"), file(".pipe"), file(".file/x"), file(".large"), file(".ok")],
    )

    assert ["something else" in line for line in lines] == [True, True, False, True]
    assert (home / ".ok").read_text() == "ours"
    assert (home / ".file").read_text() == "mine"
    assert (home / ".large").stat().st_size > 1 << 20


@pytest.mark.parametrize("notes", ["", "[]", "{", '{".bashrc": null}', "\xff"])
def test_damaged_notes_count_for_nothing(home, notes):
    write_dotfiles(home, [file()])
    (home / ".backendai/dotfiles.json").write_text(notes, "latin-1")
    [line] = write_dotfiles(home, [file(content="later")])
    assert "made or changed" in line
    assert (home / ".bashrc").read_text() == "ours"


@pytest.mark.parametrize("permission", ["4755", "x", "9", ""])
def test_no_other_bits_are_set(home, permission):
    [line] = write_dotfiles(home, [file(permission=permission)])
    assert "is not a permission" in line
    assert not (home / ".bashrc").exists()


def test_a_home_that_is_not_there_is_no_reason_not_to_start(tmp_path):
    [line] = write_dotfiles(tmp_path / "none", [file()])
    assert "No such file" in line


def test_contents_are_in_no_message_and_not_in_the_notes(home):
    (home / ".netrc").write_text("mine")
    lines = write_dotfiles(
        home, [file(".netrc", "hunter2"), file(".pgpass", "hunter2")]
    )
    notes = (home / ".backendai/dotfiles.json").read_text()
    assert "hunter2" not in "".join(lines) + notes
    assert list(json.loads(notes)) == [".pgpass"]
    assert mode_of(home / ".backendai/dotfiles.json") == 0o600
