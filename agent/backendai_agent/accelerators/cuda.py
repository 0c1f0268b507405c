"""NVIDIA GPUs, as whole devices or as the instances that they are cut into."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from traitlets import List, Unicode
from traitlets.config import LoggingConfigurable

from backendai_agent.accelerators.nvml import Gpu, Instance, find_gpus, measure_gpus
from backendai_agent.measuring.readings import DeviceReading
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device
from backendai_hub.core.slots import MILLI

SLOT: Final = "cuda.device"
SHARED_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
"""Device nodes that every program needs, whichever GPU it uses."""
_CAPABILITIES: Final = "proc/driver/nvidia-caps/mig-minors"


class CudaAccelerator(LoggingConfigurable):
    """GPUs that NVML can see. A node without the driver simply has none."""

    name = "cuda"

    masked = List(
        Unicode(), help="UUIDs of GPUs, or of their instances, not for sessions."
    ).tag(config=True)
    root = Unicode("/", help="Where the system's /dev lies.")

    def __init__(
        self, find: Callable[[], Sequence[Gpu]] = find_gpus, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._find_gpus = find
        self._gpus: dict[str, Gpu] = {}
        self._problems: set[str] = set()

    def discover(self) -> Sequence[Device]:
        """List the GPUs by their UUIDs, which restarts do not change."""
        found = [gpu for gpu in self._find_gpus() if gpu.uuid not in self.masked]
        self._gpus = {gpu.uuid: gpu for gpu in found}
        if found:
            make_memory_node(Path(self.root))
        self._tell({f"{g.uuid}: {g.problem}" for g in found if g.problem})
        return [describe(gpu, self.masked) for gpu in found]

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Show the container its own GPUs or instances; without a share it sees none.

        What is not on this node any more is refused.
        """
        parts = [self._find(share) for share in shares]
        root = Path(self.root)
        gpus = [gpu for gpu, instance in parts if instance is None]
        instances = [(gpu, instance) for gpu, instance in parts if instance is not None]
        if gpus and instances:
            raise RuntimeFailure("CUDA uses either GPUs or instances of GPUs, not both")
        if instances:
            return patch_for_instances(instances, root)
        return patch_for(gpus, root)

    def measure(self) -> Sequence[DeviceReading]:
        """Tell how busy GPUs and their instances are, as far as the driver says."""
        if not self._gpus:
            return []
        return [
            reading
            for reading in measure_gpus(self._gpus)
            if reading.device not in self.masked
        ]

    def _find(self, share: DeviceShare) -> tuple[Gpu, Instance | None]:
        gpu = self._gpus.get(share.device)
        if gpu is not None and not share.slices and not gpu.cut:
            return gpu, None
        for instance in () if gpu is None else gpu.instances:
            name = slot_of(instance)
            if (name, instance.slices) == (share.slot, share.slices):
                return self._gpus[share.device], instance
        part = "" if not share.slices else f"the instance {share.slot} of "
        raise RuntimeFailure(
            f"{part}GPU {share.device} is not on this node any more, as it was"
        )

    def _tell(self, problems: set[str]) -> None:
        for problem in sorted(problems - self._problems):
            self.log.warning("instances that are not offered: %s", problem)
        self._problems = problems


def slot_of(instance: Instance) -> str:
    """Return by which slot an instance is asked for."""
    return f"{SLOT}:{instance.profile.replace('+', '.')}-mig"


def describe(gpu: Gpu, masked: Sequence[str] = ()) -> Device:
    """Describe a GPU to the hub service; one that is cut is given in instances only."""
    profiles: dict[str, list[int]] = {}
    for instance in gpu.instances:
        if instance.uuid not in masked:
            profiles.setdefault(slot_of(instance), []).append(instance.slices)
    return Device(
        id=gpu.uuid,
        slots={} if gpu.cut else {SLOT: MILLI},
        kind="cuda",
        model=gpu.model,
        numa=gpu.numa,
        whole=True,
        links=dict(gpu.links),
        profiles={slot: sorted(places) for slot, places in sorted(profiles.items())},
    )


def patch_for(gpus: Sequence[Gpu], root: Path = Path("/")) -> ContainerPatch:
    """Build what makes exactly *gpus* visible, and tells programs about them."""
    return ContainerPatch(
        environ=_environ(
            [gpu.uuid for gpu in gpus],
            [gpu.memory for gpu in gpus],
            gpus[0].model if gpus else "",
        ),
        devices=tuple(f"nvidia.com/gpu={gpu.uuid}" for gpu in gpus),
        nodes=tuple(find_nodes(gpus, root)),
    )


def patch_for_instances(
    parts: Sequence[tuple[Gpu, Instance]], root: Path = Path("/")
) -> ContainerPatch:
    """Build what makes exactly these instances visible.

    Their GPUs' own device nodes are there too, and open no instance: that takes the
    node of a capability for each.
    """
    gpus = list({gpu.uuid: gpu for gpu, _ in parts}.values())
    model, profile = parts[0][0].model, parts[0][1].profile
    return ContainerPatch(
        environ=_environ(
            [instance.uuid for _, instance in parts],
            [instance.memory for _, instance in parts],
            f"{model} MIG {profile}",
        ),
        devices=tuple(f"nvidia.com/gpu={instance.uuid}" for _, instance in parts),
        nodes=(*find_nodes(gpus, root), *find_capabilities(parts, root)),
    )


def _environ(uuids: Sequence[str], memory: Sequence[int], model: str) -> dict[str, str]:
    """Build what tells programs which GPUs they have.

    The variable that CUDA itself reads matters where nothing hides the devices of
    others: in sessions without isolation.
    """
    named = ",".join(uuids)
    environ = {"NVIDIA_VISIBLE_DEVICES": named or "void", "CUDA_VISIBLE_DEVICES": named}
    if not uuids:
        return environ
    return environ | {
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "GPU_TYPE": "cuda",
        "GPU_MODEL_NAME": model,
        "GPU_COUNT": str(len(uuids)),
        "N_GPUS": str(len(uuids)),
        "GPU_CONFIG": ",".join(f"{i}:{size >> 30}g" for i, size in enumerate(memory)),
        "TF_GPU_MEMORY_ALLOC": str(min(memory) >> 20),
    }


def find_nodes(gpus: Sequence[Gpu], root: Path) -> Iterator[str]:
    """Yield the device nodes of *gpus*, and those that belong to none or all."""
    for gpu in gpus:
        if gpu.minor is not None:
            yield f"/dev/nvidia{gpu.minor}"
    for name in SHARED_NODES if gpus else ():
        if (root / "dev" / name).exists():
            yield f"/dev/{name}"


def find_capabilities(
    parts: Sequence[tuple[Gpu, Instance]], root: Path
) -> Iterator[str]:
    """Yield the device nodes by which the driver lets a program use an instance."""
    minors = _read_minors(root)
    for gpu, instance in parts:
        group = f"gpu{gpu.minor}/gi{instance.group}"
        for name in (f"{group}/access", f"{group}/ci{instance.member}/access"):
            if name in minors:
                yield f"/dev/nvidia-caps/nvidia-cap{minors[name]}"


def _read_minors(root: Path) -> Mapping[str, str]:
    try:
        lines = (root / _CAPABILITIES).read_text("ascii").splitlines()
    except OSError:
        return {}
    return dict(line.split() for line in lines if len(line.split()) == 2)


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
