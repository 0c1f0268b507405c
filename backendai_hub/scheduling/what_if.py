"""What a question changes of how things are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.scheduling.plugins import find_placement, find_sequencer
from backendai_hub.scheduling.scenario import Arrival, Scenario, default_groups
from backendai_hub.scheduling.shares import Path, path_of
from backendai_hub.scheduling.snapshot import GroupPolicy, NodeState

DRAINED: Final = "is drained"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different from how things are."""

    drain: tuple[str, ...] = ()
    add: tuple[Arrival, ...] = ()
    sequencer: str | None = None
    placement: str | None = None
    weights: Mapping[str, float] = {}
    """By name of a domain, project or user."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return what is simulated instead; raises for a name nobody has."""
        drained = self._drain(scenario)
        policies = {
            group: self._follow(policy)
            for group, policy in {
                **default_groups(scenario),
                **scenario.groups,
            }.items()
        }
        arrivals = sorted((*scenario.arrivals, *self.add), key=lambda a: a.at)
        return replace(
            scenario,
            nodes=drained,
            arrivals=tuple(arrivals),
            groups=policies,
            weights={**scenario.weights, **self._weigh(scenario)},
        )

    def _drain(self, scenario: Scenario) -> tuple[NodeState, ...]:
        known = {node.name for node in scenario.nodes}
        for name in self.drain:
            if name not in known:
                raise InvalidRequestError(f"drain: there is no node {name[:128]!r}")
        return tuple(
            replace(node, closed=DRAINED) if node.name in self.drain else node
            for node in scenario.nodes
        )

    def _follow(self, policy: GroupPolicy) -> GroupPolicy:
        return replace(
            policy,
            sequencer=self.sequencer or policy.sequencer,
            placement=self.placement or policy.placement,
        )

    def _weigh(self, scenario: Scenario) -> dict[Path, float]:
        changed: dict[Path, float] = {}
        for name, weight in self.weights.items():
            found = [
                path
                for path in _paths(scenario)
                if name in {path[-1], scenario.names.get(path[-1], path[-1])}
            ]
            if not found:
                raise InvalidRequestError(
                    f"weight: nobody of {name[:128]!r} asks for anything, so its weight"
                    " changes nothing"
                )
            changed.update(dict.fromkeys(found, weight))
        return changed


def _paths(scenario: Scenario) -> set[Path]:
    found: set[Path] = set()
    for arrival in scenario.arrivals:
        path = path_of(arrival.session)
        found |= {path[:1], path[:2], path}
    return found


def check_policies(change: Change) -> None:
    """Refuse an order or a placement that is not there."""
    if change.sequencer is not None:
        find_sequencer(change.sequencer)
    if change.placement is not None:
        find_placement(change.placement)
