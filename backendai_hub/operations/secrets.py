"""Giving a keypair a new secret."""

from __future__ import annotations

import msgspec

from backendai_hub.core.access import Action, Principal, Resource, admin_scope
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import ForbiddenError
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Keypair
from backendai_hub.db import nouns, tenancy
from backendai_hub.operations.keypair_rules import issue_secret, refuse_above
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform

_KEYPAIR = noun_of("keypair")


async def issue_keypair_secret(
    platform: Platform, principal: Principal, reference: str
) -> Keypair:
    """Issue a new secret, shown this once; the old one is refused from now on.

    A key with an administrator's rights, and anybody's who stands higher, is only for
    a credential that carries such rights itself.
    """
    async with platform.database.transaction() as tx:
        item = await find_visible(tx.connection, principal, _KEYPAIR, reference)
        target = await require(
            tx.connection, principal, _KEYPAIR, item, Action.ISSUE_SECRET
        )
        owner = await tenancy.find_actor(tx.connection, user_id=item["user_id"])
        powerful = admin_scope(Resource.ACCOUNT) in principal.scopes
        if item["is_admin"] and not powerful:
            raise ForbiddenError(
                "this key carries an administrator's rights, and your credential does"
                " not; log in as an administrator"
            )
        if owner is not None:
            refuse_above(platform, principal, owner)
        secret = await issue_secret(tx, _KEYPAIR, item)
        now = await nouns.find_item(tx.connection, _KEYPAIR, item["id"])
        assert now is not None
        shown: Keypair = nouns.present(_KEYPAIR, now, has_secret=True)
        tx.audit(
            Act(
                action=Action.ISSUE_SECRET,
                object_kind="keypair",
                object_id=item["id"],
                object_name=item["name"],
                domain_id=target.domain_id,
                owner_id=target.owner_id,
                after={"revision": shown.revision},
            )
        )
    return msgspec.structs.replace(shown, secret=secret)
