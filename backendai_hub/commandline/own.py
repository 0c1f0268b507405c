"""What is meant where somebody names nothing: their own."""

from __future__ import annotations

from backendai_hub.commandline.asking import Asking
from backendai_hub.core.errors import NotFoundError


async def find_own_keypair(asking: Asking) -> str:
    """Return the name of one's default keypair.

    Raises :class:`NotFoundError` for who has none yet.
    """
    me = await asking.client.me()
    usual = await asking.client.keypairs.page(user=me.name, is_default=True)
    if not usual.items:
        raise NotFoundError(
            "you have no default keypair yet; it is made with your first session, or"
            " name one with --keypair"
        )
    return usual.items[0].name
