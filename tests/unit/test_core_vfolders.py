"""What virtual folders may be called, where they lie, and what hosts permit."""

from __future__ import annotations

import pytest

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.vfolders import (
    DELETABLE,
    MOUNTABLE,
    NAMED,
    PURGABLE,
    READABLE,
    RECOVERABLE,
    UPDATABLE,
    FolderPermission,
    FolderStatus,
    Ownership,
    StoragePermissionError,
    check_name_of_project,
    check_permitted,
    folder_parts,
    is_automount,
    is_reserved,
    join_permissions,
    read_folder_name,
    scope_name,
    split_scope,
)

OWNER = "0190a5b4-0000-7000-8000-000000000001"
FOLDER = "0190a5b4-1234-7000-8000-00000000abcd"


@pytest.mark.parametrize(
    "name",
    [
        *("data", "Data 2026", "a", "数据", "größe", ".cache", ".local", "x.y-z_1"),
        *("การทดลองที่ 1", "วิธีใช้", "हिन्दी"),
        *("runs (old)", "a+b", "me@home", "a,b", "é" * 64, ".bashrc2x.d"),
    ],
)
def test_names_are_labels_of_any_script(name: str):
    assert read_folder_name("name", name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "..", ".", "...", "a/b", "/bin", "/home/work", "a\0b", "a\nb"),
        *("x" * 65, "日" * 86, "-a", "a-", "a\u202eb", "a:b", "a*", "~", "$HOME"),
        *(".ssh", ".SSH", ".jupyter", ".terminfo", ".tmux.conf", ".bashrc", ".zshrc"),
        *("\u0e35ab", "a \u0301b", ".\u0301a"),
        *(".bash_profile", ".１rc", "new", "bulk", OWNER, "a\u200bb", "a\ud800"),
    ],
)
def test_what_sessions_need_or_people_could_mistake_is_no_name(name: str):
    with pytest.raises(InvalidRequestError, match="name: "):
        read_folder_name("name", name)


def test_a_dot_at_the_beginning_mounts_by_itself_and_projects_have_one_such_name():
    assert is_automount(".cache")
    assert not is_automount("cache")
    assert is_reserved(".vimrc")
    assert not is_reserved(".config")
    check_name_of_project("data")
    check_name_of_project(".LOCAL")
    with pytest.raises(InvalidRequestError, match=r"\.local"):
        check_name_of_project(".cache")


def test_where_a_folder_lies_follows_from_ids_alone():
    scope = scope_name("user", OWNER)
    assert scope == f"user-{OWNER}"
    assert split_scope(scope) == (Ownership.USER, OWNER)
    parts = folder_parts(scope, FOLDER)
    assert parts == (scope, "01", "90", "a5b41234700080000000" + "0000abcd")
    assert "".join(parts[1:]) == FOLDER.replace("-", "")
    for wrong in ("group-" + OWNER, "user-", "user-..", f"user-{OWNER}/..", OWNER):
        with pytest.raises(InvalidRequestError):
            split_scope(wrong)
    with pytest.raises(ValueError, match="badly formed"):
        folder_parts(scope, "../../etc")


def test_hosts_permit_what_anything_permits():
    joined = join_permissions(
        {"local": ["create-vfolder"], "nfs": []},
        {"local": ["upload-file"]},
        {},
    )
    check_permitted(joined, "local", HostPermission.CREATE, HostPermission.UPLOAD)
    with pytest.raises(StoragePermissionError, match=r"nfs: you lack.*mount-in"):
        check_permitted(joined, "nfs", HostPermission.MOUNT)
    with pytest.raises(StoragePermissionError) as refused:
        check_permitted(joined, "far", HostPermission.DELETE, HostPermission.MODIFY)
    assert refused.value.fields["permissions"] == ["delete-vfolder", "modify-vfolder"]


def test_permissions_are_more_and_less():
    ranks = [p.rank for p in FolderPermission]
    assert ranks == sorted(ranks)
    assert [p.writes for p in FolderPermission] == [False, True, True]


def test_what_may_be_done_in_each_status():
    """The words are Backend.AI's; a status that can be left can be left in one way."""
    assert {FolderStatus.ERROR, FolderStatus.DELETE_PENDING} == READABLE - MOUNTABLE
    assert DELETABLE < UPDATABLE < MOUNTABLE < READABLE
    assert RECOVERABLE < PURGABLE
    assert not PURGABLE & MOUNTABLE
    assert frozenset() == NAMED & RECOVERABLE, "what is in the trash has no name"
