"""Accelerators that are not there, for trying the platform without any."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from traitlets import (
    Bool,
    Dict,
    Enum,
    Float,
    Int,
    List,
    TraitError,
    Unicode,
    default,
    validate,
)
from traitlets.config import Configurable

from backendai_agent.measuring.readings import DeviceReading
from backendai_agent.measuring.waves import Wave
from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device, Distance

_NAMESPACE = uuid.UUID("6b4f9a52-6a0e-4d7e-9f0b-0d5c2f6f7a11")
_PLACES: Final = MappingProxyType(
    {
        "1g": (1, range(7)),
        "1g+": (2, range(0, 8, 2)),
        "2g": (2, range(0, 6, 2)),
        "3g": (4, range(0, 8, 4)),
        "4g": (4, range(1)),
        "7g": (8, range(1)),
    }
)
"""How many of eight slices an instance takes, and where it may begin."""
_MAKES: Final = MappingProxyType(
    {
        "a100-40": ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
        "h100-80": ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),
        "h200": ("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
    }
)
"""What instances of each kind are called, in the order of the places."""


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
    linked = Int(
        0,
        min=0,
        help="How many devices in a row have fast links among each other: 4 for two"
        " quads of eight, 8 for all of them; 0 for none.",
    ).tag(config=True)
    cut_like = Enum(
        ("", *_MAKES),
        default_value="",
        help="As what make of GPU the devices can be cut into instances; empty: they"
        " cannot.",
    ).tag(config=True)
    cut_count = Int(
        1 << 16, min=0, help="How many of the devices can be cut: the first ones."
    ).tag(config=True)
    instances = List(
        Unicode(),
        help="Which instances a device that can be cut has, such as ['3g.40gb',"
        " '1g.10gb'], as if an administrator had made them. Without any, each is made"
        " when it is asked for, and the device is given whole while there is none.",
    ).tag(config=True)
    busy = Float(
        0.6,
        min=0,
        max=1,
        help="How busy the devices seem to be, on average: 0 to 1.",
    ).tag(config=True)
    busy_swing = Float(
        0.3, min=0, max=1, help="By how much that goes up and down, in waves."
    ).tag(config=True)
    busy_seconds = Float(
        120.0, min=1, help="How long a wave takes; each device is at another place."
    ).tag(config=True)
    memory = Int(
        16 << 30, min=0, help="How much memory each device seems to have, in bytes."
    ).tag(config=True)
    hangs = Bool(
        default_value=False,
        help="Never come back when asked how busy devices are, as broken drivers do.",
    ).tag(config=True)
    node = Unicode(help="Sets this node's devices apart from other nodes'.").tag(
        config=True
    )

    @default("node")
    def _default_node(self) -> Any:
        return getattr(self.parent, "name", "")

    @validate("instances")
    def _check_instances(self, proposal: Any) -> Any:
        names = proposal["value"]
        known = _find_places(self.cut_like) if self.cut_like else {}
        unknown = [name for name in names if name not in known]
        if known and unknown:
            raise TraitError(
                f"FakeAccelerator.instances: {self.cut_like} has no {unknown[0]!r};"
                f" there are {', '.join(known)}"
            )
        if known and _lay(names, known) is None:
            raise TraitError(
                f"FakeAccelerator.instances: {', '.join(names)} do not fit together on"
                f" one {self.cut_like}"
            )
        return names

    def discover(self) -> Sequence[Device]:
        """List the devices; the same ones at every start."""
        return [self._describe(index) for index in range(self.count)]

    def measure(self) -> Sequence[DeviceReading]:
        """Tell how busy the devices would be, and their instances where fixed."""
        if self.hangs:
            threading.Event().wait()
        now = time.time()
        found = []
        for index in range(self.count):
            wave = Wave(self.busy, self.busy_swing, self.busy_seconds)
            busy = wave.at(now + index * self.busy_seconds / max(1, self.count))
            cut = self._profiles() if self._is_cut(index) and self.instances else {}
            places = [place for laid in cut.values() for place in laid] or [0]
            found += [
                DeviceReading(
                    device=self._id(index),
                    slices=place,
                    utilization=None if place else busy,
                    memory=int(busy * self._size(place)),
                    memory_limit=self._size(place),
                )
                for place in places
            ]
        return found

    def _is_cut(self, index: int) -> bool:
        return bool(self.cut_like) and index < self.cut_count

    def _size(self, slices: int) -> int:
        return self.memory * slices.bit_count() // 8 if slices else self.memory

    def _describe(self, index: int) -> Device:
        cut = self._is_cut(index)
        return Device(
            id=self._id(index),
            slots={} if cut and self.instances else dict(self.slots),
            kind="fake",
            model=self.model,
            numa=self._numa(index),
            whole=self.whole,
            links=self._links(index),
            profiles=self._profiles() if cut else {},
        )

    def _id(self, index: int) -> str:
        return f"FAKE-{uuid.uuid5(_NAMESPACE, f'{self.node}:{index}')}"

    def _numa(self, index: int) -> int:
        return index * self.numa_nodes // self.count

    def _links(self, index: int) -> dict[str, int]:
        if not self.linked:
            return {}
        return {
            self._id(other): int(
                Distance.DIRECT
                if index // self.linked == other // self.linked
                else Distance.NUMA
                if self._numa(index) == self._numa(other)
                else Distance.SYSTEM
            )
            for other in range(self.count)
            if other != index
        }

    def _profiles(self) -> dict[str, list[int]]:
        """Return where which instances fit, or where those lie that there are."""
        fitting = _find_places(self.cut_like)
        if not self.instances:
            return {slot_of(name): places for name, places in fitting.items()}
        laid: dict[str, list[int]] = {}
        places = _lay(self.instances, fitting) or ()
        for name, place in zip(self.instances, places, strict=True):
            laid.setdefault(slot_of(name), []).append(place)
        return laid

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Tell the container which devices or instances it would have."""
        own = [s for s in shares if s.device.startswith("FAKE-")]
        ids = dict.fromkeys(_name(share) for share in own)
        if not ids:
            return ContainerPatch()
        part = own[0].slot.partition(":")[2].removesuffix("-mig")
        return ContainerPatch(
            environ={
                "BACKENDAI_FAKE_DEVICES": ",".join(ids),
                "GPU_TYPE": "fake",
                "GPU_MODEL_NAME": f"{self.model} MIG {part}" if part else self.model,
                "GPU_COUNT": str(len(ids)),
                "N_GPUS": str(len(ids)),
            }
        )


def _find_places(make: str) -> dict[str, list[int]]:
    """Return where instances of each kind fit on a GPU, as bits."""
    return {
        name: [((1 << size) - 1) << start for start in starts]
        for name, (size, starts) in zip(_MAKES[make], _PLACES.values(), strict=True)
    }


def slot_of(profile: str) -> str:
    """Return by which slot an instance is asked for."""
    return f"cuda.device:{profile}-mig"


def _name(share: DeviceShare) -> str:
    if not share.slices:
        return share.device
    place = f"{share.device}:{share.slot}:{share.slices}"
    return f"FAKE-MIG-{uuid.uuid5(_NAMESPACE, place)}"


def _lay(
    names: Sequence[str], fitting: Mapping[str, Sequence[int]], taken: int = 0
) -> list[int] | None:
    """Find a place for each of some instances; None if they do not fit together."""
    if not names:
        return []
    for place in fitting.get(names[0], ()):
        if not place & taken:
            rest = _lay(names[1:], fitting, taken | place)
            if rest is not None:
                return [place, *rest]
    return None
