"""Identifiers: UUIDs that sort by birth, made from passed-in time and entropy."""

from __future__ import annotations

from typing import NewType
from uuid import UUID

AgentId = NewType("AgentId", str)
ContainerId = NewType("ContainerId", str)
DeviceId = NewType("DeviceId", str)
SessionId = NewType("SessionId", str)


def make_id(milliseconds: int, entropy: bytes) -> str:
    """Make a version 7 UUID (RFC 9562, section 5.7).

    ``milliseconds`` is Unix time, ``entropy`` at least ten random bytes. Two ids
    made in different milliseconds sort in that order as text too.
    """
    if len(entropy) < 10:
        raise ValueError(f"a UUID needs 10 bytes of entropy, got {len(entropy)}")
    stamp = (milliseconds & ((1 << 48) - 1)) << 80
    noise = int.from_bytes(entropy[:10], "big")
    value = stamp | (0x7 << 76) | ((noise >> 62 & 0xFFF) << 64)
    value |= (0b10 << 62) | (noise & ((1 << 62) - 1))
    return str(UUID(int=value))


def is_id(text: str) -> bool:
    """Tell whether *text* is a UUID in its canonical spelling."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
