"""What an agent reads of containers, devices and the node, and what it says of it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from backendai_agent.accelerators.cuda import CudaAccelerator
from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_agent.accelerators.nvml import read_gpus, read_use
from backendai_agent.apart import Apart, StillAwayError
from backendai_agent.measuring.groups import GroupReader, Root
from backendai_agent.measuring.machine import read_machine
from backendai_agent.measuring.processes import read_tree
from backendai_agent.measuring.readings import DeviceReading, Reading
from backendai_agent.measuring.waves import Wave
from backendai_agent.meter import Measurable, Meter
from backendai_hub.api.agents import ContainerSpec, DesiredState, DeviceShare
from backendai_hub.core.agents import Device
from backendai_hub.core.measures import Measures
from tests.unit.nvml_played_back import FakeGpu, FakeInstance, FakeNvml

LOG = logging.getLogger("test")
MARK = "0190a0e0-0000-7000-8000-00000000c0de"
V1 = """\
30 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
V2 = "30 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
NET = """\
Inter-| Receive
 face |bytes
    lo: 9 0 0 0 0 0 0 0 9 0
  eth0: {} 0 0 0 0 0 0 0 {} 0
"""


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def process(
    pid: int, groups: str, *, children: str = "", **files: str
) -> dict[str, str]:
    """Lay out what the kernel tells of a process with a network of its own."""
    told = {
        "cgroup": groups,
        f"task/{pid}/children": children,
        "stat": f"{pid} (a b) c) S 1 1 1 0 -1 0 0 0 0 0 100 50 25 25 20 0 1 0 7",
        "statm": "900 10 0 0 0 0 0",
        "io": "rchar: 1\nread_bytes: 300\nwrite_bytes: 200\n",
        "ns/net": "of its own",
        "net/dev": NET.format(1000, 2000),
        **files,
    }
    return {f"proc/{pid}/{name}": text for name, text in told.items()}


SELF = {"proc/self/ns/net": "the node's"}


def test_version_1_groups_tell_time_and_memory_without_idle_files(tmp_path):
    groups = (
        f"4:memory:/docker/{MARK}\n2:cpu,cpuacct:/docker/{MARK}\n0::/docker/{MARK}\n"
    )
    memory, cpu = (
        f"sys/fs/cgroup/{c}/docker/{MARK}" for c in ("memory", "cpu,cpuacct")
    )
    write(
        tmp_path,
        {
            "proc/self/mountinfo": V1,
            **SELF,
            **process(7, groups),
            f"{memory}/memory.usage_in_bytes": "5000\n",
            f"{memory}/memory.stat": "cache 1\ntotal_inactive_file 1500\n",
            f"{memory}/cgroup.procs": "7\n",
            f"{cpu}/cpuacct.usage": "2500000000\n",
        },
    )

    assert GroupReader(tmp_path).read_own(Root(7, MARK)) == Reading(
        cpu_seconds=2.5,
        memory=3500,
        read_bytes=300,
        written_bytes=200,
        received_bytes=1000,
        sent_bytes=2000,
    )


def test_version_2_groups_tell_disks_too(tmp_path):
    group = f"sys/fs/cgroup/system.slice/docker-{MARK}.scope"
    write(
        tmp_path,
        {
            "proc/self/mountinfo": V2,
            **SELF,
            **process(7, f"0::/system.slice/docker-{MARK}.scope\n"),
            f"{group}/memory.current": "5000\n",
            f"{group}/memory.stat": "inactive_file 1000\n",
            f"{group}/cpu.stat": "usage_usec 1500000\nuser_usec 1\n",
            f"{group}/io.stat": "8:0 rbytes=10 wbytes=20 x=1\n8:16 rbytes=1 wbytes=2\n",
            f"{group}/cgroup.procs": "7\n",
        },
    )

    reading = GroupReader(tmp_path).read_own(Root(7, MARK))

    assert reading is not None
    assert (reading.cpu_seconds, reading.memory) == (1.5, 4000)
    assert (reading.read_bytes, reading.written_bytes) == (11, 22)
    (tmp_path / group / "io.stat").unlink()
    without = GroupReader(tmp_path).read_own(Root(7, MARK))
    assert without is not None
    assert (without.read_bytes, without.written_bytes) == (300, 200)


def test_a_group_of_somebody_else_is_not_taken_for_the_containers(tmp_path):
    group = "sys/fs/cgroup/user.slice"
    write(
        tmp_path,
        {
            "proc/self/mountinfo": V2,
            **SELF,
            **process(7, "0::/user.slice\n"),
            f"{group}/memory.current": "5000\n",
            f"{group}/cpu.stat": "usage_usec 1\n",
        },
    )
    reader = GroupReader(tmp_path)

    assert reader.read_own(Root(7, MARK)) is None
    assert reader.read_own(Root(8, MARK)) is None, "nobody has this number"
    assert reader.read(Root(8, MARK)) is None


