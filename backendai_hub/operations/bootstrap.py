"""What a control plane makes true when it starts."""

from __future__ import annotations

from collections.abc import Sequence

from backendai_hub.core.images import Image
from backendai_hub.core.slots import parse_amount, parse_slots
from backendai_hub.db import agents, tenancy
from backendai_hub.operations.platform import Platform


async def offer_images(platform: Platform, images: Sequence[Image]) -> None:
    """Make *images* the environments on offer, and have the default tenants exist.

    Raises :class:`InvalidRequestError` for a minimum that is not an amount.
    """
    for image in images:
        parse_slots(image.minimum)
        parse_amount("shmem", image.shmem)
    async with platform.database.transaction() as tx:
        await tenancy.ensure_defaults(tx, platform.new_id)
        await agents.put_images(tx, images)
