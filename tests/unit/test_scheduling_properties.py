"""What holds for every pass, whatever the nodes, the queue and the limits.

The numbers are small on purpose: with two cores and two GPUs every edge is hit.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings
from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope, ScopeKind
from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.reasons import explain_never
from backendai_hub.scheduling.shares import ShareState
from backendai_hub.scheduling.snapshot import (
    DeviceState,
    GroupPolicy,
    NodeState,
    PendingSession,
    Snapshot,
)
from tests.unit.scheduling_snapshots import PLACEMENTS, SEQUENCERS, gpu
from tests.unit.scheduling_snapshots import node as node_of

SLOTS = ("cpu", "mem", "cuda.device", "cuda.shares")
HALVES = st.sampled_from([0, 1, 500, 1000])
SHARES = ShareState(capacity={"cpu": 4000, "mem": 6, **dict.fromkeys(SLOTS[2:], 2000)})
POLICIES = st.builds(
    GroupPolicy,
    placement=st.sampled_from(PLACEMENTS),
    sequencer=st.sampled_from(SEQUENCERS),
    shares=st.sampled_from([None, SHARES]),
)


@st.composite
def devices(draw: Any, name: str) -> DeviceState:
    kind = draw(st.sampled_from(["host", "whole", "shared"]))
    if kind == "host":
        total = {
            "cpu": draw(st.integers(0, 2)) * MILLI,
            "mem": draw(st.integers(0, 3)),
        }
    else:
        total = {"cuda.device" if kind == "whole" else "cuda.shares": MILLI}
    part = draw(HALVES)
    free = {slot: min(amount, part) for slot, amount in total.items()}
    return DeviceState(
        id=name,
        name=name,
        total=total,
        free=free if draw(st.booleans()) else total,
        whole=kind == "whole",
        numa=draw(st.sampled_from([None, 0, 1])),
        kind="host" if kind == "host" else "cuda",
    )


@st.composite
def nodes(draw: Any, name: str, *, empty: bool = False) -> NodeState:
    found = [draw(devices(f"{name}/{i}")) for i in range(draw(st.integers(1, 4)))]
    if empty:
        found = [replace(d, free=d.total) for d in found]
    return NodeState(
        id=name,
        name=name,
        runtime="docker",
        architecture="x86_64",
        devices=tuple(found),
        closed="" if empty else draw(st.sampled_from(["", "", "", "takes nothing"])),
        multi_user=draw(st.booleans()),
        sole_owner=None if empty else draw(st.sampled_from([None, "alice"])),
    )


@st.composite
def requests(draw: Any) -> ResourceSlots:
    amounts = {"cpu": draw(st.sampled_from([0, 500, 1000, 2000]))}
    amounts["mem"] = draw(st.integers(0, 2))
    accelerator = draw(st.sampled_from(SLOTS[2:]))
    amounts[accelerator] = draw(st.sampled_from([0, 0, 500, 1000, 2000]))
    request = ResourceSlots(amounts)
    return request if len(request) else ResourceSlots({"cpu": 500})


@st.composite
def sessions(draw: Any, name: str) -> PendingSession:
    user = draw(st.sampled_from(["alice", "bob"]))
    return PendingSession(
        id=name,
        owner_id=user,
        request=draw(requests()),
        references=draw(st.sampled_from([{"docker": "lab:1"}, {"process": "lab"}])),
        architecture="x86_64",
        scopes=((ScopeKind.PROJECT, "default"), (ScopeKind.USER, user)),
    )


@st.composite
def snapshots(draw: Any) -> Snapshot:
    bags = st.dictionaries(
        st.sampled_from(["cpu", "cuda.device"]),
        st.sampled_from([0, 1000, 2000, 3000]),
        max_size=2,
    )
    keys = [
        (ScopeKind.PROJECT, "default"),
        (ScopeKind.USER, "alice"),
        (ScopeKind.USER, "bob"),
    ]
    return Snapshot(
        nodes=tuple(draw(nodes(f"n{i}")) for i in range(draw(st.integers(0, 3)))),
        queue=tuple(draw(sessions(f"s{i}")) for i in range(draw(st.integers(0, 6)))),
        scopes={
            (kind, name): QuotaScope(
                kind=kind, id=name, name=name, limits=draw(bags), used=draw(bags)
            )
            for kind, name in keys
            if draw(st.booleans())
        },
        groups={"": draw(POLICIES)},
    )


def given_away(decided: Any) -> Counter[tuple[str, str]]:
    given_: Counter[tuple[str, str]] = Counter()
    for placement in decided.placements:
        for share in placement.shares:
            given_[share.device, share.slot] += share.amount
    return given_


def minus(device: DeviceState, away: Counter[tuple[str, str]]) -> dict[str, int]:
    return {s: amount - away[device.id, s] for s, amount in device.free.items()}


@settings(max_examples=200, deadline=None)
@given(snapshots())
def test_a_pass_keeps_every_promise(snapshot: Snapshot):
    decided = plan(snapshot)
    assert plan(snapshot) == decided, "the same snapshot gives the same plan"
    known_nodes = {n.id: n for n in snapshot.nodes}
    known_devices = {d.id: d for n in snapshot.nodes for d in n.devices}
    queue = {s.id: s for s in snapshot.queue}

    # Every session is placed once, or waits with a reason.
    placed = [p.session for p in decided.placements]
    assert sorted([*placed, *decided.waiting]) == sorted(queue)
    assert all(decided.waiting.values())

    # No device gives more than is free of it, and whole ones are given once.
    for (device, slot), amount in given_away(decided).items():
        assert 0 < amount <= known_devices[device].free[slot]
    holders = Counter(
        d for p in decided.placements for d in {s.device for s in p.shares}
    )
    for device, count in holders.items():
        if known_devices[device].whole:
            assert count == 1
            assert known_devices[device].free == known_devices[device].total

    owners: dict[str, set[str]] = {}
    for placement in decided.placements:
        session, node = queue[placement.session], known_nodes[placement.node]
        # Everything asked for comes, from this node, which may run it.
        sums: Counter[str] = Counter()
        for share in placement.shares:
            sums[share.slot] += share.amount
            assert share.device in {d.id for d in node.devices}
        assert ResourceSlots(sums) == session.request
        assert not node.closed
        assert placement.image == session.references[node.runtime]
        if not node.multi_user:
            owner = {node.sole_owner} - {None}
            owners.setdefault(node.id, set(owner)).add(session.owner_id)
    assert all(len(users) == 1 for users in owners.values())

    # No limit is passed that was not passed before.
    for key, scope in snapshot.scopes.items():
        mine = ResourceSlots()
        for session_id in placed:
            if key in queue[session_id].scopes:
                mine += queue[session_id].request
        for slot, most in scope.limits.items():
            assert mine[slot] == 0 or scope.used.get(slot, 0) + mine[slot] <= most


@settings(max_examples=100, deadline=None)
@given(snapshots())
def test_planning_again_after_a_pass_places_nobody_who_waited(snapshot: Snapshot):
    """A pass leaves nothing undone: what waits finds no room in what is left."""
    decided = plan(snapshot)
    away = given_away(decided)
    used: dict[Any, Counter[str]] = {
        key: Counter(scope.used) for key, scope in snapshot.scopes.items()
    }
    owners = {n.id: n.sole_owner for n in snapshot.nodes}
    queue = {s.id: s for s in snapshot.queue}
    for placement in decided.placements:
        session = queue[placement.session]
        owners[placement.node] = session.owner_id
        for key in session.scopes:
            if key in used:
                used[key].update(dict(session.request))
    rest = Snapshot(
        nodes=tuple(
            replace(
                n,
                sole_owner=owners[n.id],
                devices=tuple(replace(d, free=minus(d, away)) for d in n.devices),
            )
            for n in snapshot.nodes
        ),
        queue=tuple(s for s in snapshot.queue if s.id in decided.waiting),
        scopes={key: replace(s, used=used[key]) for key, s in snapshot.scopes.items()},
        groups=snapshot.groups,
    )
    assert plan(rest).placements == ()


@settings(max_examples=200, deadline=None)
@given(nodes("n", empty=True), requests(), POLICIES)
def test_what_fits_an_empty_node_alone_is_placed_and_what_never_fits_is_told(
    node: NodeState, request: ResourceSlots, policy: GroupPolicy
):
    session = PendingSession(
        id="s",
        owner_id="alice",
        request=request,
        references={"docker": "lab:1"},
        architecture="x86_64",
        scopes=(),
    )
    decided = plan(
        Snapshot(nodes=(node,), queue=(session,), scopes={}, groups={"": policy})
    )
    never = explain_never(Cluster([node]), session)
    assert bool(decided.placements) is can_give(node, request) is (never is None)


def can_give(node: NodeState, request: ResourceSlots) -> bool:
    """The rule in its plainest words: one device, or several whole ones."""

    def gives(slot: str, amount: int) -> bool:
        have = [d.total.get(slot, 0) for d in node.devices]
        if max(have) >= amount:
            return True
        units = have.count(MILLI) * MILLI
        return slot != "mem" and amount % MILLI == 0 and units >= amount

    return all(gives(slot, amount) for slot, amount in request.items())


@settings(max_examples=200, deadline=None)
@given(nodes("n"), st.lists(requests(), max_size=6))
def test_the_aggregates_equal_what_the_devices_add_up_to(
    node: NodeState, taken: list[ResourceSlots]
):
    cluster = Cluster([node])
    left = {d.id: dict(d.free) for d in node.devices}
    for request in taken:
        for slot, amount in request.items():
            fits = cluster.fits(slot, amount)
            shares = cluster.choose_devices(0, slot, amount)
            # What is said to fit can be chosen, and nothing else.
            assert (shares is not None) is bool(fits[0])
            if shares is None:
                continue
            cluster.take(0, shares)
            for share in shares:
                left[share.device][share.slot] -= share.amount
    now = tuple(replace(d, free=left[d.id]) for d in node.devices)
    again = Cluster([replace(node, devices=now)])
    for name in ("free", "largest", "untouched", "total", "biggest", "units"):
        assert (getattr(cluster, name) == getattr(again, name)).all(), name
    assert (cluster.free >= 0).all()
    for slot in cluster.slots:
        usable = [
            left[d.id].get(slot, 0)
            for d in node.devices
            if not (d.whole and left[d.id].get(slot, 0) < d.total.get(slot, 0))
        ]
        column = cluster.column[slot]
        assert cluster.free[0, column] == sum(usable)
        assert cluster.largest[0, column] == max(usable, default=0)


@given(
    st.lists(st.sampled_from([None, 0, 1]), min_size=2, max_size=6), st.integers(2, 4)
)
def test_several_devices_are_split_over_numa_nodes_only_if_they_must_be(
    homes: list[int | None], count: int
):
    gpus = [gpu(f"g{i}", numa=home) for i, home in enumerate(homes)]
    chosen = Cluster([node_of("n", *gpus)]).choose_devices(
        0, "cuda.device", count * MILLI
    )
    assert (chosen is None) is (len(homes) < count)
    if chosen is not None:
        used = {homes[int(share.device[1:])] for share in chosen}
        together = any(many >= count for many in Counter(homes).values())
        assert (len(used) == 1) is together
