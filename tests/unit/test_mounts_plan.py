"""What is decided about a session's folders before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backendai_agent.mounts import MountSettings, check_storage, label_hosts
from backendai_agent.mounts_kernel import list_mounts
from backendai_agent.mounts_plan import Site, plan_steps
from backendai_agent.runtimes.base import Resident, RuntimeFailure
from backendai_hub.api.agents import MountSpec
from backendai_hub.core.agents import check_labels
from backendai_hub.core.configuration import ConfigurationError

PARTS = ["user-1", "ab", "cd", "ef"]
ROOT = Site(hosts={"local": "/srv/folders"}, may_mount=True)
PLAIN = Site(hosts={"local": "/srv/folders"})
ANN = Resident(1000, 1000)


def at(target, **changes):
    given = {
        "host": "local",
        "parts": PARTS,
        "target": target,
        "owner_uid": 1000,
        "owner_gid": 1000,
    }
    return MountSpec(**{**given, **changes})


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/home",
        "/home/work",
        "/run/backendai",
        "/run",
        "/etc/x",
        "/usr/local/x",
        "/opt/backendai",
        "/proc/1",
        "/var/lib/x",
        "/tmp",
        "/home/work/",
        "/home/work/../../etc",
        "/home//work/x",
        "//home/work/x",
        "home/work/x",
        "",
        "/home/work/a\nb",
        "/home/work/a\0b",
        "/home/work/" + "x" * 5000,
    ],
)
def test_nothing_is_mounted_where_it_would_hide_what_a_session_needs(target):
    with pytest.raises(RuntimeFailure, match="folder"):
        plan_steps([at(target)], ROOT, ANN)


@pytest.mark.parametrize(
    "target",
    ["/home/work/data", "/home/work/a/b", "/data", "/mnt/x", "/home/work/ä b"],
)
def test_other_places_are_fine(target):
    [step] = plan_steps([at(target)], ROOT, ANN)
    assert (step.target, step.root, step.parts) == (target, "/srv/folders", PARTS)
    assert step.inside is None


def test_outer_folders_come_first_and_inner_ones_say_where_they_lie():
    wanted = ["/home/work/a/b/c", "/home/work/a-b", "/home/work/a", "/home/work/a/b"]
    steps = plan_steps([at(target) for target in wanted], ROOT, ANN)
    assert [(s.target, s.inside, s.rest) for s in steps] == [
        ("/home/work/a", None, []),
        ("/home/work/a/b", 0, ["b"]),
        ("/home/work/a/b/c", 1, ["c"]),
        ("/home/work/a-b", None, []),
    ]


def test_one_place_holds_one_folder():
    with pytest.raises(RuntimeFailure, match="two folders cannot both"):
        plan_steps([at("/data"), at("/data", parts=["other"])], ROOT, ANN)


def test_only_what_is_plainly_writable_is_mounted_so():
    wanted = {"rw": False, "wd": False, "ro": True, "": True, "admin": True}
    for permission, read_only in wanted.items():
        [step] = plan_steps([at("/data", permission=permission)], ROOT, ANN)
        assert step.read_only is read_only


def test_a_host_that_the_node_does_not_have_is_named():
    with pytest.raises(RuntimeFailure, match="does not have the storage host 'nfs'"):
        plan_steps([at("/data", host="nfs")], ROOT, ANN)


def test_no_way_leads_to_the_root_of_a_host():
    with pytest.raises(RuntimeFailure, match="nothing leads to the folder"):
        plan_steps([at("/data", parts=[])], ROOT, ANN)


def test_unmanaged_paths_lie_below_what_the_operator_allows():
    site = Site(hosts={"local": "/srv"}, unmanaged_roots=["/data"], may_mount=True)
    [step] = plan_steps([at("/x", unmanaged="/data/sets/a", parts=[])], site, ANN)
    assert (step.root, step.parts, step.subpath) == ("/data", [], ["sets", "a"])
    assert step.owner is None
    plain = replace(site, may_mount=False)
    with pytest.raises(RuntimeFailure, match="only whole folders"):
        plan_steps([at("/x", unmanaged="/data/sets/a")], plain, ANN)
    assert plan_steps([at("/x", unmanaged="/data")], plain, ANN)
    for path in ("/etc", "/database", "/data/../etc", "data/x", "/"):
        with pytest.raises(RuntimeFailure, match="unmanaged_roots"):
            plan_steps([at("/x", unmanaged=path)], site, ANN)


def test_an_agent_that_may_not_mount_gives_whole_folders_of_the_sessions_own_user():
    [step] = plan_steps([at("/data", permission="ro")], PLAIN, ANN)
    assert step.read_only
    with pytest.raises(RuntimeFailure, match="only whole folders"):
        plan_steps([at("/data", subpath=["part"])], PLAIN, ANN)
    with pytest.raises(RuntimeFailure, match="lies in another folder"):
        plan_steps([at("/data"), at("/data/x")], PLAIN, ANN)
    for other in (Resident(1001, 1000), Resident(1000, 1001), Resident(0, 0)):
        with pytest.raises(RuntimeFailure, match="belong to 1000:1000"):
            plan_steps([at("/data")], PLAIN, other)
    anybody = at("/data", owner_uid=None)
    assert plan_steps([anybody], PLAIN, Resident(0, 0))


def test_links_cannot_keep_anything_read_only_or_away_from_home():
    linked = Resident(1000, 1000, way="link")
    for site in (PLAIN, ROOT):
        assert plan_steps([at("/home/work/data")], site, linked)
        with pytest.raises(RuntimeFailure, match="nothing would keep"):
            plan_steps([at("/home/work/data", permission="ro")], site, linked)
        with pytest.raises(RuntimeFailure, match="only below /home/work"):
            plan_steps([at("/data")], site, linked)
        with pytest.raises(RuntimeFailure, match="only whole folders"):
            plan_steps([at("/home/work/data", subpath=["part"])], site, linked)


def test_where_nothing_runs_anything_goes_that_is_a_place():
    nobody = Resident(5, 5, way="none")
    assert plan_steps([at("/data", subpath=["x"]), at("/data/y")], PLAIN, nobody)
    with pytest.raises(RuntimeFailure, match="hide"):
        plan_steps([at("/etc")], PLAIN, nobody)


@pytest.mark.parametrize(
    "place", ["/var/lib/agent", "/var/lib/agent/x", "/var/lib", "/", "x", "/a/../b"]
)
def test_the_agents_own_folder_is_no_storage(place):
    for settings in (
        MountSettings(hosts={"local": place}),
        MountSettings(unmanaged_roots=[place]),
    ):
        with pytest.raises(ConfigurationError, match="storage"):
            check_storage(settings, Path("/var/lib/agent"))
    check_storage(MountSettings(hosts={"local": "/srv"}), Path("/var/lib/agent"))


def test_nodes_are_labelled_with_the_hosts_they_have():
    assert label_hosts(["local", "nfs-1"]) == {
        "storage/local": "yes",
        "storage/nfs-1": "yes",
    }
    check_labels(label_hosts(["local", "nfs-1"]))


def test_places_of_mounts_are_read_as_the_kernel_writes_them():
    text = (
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "43 27 254:0 /a /srv/with\\040blank\\134and\\012more rw,idmapped - ext4 x rw\n"
    )
    assert list_mounts(text) == ["/proc", "/srv/with blank\\and\nmore"]
