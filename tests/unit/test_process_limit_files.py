"""What is written into control groups, and how the node's are found."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backendai_agent.runtimes.process_limits import (
    Bounds,
    CgroupV1,
    CgroupV2,
    LimitsFailure,
    SystemdUser,
    Watchdog,
)
from backendai_agent.runtimes.process_limits_probe import (
    choose_limits,
    find_mounts,
    find_own_groups,
    try_out,
)

BOUNDS = Bounds(cpu=1500, memory=256 << 20, pids=100)


def test_version_one_writes_every_limit(tmp_path: Path) -> None:
    mounts = {}
    for name in ("cpu", "cpuacct", "memory", "pids", "freezer"):
        mounts[name] = tmp_path / name
        mounts[name].mkdir()
    memory = mounts["memory"] / "ours" / "c1"
    memory.mkdir(parents=True)
    (memory / "memory.memsw.limit_in_bytes").touch()

    CgroupV1(mounts, "ours").create("c1", BOUNDS)

    cpu, pids = mounts["cpu"] / "ours/c1", mounts["pids"] / "ours/c1"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "150000"
    assert (cpu / "cpu.cfs_period_us").read_text() == "100000"
    assert (memory / "memory.limit_in_bytes").read_text() == str(256 << 20)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == str(256 << 20)
    assert (pids / "pids.max").read_text() == "100"


def test_version_one_joins_shared_hierarchies_once(tmp_path: Path) -> None:
    (tmp_path / "cpu,cpuacct").mkdir()
    mounts = {"cpu": tmp_path / "cpu,cpuacct", "cpuacct": tmp_path / "cpu,cpuacct"}
    mounts |= {name: tmp_path / name for name in ("memory", "pids", "freezer")}
    joins = CgroupV1(mounts, "ours").joins("c1")
    assert len(joins) == 4
    assert all(path.endswith("/ours/c1/cgroup.procs") for path in joins)


@pytest.mark.timeout(5)
def test_what_may_not_be_removed_is_not_waited_for() -> None:
    """Another user's agent may have left groups: a node looks at its own at once."""
    forbidden = dict.fromkeys(("cpu", "cpuacct", "memory", "pids", "freezer"), "/proc")
    limits = CgroupV1({name: Path(top) for name, top in forbidden.items()}, "self")
    with pytest.raises(LimitsFailure, match=r"not permitted|denied"):
        limits.remove("fd")


def test_version_one_counts_kills_for_memory(tmp_path: Path) -> None:
    mounts = {n: tmp_path / n for n in ("cpu", "cpuacct", "memory", "pids", "freezer")}
    limits = CgroupV1(mounts, "ours")
    assert not limits.out_of_memory("c1")
    folder = mounts["memory"] / "ours/c1"
    folder.mkdir(parents=True)
    control = folder / "memory.oom_control"
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    assert not limits.out_of_memory("c1")
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert limits.out_of_memory("c1")


def test_version_two_writes_every_limit_and_hands_controllers_down(
    tmp_path: Path,
) -> None:
    limits = CgroupV2(tmp_path, "ours/agent")
    folder = tmp_path / "ours/agent/c1"
    folder.mkdir(parents=True)
    (folder / "memory.swap.max").touch()
    limits.create("c1", BOUNDS)
    assert (folder / "cpu.max").read_text() == "150000 100000"
    assert (folder / "memory.max").read_text() == str(256 << 20)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "100"
    for parent in (tmp_path, tmp_path / "ours", tmp_path / "ours/agent"):
        written = (parent / "cgroup.subtree_control").read_text()
        assert written == "+cpu +memory +pids"
    assert not (folder / "cgroup.subtree_control").exists()
    assert limits.joins("c1") == [str(folder / "cgroup.procs")]
    assert limits.names() == {"c1"}


def test_version_two_kills_by_the_switch_and_sees_memory_events(tmp_path: Path) -> None:
    limits = CgroupV2(tmp_path, "ours")
    folder = tmp_path / "ours/c1"
    folder.mkdir(parents=True)
    (folder / "cgroup.kill").touch()
    limits.kill("c1")
    assert (folder / "cgroup.kill").read_text() == "1"
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert limits.out_of_memory("c1")


