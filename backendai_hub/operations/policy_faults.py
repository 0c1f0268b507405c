"""What policies of other packages have done wrong the last time they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from backendai_hub.scheduling.snapshot import GroupPolicy


class _Fault(NamedTuple):
    policies: tuple[str, str]
    told: str


class PolicyFaults:
    """The faults of each resource group, as its last pass has found them."""

    def __init__(self) -> None:
        self._of: dict[str, _Fault] = {}

    def note(
        self, asked: Mapping[str, GroupPolicy], found: Mapping[str, str]
    ) -> dict[str, str]:
        """Note what has been *found* in a pass over these groups; return what is new.

        Of groups that it was not about nothing else is known than before.
        """
        new = {}
        for group, policy in asked.items():
            before, told = self._of.pop(group, None), found.get(group, "")
            if told:
                fault = self._of[group] = _Fault(policy.names, told)
                if fault != before:
                    new[group] = told
        return new

    def of(self, group: str, policies: tuple[str, str]) -> str:
        """Return what is wrong with a group, if these still are its *policies*."""
        fault = self._of.get(group)
        return fault.told if fault is not None and fault.policies == policies else ""
