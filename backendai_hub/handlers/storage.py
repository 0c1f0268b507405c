"""Routes of what lies on storage hosts and belongs to nobody."""

from __future__ import annotations

from backendai_hub.api.storage import RemainsPage, StorageCheck, StorageCheckRequest
from backendai_hub.core.access import Action
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import storage_checks as verbs


class RemainsHandler(APIHandler):
    """What was found."""

    path = "api/storage-remains"

    @operation(Action.READ_REMAINS, query=verbs.RemainsQuery)
    async def get(self) -> RemainsPage:
        """List what lies on storage hosts and belongs to nobody."""
        query = self.decode_query(verbs.RemainsQuery)
        return await verbs.list_remains(self.platform, query)


class CheckHandler(APIHandler):
    """Looking for it."""

    path = "api/storage-remains/check"

    @operation(Action.CHECK_STORAGE)
    async def post(self, body: StorageCheckRequest) -> StorageCheck:
        """Look through storage hosts now, and clean up if that is asked for."""
        return await verbs.check_storage(self.platform, self.principal.name, body)


STORAGE_HANDLERS: tuple[type[APIHandler], ...] = (RemainsHandler, CheckHandler)
"""All of them."""