def test_a_removed_group_takes_its_empty_parents_along(tmp_path: Path) -> None:
    for name in ("c1", "c2"):
        (tmp_path / "ours/agent" / name).mkdir(parents=True)
    limits = CgroupV2(tmp_path, "ours/agent")
    limits.remove("c1")
    assert limits.names() == {"c2"}
    limits.remove("c2")
    assert list(tmp_path.iterdir()) == []
    limits.remove("c2")


def test_a_group_is_made_although_another_takes_the_empty_parents_along(
    tmp_path: Path,
) -> None:
    """Sessions start while others end, of this agent and of others on the node."""
    mounts = {n: tmp_path / n for n in ("cpu", "cpuacct", "memory", "pids", "freezer")}
    limits = CgroupV1(mounts, "ours/agent")

    def come_and_go(name: str) -> None:
        for _ in range(100):
            limits.create(name, Bounds())
            limits.remove(name)

    with ThreadPoolExecutor() as threads:
        list(threads.map(come_and_go, ("c1", "c2", "c3")))
    assert limits.names() == set()


def test_a_scope_gets_its_limits_as_properties() -> None:
    words = SystemdUser().wrap("c1", BOUNDS)
    assert words[:3] == ["systemd-run", "--user", "--scope"]
    assert "--unit=backendai-c1.scope" in words
    assert "--property=CPUQuota=150%" in words
    assert f"--property=MemoryMax={256 << 20}" in words
    assert "--property=TasksMax=100" in words
    assert words[-1] == "--"
    unlimited = SystemdUser().wrap("c1", Bounds())
    assert not [word for word in unlimited if "=" in word and "--unit" not in word]


def test_a_missing_systemd_is_a_failure_in_words() -> None:
    with pytest.raises(LimitsFailure, match="no-such-systemctl"):
        SystemdUser(control="no-such-systemctl").kill("c1")


def test_the_watchdog_bounds_processes_inside_and_says_what_it_is() -> None:
    watchdog = Watchdog(taskset="/bin/taskset", prlimit="/bin/prlimit")
    assert watchdog.inner(BOUNDS) == ["/bin/prlimit", "--nproc=100:100", "--"]
    assert watchdog.inner(Bounds()) == []
    assert watchdog.wrap("c1", Bounds(cpu=1_000_000)) == []
    assert Watchdog(taskset=None, prlimit=None).wrap("c1", BOUNDS) == []
    assert "not enforced" in watchdog.notes[0]


def test_hierarchies_are_found_in_the_list_of_mounts() -> None:
    mountinfo = (
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:1 - cgroup cgroup"
        " rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    controllers, unified = find_mounts(mountinfo)
    assert controllers["cpu"] == controllers["cpuacct"]
    assert controllers["memory"] == Path("/sys/fs/cgroup/memory")
    assert unified == [Path("/sys/fs/cgroup/unified")]


def test_our_own_place_is_read_for_both_versions() -> None:
    own = find_own_groups("4:memory:/a:b\n2:cpu,cpuacct:/\n0::/user.slice/x.scope\n")
    assert own["memory"] == "/a:b"
    assert own["cpuacct"] == "/"
    assert own[""] == "/user.slice/x.scope"


def test_insisting_on_limits_that_do_not_exist_fails() -> None:
    with pytest.raises(LimitsFailure, match="no limits called magic"):
        choose_limits("ours", wanted="magic")
    assert choose_limits("ours", wanted="watchdog")[0].kind == "watchdog"


class _Refusing(Watchdog):
    """A node that lets nobody make control groups, nor remove any."""

    def create(self, name: str, bounds: Bounds) -> None:
        raise LimitsFailure("may not be made")

    def remove(self, name: str) -> None:
        raise LimitsFailure("may not be removed")


def test_why_limits_cannot_be_set_is_told_not_what_clearing_away_says() -> None:
    with pytest.raises(LimitsFailure, match="may not be made"):
        try_out(_Refusing(taskset=None, prlimit=None))
