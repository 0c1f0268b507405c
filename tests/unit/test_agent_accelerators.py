"""What nodes have to hand out."""

from __future__ import annotations

import logging

import pytest
from traitlets.config import Config

from backendai_agent.accelerators import cuda
from backendai_agent.accelerators.cuda import CudaAccelerator, patch_for
from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_agent.accelerators.host import (
    HostAccelerator,
    read_cpu_quota,
    read_memory,
    read_memory_limit,
)
from backendai_agent.accelerators.nvml import Gpu, read_gpus, read_numa
from backendai_agent.inventory import Inventory, merge_patches
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_hub.api.agents import DeviceShare
from tests.unit.nvml_played_back import FakeGpu, FakeNvml

LOG = logging.getLogger("test")
GIB = 1 << 30


def make_system(root, *, groups, files=()):
    """Lay out the files of /proc and /sys that are read."""
    texts = {
        "proc/meminfo": f"MemTotal: {64 * GIB // 1024} kB\nMemFree: 1 kB\n",
        "proc/cpuinfo": "processor : 0\nmodel name : Test CPU\n",
        "proc/self/cgroup": groups,
        **dict(files),
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_machine_without_limits_offers_its_memory_less_what_is_reserved(tmp_path):
    root = make_system(tmp_path, groups="0::/\n")
    host = HostAccelerator(root=str(root), reserved_cpu="0.5", reserved_memory="4g")
    [device] = host.discover()
    assert device.id == "host"
    assert device.slots["mem"] == 60 * GIB
    assert device.slots["cpu"] % 1000 == 500
    assert device.model == "Test CPU"


def test_version_2_groups_limit_also_from_above(tmp_path):
    root = make_system(
        tmp_path,
        groups="0::/a/b\n",
        files={
            "sys/fs/cgroup/a/b/memory.max": "max",
            "sys/fs/cgroup/a/memory.max": str(2 * GIB),
            "sys/fs/cgroup/a/b/cpu.max": "150000 100000",
        }.items(),
    )
    assert read_memory(root) == 64 * GIB
    assert read_memory_limit(root) == 2 * GIB
    assert read_cpu_quota(root) == 1500


def test_version_1_groups_limit_too(tmp_path):
    v1 = "sys/fs/cgroup"
    root = make_system(
        tmp_path,
        groups="3:cpu,cpuacct:/x\n2:memory:/x\n",
        files={
            f"{v1}/memory/x/memory.limit_in_bytes": str(GIB),
            f"{v1}/cpu/x/cpu.cfs_quota_us": "50000",
            f"{v1}/cpu/x/cpu.cfs_period_us": "100000",
        }.items(),
    )
    assert read_memory_limit(root) == GIB
    assert read_cpu_quota(root) == 500


def test_no_limit_is_no_limit(tmp_path):
    v1 = "sys/fs/cgroup"
    root = make_system(
        tmp_path,
        groups="3:cpu,cpuacct:/x\n2:memory:/x\n",
        files={
            f"{v1}/memory/x/memory.limit_in_bytes": str((1 << 63) - 4096),
            f"{v1}/cpu/x/cpu.cfs_quota_us": "-1",
            f"{v1}/cpu/x/cpu.cfs_period_us": "100000",
        }.items(),
    )
    assert read_memory_limit(root) is None
    assert read_cpu_quota(root) is None


def test_fake_devices_are_the_same_ones_after_a_restart_and_fewer_if_told_so():
    first = FakeAccelerator(count=4, node="a", numa_nodes=2).discover()
    fewer = FakeAccelerator(count=2, node="a").discover()
    assert [d.id for d in fewer] == [d.id for d in first[:2]]
    assert [d.numa for d in first] == [0, 0, 1, 1]
    other = FakeAccelerator(count=4, node="b").discover()
    assert not {d.id for d in first} & {d.id for d in other}


def test_fake_devices_are_configured_like_everything_else():
    config = Config({"FakeAccelerator": {"count": 1, "model": "X", "whole": False}})
    [device] = FakeAccelerator(config=config, node="a").discover()
    assert (device.model, device.whole) == ("X", False)


def test_a_container_sees_its_own_gpus_and_is_told_about_them():
    gpus = [Gpu(f"GPU-{n}", "H100", 80 * GIB) for n in (1, 2)]
    patch = patch_for(gpus)
    assert patch.environ["NVIDIA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert patch.environ["GPU_CONFIG"] == "0:80g,1:80g"
    assert patch.environ["GPU_COUNT"] == "2"
    assert patch.devices == ("nvidia.com/gpu=GPU-1", "nvidia.com/gpu=GPU-2")


def test_a_container_without_a_share_sees_no_gpu():
    patch = patch_for([])
    assert patch.environ["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert patch.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert (patch.devices, patch.nodes) == ((), ())


def test_runtimes_that_know_no_names_get_the_nodes_of_the_same_gpus(tmp_path):
    nodes = tmp_path / "dev"
    nodes.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia5", "nvidiactl", "nvidia-uvm"):
        (nodes / name).touch()
    gpus = [Gpu("GPU-a", "H100", 80 * GIB, minor=5), Gpu("GPU-b", "H100", GIB, minor=0)]
    patch = patch_for(gpus, tmp_path)
    assert patch.nodes == (
        "/dev/nvidia5",
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
    )
    assert patch.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    joined = merge_patches([patch_for([]), patch])
    assert (joined.devices, joined.nodes) == (patch.devices, patch.nodes)


def test_the_node_for_cudas_memory_is_made_by_the_drivers_own_tool(
    tmp_path, monkeypatch
):
    tool = tmp_path / "nvidia-modprobe"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    cuda.make_memory_node(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia-uvm").touch()
    cuda.make_memory_node(tmp_path)
    assert (tmp_path / "said").read_text() == "-c 0 -u\n"


def test_nvml_is_read_by_uuid_and_one_broken_gpu_does_not_hide_the_others():
    nvml = FakeNvml([FakeGpu("GPU-0"), FakeGpu("GPU-1", broken=True), FakeGpu("GPU-2")])
    found = list(read_gpus(nvml))
    assert [(g.uuid, g.model) for g in found] == [("GPU-0", "H100"), ("GPU-2", "H100")]
    assert [g.minor for g in found] == [0, 2]


def test_numa_nodes_are_read_from_the_bus(tmp_path):
    folder = tmp_path / "0000:3b:00.0"
    folder.mkdir()
    (folder / "numa_node").write_text("1\n")
    assert read_numa("00000000:3B:00.0", tmp_path) == 1
    (folder / "numa_node").write_text("-1\n")
    assert read_numa("00000000:3B:00.0", tmp_path) is None


async def test_a_share_of_a_device_that_left_is_refused_in_words():
    fake = FakeAccelerator(count=1, node="a")
    inventory = Inventory([fake, CudaAccelerator()], log=LOG)
    await inventory.discover()
    own = inventory.devices[0].id
    patch = await inventory.attach([DeviceShare(device=own, slot="x", amount=1)])
    assert patch.environ["BACKENDAI_FAKE_DEVICES"] == own
    assert patch.environ["NVIDIA_VISIBLE_DEVICES"] == "void"
    with pytest.raises(RuntimeFailure, match="not on this node any more"):
        await inventory.attach([DeviceShare(device="GPU-9", slot="x", amount=1)])


async def test_an_accelerator_that_fails_hides_no_other(caplog):
    class Broken(FakeAccelerator):
        name = "broken"

        def discover(self):
            raise OSError("library is gone")

    inventory = Inventory([Broken(node="a"), FakeAccelerator(node="b")], log=LOG)
    await inventory.discover()
    assert len(inventory.devices) == 8
    assert "accelerator broken failed" in caplog.text
