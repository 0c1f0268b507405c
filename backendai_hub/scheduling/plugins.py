"""Sequencers and placement policies by name: our own, and those of other packages."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final

from backendai_hub.scheduling.fragmentation import Fragmentation
from backendai_hub.scheduling.guards import is_own
from backendai_hub.scheduling.ordering import SEQUENCERS, Sequencer
from backendai_hub.scheduling.scoring import PlacementPolicy
from backendai_hub.scheduling.snapshot import GroupPolicy
from backendai_hub.scheduling.strategies import Concentrated, Dispersed, RoundRobin

SEQUENCERS_GROUP: Final = "backendai_hub.sequencers"
PLACEMENTS_GROUP: Final = "backendai_hub.placements"


class UnknownPolicyError(LookupError):
    """A policy that a group names is not installed here."""

    def __init__(self, group: str, name: str, known: list[str]) -> None:
        self.group, self.name, self.known = group, name, known
        kind = group.rpartition(".")[2].removesuffix("s")
        super().__init__(
            f"no {kind} called {name!r} is installed; there are {', '.join(known)}"
        )


class BrokenPolicyError(UnknownPolicyError):
    """A policy that a group names is installed here but cannot be loaded."""

    def __init__(self, group: str, name: str, error: Exception) -> None:
        super().__init__(group, name, [])
        kind = group.rpartition(".")[2].removesuffix("s")
        what = f"{type(error).__name__}: {error}"
        self.args = (f"the {kind} {name!r} cannot be loaded ({what})",)


_PLACEMENTS: dict[str, PlacementPolicy] = {
    policy.name: policy
    for policy in (Concentrated(), Dispersed(), RoundRobin(), Fragmentation())
}
_PLACEMENTS["legacy"] = _PLACEMENTS["dispersed"]


def find_sequencer(name: str) -> Sequencer:
    """Return the sequencer called *name*."""
    found: Sequencer | None = SEQUENCERS.get(name)
    return found or _load(SEQUENCERS_GROUP, name)


def find_placement(name: str) -> PlacementPolicy:
    """Return the placement policy called *name*."""
    found = _PLACEMENTS.get(name)
    return found or _load(PLACEMENTS_GROUP, name)


def follows_own(policy: GroupPolicy) -> bool:
    """Tell whether a group follows policies that come with the product; loads none."""
    named = (SEQUENCERS.get(policy.sequencer), _PLACEMENTS.get(policy.placement))
    return all(map(is_own, named))


@lru_cache(maxsize=64)
def _load(group: str, name: str) -> Any:
    found = {entry.name: entry for entry in entry_points(group=group)}
    if name not in found:
        own = SEQUENCERS if group == SEQUENCERS_GROUP else _PLACEMENTS
        raise UnknownPolicyError(group, name, sorted({*own, *found}))
    try:
        made = found[name].load()
        return made() if isinstance(made, type) else made
    except Exception as error:
        raise BrokenPolicyError(group, name, error) from error
