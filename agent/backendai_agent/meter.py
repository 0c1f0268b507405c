"""Measures the node, its containers and devices every few seconds, and says it.

Everything that may block does so on threads of its own, so that neither a heartbeat nor
another device ever waits. What cannot be measured in time is missing that time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from backendai_agent.accelerators.base import Accelerator
from backendai_agent.apart import Apart, StillAwayError
from backendai_agent.logs import Log
from backendai_agent.measuring.machine import read_machine
from backendai_agent.measuring.readings import DeviceReading, Reading
from backendai_hub.api.agents import ContainerSpec
from backendai_hub.core.agents import Device
from backendai_hub.core.measures import (
    MOST_CONTAINERS,
    MOST_DEVICES,
    DeviceSample,
    Measures,
    Sample,
)

PATIENCE: Final = 2.0
"""So many seconds a device, or the engine, has to answer."""
_LEAST_STEP: Final = 0.2
_SUMS: Final = ("read_bytes", "written_bytes", "received_bytes", "sent_bytes")
_RATES: Final = ("read_rate", "write_rate", "receive_rate", "send_rate")
NODE: Final = ""

Readings = Mapping[str, Reading]
DeviceKey = tuple[str, int]


@dataclass(frozen=True)
class Before:
    """What was read the last time, when, and how much sums had sunk by then."""

    at: float
    reading: Reading
    sunk: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Measurable:
    """What there is to measure: containers that run, and devices by their plugins."""

    runtime: Any
    accelerators: Sequence[Accelerator]
    running: Callable[[], list[ContainerSpec]]
    devices: Callable[[], list[Device]]


class Meter:
    """Measures for one agent; *tell* gets each document as it is to be sent."""

    def __init__(
        self,
        there: Measurable,
        *,
        tell: Callable[[bytes], None],
        log: Log,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._there = there
        self._measure_containers = getattr(there.runtime, "measure", None)
        self._tell = tell
        self._log = log
        self._clock = clock
        self._containers = Apart("measuring containers")
        self._machine = Apart("measuring the node")
        self._sources = [
            (Apart(f"measuring {accelerator.name}"), measure)
            for accelerator in there.accelerators
            if (measure := getattr(accelerator, "measure", None)) is not None
        ]
        self._silent: set[Apart] = set()
        self._before: dict[str, Before] = {}

    async def run(self, seconds: float) -> None:
        """Measure until cancelled; never, if it is every 0 seconds."""
        while seconds > 0:
            await asyncio.sleep(seconds)
            self._tell(msgspec.json.encode(await self.measure()))

    async def measure(self) -> Measures:
        """Measure everything once."""
        specs = self._there.running()[:MOST_CONTAINERS]
        sources = [self._try(apart, call, ()) for apart, call in self._sources]
        now = self._clock()
        containers, machine, *found = await asyncio.gather(
            self._try(self._containers, partial(self._read, specs), (now, {})),
            self._try(self._machine, self._read_machine, (now, Reading())),
            *sources,
        )
        devices = {(d.device, d.slices): d for told in found for d in told}
        return self._put_together(specs, containers, machine, devices)

    def _read(self, specs: list[ContainerSpec]) -> tuple[float, Readings]:
        """Read containers; rates are right only by the clock of just then."""
        began = self._clock()
        if self._measure_containers is None:
            return began, {}
        return began, self._measure_containers(specs)

    def _read_machine(self) -> tuple[float, Reading]:
        return self._clock(), read_machine()

    async def _try(self, apart: Apart, call: Callable[[], Any], nothing: Any) -> Any:
        """Return what *call* finds; nothing if it fails or takes too long."""
        try:
            found = await apart.call(call, PATIENCE)
        except StillAwayError:
            return nothing
        except Exception as error:  # noqa: BLE001 - a vendor's library must not stop us
            if apart not in self._silent:
                self._silent.add(apart)
                words = str(error) or type(error).__name__
                self._log.warning("%s does not work: %s", apart.name, words)
            return nothing
        self._silent.discard(apart)
        return found

    def _put_together(
        self,
        specs: list[ContainerSpec],
        containers: tuple[float, Readings],
        machine: tuple[float, Reading],
        devices: Mapping[DeviceKey, DeviceReading],
    ) -> Measures:
        read_at, readings = containers
        before, self._before = self._before, {}
        samples = []
        for spec in specs:
            reading = readings.get(spec.id)
            held = [devices[key] for key in self._list_held(spec) if key in devices]
            if reading is not None or held:
                samples.append(
                    self._sample(read_at, spec.id, reading or Reading(), held, before)
                )
        looked_at, whole = machine
        node = self._sample(looked_at, NODE, whole, list(devices.values()), before)
        return Measures(node=node, containers=samples)

    def _list_held(self, spec: ContainerSpec) -> list[DeviceKey]:
        """List the devices that a container has for itself; of shared ones none."""
        whole = {device.id for device in self._there.devices() if device.whole}
        keys = [(s.device, s.slices) for s in spec.shares if s.slices]
        keys += [(s.device, 0) for s in spec.shares if not s.slices]
        return [k for k in dict.fromkeys(keys) if k[1] or k[0] in whole]

    def _sample(
        self,
        now: float,
        name: str,
        reading: Reading,
        devices: list[DeviceReading],
        before: Mapping[str, Before],
    ) -> Sample:
        last = before.get(name)
        sunk = {} if last is None else _add_sunk(last, reading)
        self._before[name] = Before(now, reading, sunk)
        sums: dict[str, Any] = {
            key: _lift(getattr(reading, key), sunk.get(key, 0)) for key in _SUMS
        }
        rates: dict[str, Any] = {
            rate: _find_rate(last, reading, key, now)
            for rate, key in zip(_RATES, _SUMS, strict=True)
        }
        return Sample(
            id=name,
            cpu=_find_rate(last, reading, "cpu_seconds", now),
            cpu_seconds=_round(reading.cpu_seconds),
            memory=reading.memory,
            cpu_limit=reading.cpu_limit,
            memory_limit=reading.memory_limit,
            devices=[_describe(d) for d in devices[:MOST_DEVICES]],
            **sums,
            **rates,
        )


def _find_rate(
    last: Before | None, reading: Reading, name: str, now: float
) -> float | None:
    """Return by how much a sum has grown in a second since the last time."""
    value: float | None = getattr(reading, name)
    earlier: float | None = None if last is None else getattr(last.reading, name)
    if last is None or value is None or earlier is None:
        return None
    step = now - last.at
    if step < _LEAST_STEP or value < earlier:
        return None
    return round((value - earlier) / step, 4)


def _add_sunk(last: Before, reading: Reading) -> dict[str, int]:
    """Return how much sums have sunk since the first time.

    Those that are added up of processes do when one ends. What was used stays used.
    """
    sunk = dict(last.sunk)
    for name in _SUMS:
        value, earlier = getattr(reading, name), getattr(last.reading, name)
        if value is not None and earlier is not None and value < earlier:
            sunk[name] = sunk.get(name, 0) + earlier - value
    return sunk


def _lift(value: int | None, sunk: int) -> int | None:
    return None if value is None else value + sunk


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _describe(reading: DeviceReading) -> DeviceSample:
    return DeviceSample(
        device=reading.device,
        slices=reading.slices,
        utilization=_round(reading.utilization),
        memory=reading.memory,
        memory_limit=reading.memory_limit,
    )
