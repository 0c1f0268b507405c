"""What takes long the first time in a process is done before anybody waits for it."""

from __future__ import annotations

from functools import cache

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.ordering import SEQUENCERS
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    NodeState,
    PendingSession,
    Snapshot,
)

_PLACEMENTS = ("concentrated", "dispersed", "roundrobin", "fragmentation")
_HOST = {"cpu": 8 * MILLI, "mem": 1 << 30}
_GPU = {"cuda.shares": MILLI}
_REQUESTS = (
    {"cpu": MILLI},
    {"cpu": MILLI, "cuda.shares": MILLI // 2},
    {"cpu": MILLI, "cuda.shares": MILLI},
    {"cpu": MILLI, "cuda.shares": 2 * MILLI},
    {"cpu": MILLI, "cuda.shares": 8 * MILLI},
)
"""The last finds no room, so that reasons and a reservation have to be found."""


@cache
def warm_up() -> None:
    """Decide about a small cluster in every way, once in a process."""
    names = ("first", "second")
    nodes = tuple(_node(name) for name in names)
    queue = tuple(
        PendingSession(
            id=str(number),
            owner_id="nobody",
            request=ResourceSlots(request),
            references={"": ""},
            architecture="",
            scopes=(),
        )
        for number, request in enumerate(_REQUESTS)
    )
    for sequencer in SEQUENCERS:
        for placement in _PLACEMENTS:
            policy = GroupPolicy(
                sequencer=sequencer, placement=placement, reserve_after=0
            )
            plan(Snapshot(nodes=nodes, queue=queue, scopes={}, groups={"": policy}))


def _node(name: str) -> NodeState:
    return NodeState(
        id=name,
        name=name,
        runtime="",
        architecture="",
        devices=(
            DeviceState(id=name, name="host", total=_HOST, free=_HOST),
            *(
                DeviceState(
                    id=f"{name}/{i}",
                    name=f"gpu{i}",
                    total=_GPU,
                    free=_GPU,
                    kind="cuda",
                )
                for i in range(2)
            ),
        ),
    )
