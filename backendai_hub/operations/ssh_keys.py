"""The SSH key of a keypair: one's own business alone, whatever role others have."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from backendai_hub.api.ssh_keys import SSHKey, SSHKeyRequest
from backendai_hub.core.access import Action, Principal, Target
from backendai_hub.core.audit import Act
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.ssh_keys import (
    SSHKeyPair,
    fingerprint_of,
    make_ssh_key,
    read_ssh_key,
)
from backendai_hub.core.times import format_time
from backendai_hub.db import ssh_keys
from backendai_hub.db.engine import Transaction
from backendai_hub.db.nouns import Item
from backendai_hub.db.ssh_keys import SSHKeyRecord
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform

_KEYPAIR = noun_of("keypair")


async def read_key(platform: Platform, principal: Principal, reference: str) -> SSHKey:
    """Tell the public part of the key that new sessions get."""
    async with platform.database.read() as connection:
        item = await find_visible(connection, principal, _KEYPAIR, reference)
        await require(connection, principal, _KEYPAIR, item, Action.READ_SSH_KEY)
        found = await ssh_keys.find_ssh_key(connection, item["id"])
    return SSHKey() if found is None else _show(found)


async def make_key(platform: Platform, principal: Principal, reference: str) -> SSHKey:
    """Make a new key in place of the one before; its private part is shown once."""
    comment = f"{principal.name}@backendai"
    return await _store(
        platform, principal, reference, lambda: make_ssh_key(comment), shows=True
    )


async def bring_key(
    platform: Platform, principal: Principal, reference: str, body: SSHKeyRequest
) -> SSHKey:
    """Use a key that somebody has already, in place of the one before."""
    comment = f"{principal.name}@backendai"
    return await _store(
        platform,
        principal,
        reference,
        lambda: read_ssh_key(body.private_key, comment),
    )


async def remove_key(platform: Platform, principal: Principal, reference: str) -> None:
    """Give sessions no key from now on; those that run keep theirs."""
    async with platform.database.transaction() as tx:
        item, target = await _find(tx, principal, reference)
        found = await ssh_keys.find_ssh_key(tx.connection, item["id"])
        if found is None:
            return
        await ssh_keys.remove_ssh_key(tx, item["id"])
        _note(tx, item, target, before=found.public_key)


async def _store(
    platform: Platform,
    principal: Principal,
    reference: str,
    find: Callable[[], SSHKeyPair],
    *,
    shows: bool = False,
) -> SSHKey:
    async with platform.database.transaction() as tx:
        item, target = await _find(tx, principal, reference)
        key = find()  # who may not do it hears that first
        before = await ssh_keys.find_ssh_key(tx.connection, item["id"])
        record = SSHKeyRecord(
            keypair_id=item["id"],
            public_key=key.public_key,
            sealed=platform.vault.seal(key.private_key),
            changed_at=tx.now,
        )
        await ssh_keys.put_ssh_key(tx, record)
        _note(
            tx,
            item,
            target,
            before=before.public_key if before else "",
            after=key.public_key,
        )
    return msgspec.structs.replace(
        _show(record), private_key=key.private_key if shows else ""
    )


async def _find(
    tx: Transaction, principal: Principal, reference: str
) -> tuple[Item, Target]:
    item = await find_visible(tx.connection, principal, _KEYPAIR, reference)
    action = Action.CHANGE_SSH_KEY
    return item, await require(tx.connection, principal, _KEYPAIR, item, action)


def _note(
    tx: Transaction, item: Item, target: Target, *, before: str = "", after: str = ""
) -> None:
    tx.audit(
        Act(
            action=Action.CHANGE_SSH_KEY,
            object_kind="keypair",
            object_id=item["id"],
            object_name=item["name"],
            domain_id=target.domain_id,
            owner_id=target.owner_id,
            before={"ssh_key": fingerprint_of(before)} if before else {},
            after={"ssh_key": fingerprint_of(after)} if after else {},
        )
    )


def _show(record: SSHKeyRecord) -> SSHKey:
    return SSHKey(
        kind=record.public_key.split(" ", 1)[0],
        public_key=record.public_key,
        fingerprint=fingerprint_of(record.public_key),
        changed_at=format_time(record.changed_at),
    )
