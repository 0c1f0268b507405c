"""Where measurements are kept, and what was looked up to know whose they are."""

from __future__ import annotations

from collections.abc import Iterable

from backendai_hub.core.usage_keeper import UsageKeeper

ASK_AGAIN_SECONDS = 30.0
"""What nobody knew is looked up again after so long: it may be new."""
MOST_STRANGE = 10_000
"""How many containers that are not its own are remembered of one node."""
TRUST_SECONDS = 60.0
"""So long a node is believed to be one without looking it up again."""


class UsageBook:
    """The keeper, the names of nodes, and the containers that are none of theirs."""

    def __init__(self) -> None:
        self.keeper = UsageKeeper()
        self._nodes: dict[str, tuple[str, float]] = {}
        self._strange: dict[str, dict[str, float]] = {}

    def find_name(self, agent_id: str, now: float) -> str | None:
        """Return a node's name, if it was looked up lately."""
        name, at = self._nodes.get(agent_id, ("", now - 2 * TRUST_SECONDS))
        return name if abs(now - at) < TRUST_SECONDS else None

    def note_name(self, agent_id: str, name: str, now: float) -> None:
        """Note what a node is called."""
        self._nodes[agent_id] = (name, now)

    def choose_unknown(
        self, agent_id: str, ids: Iterable[str], now: float
    ) -> list[str]:
        """Return which containers have to be looked up for a node."""
        strange = self._strange.get(agent_id, {})
        return [
            container_id
            for container_id in ids
            if self.keeper.subject(container_id) is None
            and abs(now - strange.get(container_id, 0.0)) > ASK_AGAIN_SECONDS
        ]

    def note_strange(self, agent_id: str, ids: Iterable[str], now: float) -> None:
        """Note which containers are not this node's, for a while."""
        kept = {
            container_id: at
            for container_id, at in self._strange.get(agent_id, {}).items()
            if abs(now - at) <= ASK_AGAIN_SECONDS
        }
        if len(kept) > MOST_STRANGE:
            kept = {}
        self._strange[agent_id] = kept | dict.fromkeys(ids, now)
