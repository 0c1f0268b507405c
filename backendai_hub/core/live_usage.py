"""What sessions and nodes use at a moment, as nodes measure it and the API shows it.

*Missing* is what nobody could measure: it is None everywhere, and never 0. Amounts are
plain numbers, since charts are drawn of them: cores, bytes, bytes in a second, and
parts of a device between 0 and 1. Moments are Unix seconds by the hub service's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

Number = TypeVar("Number", int, float)

FRESH_SECONDS: Final = 20.0
"""What was measured longer ago says nothing of now."""


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """How busy one device is, or the instance of one that a container has.

    ``host`` is the container's name on its session's network; a node's devices have
    none. ``slices`` are those of the device that an instance lies on, counted from 0.
    """

    name: str
    model: str = ""
    host: str = ""
    slices: list[int] = []
    utilization: float | None = None
    memory: int | None = None
    memory_limit: int | None = None


class UsageNow(msgspec.Struct, frozen=True, kw_only=True):
    """What a session, one of its containers or a node uses, as measured at ``at``.

    ``cpu`` is cores, and ``cpu_seconds`` what that came to since the start. ``memory``
    is what is really needed, without what the kernel keeps of files; ``memory_peak`` is
    the most that was ever measured. The four rates are bytes in a second, the four sums
    bytes since the start. ``utilization`` is the mean over those ``devices`` that tell
    it, ``device_memory`` the sum.
    """

    at: float
    cpu: float | None = None
    cpu_limit: float | None = None
    cpu_seconds: float | None = None
    memory: int | None = None
    memory_limit: int | None = None
    memory_peak: int | None = None
    read_rate: float | None = None
    write_rate: float | None = None
    receive_rate: float | None = None
    send_rate: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    utilization: float | None = None
    device_memory: int | None = None
    device_memory_limit: int | None = None
    devices: list[DeviceUse] = []


class LiveSession(UsageNow, frozen=True, kw_only=True):
    """What one running session uses now."""

    session_id: str


class LiveNode(UsageNow, frozen=True, kw_only=True):
    """What is used of one whole node now, by whomever."""

    agent_id: str
    name: str


class LiveUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What many sessions use now, in no order.

    A session that runs and is not among them has not been measured lately. ``nodes``
    are told to who may see nodes and asks for everybody's sessions.
    """

    at: float
    items: list[LiveSession] = []
    nodes: list[LiveNode] = []


class UsageSeries(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured over some minutes: as many values in each list as moments.

    ``time`` is Unix seconds, oldest first. A list is empty where nothing of the kind
    was measured at all, and has None where something was not.
    """

    time: list[float] = []
    cpu: list[float | None] = []
    memory: list[float | None] = []
    read_rate: list[float | None] = []
    write_rate: list[float | None] = []
    receive_rate: list[float | None] = []
    send_rate: list[float | None] = []
    utilization: list[float | None] = []
    device_memory: list[float | None] = []


class DeviceSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The same of one device of one container."""

    name: str
    model: str = ""
    host: str = ""
    slices: list[int] = []
    memory_limit: int | None = None
    time: list[float] = []
    utilization: list[float | None] = []
    memory: list[float | None] = []


class UsageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has used in all, over all of its containers and attempts.

    It is coarse: the last seconds before an end are not measured. ``device_seconds``
    counts a device that was half busy for two seconds as one.
    """

    cpu_seconds: float | None = None
    memory_peak: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    device_seconds: float | None = None
    device_memory_peak: int | None = None


class ContainerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What one container of a session uses; ``host`` is its name on the network."""

    id: str
    host: str
    node: str
    now: UsageNow | None = None
    series: UsageSeries = UsageSeries()


class SessionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What one session uses: now, over the last minutes, and in all.

    ``now`` is None unless it was measured lately. The minutes are kept in memory only:
    ``kept_from`` says since when there is anything (None: there is nothing yet), and a
    restart of the service begins anew; ``kept_seconds`` is about how much is kept.
    ``totals`` stay. ``containers`` are those of a session that has several, the main
    one first; ``series`` is their sum then.
    """

    session_id: str
    kept_from: float | None = None
    kept_seconds: float
    now: UsageNow | None = None
    totals: UsageTotals | None = None
    series: UsageSeries = UsageSeries()
    devices: list[DeviceSeries] = []
    containers: list[ContainerUsage] = []


def add_up(values: Iterable[Number | None]) -> Number | None:
    """Add what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None


def find_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def find_most(values: Iterable[Number | None]) -> Number | None:
    """Return the greatest of what is known; None if nothing is."""
    return max((value for value in values if value is not None), default=None)