def test_without_a_group_processes_are_added_up_with_all_below_them(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/mountinfo": V2,
            **SELF,
            **process(7, "0::/\n", children="8"),
            **process(8, "0::/\n"),
            **process(9, "0::/\n"),
        },
    )

    reading = GroupReader(tmp_path).read(Root(7, MARK))

    assert reading is not None
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    assert reading.cpu_seconds == 2 * 200 / ticks
    assert reading.memory == 2 * 10 * page
    assert (reading.read_bytes, reading.written_bytes) == (600, 400)
    assert read_tree(tmp_path / "proc", 7) == [7, 8]


def test_what_is_on_the_nodes_network_has_no_traffic_of_its_own(tmp_path):
    write(
        tmp_path,
        {
            "proc/self/mountinfo": V2,
            **SELF,
            **process(7, "0::/\n", **{"net/dev": NET.format(1, 2)}),
        },
    )
    own = tmp_path / "proc/7/ns/net"
    own.unlink()
    own.hardlink_to(tmp_path / "proc/self/ns/net")

    reading = GroupReader(tmp_path).read(Root(7, MARK))

    assert reading is not None
    assert (reading.received_bytes, reading.sent_bytes) == (None, None)


def test_a_group_is_found_where_only_a_part_of_the_hierarchy_is_seen(tmp_path):
    mount = "30 24 0:27 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    group = f"sys/fs/cgroup/{MARK}"
    write(
        tmp_path,
        {
            "proc/self/mountinfo": mount,
            **SELF,
            **process(7, f"0::/pod/{MARK}\n"),
            **process(8, f"0::/elsewhere/{MARK}\n"),
            f"{group}/memory.current": "5\n",
            f"{group}/cpu.stat": "usage_usec 1\n",
        },
    )
    reader = GroupReader(tmp_path)

    found = reader.read_own(Root(7, MARK))
    assert found is not None
    assert found.memory == 5
    assert reader.read_own(Root(8, MARK)) is None


def test_the_node_is_its_hardware(tmp_path):
    write(
        tmp_path,
        {
            "proc/stat": "cpu  100 0 100 900 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 5\n",
            "proc/meminfo": "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 40 kB\n",
            "sys/block/sda/device/model": "disk",
            "sys/block/sda/stat": "1 1 10 1 1 1 20 1 0 0 0",
            "sys/block/loop0/stat": "1 1 99 1 1 1 99 1 0 0 0",
            "sys/class/net/eth0/device/vendor": "x",
            "sys/class/net/docker0/mtu": "1500",
            "proc/net/dev": NET.format(5, 6) + "docker0: 99 0 0 0 0 0 0 0 99 0\n",
            "proc/net/route": "Iface Destination Gateway\neth0 00000000 1\n",
        },
    )

    node = read_machine(tmp_path)

    assert node.cpu_seconds == 200 / os.sysconf("SC_CLK_TCK")
    assert (node.cpu_limit, node.memory, node.memory_limit) == (2.0, 61440, 102400)
    assert (node.read_bytes, node.written_bytes) == (5120, 10240)
    assert (node.received_bytes, node.sent_bytes) == (5, 6)
    assert read_machine(tmp_path / "nowhere") == Reading()


def test_waves_stay_between_nothing_and_everything_and_sums_never_sink():
    wave = Wave(mean=0.9, swing=0.5, seconds=60)
    sums = [wave.sum_until(second) for second in range(200)]

    assert all(0 <= wave.at(second) <= 1 for second in range(200))
    assert sums == sorted(sums)
    assert sums[120] == pytest.approx(0.9 * 120)


# -- devices -------------------------------------------------------------------------


def test_nvml_tells_how_busy_gpus_are_and_of_instances_only_their_memory():
    nvml = FakeNvml(
        [
            FakeGpu("GPU-1", busy=40),
            FakeGpu("GPU-2", mig=True, instances=[FakeInstance("MIG-1", 9, 0, 4, 1)]),
            FakeGpu("GPU-3"),
        ]
    )
    known = {gpu.uuid: gpu for gpu in read_gpus(nvml)}
    nvml.gpus[2].broken = True

    found = {(r.device, r.slices): r for r in read_use(nvml, known)}

    assert found["GPU-1", 0].utilization == 0.4
    assert found["GPU-1", 0].memory is not None
    assert found["GPU-2", 0b1111].utilization is None
    assert found["GPU-2", 0b1111].memory is not None
    assert not [key for key in found if key[0] == "GPU-3"]


def test_a_node_without_gpus_asks_no_driver():
    assert CudaAccelerator(find=list).measure() == []


def test_fake_devices_are_as_busy_as_their_settings_say():
    fake = FakeAccelerator(count=3, busy=0.5, busy_swing=0.0, memory=100)

    readings = fake.measure()

    assert [r.device for r in readings] == [d.id for d in fake.discover()]
    assert {(r.utilization, r.memory, r.memory_limit) for r in readings} == {
        (0.5, 50, 100)
    }


# -- the meter -----------------------------------------------------------------------


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """A runtime whose containers use what the test says."""

    def __init__(self) -> None:
        self.readings: dict[str, Reading] = {}

    def measure(self, specs: Sequence[ContainerSpec]) -> dict[str, Reading]:
        return {s.id: self.readings[s.id] for s in specs if s.id in self.readings}


