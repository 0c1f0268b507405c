"""What this node has to hand out, and how a container gets its part of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from backendai_agent.accelerators.base import Accelerator
from backendai_agent.apart import Apart
from backendai_agent.logs import Log
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device

DISCOVERY_SECONDS = 30.0


class Inventory:
    """The devices of every accelerator plugin."""

    def __init__(self, accelerators: Sequence[Accelerator], *, log: Log) -> None:
        self._accelerators = tuple(
            (a, Apart(f"looking for {a.name}")) for a in accelerators
        )
        self._log = log
        self._keepers: dict[str, Accelerator] = {}
        self.devices: list[Device] = []

    async def discover(self) -> None:
        """Ask every plugin what is here; one that fails has nothing."""
        devices: list[Device] = []
        keepers: dict[str, Accelerator] = {}
        for accelerator, apart in self._accelerators:
            try:
                found = await apart.call(accelerator.discover, DISCOVERY_SECONDS)
            except Exception:  # noqa: BLE001 - a vendor's library must not stop us
                self._log.exception("accelerator %s failed", accelerator.name)
                continue
            devices += found
            keepers |= dict.fromkeys((device.id for device in found), accelerator)
        self.devices, self._keepers = devices, keepers

    def list_whole(self) -> set[str]:
        """List the devices that one container at a time may have."""
        return {device.id for device in self.devices if device.whole}

    async def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Build what shows a container its *shares* and no other device.

        Every plugin is asked, also without a share: hiding is its work too.
        """
        unknown = {s.device for s in shares if s.device not in self._keepers}
        if unknown:
            raise RuntimeFailure(
                f"device {', '.join(sorted(unknown))} is not on this node any more"
            )
        patches = []
        for accelerator, _ in self._accelerators:
            own = [s for s in shares if self._keepers[s.device] is accelerator]
            patches.append(await asyncio.to_thread(accelerator.attach, own))
        return merge_patches(patches)


def merge_patches(patches: Sequence[ContainerPatch]) -> ContainerPatch:
    """Join what several plugins want; later ones win over earlier ones."""
    environ: dict[str, str] = {}
    for patch in patches:
        environ |= patch.environ
    return ContainerPatch(
        environ=environ,
        devices=tuple(device for patch in patches for device in patch.devices),
        nodes=tuple(node for patch in patches for node in patch.nodes),
        mounts=tuple(mount for patch in patches for mount in patch.mounts),
    )
