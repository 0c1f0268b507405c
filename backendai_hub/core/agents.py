"""Nodes and their devices, as the scheduler and the pages see them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class AgentStatus(StrEnum):
    """Whether a node can be counted on. Slots stay held while it is LOST."""

    ALIVE = "ALIVE"
    SUSPECT = "SUSPECT"
    LOST = "LOST"
    TERMINATED = "TERMINATED"


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on a node that is handed out: its processors, memory, or a GPU.

    ``id`` is stable across restarts of the node (for GPUs the vendor's UUID, never
    an index). ``slots`` is capacity in smallest units: ``{"cuda.device": 1000}``.
    ``whole`` devices are given undivided to at most one session.
    """

    id: str
    slots: dict[str, int]
    kind: str = "host"
    model: str = ""
    numa: int | None = None
    whole: bool = False


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """What separates sessions on a node, in words a person reads in ``status``."""

    runtime: str
    tier: str
    limits: str
    network: str
    multi_user: bool
    notes: list[str] = []


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node takes nothing new, and what is left on it.

    ``last_end`` is when the last session ends that has said when; ``endless`` counts
    those that have not. ``late`` tells that some are not sure to have ended by ``due``.
    """

    reason: str
    by: str
    since: str
    due: str | None = None
    sessions: int = 0
    last_end: str | None = None
    endless: int = 0
    late: bool = False


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as the API shows it."""

    id: str
    name: str
    status: AgentStatus
    schedulable: bool
    architecture: str
    version: str
    capacity: dict[str, str]
    used: dict[str, str]
    isolation: Isolation
    resource_group: str | None = None
    images: list[str] = []
    last_seen_at: str | None = None
    unknown_containers: list[str] = []
    drain: Drain | None = None
    """Why it takes nothing new, where that has been said with a reason."""
