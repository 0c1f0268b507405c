"""Sessions of several containers: their roles, their names, and how they lie.

The first container is ``main``, and everything people reach is in it; the others are
``sub``. Each has a *host*, its name on the session's network: ``main1``, ``sub1``, …
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError

MAIN_HOST: Final = "main1"
MOST_CONTAINERS: Final = 500


class ClusterMode(StrEnum):
    """Whether the containers of a session share a node."""

    SINGLE_NODE = "single-node"
    MULTI_NODE = "multi-node"


class ClusterStrategy(StrEnum):
    """How the containers of a session lie that may be on several nodes."""

    PACK = "pack"
    SPREAD = "spread"


class ClusterRole(StrEnum):
    """What a container is to its session."""

    MAIN = "main"
    SUB = "sub"


class Seat(msgspec.Struct, frozen=True, gc=False):
    """Which of a session's containers one is; ``idx`` counts from 1 in each role."""

    role: ClusterRole
    idx: int

    @property
    def host(self) -> str:
        """What it is called on the session's network."""
        return f"{self.role}{self.idx}"


def list_seats(size: int) -> list[Seat]:
    """List the seats of a session with *size* containers; the first is the main one."""
    subs = [Seat(ClusterRole.SUB, number) for number in range(1, size)]
    return [Seat(ClusterRole.MAIN, 1), *subs]


def describe_replicas(size: int) -> str:
    """Say how many containers there are of each role, as sessions are told."""
    return "main:1" if size == 1 else f"main:1,sub:{size - 1}"


def check_size(size: int) -> None:
    """Refuse more containers than anybody can place together in time.

    How few there may be, and what a policy allows, is the policy's to say.
    """
    if size > MOST_CONTAINERS:
        raise InvalidRequestError(
            f"cluster_size: {size} containers are more than {MOST_CONTAINERS}, the most"
            " that one session can have"
        )


def choose_strategy(
    mode: ClusterMode, wanted: ClusterStrategy | None
) -> ClusterStrategy | None:
    """Return how a cluster lies; refuses to spread what is to be on one node."""
    if mode is ClusterMode.MULTI_NODE:
        return wanted or ClusterStrategy.PACK
    if wanted is not None:
        raise InvalidRequestError(
            f"cluster_strategy: {wanted!s} says how containers lie on several nodes;"
            " leave it out, or ask for cluster_mode multi-node"
        )
    return None
