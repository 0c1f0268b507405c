"""The client's part about fair share: weights, shares, guarantees, past use."""

from __future__ import annotations

from collections.abc import Sequence

from backendai_hub.api.shares import (
    ChangedShare,
    ShareChange,
    SharesRequest,
    ShareTable,
    UsageHistory,
)
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import segment
from backendai_hub.core.fair_share import read_weight


class Shares(Part):
    """Whose turn it is in a resource group, and why."""

    async def show(
        self, group: str, *, domain: str | None = None, project: str | None = None
    ) -> ShareTable:
        """Return how domains stand, or the projects of one, or the users of these."""
        return await self._transport.get(
            _below(group, "shares"),
            ShareTable,
            params={"domain": domain, "project": project},
            act_for=self._act_for,
        )

    async def change(
        self, group: str, changes: Sequence[ShareChange]
    ) -> Sequence[ChangedShare]:
        """Set weights, guarantees, maxima; all of them, or nothing if one is wrong.

        Raises :class:`InvalidRequestError` for a weight that is out of range.
        """
        for number, change in enumerate(changes):
            # In JSON, what is no number would be nothing, and take the weight away.
            if isinstance(change.weight, (int, float)):
                read_weight(f"changes[{number}].weight", change.weight)
        return await self._transport.post(
            _below(group, "shares"),
            SharesRequest(changes=list(changes)),
            tuple[ChangedShare, ...],
            act_for=self._act_for,
        )

    async def usage(
        self,
        group: str,
        *,
        domain: str | None = None,
        project: str | None = None,
        user: str | None = None,
        days: int = 30,
    ) -> UsageHistory:
        """Return what has been used, day by day."""
        return await self._transport.get(
            _below(group, "usage"),
            UsageHistory,
            params={
                "domain": domain,
                "project": project,
                "user": user,
                "days": str(days),
            },
            act_for=self._act_for,
        )


def _below(group: str, rest: str) -> str:
    return f"resource-groups/{segment(group)}/{rest}"