class Busy:
    """GPUs, two of which can be told."""

    name = "busy"

    def measure(self) -> list[DeviceReading]:
        return [
            DeviceReading(device="GPU-1", utilization=0.5, memory=1, memory_limit=2),
            DeviceReading(device="GPU-S", utilization=0.9),
        ]


class Hanging:
    """A driver that never comes back."""

    name = "hanging"

    def __init__(self) -> None:
        self.asked = 0
        self.release = threading.Event()

    def measure(self) -> list[DeviceReading]:
        self.asked += 1
        self.release.wait()
        return []


def make_spec(name: str = "c1", **changes: object) -> ContainerSpec:
    return ContainerSpec(
        id=name, session_id="s", desired=DesiredState.RUNNING, **changes
    )


def make_meter(
    runtime: object, *accelerators: object, specs: Sequence[ContainerSpec] = ()
) -> tuple[Meter, Clock, list[bytes]]:
    told: list[bytes] = []
    clock = Clock()
    devices = [
        Device(id="GPU-1", slots={"cuda.device": 1000}, whole=True),
        Device(id="GPU-S", slots={"cuda.shares": 1000}),
    ]
    there = Measurable(
        runtime=runtime,
        accelerators=list(accelerators),
        running=lambda: list(specs),
        devices=lambda: devices,
    )
    return Meter(there, tell=told.append, log=LOG, clock=clock), clock, told


async def test_rates_are_what_came_since_the_last_time():
    runtime = Counted()
    meter, clock, _ = make_meter(runtime, specs=[make_spec()])
    runtime.readings["c1"] = Reading(cpu_seconds=10.0, read_bytes=1000, memory=7)
    first = (await meter.measure()).containers[0]
    clock.now += 4
    runtime.readings["c1"] = Reading(cpu_seconds=12.0, read_bytes=1400, memory=8)
    second = (await meter.measure()).containers[0]

    assert (first.cpu, first.read_rate, first.memory) == (None, None, 7)
    assert (second.cpu, second.read_rate, second.memory) == (0.5, 100.0, 8)
    assert (second.cpu_seconds, second.read_bytes) == (12.0, 1400)
    assert (second.sent_bytes, second.send_rate) == (None, None)


async def test_sums_never_sink_when_a_process_has_ended():
    runtime = Counted()
    meter, clock, _ = make_meter(runtime, specs=[make_spec()])
    told = []
    for read in (100, 300, 50, 60):
        runtime.readings["c1"] = Reading(read_bytes=read)
        sample = (await meter.measure()).containers[0]
        told.append((sample.read_bytes, sample.read_rate))
        clock.now += 1

    assert told == [(100, None), (300, 200.0), (300, None), (310, 10.0)]


async def test_a_container_is_told_with_the_devices_it_has_for_itself():
    runtime = Counted()
    runtime.readings = {"c1": Reading(memory=1), "c2": Reading(memory=1)}
    own = DeviceShare(device="GPU-1", slot="cuda.device", amount=1000)
    part = DeviceShare(device="GPU-S", slot="cuda.shares", amount=500)
    specs = [make_spec("c1", shares=[own]), make_spec("c2", shares=[part])]
    meter, _, _ = make_meter(runtime, Busy(), specs=specs)

    measures = await meter.measure()

    first, second = measures.containers
    assert [d.device for d in first.devices] == ["GPU-1"]
    assert second.devices == [], "who of several uses a device cannot be told"
    assert [d.device for d in measures.node.devices] == ["GPU-1", "GPU-S"]
    measures.check()
    assert msgspec.json.decode(msgspec.json.encode(measures), type=Measures) == measures


async def test_a_driver_that_hangs_is_asked_once_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("backendai_agent.meter.PATIENCE", 1.0)
    runtime, hanging = Counted(), Hanging()
    runtime.readings["c1"] = Reading(memory=1)
    meter, clock, _ = make_meter(runtime, hanging, Busy(), specs=[make_spec()])
    try:
        for _ in range(5):
            async with asyncio.timeout(60):
                measures = await meter.measure()
            clock.now += 1
            assert measures.containers[0].memory == 1
            assert [d.device for d in measures.node.devices] == ["GPU-1", "GPU-S"]
        assert hanging.asked == 1
        assert len([r for r in caplog.records if "hanging" in r.message]) == 1
    finally:
        hanging.release.set()


async def test_a_call_that_is_away_is_not_made_again_until_it_is_back():
    gate, apart = threading.Event(), Apart("testing")
    with pytest.raises(TimeoutError):
        await apart.call(gate.wait, 0.05)
    with pytest.raises(StillAwayError):
        await apart.call(lambda: 1, 5)
    gate.set()

    async with asyncio.timeout(30):
        while True:
            try:
                assert await apart.call(lambda: 2, 5) == 2
                break
            except StillAwayError:
                await asyncio.sleep(0.01)


async def test_a_runtime_that_measures_nothing_says_nothing_of_containers():
    meter, _, _ = make_meter(object(), specs=[make_spec()])

    assert (await meter.measure()).containers == []


async def test_measuring_never_is_a_choice():
    meter, _, told = make_meter(Counted())

    await meter.run(0)

    assert told == []
