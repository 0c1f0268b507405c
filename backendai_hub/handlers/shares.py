"""Routes about fair share: who stands how, what they weigh, what they have used."""

from __future__ import annotations

from backendai_hub.api.shares import (
    ChangedShare,
    SharesRequest,
    ShareTable,
    UsageHistory,
)
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import fair_share


class SharesHandler(APIHandler):
    """Weights, shares, guarantees and maxima in a resource group."""

    path = "api/resource-groups/{reference}/shares"

    @operation(Action.READ_SHARES, query=fair_share.SharesQuery)
    async def get(self, reference: str) -> ShareTable:
        """Show domains, the projects of one, or the users of one of these."""
        return await fair_share.show_shares(
            self.platform,
            self.principal,
            reference,
            self.decode_query(fair_share.SharesQuery),
        )

    @operation(Action.CHANGE_SHARES)
    async def post(self, reference: str, body: SharesRequest) -> list[ChangedShare]:
        """Set weights, guarantees, maxima; all of them, or nothing if one is wrong."""
        return await fair_share.change_shares(
            self.platform, self.principal, reference, body
        )


class UsageHistoryHandler(APIHandler):
    """What has been used of a resource group."""

    path = "api/resource-groups/{reference}/usage"

    @operation(Action.READ_SHARES, query=fair_share.UsageQuery)
    async def get(self, reference: str) -> UsageHistory:
        """Show what has been used, day by day."""
        return await fair_share.show_usage(
            self.platform,
            self.principal,
            reference,
            self.decode_query(fair_share.UsageQuery),
        )
