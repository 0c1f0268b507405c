"""Nodes and their devices, as the scheduler and the pages see them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.live_usage import UsageNow
from backendai_hub.core.slots import MILLI

MOST_SLICES: Final = 16
"""Into how many slices a device may be cut."""
MOST_ON_A_NODE: Final = 1_000_000
"""How many containers a node may say that it takes."""
_MOST_KINDS: Final = 32
_MOST_PLACES: Final = 1024
_MOST_LINKS: Final = 1024
_FARTHEST: Final = 1_000_000
_MOST_OF_A_SLOT: Final = 1 << 60
_LONGEST_KIND: Final = 64
_LONGEST_WORD: Final = 128
_MOST_LABELS: Final = 64
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9._/-]{0,61}[a-z0-9])?", re.ASCII)
_LONGEST_VALUE: Final = 128


PROTOCOL_OF_JOBS: Final = 2
"""The protocol since which agents run batch sessions and clusters for certain."""


def protocol_for(session_type: str, cluster_size: int) -> int:
    """Return the least protocol of a node that can run such a session."""
    plain = session_type == "interactive" and cluster_size == 1
    return 1 if plain else PROTOCOL_OF_JOBS


class AgentStatus(StrEnum):
    """Whether a node can be counted on. Slots stay held while it is LOST."""

    ALIVE = "ALIVE"
    SUSPECT = "SUSPECT"
    LOST = "LOST"
    TERMINATED = "TERMINATED"


class Distance(IntEnum):
    """How far two devices of one node are from each other; 0 is closest."""

    DIRECT = 0
    """A link of their own, such as NVLink."""
    BOARD = 1
    """On one board."""
    SWITCH = 2
    """Behind one PCIe switch."""
    SWITCHES = 3
    """Behind several PCIe switches."""
    BRIDGE = 4
    """At one PCIe host bridge."""
    NUMA = 5
    """At one NUMA node."""
    SYSTEM = 6
    """At different NUMA nodes."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on a node that is handed out: its processors, memory, or a GPU.

    ``id`` is stable across restarts of the node (for GPUs the vendor's UUID, never
    an index). ``slots`` is capacity in smallest units: ``{"cuda.device": 1000}``.
    ``whole`` devices are given undivided to at most one session. ``links`` says how far
    other devices of the node are, by id, as :class:`Distance`; who is not named is
    farther than any that is.

    ``profiles`` are the kinds of instance that a device can be cut into: for each slot
    the places where one fits, as bits of the slices it takes. The device gives any
    that do not overlap, and nothing of ``slots`` meanwhile.
    ``{"cuda.device:1g.10gb-mig": [0b1, 0b10], "cuda.device:2g.20gb-mig": [0b11]}``
    """

    id: str
    slots: dict[str, int]
    kind: str = "host"
    model: str = ""
    numa: int | None = None
    whole: bool = False
    links: dict[str, int] = {}
    profiles: dict[str, list[int]] = {}

    @property
    def slices(self) -> int:
        """All slices that instances may take, as bits."""
        return unite(place for places in self.profiles.values() for place in places)

    @property
    def offer(self) -> dict[str, int]:
        """How much of each slot there is in all, instances among them."""
        return {
            **self.slots,
            **{s: MILLI * count_places(p) for s, p in self.profiles.items()},
        }

    def check(self) -> None:
        """Refuse what nobody could store or reckon with."""
        self._check_words()
        self._check_numbers()
        places = [p for found in self.profiles.values() for p in found]
        if (
            len(self.profiles) > _MOST_KINDS
            or len(places) > _MOST_PLACES
            or any(not 0 < p < 1 << MOST_SLICES for p in places)
        ):
            raise InvalidRequestError(
                f"device {self.id[:64]}: it is cut into at most {MOST_SLICES} slices,"
                f" for at most {_MOST_KINDS} kinds of instance in {_MOST_PLACES} places"
            )

    def _check_words(self) -> None:
        words = (self.id, self.kind, self.model, *self.slots, *self.profiles)
        if (
            len(self.slots) > _MOST_KINDS
            or len(self.kind) > _LONGEST_KIND
            or any(len(w) > _LONGEST_WORD or not w.isprintable() for w in words)
        ):
            raise InvalidRequestError(
                f"device {self.id[:64]!r}: it has at most {_MOST_KINDS} slots, and"
                f" names of at most {_LONGEST_WORD} characters that can be printed"
            )

    def _check_numbers(self) -> None:
        for slot, amount in self.slots.items():
            if not 0 <= amount <= _MOST_OF_A_SLOT:
                raise InvalidRequestError(
                    f"device {self.id}: {amount} of {slot} is not between 0 and"
                    f" {_MOST_OF_A_SLOT}"
                )
        far = (*self.links.values(), self.numa or 0)
        if len(self.links) > _MOST_LINKS or any(abs(n) > _FARTHEST for n in far):
            raise InvalidRequestError(
                f"device {self.id}: it names at most {_MOST_LINKS} other devices, and"
                f" no distance or NUMA node above {_FARTHEST}"
            )


def unite(masks: Iterable[int]) -> int:
    """Return every bit that is set in any of *masks*."""
    union = 0
    for mask in masks:
        union |= mask
    return union


def count_places(places: Iterable[int]) -> int:
    """Return how many of *places* can be taken at the same time.

    Each takes slices that lie next to each other, so whoever ends first leaves most.
    """
    count = taken = 0
    for place in sorted(set(places), key=int.bit_length):
        if place and not place & taken:
            taken |= place
            count += 1
    return count


def check_labels(labels: Mapping[str, str]) -> None:
    """Refuse labels that are many, long, or could not be written on a command line."""
    if len(labels) > _MOST_LABELS:
        raise InvalidRequestError(f"labels: at most {_MOST_LABELS}, not {len(labels)}")
    for name, value in labels.items():
        if _LABEL.fullmatch(name) is None:
            raise InvalidRequestError(
                f"labels: {name[:64]!r} will not do; use 1 to 63 small letters, digits,"
                " '-', '_', '.' or '/', beginning and ending with a letter or digit"
            )
        if len(value) > _LONGEST_VALUE or not value.isprintable():
            raise InvalidRequestError(
                f"labels: the value of {name} has at most {_LONGEST_VALUE} characters,"
                " all of which can be printed"
            )


def check_node(labels: Mapping[str, str], max_containers: int | None) -> None:
    """Refuse what a node says of itself that makes no sense."""
    check_labels(labels)
    if max_containers is not None and not 0 <= max_containers <= MOST_ON_A_NODE:
        raise InvalidRequestError(
            f"max_containers: {max_containers} is not between 0 and {MOST_ON_A_NODE}"
        )


def join_labels(
    reported: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return what a node is labelled: operators' words win over the node's own.

    An empty word of theirs takes a label away.
    """
    return {name: v for name, v in sorted({**reported, **given}.items()) if v}


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
    labels: dict[str, str] = {}
    """What sessions may ask for: its own labels, and over them the operators'."""
    max_containers: int | None = None
    drain: Drain | None = None
    """Why it takes nothing new, where that has been said with a reason."""
    usage: UsageNow | None = None
    """What is used of the whole machine now; None unless it was measured lately."""
    sessions: int = 0
    """How many sessions have containers on it."""
