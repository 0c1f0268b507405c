"""What is in use during a simulation: of nodes, of limits, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaScope
from backendai_hub.scheduling.held import held_by, owner_of
from backendai_hub.scheduling.scenario import Arrival, Scenario, find_weights
from backendai_hub.scheduling.shares import Path, ShareState, path_of
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    RunningSession,
    ScopeKey,
)
from backendai_hub.scheduling.what_if import DRAINED


class Held:
    """A session that runs, who asked for it if that is known, and what it counts."""

    def __init__(
        self,
        session: RunningSession,
        arrival: Arrival | None,
        charge: Mapping[str, int] | None = None,
    ) -> None:
        self.session, self.arrival = session, arrival
        self.held = held_by(session)
        self.charge = self.held if charge is None else charge


class Use:
    """What is in use of the nodes, of limits and by whom, and has been."""

    def __init__(self, scenario: Scenario) -> None:
        self.capacity = _capacity(scenario.nodes)
        self.scopes: dict[ScopeKey, QuotaScope] = dict(scenario.scopes)
        self._weights = scenario.weights
        self._weighed = find_weights(scenario)
        self._asking = {path_of(a.session)[:2] for a in scenario.arrivals}
        self._held: dict[str, int] = {}
        self._live: dict[Path, dict[str, int]] = {}
        self._sums: dict[Path, dict[str, int]] = {}
        self._states: dict[int, ShareState] = {}

    def count(self, running: Held, sign: int) -> None:
        """Count a session that has started, or has ended."""
        session = running.session
        path = owner_of(session)
        # Passes have been given the old one, and keep it.
        live = dict(self._live.get(path, {}))
        for slot, amount in running.held.items():
            live[slot] = live.get(slot, 0) + sign * amount
            self._held[slot] = self._held.get(slot, 0) + sign * amount
        self._live[path] = {slot: amount for slot, amount in live.items() if amount}
        if not self._live[path]:
            del self._live[path]
        # What ran at the beginning is in the scenario's limits already.
        if running.arrival is not None or sign < 0:
            self._charge(session.scopes, running.charge, sign)

    def _charge(
        self, scopes: Iterable[ScopeKey], charge: Mapping[str, int], sign: int
    ) -> None:
        for key in scopes:
            scope = self.scopes.get(key)
            if scope is not None:
                used = dict(scope.used)
                for slot, amount in charge.items():
                    used[slot] = max(0, used.get(slot, 0) + sign * amount)
                self.scopes[key] = replace(scope, used=used)

    def last(self, seconds: int) -> None:
        """Add up who holds what for so long."""
        for path, held in self._live.items() if seconds > 0 else ():
            sums = self._sums.setdefault(path[:2], {})
            for slot, amount in held.items():
                sums[slot] = sums.get(slot, 0) + amount * seconds

    def now(self) -> dict[str, int]:
        """Return what is in use of what there is."""
        return {s: n for s, n in self._held.items() if n and s in self.capacity}

    def shares(self, policy: GroupPolicy) -> ShareState:
        """Return what a pass orders by."""
        told = self._states.get(id(policy))
        if told is None:
            told = policy.shares if policy.shares is not None else ShareState()
            told = self._states[id(policy)] = replace(
                told,
                capacity=told.capacity or self.capacity,
                weights={**told.weights, **self._weights},
            )
        return replace(told, live=dict(self._live))

    def weigh(self, lasted: int) -> dict[Path, float]:
        """Return what each project has had, of what it has had most of."""
        found = {}
        for path in sorted(self._asking | self._sums.keys()):
            parts = [
                amount / (self.capacity[slot] * lasted)
                for slot, amount in self._sums.get(path, {}).items()
                if self.capacity.get(slot)
            ]
            found[path] = max(parts, default=0.0) / self._weighed.get(path, 1)
        return found


def _capacity(nodes: Iterable[NodeState]) -> dict[str, int]:
    """Add up what there is; a node that is only drained stays part of it."""
    capacity: dict[str, int] = {}
    for node in nodes:
        if node.closed not in {"", DRAINED}:
            continue
        for device in node.devices:
            for slot, amount in device.total.items():
                capacity[slot] = capacity.get(slot, 0) + amount
    return capacity
