"""How each resource group's queue is worked off, with what shares are reckoned from.

What people hold is read anew whenever it has changed; what they have used before is
kept for a minute, since one more minute changes nobody's turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.db import shares, usage
from backendai_hub.db.shares import GroupRules, Scope
from backendai_hub.db.versions import Stale
from backendai_hub.operations.fair_share import find_capacity
from backendai_hub.operations.platform import Platform
from backendai_hub.scheduling.fragmentation import learn
from backendai_hub.scheduling.shares import Path, ShareState
from backendai_hub.scheduling.snapshot import (
    Ask,
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    ScopeQuota,
)
from backendai_hub.scheduling.usual import asks_of

LONGEST: Final = timedelta(minutes=1)
_SHARELESS: Final = frozenset({"fifo", "lifo"})


class _History(NamedTuple):
    read_at: datetime
    rules: GroupRules
    used: Mapping[Scope, Mapping[str, float]]


class GroupPolicies:
    """The policies of the groups that somebody waits for, as of the last reading."""

    def __init__(self, platform: Platform, *, always_shares: bool = False) -> None:
        self._platform = platform
        self._shareless = frozenset() if always_shares else _SHARELESS
        """Orders for which nobody's share has to be known."""
        self._rules: dict[str, GroupRules] = {}
        self._shares: dict[str, ShareState] = {}
        self._quotas: dict[str, Mapping[Path, ScopeQuota]] = {}
        self._histories: dict[str, _History] = {}
        self._usual: dict[str, dict[Ask, float]] = {}
        self._last_nodes: dict[str, str] = {}

    @property
    def found(self) -> dict[str, GroupPolicy]:
        """The policies, by group."""
        return {
            group: GroupPolicy(
                sequencer=rules.scheduler,
                placement=rules.options.agent_selection_strategy,
                allow_split=rules.options.allow_fractional_resource_fragmentation,
                reserve_after=rules.options.reserve_after,
                reserve_wide_after=rules.options.reserve_wide_after,
                preemption=rules.options.preemption,
                rack_label=rules.options.rack_label,
                quotas=self._quotas.get(group, {}),
                shares=self._shares.get(group),
                typical=tuple(self._usual.get(group, {}).items()),
                last_node=self._last_nodes.get(group, ""),
            )
            for group, rules in self._rules.items()
        }

    def note(
        self, queue: Iterable[PendingSession], placed: Iterable[Placement]
    ) -> None:
        """Learn from what has been placed what people ask for, and whose turn it was.

        Neither outlives the service: a little is soon known again.
        """
        asked: dict[str, list[Ask]] = {}
        nodes = {placement.session: placement.node for placement in placed}
        for session in queue:
            if session.id in nodes:
                asked.setdefault(session.group, []).extend(asks_of(session))
                self._last_nodes[session.group] = nodes[session.id]
        for group, asks in asked.items():
            self._usual[group] = learn(self._usual.get(group, {}), asks)

    async def read(
        self,
        connection: AsyncConnection,
        groups: Collection[str],
        nodes: Iterable[NodeState],
        stale: Stale,
    ) -> bool:
        """Read what has changed of *groups*; forget others.

        Tells whether guarantees and maxima are others now.
        """
        quotas = self._quotas
        if stale.tenancy or not self._rules.keys() >= set(groups):
            found = await shares.list_rules(connection, groups)
            self._rules = {rules.id: rules for rules in found}
            self._quotas = {i: await shares.load_quotas(connection, i) for i in groups}
        self._quotas = {i: q for i, q in self._quotas.items() if i in groups}
        self._rules = {i: r for i, r in self._rules.items() if i in groups}
        reckoned = {
            i: r for i, r in self._rules.items() if r.scheduler not in self._shareless
        }
        now = self._platform.database.clock()
        kept = list(nodes) if reckoned else []
        found_shares = {}
        for group, rules in reckoned.items():
            history = self._histories.get(group)
            fresh = history is not None and _is_fresh(history, rules, now)
            known = self._shares.get(group)
            if known is not None and fresh and not (stale.use or stale.tenancy):
                found_shares[group] = known
                continue
            if history is None or not fresh:
                used = await usage.load_history(
                    connection, group, now.date(), rules.spec
                )
                history = self._histories[group] = _History(now, rules, used)
            found_shares[group] = await shares.load_share_state(
                connection, rules, find_capacity(kept, group), history.used
            )
        self._shares = found_shares
        return quotas != self._quotas


def _is_fresh(history: _History, rules: GroupRules, now: datetime) -> bool:
    age = now - history.read_at
    return history.rules == rules and timedelta(0) <= age < LONGEST
