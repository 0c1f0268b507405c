"""What a question changes of how things are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.scheduling.held import owner_of
from backendai_hub.scheduling.plugins import find_placement, find_sequencer
from backendai_hub.scheduling.scenario import Arrival, Scenario, default_groups
from backendai_hub.scheduling.shares import Path, path_of
from backendai_hub.scheduling.snapshot import GroupPolicy, NodeState, ScopeQuota

DRAINED: Final = "is drained"
_DEPTHS: Final = {ScopeKind.DOMAIN: 1, ScopeKind.PROJECT: 2, ScopeKind.USER: 3}


class QuotaChange(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody would be guaranteed, and have at most, of some slots."""

    kind: ScopeKind
    name: str
    guaranteed: Mapping[str, int] = {}
    maximum: Mapping[str, int | None] = {}
    """None lifts a maximum."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different from how things are."""

    drain: tuple[str, ...] = ()
    add: tuple[Arrival, ...] = ()
    sequencer: str | None = None
    placement: str | None = None
    weights: Mapping[str, float] = {}
    """By name of a domain, project or user."""
    preemption: Mapping[str, Any] = {}
    """Rules of preemption that are different, by name."""
    quotas: tuple[QuotaChange, ...] = ()

    def apply(self, scenario: Scenario) -> Scenario:
        """Return what is simulated instead; raises for a name nobody has."""
        drained = self._drain(scenario)
        policies = {
            group: self._follow(policy, scenario)
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

    def _follow(self, policy: GroupPolicy, scenario: Scenario) -> GroupPolicy:
        quotas = dict(policy.quotas)
        for change in self.quotas:
            for path in _find(change, scenario):
                quotas[path] = change_quota(quotas.get(path, ScopeQuota()), change)
        return replace(
            policy,
            preemption=replace(policy.preemption, **self.preemption),
            quotas=quotas,
            sequencer=self.sequencer or policy.sequencer,
            placement=self.placement or policy.placement,
        )

    def _weigh(self, scenario: Scenario) -> dict[Path, float]:
        changed: dict[Path, float] = {}
        for name, weight in self.weights.items():
            found = [
                path for path in _paths(scenario) if _is_called(path, name, scenario)
            ]
            if not found:
                raise InvalidRequestError(
                    f"weight: nobody of {name[:128]!r} asks for anything, so its weight"
                    " changes nothing"
                )
            changed.update(dict.fromkeys(found, weight))
        return changed


def change_quota(quota: ScopeQuota, change: QuotaChange) -> ScopeQuota:
    """Return what is guaranteed and had at most once *change* is made."""
    guaranteed = {**quota.guaranteed, **change.guaranteed}
    maximum = {
        slot: amount
        for slot, amount in {**quota.maximum, **change.maximum}.items()
        if amount is not None
    }
    for slot, amount in guaranteed.items():
        if amount > maximum.get(slot, amount):
            raise InvalidRequestError(
                f"quotas: {change.name[:128]!r} would be guaranteed more {slot} than it"
                " may have"
            )
    return ScopeQuota(guaranteed=guaranteed, maximum=maximum)


def _find(change: QuotaChange, scenario: Scenario) -> list[Path]:
    """Find the scopes that a change names, or refuse it."""
    depth = _DEPTHS[change.kind]
    found = [
        path
        for path in sorted(_paths(scenario))
        if len(path) == depth and _is_called(path, change.name, scenario)
    ]
    if not found:
        raise InvalidRequestError(
            f"quotas: no {change.kind.value} {change.name[:128]!r} asks for or has"
            " anything, so what it is guaranteed changes nothing"
        )
    return found


def _is_called(path: Path, name: str, scenario: Scenario) -> bool:
    """Tell whether *name* means that scope.

    Projects of several domains may have one name: with the domain before it, it means
    one of them.
    """
    called = {path[-1], scenario.names.get(path[-1], path[-1])}
    if len(path) == _DEPTHS[ScopeKind.PROJECT]:
        domain = scenario.names.get(path[0], path[0])
        called |= {f"{domain}:{project}" for project in called}
    return name in called


def _paths(scenario: Scenario) -> set[Path]:
    found: set[Path] = set()
    users = [path_of(arrival.session) for arrival in scenario.arrivals]
    users += [owner_of(running) for running in scenario.running]
    for path in users:
        found |= {path[:1], path[:2], path}
    return found


def check_policies(change: Change) -> None:
    """Refuse an order or a placement that is not there."""
    if change.sequencer is not None:
        find_sequencer(change.sequencer)
    if change.placement is not None:
        find_placement(change.placement)
