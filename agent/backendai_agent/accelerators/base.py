"""What an accelerator plugin must do: say what is here, and hand it over.

One may also have ``measure()``, which lists a ``DeviceReading`` for each device (and
each instance) whose use it can tell. It is called on a thread of its own every few
seconds; while it has not come back, its devices have not been measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from backendai_agent.runtimes.base import ContainerPatch
from backendai_hub.api.agents import DeviceShare
from backendai_hub.core.agents import Device


class Accelerator(Protocol):
    """Devices of one kind on this node."""

    name: str

    def discover(self) -> Sequence[Device]:
        """List the devices; a node without a driver simply has none."""

    def attach(self, shares: Sequence[DeviceShare]) -> ContainerPatch:
        """Make the container see its own devices and no others."""
