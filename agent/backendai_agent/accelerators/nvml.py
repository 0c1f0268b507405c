"""What NVIDIA's management library tells of the GPUs of a node.

The library is a parameter everywhere, so that what it tells can be played back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from backendai_agent.measuring.readings import DeviceReading
from backendai_hub.core.agents import MOST_SLICES, Distance

_DISTANCES: Final[Mapping[int, Distance]] = MappingProxyType(
    {
        0: Distance.BOARD,  # NVML_TOPOLOGY_INTERNAL
        10: Distance.SWITCH,  # …_SINGLE
        20: Distance.SWITCHES,  # …_MULTIPLE
        30: Distance.BRIDGE,  # …_HOSTBRIDGE
        40: Distance.NUMA,  # …_NODE
        50: Distance.SYSTEM,  # …_SYSTEM
    }
)
_PROFILES: Final = 64
"""More kinds of instance than any driver numbers."""


@dataclass(frozen=True)
class Instance:
    """One instance of a GPU in MIG mode, made by an administrator.

    ``slices`` are where it lies, as bits; ``group`` and ``member`` are the numbers of
    its GPU instance and of the compute instance in that.
    """

    uuid: str
    profile: str
    slices: int
    memory: int
    group: int
    member: int


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it; ``memory`` is bytes.

    ``minor`` is the number in the name of its device node; ``links`` say how far other
    GPUs are, by UUID. One that is ``cut``, which is in MIG mode, can be used through
    its ``instances`` alone; ``problem`` says why some of these cannot be told.
    """

    uuid: str
    model: str
    memory: int
    numa: int | None = None
    minor: int | None = None
    links: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False
    instances: Sequence[Instance] = ()
    problem: str = ""


def find_gpus() -> list[Gpu]:
    """Ask NVML for the GPUs of this node; none if it is not installed."""
    with open_nvml() as nvml:
        return [] if nvml is None else list(read_gpus(nvml))


def measure_gpus(known: Mapping[str, Gpu]) -> list[DeviceReading]:
    """Ask NVML how busy these GPUs are, by UUID."""
    with open_nvml() as nvml:
        return [] if nvml is None else list(read_use(nvml, known))


@contextlib.contextmanager
def open_nvml() -> Iterator[Any]:
    """Open the library, and close it again: who keeps it open is in the way.

    Nobody could reset a GPU, or change how it is cut, meanwhile. None if there is none.
    """
    try:
        import pynvml  # noqa: PLC0415 - a node without GPUs need not load it
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def read_use(nvml: Any, known: Mapping[str, Gpu]) -> Iterator[DeviceReading]:
    """Read how busy GPUs are, and their instances; of what fails, nothing."""
    for uuid, gpu in known.items():
        with contextlib.suppress(nvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            yield _read_use(nvml, handle, uuid)
        for instance in gpu.instances:
            with contextlib.suppress(nvml.NVMLError):
                handle = nvml.nvmlDeviceGetHandleByUUID(instance.uuid)
                yield _read_use(nvml, handle, uuid, instance.slices)


def _read_use(nvml: Any, handle: Any, uuid: str, slices: int = 0) -> DeviceReading:
    utilization = None
    with contextlib.suppress(nvml.NVMLError):  # of instances the driver tells none
        utilization = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return DeviceReading(
        device=uuid,
        slices=slices,
        utilization=utilization,
        memory=int(memory.used),
        memory_limit=int(memory.total),
    )


def read_gpus(nvml: Any) -> Iterator[Gpu]:
    """Read every GPU that answers."""
    handles: dict[str, Any] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        with contextlib.suppress(nvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            handles[_text(nvml.nvmlDeviceGetUUID(handle))] = handle
    for uuid in handles:
        try:
            yield _read_gpu(nvml, uuid, handles)
        except nvml.NVMLError:
            continue  # fallen off the bus: the others are still good


def _read_gpu(nvml: Any, uuid: str, handles: Mapping[str, Any]) -> Gpu:
    handle = handles[uuid]
    cut = _is_cut(nvml, handle)
    instances, problem = _try_instances(nvml, handle) if cut else ((), "")
    return Gpu(
        uuid=uuid,
        model=_text(nvml.nvmlDeviceGetName(handle)),
        memory=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        minor=int(nvml.nvmlDeviceGetMinorNumber(handle)),
        numa=read_numa(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        links={
            other: int(far)
            for other, there in handles.items()
            if other != uuid and (far := _measure(nvml, handle, there)) is not None
        },
        cut=cut,
        instances=instances,
        problem=problem,
    )


def _measure(nvml: Any, one: Any, other: Any) -> Distance | None:
    """Tell how far two GPUs are from each other; None if the driver does not say.

    NVLink is asked for by what goes over it, and not link by link: behind a switch
    every link leads to that.
    """
    with contextlib.suppress(nvml.NVMLError):
        state = nvml.nvmlDeviceGetP2PStatus(one, other, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
        if state == nvml.NVML_P2P_STATUS_OK:
            return Distance.DIRECT
    try:
        return _DISTANCES.get(nvml.nvmlDeviceGetTopologyCommonAncestor(one, other))
    except nvml.NVMLError:
        return None


def _is_cut(nvml: Any, handle: Any) -> bool:
    try:
        now, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return False  # not made for it
    return bool(now == nvml.NVML_DEVICE_MIG_ENABLE)


def _try_instances(nvml: Any, handle: Any) -> tuple[Sequence[Instance], str]:
    try:
        return _read_instances(nvml, handle)
    except nvml.NVMLError as error:
        return (), f"{error}; that takes an agent that runs as root"


def _read_instances(nvml: Any, handle: Any) -> tuple[Sequence[Instance], str]:
    """Read what a GPU is cut into.

    An instance that several share is left out: they would get each other's memory.
    """
    names = _read_profiles(nvml, handle)
    found: dict[int, list[Instance]] = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:
            continue  # nothing has that number
        group = int(nvml.nvmlDeviceGetGpuInstanceId(part))
        told = nvml.nvmlGpuInstanceGetInfo(
            nvml.nvmlDeviceGetGpuInstanceById(handle, group)
        )
        place = told.placement
        if told.profileId not in names or place.start + place.size > MOST_SLICES:
            continue
        instance = Instance(
            uuid=_text(nvml.nvmlDeviceGetUUID(part)),
            profile=names[told.profileId],
            slices=((1 << place.size) - 1) << place.start,
            memory=int(nvml.nvmlDeviceGetMemoryInfo(part).total),
            group=group,
            member=int(nvml.nvmlDeviceGetComputeInstanceId(part)),
        )
        found.setdefault(group, []).append(instance)
    shared = sorted(group for group, parts in found.items() if len(parts) > 1)
    problem = f"GPU instances {shared} have several compute instances" if shared else ""
    return [parts[0] for parts in found.values() if len(parts) == 1], problem


def _read_profiles(nvml: Any, handle: Any) -> dict[int, str]:
    """Return what kinds of instance are called, such as ``1g.10gb``, by their ids."""
    names = {}
    for index in range(_PROFILES):
        with contextlib.suppress(nvml.NVMLError):
            profile = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, index)
            names[int(profile.id)] = _text(profile.name).removeprefix("MIG ")
    return names


def read_numa(bus: str, root: Path = Path("/sys/bus/pci/devices")) -> int | None:
    """Tell at which NUMA node a PCI device is, if at any."""
    domain, _, rest = bus.lower().partition(":")
    path = root / f"{domain[-4:]}:{rest}" / "numa_node"
    try:
        node = int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _text(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else given
