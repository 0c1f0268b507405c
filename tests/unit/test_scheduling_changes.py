"""Where some single change would start a session, some change is told."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings

from backendai_hub.core.slots import MILLI, ResourceSlots
from backendai_hub.scheduling.changes import Change
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.explained import Options
from backendai_hub.scheduling.snapshot import PendingSession, Snapshot
from tests.unit.test_scheduling_explain import (
    guaranteed_snapshots,
    rich_snapshots,
    starts,
    stopped_snapshots,
)
from tests.unit.test_scheduling_properties import snapshots

TIMED = Options(timed=True)


def grid(session: PendingSession) -> Iterator[Change]:
    """Yield what could be otherwise, one thing at a time."""
    if session.hold:
        yield Change(released=True)
    if session.nodes and session.only_nodes:
        yield Change(anywhere=True)
    for label in session.labels:
        yield Change(without_labels=(label,))
    yield Change(lifetime=60)
    if session.members:
        if session.layout == "one-node":
            yield Change(layout="pack")
        for count in range(1, len(session.members)):
            yield Change(containers=count)
        return
    for slot, amount in session.request.items():
        for less in {amount // 2, MILLI, amount - MILLI}:
            if 0 < less < amount:
                rest = dict(session.request.items())
                yield Change(request=ResourceSlots({**rest, slot: less}))


def check(found: Snapshot) -> None:
    explainer = Explainer(found)
    if explainer.plan.placements:
        return  # they would compete with it for what they have got
    for session in found.queue:
        told = explainer.explain(session.id, TIMED)
        assert told is not None
        if told.changes:
            continue
        for change in grid(session):
            assert not starts(change.apply(found, session.id), session.id), change


@settings(max_examples=80, deadline=None)
@given(snapshots())
def test_less_is_told_where_less_would_start_it(found: Snapshot):
    check(found)


@settings(max_examples=80, deadline=None)
@given(rich_snapshots())
def test_a_place_or_fewer_containers_are_told_where_they_would(found: Snapshot):
    check(found)


@settings(max_examples=80, deadline=None)
@given(guaranteed_snapshots())
def test_it_is_told_what_would_start_it_within_guarantees(found: Snapshot):
    check(found)


@settings(max_examples=80, deadline=None)
@given(stopped_snapshots())
def test_it_is_told_what_would_start_who_is_held_or_kept_off(found: Snapshot):
    check(found)
