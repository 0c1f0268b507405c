"""What was read of a container or a device at one moment: sums, and no rates yet.

None is what could not be read. Whoever shows it as 0 lies.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a container has used since its start, and the memory that it has now.

    Seconds of one core, and bytes. ``memory`` leaves out what the kernel keeps of files
    and would give up. ``cpu_limit`` and ``memory_limit`` are a whole node's.
    """

    cpu_seconds: float | None = None
    memory: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    cpu_limit: float | None = None
    memory_limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceReading:
    """How busy a device was just now (0 to 1), and its memory in bytes.

    With ``slices`` (bits) it is of one instance of the device.
    """

    device: str
    slices: int = 0
    utilization: float | None = None
    memory: int | None = None
    memory_limit: int | None = None
