"""Accelerators that are not there, for trying the platform without any."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from traitlets import Bool, Dict, Int, Unicode, default
from traitlets.config import Configurable

from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device

_NAMESPACE = uuid.UUID("6b4f9a52-6a0e-4d7e-9f0b-0d5c2f6f7a11")


class FakeAccelerator(Configurable):
    """A number of devices with stable ids; fewer after the number was lowered."""

    name = "fake"

    count = Int(8, min=0, help="How many devices the node seems to have.").tag(
        config=True
    )
    model = Unicode("Fake GPU", help="What the devices call themselves.").tag(
        config=True
    )
    slots = Dict(
        key_trait=Unicode(),
        value_trait=Int(),
        default_value={"cuda.device": 1000},
        help="What each device offers, in smallest units.",
    ).tag(config=True)
    whole = Bool(default_value=True, help="Give devices undivided to sessions.").tag(
        config=True
    )
    numa_nodes = Int(1, min=1, help="Over how many NUMA nodes they are spread.").tag(
        config=True
    )
    node = Unicode(help="Sets this node's devices apart from other nodes'.").tag(
        config=True
    )

    @default("node")
    def _default_node(self) -> Any:
        return getattr(self.parent, "name", "")

    def discover(self) -> Sequence[Device]:
        """List the devices; the same ones at every start."""
        return [
            Device(
                id=f"FAKE-{uuid.uuid5(_NAMESPACE, f'{self.node}:{index}')}",
                slots=dict(self.slots),
                kind="fake",
                model=self.model,
                numa=index * self.numa_nodes // self.count,
                whole=self.whole,
            )
            for index in range(self.count)
        ]

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Tell the container which devices it would have."""
        ids = dict.fromkeys(s.device for s in shares if s.device.startswith("FAKE-"))
        if not ids:
            return ContainerPatch()
        return ContainerPatch(
            environ={
                "BACKENDAI_FAKE_DEVICES": ",".join(ids),
                "GPU_TYPE": "fake",
                "GPU_MODEL_NAME": self.model,
                "GPU_COUNT": str(len(ids)),
                "N_GPUS": str(len(ids)),
            }
        )
