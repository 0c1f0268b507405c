"""NVIDIA GPUs, as whole devices."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from traitlets import List, Unicode
from traitlets.config import Configurable

from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device
from backendai_hub.core.slots import MILLI

SLOT: Final = "cuda.device"
SHARED_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Device nodes that every program needs, whichever GPU it uses."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it; ``memory`` is bytes.

    ``minor`` is the number in the name of its device node.
    """

    uuid: str
    model: str
    memory: int
    numa: int | None = None
    minor: int | None = None


class CudaAccelerator(Configurable):
    """GPUs that NVML can see. A node without the driver simply has none."""

    name = "cuda"

    masked = List(Unicode(), help="UUIDs of GPUs that are not for sessions.").tag(
        config=True
    )
    root = Unicode("/", help="Where the system's /dev lies.")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._gpus: dict[str, Gpu] = {}

    def discover(self) -> Sequence[Device]:
        """List the GPUs by their UUIDs, which restarts do not change."""
        found = [gpu for gpu in find_gpus() if gpu.uuid not in self.masked]
        self._gpus = {gpu.uuid: gpu for gpu in found}
        if found:
            make_memory_node(Path(self.root))
        return [
            Device(
                id=gpu.uuid,
                slots={SLOT: MILLI},
                kind="cuda",
                model=gpu.model,
                numa=gpu.numa,
                whole=True,
            )
            for gpu in found
        ]

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Show the container its own GPUs; without a share it sees none."""
        wanted = [share.device for share in shares if share.slot == SLOT]
        absent = [uuid for uuid in wanted if uuid not in self._gpus]
        if absent:
            raise RuntimeFailure(
                f"GPU {', '.join(absent)} is not on this node any more"
            )
        return patch_for([self._gpus[uuid] for uuid in wanted], Path(self.root))


def patch_for(gpus: Sequence[Gpu], root: Path = Path("/")) -> ContainerPatch:
    """Build what makes exactly *gpus* visible, and tells programs about them.

    The variable that CUDA itself reads matters where nothing hides the devices of
    others: in sessions without isolation.
    """
    uuids = ",".join(gpu.uuid for gpu in gpus)
    environ = {"NVIDIA_VISIBLE_DEVICES": uuids or "void", "CUDA_VISIBLE_DEVICES": uuids}
    if gpus:
        sizes = [f"{i}:{gpu.memory >> 30}g" for i, gpu in enumerate(gpus)]
        environ |= {
            "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
            "GPU_TYPE": "cuda",
            "GPU_MODEL_NAME": gpus[0].model,
            "GPU_COUNT": str(len(gpus)),
            "N_GPUS": str(len(gpus)),
            "GPU_CONFIG": ",".join(sizes),
            "TF_GPU_MEMORY_ALLOC": str(min(gpu.memory for gpu in gpus) >> 20),
        }
    return ContainerPatch(
        environ=environ,
        devices=tuple(f"nvidia.com/gpu={gpu.uuid}" for gpu in gpus),
        nodes=tuple(find_nodes(gpus, root)),
    )


def find_nodes(gpus: Sequence[Gpu], root: Path) -> Iterator[str]:
    """Yield the device nodes of *gpus*, and those that belong to none or all."""
    for gpu in gpus:
        if gpu.minor is not None:
            yield f"/dev/nvidia{gpu.minor}"
    for name in SHARED_NODES if gpus else ():
        if (root / "dev" / name).exists():
            yield f"/dev/{name}"


def make_memory_node(root: Path) -> None:
    """Have the driver's own tool make the node for CUDA's memory, if it is missing.

    Outside a session the first CUDA program would do that; a session may not.
    """
    program = shutil.which("nvidia-modprobe")
    if program is None or (root / "dev/nvidia-uvm").exists():
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - the driver's own tool
            [program, "-c", "0", "-u"], capture_output=True, timeout=20, check=False
        )


def find_gpus() -> list[Gpu]:
    """Ask NVML for the GPUs of this node; none if it is not installed."""
    try:
        import pynvml  # noqa: PLC0415 - a node without GPUs need not load it
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(_read_gpus(pynvml))
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _read_gpus(nvml: Any) -> Iterator[Gpu]:
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            yield Gpu(
                uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
                model=_text(nvml.nvmlDeviceGetName(handle)),
                memory=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
                minor=int(nvml.nvmlDeviceGetMinorNumber(handle)),
                numa=_read_numa(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
            )
        except nvml.NVMLError:
            continue  # fallen off the bus: the others are still good


def _read_numa(bus: str, root: Path = Path("/sys/bus/pci/devices")) -> int | None:
    domain, _, rest = bus.lower().partition(":")
    path = root / f"{domain[-4:]}:{rest}" / "numa_node"
    try:
        node = int(path.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _text(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else given
