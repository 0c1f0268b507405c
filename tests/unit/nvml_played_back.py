"""What NVIDIA's library says on machines we know, played back without a GPU.

It answers and refuses as the library does: by handles, numbers and its own errors.
"""

# ruff: noqa: N802 - the library's own names

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 1 << 30

A100_PROFILES = {19: "MIG 1g.5gb", 20: "MIG 1g.5gb+me", 14: "MIG 2g.10gb", 9: "3g.20gb"}
"""Their ids are the library's own; drivers differ in whether they say MIG."""


class NvmlError(Exception):
    """The library's own error."""


@dataclass
class FakeInstance:
    """A compute instance in a GPU instance, at some slices."""

    uuid: str
    profile: int
    start: int
    size: int
    group: int
    member: int = 0


@dataclass
class FakeGpu:
    """One GPU; *level* says how far each other one is, as the library numbers it."""

    uuid: str
    broken: bool = False
    mig: bool | None = None
    instances: list[FakeInstance] = field(default_factory=list)
    linked: tuple[str, ...] = ()
    levels: dict[str, int] = field(default_factory=dict)
    busy: int = 0


class FakeNvml:
    """The functions of ``pynvml`` that are used."""

    NVMLError = NvmlError
    NVML_DEVICE_MIG_ENABLE = 1
    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0

    def __init__(self, gpus: list[FakeGpu], *, is_root: bool = True) -> None:
        self.gpus = gpus
        self.is_root = is_root

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        if self.gpus[index].broken:
            raise NvmlError("GPU is lost")
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: FakeGpu | FakeInstance) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, _: FakeGpu) -> bytes:
        return b"H100"

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu | FakeInstance) -> Any:
        whole = isinstance(handle, FakeGpu)
        total = 80 * GIB if whole else handle.size * 10 * GIB
        return SimpleNamespace(total=total, used=total // 4)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu | FakeInstance:
        for gpu in self.gpus:
            for handle in (gpu, *gpu.instances):
                if handle.uuid == uuid and not gpu.broken:
                    return handle
        raise NvmlError("Not Found")

    def nvmlDeviceGetUtilizationRates(self, handle: FakeGpu | FakeInstance) -> Any:
        if isinstance(handle, FakeInstance) or handle.mig:
            raise NvmlError("Not Supported")
        return SimpleNamespace(gpu=handle.busy, memory=0)

    def nvmlDeviceGetMinorNumber(self, handle: FakeGpu) -> int:
        return self.gpus.index(handle)

    def nvmlDeviceGetPciInfo(self, handle: FakeGpu) -> Any:
        return SimpleNamespace(busId=f"00000000:{self.gpus.index(handle):02X}:00.0")

    def nvmlDeviceGetP2PStatus(self, one: FakeGpu, other: FakeGpu, index: int) -> int:
        assert index == self.NVML_P2P_CAPS_INDEX_NVLINK
        return self.NVML_P2P_STATUS_OK if other.uuid in one.linked else 5

    def nvmlDeviceGetTopologyCommonAncestor(self, one: FakeGpu, other: FakeGpu) -> int:
        if other.uuid not in one.levels:
            raise NvmlError("Not Supported")
        return one.levels[other.uuid]

    def nvmlDeviceGetMigMode(self, handle: FakeGpu) -> list[int]:
        if handle.mig is None:
            raise NvmlError("Not Supported")
        return [int(handle.mig), int(handle.mig)]

    def nvmlDeviceGetMaxMigDeviceCount(self, _: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(
        self, handle: FakeGpu, index: int
    ) -> FakeInstance:
        if index >= len(handle.instances):
            raise NvmlError("Not Found")
        return handle.instances[index]

    def nvmlDeviceGetGpuInstanceId(self, part: FakeInstance) -> int:
        return part.group

    def nvmlDeviceGetComputeInstanceId(self, part: FakeInstance) -> int:
        return part.member

    def nvmlDeviceGetGpuInstanceById(self, handle: FakeGpu, group: int) -> FakeInstance:
        if not self.is_root:
            raise NvmlError("Insufficient Permissions")
        return next(i for i in handle.instances if i.group == group)

    def nvmlGpuInstanceGetInfo(self, part: FakeInstance) -> Any:
        place = SimpleNamespace(start=part.start, size=part.size)
        return SimpleNamespace(profileId=part.profile, placement=place)

    def nvmlDeviceGetGpuInstanceProfileInfo(self, _: FakeGpu, index: int) -> Any:
        known = list(A100_PROFILES.items())
        if index >= len(known):
            raise NvmlError("Invalid Argument")
        number, name = known[index]
        return SimpleNamespace(id=number, name=name.encode())
