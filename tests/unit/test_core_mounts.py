"""Which folders a session gets: the twelve rules of mounts, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from backendai_hub.core.errors import HubError, InvalidRequestError, NotFoundError
from backendai_hub.core.fields import HostPermission
from backendai_hub.core.mount_paths import overlap, read_subpath, read_target
from backendai_hub.core.mounts import (
    MOST_MOUNTS,
    Mount,
    MountableFolder,
    MountContext,
    MountRequest,
    check_dotfiles,
    read_mount,
    resolve_mounts,
)
from backendai_hub.core.vfolders import (
    FolderPermission,
    FolderStatus,
    StoragePermissionError,
    scope_name,
)

ME = "00000000-0000-7000-8000-00000000000a"
OTHER = "00000000-0000-7000-8000-00000000000b"
PROJECT = "00000000-0000-7000-8000-00000000000c"
ELSEWHERE = "00000000-0000-7000-8000-00000000000d"
STORE = "00000000-0000-7000-8000-00000000000e"


def folder(number: int, name: str, **changes: Any) -> MountableFolder:
    owner = changes.get("owner_id", ME)
    kind = changes.get("ownership_type", "user")
    values: dict[str, Any] = {
        "id": f"00000000-0000-7000-8000-{number:012d}",
        "name": name,
        "host": "local",
        "scope": scope_name(kind, owner),
        "status": "ready",
        "usage_mode": "general",
        "permission": "rw",
        "ownership_type": "user",
        "owner_id": ME,
    }
    return MountableFolder(**{**values, **changes})


def of_project(number: int, name: str, **changes: Any) -> MountableFolder:
    more = {"ownership_type": "project", "owner_id": PROJECT, **changes}
    return folder(number, name, **more)


def of_store(number: int, name: str, **changes: Any) -> MountableFolder:
    more = {"owner_id": STORE, "usage_mode": "model", "model_store": True, **changes}
    return of_project(number, name, **more)


def resolve(
    folders: list[MountableFolder],
    *requests: str | MountRequest,
    permitted: tuple[str, ...] = ("local",),
    automatic: bool = True,
) -> list[Mount]:
    context = MountContext(
        user_id=ME,
        project_id=PROJECT,
        permissions={h: frozenset({str(HostPermission.MOUNT)}) for h in permitted},
        automatic=automatic,
    )
    asked = [MountRequest(folder=r) if isinstance(r, str) else r for r in requests]
    return resolve_mounts(asked, folders, context)


def ask(name: str, **more: Any) -> MountRequest:
    return MountRequest(folder=name, **more)


DATA = folder(1, "data")


@pytest.mark.parametrize("reference", ["data", "DATA", "ｄａｔａ", DATA.id])
def test_m1_a_folder_is_asked_for_by_name_or_id(reference: str):
    assert [m.folder_id for m in resolve([DATA], reference)] == [DATA.id]


@pytest.mark.parametrize(
    "request_",
    [ask("data/a/b"), ask("data", subpath="a/b"), ask(DATA.id, subpath="/a//b/./")],
)
def test_m1_a_part_of_a_folder_is_asked_for_by_its_path(request_: MountRequest):
    (mount,) = resolve([DATA], request_)
    assert (mount.subpath, mount.target) == ("a/b", "/home/work/data")


@pytest.mark.parametrize(
    "path", ["..", "a/../..", "a/..", "../b", "x/" * 300, "a\0b", "é" * 128]
)
def test_m1_a_path_inside_stays_inside(path: str):
    with pytest.raises(InvalidRequestError):
        resolve([DATA], ask("data", subpath=path))
    with pytest.raises(InvalidRequestError):
        read_subpath(path)


def test_m2_a_folder_appears_at_its_name_or_where_it_is_asked_for():
    def target(text: str) -> str:
        return resolve([DATA], ask("data", target=text))[0].target

    assert target("") == "/home/work/data"
    assert target("sets/here") == "/home/work/sets/here"
    assert target("/datasets/one/") == "/datasets/one"
    assert target("//datasets/./one") == "/datasets/one"


@pytest.mark.parametrize(
    "text",
    [
        *("/", "/home", "/home/work", "/home/work/", ".", "./", "/etc/cron.d", "/usr"),
        *("/proc/1", "/opt/kernel", "/tmp", "/home/work/.ssh", ".ssh/keys", ".bashrc"),
        *(
            "/home/work/../../etc",
            "..",
            "a/../b",
            "/sets/../data",
            "a\0b",
            "/mnt",
            "/var/lib/x",
            ".JUPYTER",
        ),
    ],
)
def test_m2_nothing_appears_where_sessions_need_the_place_themselves(text: str):
    with pytest.raises(InvalidRequestError, match="mounts: "):
        read_target(text)


@pytest.mark.parametrize(
    "text",
    [
        "a\tb",
        "a\x1b[2J",
        "a\u202eb",
        "a\nb",
        "é" * 128,
        "/sets/" + "x" * 256,
        "x/" * 2000,
    ],
)
def test_m2_what_no_node_could_mount_is_refused_at_once(text: str):
    with pytest.raises(InvalidRequestError, match="mounts: target: "):
        read_target(text)


def test_m3_two_mounts_never_lie_inside_one_another():
    two = [DATA, folder(2, "more")]
    with pytest.raises(InvalidRequestError, match="'data' at '/home/work/data'"):
        resolve(two, "data", ask("more", target="data/in"))
    with pytest.raises(InvalidRequestError, match="another target"):
        resolve(two, "data", ask("more", target="/home/work/data"))
    assert len(resolve(two, "data", ask("more", target="data2"))) == 2


def test_m3_no_part_of_a_folder_is_mounted_twice():
    with pytest.raises(InvalidRequestError, match="twice"):
        resolve([DATA], "data", ask("data/a", target="a"))
    with pytest.raises(InvalidRequestError, match="twice"):
        resolve([DATA], ask("data/a/b", target="b"), ask("data/a", target="a"))
    both = resolve([DATA], ask("data/a", target="a"), ask("data/ab", target="b"))
    assert [m.subpath for m in both] == ["a", "ab"]


def test_m3_of_two_folders_in_one_place_one_is_mounted():
    sets = folder(1, "sets", unmanaged_path="/srv/sets", scope="")
    year = folder(2, "year", unmanaged_path="/srv/sets/2026", scope="", host="b")
    for part in ("sets", "sets/2026", "sets/2026/a"):
        with pytest.raises(InvalidRequestError, match="are the same place"):
            resolve([sets, year], part, "year", permitted=("local", "b"))
    both = resolve([sets, year], "sets/2025", "year", permitted=("local", "b"))
    assert [m.folder_name for m in both] == ["sets", "year"]
    mine = folder(3, ".sets", unmanaged_path="/srv/sets", scope="")
    (mount,) = resolve([sets, mine], "sets/2025")
    assert mount.folder_name == "sets", "nor does the other come by itself"


def test_nothing_comes_by_itself_for_who_wants_nothing():
    known = [folder(1, ".cache"), folder(2, ".config"), folder(3, "data")]
    assert [m.folder_name for m in resolve(known)] == [".cache", ".config"]
    assert resolve(known, automatic=False) == []
    named = resolve(known, ".cache", "data", automatic=False)
    assert [(m.folder_name, m.automatic) for m in named] == [
        (".cache", False),
        ("data", False),
    ]


def test_m4_dot_folders_come_without_being_asked_for():
    known = [folder(1, ".cache"), folder(2, "data"), of_project(3, ".local")]
    mounts = resolve(known)
    assert [(m.folder_name, m.automatic) for m in mounts] == [
        (".cache", True),
        (".local", True),
    ]


def test_m4_a_dot_folder_that_cannot_be_had_is_left_out():
    elsewhere = folder(1, ".cache", host="far")
    gone = folder(2, ".config", status="error")
    assert resolve([elsewhere, gone]) == []


def test_m4_nothing_of_others_comes_unasked_whatever_its_name():
    shared = folder(1, ".ipython", owner_id=OTHER, shared=True)
    planted = of_project(2, ".config")
    assert resolve([shared, planted]) == []
    (mount,) = resolve([shared], ask(".ipython"))
    assert not mount.automatic


def test_m4_what_is_asked_for_takes_the_place_of_what_comes_by_itself():
    cache, mine = folder(1, ".cache"), folder(2, "mine")
    (mount,) = resolve([cache], ask(".cache", permission=FolderPermission.READ_ONLY))
    assert (mount.permission, mount.automatic) == ("ro", False)
    (mount,) = resolve([cache, mine], ask("mine", target=".cache"))
    assert mount.folder_name == "mine"
    own, shared = folder(3, ".local"), of_project(4, ".local")
    (mount,) = resolve([shared, own])
    assert mount.folder_id == own.id, "one's own comes first"


def test_m5_linuxbrew_has_a_place_of_its_own():
    (mount,) = resolve([folder(1, ".linuxbrew")])
    assert mount.target == "/home/linuxbrew/.linuxbrew"


def test_m6_everybody_has_a_part_of_a_projects_local_folder():
    shared = of_project(1, ".local")
    (mount,) = resolve([shared])
    assert (mount.target, mount.subpath) == ("/home/work/.local", ME)
    (mount,) = resolve([shared], ask(".local/share"))
    assert mount.subpath == f"{ME}/share", "not even by asking for somebody else's"


def test_m7_the_host_has_to_permit_it():
    with pytest.raises(StoragePermissionError) as refused:
        resolve([folder(1, "data", host="far")], "data")
    assert "'data'" in refused.value.message
    assert "storage host far" in refused.value.message
    assert "mount-in-session" in refused.value.message
    assert refused.value.fields["host"] == "far"


@pytest.mark.parametrize(
    ("stored", "wanted", "got"),
    [
        *(("ro", None, "ro"), ("rw", None, "rw"), ("wd", None, "wd")),
        *(("wd", "ro", "ro"), ("rw", "ro", "ro"), ("ro", "ro", "ro")),
        *(("wd", "rw", "rw"), ("wd", "wd", "wd"), ("rw", "rw", "rw")),
        *(("ro", "rw", None), ("ro", "wd", None), ("rw", "wd", None)),
    ],
)
def test_m8_less_than_one_may_do_is_always_possible_and_more_never(
    stored: str, wanted: str | None, got: str | None
):
    known = [folder(1, "data", permission=stored)]
    asked = ask("data", permission=None if wanted is None else FolderPermission(wanted))
    if got is None:
        with pytest.raises(InvalidRequestError, match=f"mounted {stored}, not"):
            resolve(known, asked)
    else:
        assert resolve(known, asked)[0].permission == got


def test_m9_folders_of_other_projects_stay_out_of_a_session():
    other = of_project(1, "theirs", owner_id=ELSEWHERE, owner_name="physics")
    with pytest.raises(InvalidRequestError, match="project physics"):
        resolve([other], "theirs")
    assert resolve([of_project(1, ".local", owner_id=ELSEWHERE)]) == []


def test_m9_models_of_a_store_are_read_from_any_project():
    model = of_store(1, "llm", permission="rw")
    (mount,) = resolve([model], "llm")
    assert mount.permission == "ro"
    with pytest.raises(InvalidRequestError, match="mounted ro"):
        resolve([model], ask("llm", permission=FolderPermission.READ_WRITE))
    other = of_store(1, "llm", usage_mode="general")
    with pytest.raises(InvalidRequestError, match="belongs to the project"):
        resolve([other], "llm")
    inside = of_store(1, "llm", owner_id=PROJECT, permission="rw")
    assert resolve([inside], "llm")[0].permission == "rw"


@pytest.mark.parametrize("status", FolderStatus)
def test_m10_what_is_not_alive_is_not_found(status: FolderStatus):
    known = [folder(1, "data", status=str(status))]
    if status in {"ready", "performing", "cloning", "mounted"}:
        assert len(resolve(known, "data")) == 1
    else:
        with pytest.raises(NotFoundError):
            resolve(known, "data")


def test_m11_an_unmanaged_folder_is_mounted_from_where_it_is():
    known = [folder(1, "sets", unmanaged_path="/srv/sets", scope="")]
    (mount,) = resolve(known, "sets/2026")
    assert (mount.unmanaged_path, mount.scope, mount.subpath) == (
        "/srv/sets",
        "",
        "2026",
    )


def test_m12_what_is_not_there_is_never_left_out_in_silence():
    with pytest.raises(NotFoundError, match="did you mean 'data'"):
        resolve([DATA], "data", "dta")
    with pytest.raises(NotFoundError):
        resolve([DATA], OTHER)


def test_one_name_of_several_folders_means_the_nearest_one():
    store, given = of_store(1, "data"), folder(2, "data", owner_id=OTHER, shared=True)
    shared, own = of_project(3, "data"), folder(4, "data")
    known = [store, given, shared, own]
    for nearest in (own, shared, given, store):
        assert resolve(known, "data")[0].folder_id == nearest.id
        known.remove(nearest)


def test_mounts_are_told_in_the_order_of_their_targets_and_not_without_end():
    known = [folder(i, f"f{i}") for i in range(1, MOST_MOUNTS + 2)]
    assert [m.folder_name for m in resolve(known, "f9", "f10")] == ["f10", "f9"]
    with pytest.raises(InvalidRequestError, match="the most is 100"):
        resolve(known, *(f.name for f in known))


def test_a_dotfile_and_a_folder_cannot_be_at_the_same_place():
    mounts = resolve([folder(1, ".config"), DATA])
    with pytest.raises(InvalidRequestError, match=r"over the dotfile '\.config'"):
        check_dotfiles(mounts, [".vimrc", ".config"])
    with pytest.raises(HubError):
        check_dotfiles(mounts, ["/home/work/.config"])
    check_dotfiles(mounts, [".config/tool.toml", "data"])


def test_overlap_is_by_parts_and_not_by_letters():
    assert overlap("/a", "/a/b")
    assert overlap("/a/b", "/a")
    assert overlap("/a", "/a")
    assert not overlap("/a", "/ab")
    assert overlap("/", "/x")


@pytest.mark.parametrize(
    ("text", "folder", "target", "permission"),
    [
        ("data", "data", "", None),
        ("data/2026", "data/2026", "", None),
        ("data:ro", "data", "", "ro"),
        ("data:/sets/one", "data", "/sets/one", None),
        ("data:sets:wd", "data", "sets", "wd"),
        (" data ", "data", "", None),
    ],
)
def test_a_mount_is_written_on_one_line(text, folder, target, permission):
    read = read_mount(text)
    assert (read.folder, read.target, read.permission) == (folder, target, permission)


@pytest.mark.parametrize("text", ["", ":", ":ro", "a:b:c", "a:b:c:ro"])
def test_what_is_no_mount_is_refused(text):
    with pytest.raises(InvalidRequestError, match="is no mount"):
        read_mount(text)
