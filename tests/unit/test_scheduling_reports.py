"""Plans made from what agents report: which GPUs, and which slices of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from backendai_agent.accelerators.cuda import describe
from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_agent.accelerators.nvml import read_gpus
from backendai_hub.core.agents import Device
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    NodeState,
    PendingSession,
    Share,
)
from tests.unit.nvml_played_back import FakeGpu, FakeInstance, FakeNvml
from tests.unit.scheduling_snapshots import node, pending, snapshot

SMALL = "cuda.device:1g.5gb-mig"
MIDDLE = "cuda.device:2g.10gb-mig"
LARGE = "cuda.device:3g.20gb-mig"


def take_in(devices: Sequence[Device]) -> NodeState:
    """Describe a node with these devices to the scheduler, as the hub service does."""
    return node(
        "n",
        *(
            DeviceState(
                id=d.id,
                name=d.id,
                total=d.offer,
                free=d.offer,
                whole=d.whole,
                numa=d.numa,
                kind=d.kind,
                model=d.model,
                links=d.links,
                profiles={slot: tuple(places) for slot, places in d.profiles.items()},
            )
            for d in devices
        ),
    )


def asking(name: str, slot: str, count: int = 1) -> PendingSession:
    return pending(name, request=ResourceSlots({slot: count * 1000}))


def given(devices: Sequence[Device], *queue: PendingSession) -> dict[str, list[Share]]:
    decided = plan(snapshot([take_in(devices)], queue))
    return {p.session: list(p.shares) for p in decided.placements}


def played_back(gpus: list[FakeGpu]) -> list[Device]:
    return [describe(gpu) for gpu in read_gpus(FakeNvml(gpus))]


def test_on_a_node_like_a_dgx_gpus_are_of_one_quad():
    names = [f"GPU-{i}" for i in range(8)]
    devices = played_back(
        [
            FakeGpu(
                name,
                linked=tuple(n for j, n in enumerate(names) if j // 4 == i // 4),
                levels=dict.fromkeys(names, 50),
            )
            for i, name in enumerate(names)
        ]
    )
    queue = [asking(f"s{n}", "cuda.device", 2) for n in range(4)]
    found = given(devices, *queue)
    assert len(found) == 4
    for shares in found.values():
        assert len({names.index(s.device) // 4 for s in shares}) == 1


def test_without_links_gpus_are_of_one_numa_node():
    devices = FakeAccelerator(count=4, numa_nodes=2, node="n").discover()
    [one, two] = given(devices, asking("a", "cuda.device", 2))["a"]
    numa = {d.id: d.numa for d in devices}
    assert numa[one.device] == numa[two.device]


def test_a_gpu_with_a_fast_link_to_nobody_is_taken_first():
    """Three GPUs, two of them linked: one session with one leaves the pair alone."""
    devices = played_back(
        [
            FakeGpu("GPU-0", linked=("GPU-2",), levels={"GPU-1": 10}),
            FakeGpu("GPU-1", levels={"GPU-0": 10, "GPU-2": 10}),
            FakeGpu("GPU-2", linked=("GPU-0",), levels={"GPU-1": 10}),
        ]
    )
    [share] = given(devices, asking("a", "cuda.device"))["a"]
    assert share.device == "GPU-1"


@pytest.mark.parametrize("like", ["a100-40", "h100-80", "h200"])
def test_a_gpu_is_filled_with_what_it_can_be_cut_into(like: str):
    devices = FakeAccelerator(count=2, cut_like=like, node="n").discover()
    for slot, amount in devices[0].offer.items():
        count = 2 * amount // 1000
        found = given(devices, *[asking(f"s{i}", slot) for i in range(count + 1)])
        assert len(found) == count, slot


def test_small_instances_are_packed_so_that_large_ones_still_fit():
    devices = FakeAccelerator(count=2, cut_like="a100-40", node="n").discover()
    queue = [asking(f"s{i}", SMALL) for i in range(3)]
    queue += [asking(f"l{i}", LARGE) for i in range(3)]
    assert len(given(devices, *queue)) == 6


def test_only_the_instances_that_were_made_are_given():
    made = ["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]
    devices = FakeAccelerator(
        count=1, cut_like="a100-40", node="n", instances=made
    ).discover()
    queue = [asking(f"s{i}", SMALL) for i in range(3)]
    queue += [asking("m", MIDDLE), asking("w", "cuda.device"), asking("l", LARGE)]
    found = given(devices, *queue)
    assert sorted(found) == ["l", "m", "s0", "s1"]
    together = 0
    for [share] in found.values():
        assert not together & share.slices
        together |= share.slices
        assert share.slices in devices[0].profiles[share.slot]


def test_gpus_that_are_cut_and_whole_ones_are_side_by_side():
    devices = played_back(
        [
            FakeGpu(
                "GPU-0",
                mig=True,
                instances=[
                    FakeInstance("MIG-a", 19, start=0, size=1, group=9),
                    FakeInstance("MIG-c", 9, start=4, size=4, group=2),
                ],
            ),
            FakeGpu("GPU-1", mig=False),
        ]
    )
    queue = [asking("s", SMALL), asking("w", "cuda.device"), asking("l", LARGE)]
    found = given(devices, *queue, asking("more", "cuda.device"))
    assert {name: shares[0].device for name, shares in found.items()} == {
        "s": "GPU-0",
        "w": "GPU-1",
        "l": "GPU-0",
    }
