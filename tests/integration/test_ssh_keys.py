"""The SSH key of a keypair: sessions find it, and nobody else reads or sets it."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from backendai_hub.api.ssh_keys import SSHKey, SSHKeyRequest
from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Principal
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import ForbiddenError, HubError, InvalidRequestError
from backendai_hub.core.ssh_keys import make_ssh_key
from backendai_hub.core.tenancy import Role
from backendai_hub.db import sessions
from backendai_hub.operations import dotfiles, ssh_keys
from backendai_hub.operations.dotfiles import DotfilesRequest
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user, make_principal
from tests.factories import submit
from tests.tenants import ROOT, Office


async def who(platform: Platform, name: str) -> tuple[Principal, str]:
    """Return somebody as they come with a credential of theirs, and their keypair."""
    actor = await ensure_user(platform, name)
    scopes = USER_SCOPES | ADMIN_SCOPES
    principal = make_principal(actor, scopes=scopes, credential="token")
    return principal, (await Office(platform).default_key(name)).name


async def born_files(platform: Platform, name: str, server: str) -> dict[str, Dotfile]:
    """Return what a new session finds in its home."""
    session = (await submit(platform, name, server=server)).session
    async with platform.database.read() as connection:
        [sealed] = (await sessions.get_secrets(connection, [session.id])).values()
    files = platform.vault.open(sealed)["files"]
    return {file["path"]: Dotfile(**file) for file in files}


async def test_new_sessions_find_the_key_where_openssh_looks_for_it(
    platform: Platform,
):
    ada, key = await who(platform, "ada")
    assert await ssh_keys.read_key(platform, ada, key) == SSHKey()
    assert await born_files(platform, "ada", "before") == {}

    made = await ssh_keys.make_key(platform, ada, key)
    found = await born_files(platform, "ada", "after")

    assert found[".ssh/id_ed25519"].content == made.private_key
    assert found[".ssh/id_ed25519"].permission == "600"
    assert found[".ssh/authorized_keys"].content == f"{made.public_key}\n"
    assert made.public_key.endswith(" ada@backendai")

    await ssh_keys.remove_key(platform, ada, key)
    assert await born_files(platform, "ada", "last") == {}


async def test_the_private_part_is_shown_once_and_is_nowhere_in_the_database(
    platform: Platform,
):
    ada, key = await who(platform, "ada")
    made = await ssh_keys.make_key(platform, ada, key)
    again = await ssh_keys.read_key(platform, ada, key)
    assert again.private_key == ""
    assert again.fingerprint == made.fingerprint

    secret = made.private_key.splitlines()[2]
    async with platform.database.read() as connection:
        [(stored,)] = await connection.execute(text("SELECT sealed FROM ssh_keys"))
        told = await connection.execute(
            text("SELECT before, after FROM audit WHERE action = 'ssh-key:update'")
        )
        [(before, after)] = told.all()
    assert secret not in bytes(stored).decode("latin-1")
    assert secret not in f"{before} {after}"
    assert made.fingerprint in str(after)


async def test_a_key_that_one_has_takes_the_place_of_the_one_before(
    platform: Platform,
):
    ada, key = await who(platform, "ada")
    await ssh_keys.make_key(platform, ada, key)
    own = make_ssh_key("laptop")
    body = SSHKeyRequest(private_key=own.private_key)
    shown = await ssh_keys.bring_key(platform, ada, key, body)

    assert shown.private_key == ""
    assert shown.public_key.split()[1] == own.public_key.split()[1]
    with pytest.raises(InvalidRequestError):
        await ssh_keys.bring_key(platform, ada, key, SSHKeyRequest(private_key="x"))
    assert (await ssh_keys.read_key(platform, ada, key)) == shown


async def test_nobody_reads_or_sets_the_key_of_somebody_else(platform: Platform):
    ada, key = await who(platform, "ada")
    await ssh_keys.make_key(platform, ada, key)
    office = Office(platform)
    grace, _ = await who(platform, "grace")
    await office.change("user", "grace", role=Role.DOMAIN_ADMIN)
    chief, _ = await who(platform, "grace")
    body = SSHKeyRequest(private_key="not even a key")
    for stranger in (grace, chief, ROOT):
        for attempt in (
            ssh_keys.read_key(platform, stranger, key),
            ssh_keys.make_key(platform, stranger, key),
            ssh_keys.bring_key(platform, stranger, key, body),
            ssh_keys.remove_key(platform, stranger, key),
        ):
            with pytest.raises(HubError) as refused:
                await attempt
            assert refused.value.status in {403, 404}
    with pytest.raises(ForbiddenError):
        await ssh_keys.read_key(platform, ROOT, key)
    found = await born_files(platform, "ada", "one")
    assert found[".ssh/authorized_keys"].content.endswith(" ada@backendai\n")


async def test_a_dotfile_at_its_place_wins(platform: Platform):
    ada, key = await who(platform, "ada")
    await ssh_keys.make_key(platform, ada, key)
    mine = Dotfile(path=".ssh/id_ed25519", permission="600", content="mine")
    body = DotfilesRequest(files=[mine])
    await dotfiles.write_dotfiles(platform, ada, "keypair", key, body)
    found = await born_files(platform, "ada", "one")
    assert found[".ssh/id_ed25519"] == mine
    assert ".ssh/id_ed25519.pub" not in found, "it is not the public part of that"
    assert ".ssh/authorized_keys" in found


async def test_the_key_goes_with_its_keypair(platform: Platform):
    ada, _ = await who(platform, "ada")
    office = Office(platform)
    second = await office.make("keypair", user="ada")
    await ssh_keys.make_key(platform, ada, second.name)
    await office.purge("keypair", second.name)
    async with platform.database.read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM ssh_keys")) == 0
