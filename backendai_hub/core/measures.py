"""What an agent sends of what its containers and its node use, every few seconds.

It is sent beside the report, so that neither waits for the other, and is not sent
again: the next one is as good. Each struct travels as an array, without the names of
its fields; new fields come last. None is what could not be measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError

MOST_CONTAINERS: Final = 2000
MOST_DEVICES: Final = 64
_LONGEST_NAME: Final = 128
_MOST: Final = float(1 << 60)


class DeviceSample(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One device, or with ``slices`` (bits) one instance of it: 0 to 1, and bytes."""

    device: str
    slices: int = 0
    utilization: float | None = None
    memory: int | None = None
    memory_limit: int | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a container or a node uses: now, and in sums since its start.

    ``cpu`` is cores, ``memory`` bytes, rates are bytes in a second. A node says with
    ``cpu_limit`` and ``memory_limit`` what it has; of containers that is known.
    """

    id: str = ""
    cpu: float | None = None
    cpu_seconds: float | None = None
    memory: int | None = None
    read_rate: float | None = None
    write_rate: float | None = None
    receive_rate: float | None = None
    send_rate: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    devices: list[DeviceSample] = []
    cpu_limit: float | None = None
    memory_limit: int | None = None

    def check(self) -> None:
        """Refuse what nobody could measure, or keep."""
        if len(self.id) > _LONGEST_NAME or len(self.devices) > MOST_DEVICES:
            raise InvalidRequestError(
                f"a sample has an id of at most {_LONGEST_NAME} characters, and at most"
                f" {MOST_DEVICES} devices"
            )
        _check_numbers(
            getattr(self, name)
            for name in self.__struct_fields__
            if name not in {"id", "devices"}
        )
        for device in self.devices:
            if len(device.device) > _LONGEST_NAME:
                raise InvalidRequestError("the name of a device is too long")
            part = device.utilization
            _check_numbers((device.slices, part, device.memory, device.memory_limit))
            if part is not None and part > 1:
                raise InvalidRequestError("utilization is between 0 and 1")


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """All that a node has measured at one moment."""

    node: Sample = Sample()
    containers: list[Sample] = []

    def check(self) -> None:
        """Refuse what nobody could measure, or keep."""
        if len(self.containers) > MOST_CONTAINERS:
            raise InvalidRequestError(
                f"{len(self.containers)} containers were measured; at most"
                f" {MOST_CONTAINERS} are kept"
            )
        for sample in (self.node, *self.containers):
            sample.check()


def _check_numbers(numbers: Iterable[float | None]) -> None:
    for number in numbers:
        if number is not None and not (math.isfinite(number) and 0 <= number <= _MOST):
            raise InvalidRequestError(f"{number} cannot have been measured")
