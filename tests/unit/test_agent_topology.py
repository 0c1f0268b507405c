"""How devices lie to each other, and what they are cut into, told and handed out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from traitlets import TraitError

from backendai_agent.accelerators.cuda import CudaAccelerator, describe
from backendai_agent.accelerators.fake import FakeAccelerator
from backendai_agent.accelerators.nvml import Gpu, Instance, read_gpus
from backendai_agent.reconcile import Phase, Record, Start, Wait, diff
from backendai_agent.runtimes.base import Observed, RuntimeFailure
from backendai_agent.runtimes.process_preparation import check_can_be_opened
from backendai_hub.api.agents import ContainerSpec, DesiredState, DeviceShare
from backendai_hub.core.agents import Device, Distance, check_node, count_places
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.scheduling.devices import Slicing
from tests.unit.nvml_played_back import FakeGpu, FakeInstance, FakeNvml

GIB = 1 << 30
SMALL = "cuda.device:1g.5gb-mig"
LARGE = "cuda.device:3g.20gb-mig"


def quads() -> FakeNvml:
    """Eight GPUs, as in a DGX: NVLink within quads, which are at one socket each."""
    names = [f"GPU-{i}" for i in range(8)]
    return FakeNvml(
        [
            FakeGpu(
                name,
                linked=tuple(
                    n for n in names[i // 4 * 4 : i // 4 * 4 + 4] if n != name
                ),
                levels={
                    n: 50 if j // 4 != i // 4 else 10
                    for j, n in enumerate(names)
                    if n != name
                },
            )
            for i, name in enumerate(names)
        ]
    )


def cut(**changes: object) -> FakeGpu:
    """A GPU of which an administrator has made three instances."""
    return FakeGpu(
        "GPU-0",
        mig=True,
        instances=[
            FakeInstance("MIG-a", 19, start=0, size=1, group=9),
            FakeInstance("MIG-b", 19, start=1, size=1, group=10),
            FakeInstance("MIG-c", 9, start=4, size=4, group=2),
        ],
        **changes,
    )


# --- how far ----------------------------------------------------------------------


def test_gpus_with_nvlink_are_closest_whatever_lies_between_their_slots():
    first, *_ = read_gpus(quads())
    assert first.links == {
        **{f"GPU-{i}": Distance.DIRECT for i in (1, 2, 3)},
        **{f"GPU-{i}": Distance.SYSTEM for i in (4, 5, 6, 7)},
    }


def test_without_nvlink_what_lies_between_counts():
    levels = {"GPU-1": 0, "GPU-2": 10, "GPU-3": 20, "GPU-4": 30, "GPU-5": 40}
    others = [FakeGpu(name) for name in (*levels, "GPU-6")]
    first, *_ = read_gpus(FakeNvml([FakeGpu("GPU-0", levels=levels), *others]))
    assert list(first.links.values()) == [
        Distance.BOARD,
        Distance.SWITCH,
        Distance.SWITCHES,
        Distance.BRIDGE,
        Distance.NUMA,
    ], "and the driver does not say how far the last one is"


def test_distances_reach_the_report():
    first, *_ = read_gpus(quads())
    assert describe(first).links["GPU-1"] == 0
    assert describe(first).slots == {"cuda.device": 1000}


def test_fake_devices_lie_as_they_are_told_to():
    found = FakeAccelerator(count=8, linked=4, numa_nodes=2, node="a").discover()
    links = found[0].links
    assert [links[d.id] for d in found[1:]] == [Distance.DIRECT] * 3 + [
        Distance.SYSTEM
    ] * 4
    assert FakeAccelerator(count=2, node="a").discover()[0].links == {}


# --- what is cut ------------------------------------------------------------------


def test_instances_are_reported_with_the_slices_where_they_lie():
    [gpu] = read_gpus(FakeNvml([cut()]))
    device = describe(gpu)
    assert device.profiles == {SMALL: [0b1, 0b10], LARGE: [0b11110000]}
    assert device.slots == {}, "one in MIG mode is not given whole"
    assert device.offer == {SMALL: 2000, LARGE: 1000}
    assert describe(gpu, ["MIG-b"]).profiles[SMALL] == [0b1]


def test_a_kind_of_instance_with_a_plus_has_a_slot_too():
    instance = FakeInstance("MIG-a", 20, start=0, size=1, group=1)
    [gpu] = read_gpus(FakeNvml([FakeGpu("GPU-0", mig=True, instances=[instance])]))
    assert list(describe(gpu).profiles) == ["cuda.device:1g.5gb.me-mig"]


def test_a_gpu_that_could_be_cut_and_is_not_is_given_whole():
    [gpu] = read_gpus(FakeNvml([FakeGpu("GPU-0", mig=False)]))
    assert describe(gpu).slots == {"cuda.device": 1000}


def test_instances_that_share_their_memory_are_not_offered():
    gpu = cut()
    gpu.instances.append(FakeInstance("MIG-d", 9, 4, 4, group=2, member=1))
    [found] = read_gpus(FakeNvml([gpu]))
    assert [i.uuid for i in found.instances] == ["MIG-a", "MIG-b"]
    assert "several compute instances" in found.problem


def test_who_may_not_see_where_instances_lie_offers_none_and_says_why():
    [found] = read_gpus(FakeNvml([cut()], is_root=False))
    assert describe(found).offer == {}
    assert found.problem.startswith("Insufficient Permissions")


def test_what_is_not_offered_is_logged_once(caplog):
    nvml = FakeNvml([cut()], is_root=False)
    accelerator = CudaAccelerator(lambda: list(read_gpus(nvml)), root="/nonexistent")
    accelerator.discover()
    accelerator.discover()
    told = [r for r in caplog.records if "Insufficient Permissions" in r.message]
    assert len(told) == 1


def test_a_container_sees_its_own_instance_and_no_other(tmp_path):
    minors = tmp_path / "proc/driver/nvidia-caps/mig-minors"
    minors.parent.mkdir(parents=True)
    minors.write_text(
        "config 1\ngpu0/gi9/access 84\ngpu0/gi9/ci0/access 85\n"
        "gpu0/gi10/access 93\ngpu0/gi10/ci0/access 94\n"
    )
    nvml = FakeNvml([cut()])
    accelerator = CudaAccelerator(lambda: list(read_gpus(nvml)), root=str(tmp_path))
    accelerator.discover()
    share = DeviceShare(device="GPU-0", slot=SMALL, amount=1000, slices=0b10)
    patch = accelerator.attach([share])
    assert patch.devices == ("nvidia.com/gpu=MIG-b",)
    assert patch.nodes == (
        "/dev/nvidia0",
        "/dev/nvidia-caps/nvidia-cap93",
        "/dev/nvidia-caps/nvidia-cap94",
    )
    assert patch.environ == {
        "NVIDIA_VISIBLE_DEVICES": "MIG-b",
        "CUDA_VISIBLE_DEVICES": "MIG-b",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "GPU_TYPE": "cuda",
        "GPU_MODEL_NAME": "H100 MIG 1g.5gb",
        "GPU_COUNT": "1",
        "N_GPUS": "1",
        "GPU_CONFIG": "0:10g",
        "TF_GPU_MEMORY_ALLOC": "10240",
    }


@pytest.mark.parametrize(
    "share",
    [
        DeviceShare(device="GPU-0", slot=SMALL, amount=1000, slices=0b100),
        DeviceShare(device="GPU-0", slot=LARGE, amount=1000, slices=0b1),
        DeviceShare(device="GPU-0", slot="cuda.device", amount=1000),
    ],
)
def test_an_instance_that_is_not_there_any_more_is_refused(share):
    nvml = FakeNvml([cut()])
    accelerator = CudaAccelerator(lambda: list(read_gpus(nvml)), root="/nonexistent")
    accelerator.discover()
    with pytest.raises(RuntimeFailure, match="not on this node any more"):
        accelerator.attach([share])


def test_what_shows_a_right_to_an_instance_need_not_be_writable(tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    right, gpu = tmp_path / "nvidia-caps" / "nvidia-cap93", tmp_path / "nvidia0"
    right.parent.mkdir()
    for node in (right, gpu):
        node.touch()
        node.chmod(0o444)
    check_can_be_opened(right)
    with pytest.raises(RuntimeFailure, match="closed to sessions"):
        check_can_be_opened(gpu)
    right.chmod(0o400)
    with pytest.raises(RuntimeFailure, match="closed to sessions"):
        check_can_be_opened(right)


def test_fake_devices_are_cut_like_known_ones():
    [device] = FakeAccelerator(count=1, cut_like="a100-40", node="a").discover()
    assert device.offer == {
        "cuda.device": 1000,
        "cuda.device:1g.5gb-mig": 7000,
        "cuda.device:1g.10gb-mig": 4000,
        "cuda.device:2g.10gb-mig": 3000,
        "cuda.device:3g.20gb-mig": 2000,
        "cuda.device:4g.20gb-mig": 1000,
        "cuda.device:7g.40gb-mig": 1000,
    }


def test_fake_devices_have_the_instances_that_were_made():
    accelerator = FakeAccelerator(
        count=2, cut_like="h100-80", cut_count=1, node="a",
        instances=["3g.40gb", "1g.10gb", "1g.10gb"],
    )  # fmt: skip
    first, second = accelerator.discover()
    assert first.offer == {
        "cuda.device:3g.40gb-mig": 1000,
        "cuda.device:1g.10gb-mig": 2000,
    }
    assert second.offer == {"cuda.device": 1000}
    with pytest.raises(TraitError, match=r"has no '1g\.5gb'"):
        FakeAccelerator(cut_like="h100-80", instances=["1g.5gb"])
    with pytest.raises(TraitError, match="do not fit together"):
        FakeAccelerator(cut_like="h100-80", instances=["4g.40gb", "4g.40gb"])


def test_two_containers_see_different_fake_instances_of_one_device():
    accelerator = FakeAccelerator(count=1, cut_like="a100-40", node="a")
    [device] = accelerator.discover()
    seen = {
        accelerator.attach(
            [DeviceShare(device=device.id, slot=SMALL, amount=1000, slices=place)]
        ).environ["BACKENDAI_FAKE_DEVICES"]
        for place in (0b1, 0b10)
    }
    assert len(seen) == 2
    assert all(name.startswith("FAKE-MIG-") for name in seen)


# --- rules that both sides share ----------------------------------------------------


def test_what_a_device_offers_is_what_the_scheduler_can_cut():
    for like in ("a100-40", "h100-80", "h200"):
        [device] = FakeAccelerator(count=1, cut_like=like, node="a").discover()
        profiles = tuple((s, tuple(p)) for s, p in device.profiles.items())
        for slot, places in device.profiles.items():
            assert count_places(places) == Slicing(profiles).most(0, slot)


def test_places_that_overlap_count_as_far_as_they_can_be_taken_together():
    assert count_places([0b0110, 0b0011, 0b1100]) == 2
    assert count_places([0b1111, 0b0001, 0b1000]) == 2


@pytest.mark.parametrize("place", [0, -1, 1 << 16])
def test_slices_that_nobody_could_reckon_with_are_refused(place):
    with pytest.raises(InvalidRequestError, match="at most 16 slices"):
        Device(id="g", slots={}, profiles={SMALL: [place]}).check()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"slots": {"cuda.device": -1000}}, "-1000 of cuda.device is not between 0"),
        ({"slots": {"cuda.device": 1 << 66}}, "is not between 0 and"),
        ({"slots": {"x" * 300: 5}}, "of at most 128 characters"),
        ({"slots": dict.fromkeys(map(str, range(33)), 1)}, "at most 32 slots"),
        ({"model": "a\0b"}, "that can be printed"),
        ({"kind": "k" * 65}, "that can be printed"),
        ({"profiles": {"\0": [1]}}, "that can be printed"),
        ({"profiles": {SMALL: [1] * 1025}}, "in 1024 places"),
        ({"links": {"h": 1 << 70}}, "no distance or NUMA node above"),
        ({"links": dict.fromkeys(map(str, range(1025)), 1)}, "at most 1024 other"),
        ({"numa": 1 << 40}, "no distance or NUMA node above"),
    ],
)
def test_what_nobody_could_store_is_refused_with_what_it_is(said, words):
    with pytest.raises(InvalidRequestError, match=words):
        Device(**{"id": "g", "slots": {}, **said}).check()


@pytest.mark.parametrize("most", [-1, 1 << 40])
def test_a_node_takes_a_number_of_containers_that_can_be_counted(most):
    with pytest.raises(InvalidRequestError, match=f"max_containers: {most} is not"):
        check_node({}, most)


# --- one slice is never in two containers --------------------------------------------


def wanting(name: str, *shares: tuple[str, int]) -> ContainerSpec:
    return ContainerSpec(
        id=name,
        session_id=name,
        desired=DesiredState.RUNNING,
        shares=[
            DeviceShare(device=device, slot=SMALL, amount=1000, slices=slices)
            for device, slices in shares
        ],
    )


def decide(new: ContainerSpec, *held: str) -> object:
    """Say what becomes of *new* while a container that nobody names holds *held*."""
    old = Record(session_id="old", phase=Phase.READY, began=True, devices=list(held))
    seen = Observed(id="old", session_id="old", running=True)
    actions = diff([new], [seen], past={"old": old}, busy={}, whole={"g"})
    [action] = [a for a in actions if isinstance(a, (Start, Wait))]
    return type(action)


def test_who_comes_next_waits_for_the_slices_of_who_was_before():
    assert decide(wanting("new", ("g", 0b11)), "g#1") is Wait
    assert decide(wanting("new", ("g", 0b11)), "g#2") is Start
    assert decide(wanting("new", ("g", 0b11)), "g") is Wait
    assert decide(wanting("new", ("g", 0)), "g#2") is Wait
    assert decide(wanting("new", ("g", 0)), "g2#2", "h") is Start


def test_an_instance_of_the_same_kind_elsewhere_is_another_one():
    gpu = Gpu("GPU-0", "H100", 80 * GIB, cut=True, instances=[
        Instance("MIG-a", "1g.5gb", 0b1, GIB, 1, 0),
    ])  # fmt: skip
    moved = replace(gpu, instances=[replace(gpu.instances[0], slices=0b10)])
    assert describe(gpu) != describe(moved)
