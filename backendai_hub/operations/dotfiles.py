"""Dotfiles of domains, projects and keypairs, and what a session gets of them."""

from __future__ import annotations

import msgspec

from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.dotfiles import (
    REQUEST_BOOTSTRAP_BYTES,
    Dotfile,
    check_bootstrap_script,
    check_dotfiles,
    merge_dotfiles,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.ssh_keys import SSHKeyPair, files_of
from backendai_hub.db import dotfiles, ssh_keys, tenancy
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.keypair_rules import refuse_above
from backendai_hub.operations.nouns import find_visible, require
from backendai_hub.operations.platform import Platform


class DotfilesRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """All dotfiles that a domain, project or keypair is to have."""

    files: list[Dotfile]


async def read_dotfiles(
    platform: Platform, principal: Principal, kind: str, reference: str
) -> list[Dotfile]:
    """Return the dotfiles of a domain, project or keypair that the caller sees."""
    noun = noun_of(kind)
    async with platform.database.read() as connection:
        item = await find_visible(connection, principal, noun, reference)
        await require(connection, principal, noun, item, Action.READ_DOTFILES)
        found = await dotfiles.list_dotfiles(connection, [item["id"]])
    return found.get(item["id"], [])


async def write_dotfiles(
    platform: Platform,
    principal: Principal,
    kind: str,
    reference: str,
    body: DotfilesRequest,
) -> list[Dotfile]:
    """Replace the dotfiles of a domain, project or keypair."""
    check_dotfiles(body.files)
    noun = noun_of(kind)
    async with platform.database.transaction() as tx:
        item = await find_visible(tx.connection, principal, noun, reference)
        target = await require(tx.connection, principal, noun, item, change_of(kind))
        if kind == "keypair":
            owner = await tenancy.find_actor(tx.connection, user_id=item["user_id"])
            if owner is not None:
                refuse_above(platform, principal, owner)
        before = await dotfiles.list_dotfiles(tx.connection, [item["id"]])
        await dotfiles.put_dotfiles(tx, kind, item["id"], body.files, platform.new_id)
        tx.audit(
            Act(
                action=change_of(kind),
                object_kind=kind,
                object_id=item["id"],
                object_name=item["name"],
                domain_id=target.domain_id,
                owner_id=target.owner_id if kind == "keypair" else None,
                # Their contents may be secrets.
                before={"files": [f.path for f in before.get(item["id"], [])]},
                after={"files": [f.path for f in body.files]},
            )
        )
    return body.files


def change_of(kind: str) -> Action:
    """Name the action: what everybody of a tenant gets, its administrators write."""
    if kind == "keypair":
        return Action.CHANGE_DOTFILES
    return Action.CHANGE_TENANT_DOTFILES


async def gather(
    platform: Platform, record: SessionRecord, bootstrap: str | None
) -> tuple[list[Dotfile], str]:
    """Return the dotfiles and the bootstrap script that a session is born with.

    The keypair's win over the project's, and these over the domain's; a script that
    comes with the request takes the place of the keypair's. The keypair's SSH key is
    among them, except where a dotfile is already.
    """
    database = platform.database
    keypair_id = record.keypair_id or ""
    scopes = (keypair_id, record.project_id, record.domain_id)
    found = await database.recall(
        ("dotfiles", *scopes),
        lambda c: dotfiles.list_dotfiles(c, scopes),
        ("dotfiles",),
    )
    merged = merge_dotfiles(
        keypair=found.get(scopes[0], []),
        project=found.get(scopes[1], []),
        domain=found.get(scopes[2], []),
    )
    if bootstrap is None:
        script = await database.recall(
            ("bootstrap", keypair_id),
            lambda c: dotfiles.get_bootstrap(c, keypair_id),
        )
    else:
        check_bootstrap_script(bootstrap, most=REQUEST_BOOTSTRAP_BYTES)
        script = bootstrap
    key = await database.recall(
        ("ssh-key", keypair_id),
        lambda c: ssh_keys.find_ssh_key(c, keypair_id),
        ("ssh_keys",),
    )
    if key is None:
        return merged.files, script
    private = str(platform.vault.open(key.sealed))
    both = SSHKeyPair(public_key=key.public_key, private_key=private)
    there = {file.path for file in merged.files}
    *pair, door = files_of(both)
    # With one half of another key they would not fit together.
    added = [] if there & {file.path for file in pair} else pair
    return [*merged.files, *added, door], script
