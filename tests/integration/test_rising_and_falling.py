"""What people had before must not rise with them, nor follow them elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from sqlalchemy import insert

from backendai_hub.core.access import ADMIN_SCOPES, CALLER_OF_ROLE, USER_SCOPES
from backendai_hub.core.errors import ForbiddenError, HubError, InUseError
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.tenancy import Role
from backendai_hub.db.audit import list_changes
from backendai_hub.db.tables import MembershipRow
from backendai_hub.operations.members import MembersRequest, change_members
from backendai_hub.operations.nouns import (
    change_noun,
    create_noun,
    list_nouns,
    purge_noun,
    read_noun,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import ensure_user, find_user, make_principal

EVERYTHING = USER_SCOPES | ADMIN_SCOPES


async def as_role(platform: Platform, name: str, role: Role) -> Any:
    """Somebody whose stored role is *role*, as an administrator's credential has it."""
    actor = await ensure_user(platform, name)
    if role is not Role.USER:
        await change(platform, await site(platform), "user", name, role=str(role))
        actor = await ensure_user(platform, name)
    made = make_principal(actor, scopes=EVERYTHING, credential="test")
    return msgspec.structs.replace(made, caller=CALLER_OF_ROLE[role], role=role)


async def site(platform: Platform) -> Any:
    """The superadmin whom nobody stored: everything of these tests begins with it."""
    actor = await ensure_user(platform, "site")
    made = make_principal(actor, scopes=EVERYTHING, credential="test")
    role = Role.SUPERADMIN
    return msgspec.structs.replace(made, caller=CALLER_OF_ROLE[role], role=role)


async def change(
    platform: Platform, who: Any, noun: str, ref: str, **fields: Any
) -> Any:
    kind = noun_of(noun)
    body = kind.change_type(**fields)
    return await change_noun(platform, who, kind, ref, body)


async def create(platform: Platform, who: Any, noun: str, **fields: Any) -> Any:
    kind = noun_of(noun)
    return await create_noun(platform, who, kind, kind.create_type(**fields))


async def keys_of(platform: Platform, name: str) -> list[Any]:
    found, _ = await list_nouns(
        platform, await site(platform), noun_of("keypair"), {"user": name}
    )
    return found


async def test_nobody_makes_keys_with_an_administrators_rights_for_others(
    platform: Platform,
):
    """The maker sees the secret, and would have it when the owner rises."""
    admin = await as_role(platform, "ada", Role.DOMAIN_ADMIN)
    await ensure_user(platform, "bob")
    with pytest.raises(ForbiddenError, match="for themselves only"):
        await create(platform, admin, "keypair", user="bob", is_admin=True)
    assert (
        await create(platform, admin, "keypair", user="ada", is_admin=True)
    ).is_admin


async def test_keys_lose_an_administrators_rights_when_the_role_changes(
    platform: Platform,
):
    admin = await as_role(platform, "ada", Role.DOMAIN_ADMIN)
    await create(platform, admin, "keypair", user="ada", is_admin=True)
    await change(platform, await site(platform), "user", "ada", role="superadmin")
    assert not any(key.is_admin for key in await keys_of(platform, "ada"))


async def test_an_administrator_of_one_domain_is_none_of_the_next(platform: Platform):
    await as_role(platform, "ada", Role.DOMAIN_ADMIN)
    root = await site(platform)
    await create(platform, root, "domain", name="other")
    moved = await change(platform, root, "user", "ada", domain="other")
    assert (moved.domain, moved.role) == ("other", "user")
    back = await change(
        platform, root, "user", "ada", domain="default", role="domain-admin"
    )
    assert back.role == "domain-admin"


async def test_a_membership_of_another_domain_would_count_for_nothing(
    platform: Platform,
):
    root = await site(platform)
    await create(platform, root, "domain", name="other")
    project = await create(platform, root, "project", name="far", domain="other")
    bob = await ensure_user(platform, "bob")
    async with platform.database.transaction() as tx:
        await tx.execute(
            insert(MembershipRow).values(
                project_id=project.id, user_id=bob.id, created_at=tx.now
            )
        )
    found = await find_user(platform, "bob")
    assert found is not None
    assert project.id not in found.projects


async def test_the_last_superadmin_stays_one(platform: Platform):
    one = await as_role(platform, "one", Role.SUPERADMIN)
    two = await as_role(platform, "two", Role.SUPERADMIN)
    results = await asyncio.gather(
        change(platform, one, "user", "two", role="user"),
        change(platform, two, "user", "one", status="inactive"),
        return_exceptions=True,
    )
    refused = [r for r in results if isinstance(r, HubError)]
    assert len(refused) == 1, results
    assert "last active superadmin" in str(refused[0])


async def test_a_default_key_is_never_purged_however_fast_it_became_one(
    platform: Platform,
):
    root = await site(platform)
    await ensure_user(platform, "bob")
    for _ in range(5):
        key = await create(platform, root, "keypair", user="bob")
        results = await asyncio.gather(
            change(platform, root, "keypair", key.name, is_default=True),
            purge_noun(platform, root, noun_of("keypair"), key.name),
            return_exceptions=True,
        )
        assert sum(isinstance(r, HubError) for r in results) == 1, results
        assert [k.is_default for k in await keys_of(platform, "bob")].count(True) == 1
        assert await find_user(platform, "bob") is not None


async def test_moving_somebody_and_adding_them_at_once_leaves_no_foreign_member(
    platform: Platform,
):
    root = await site(platform)
    await create(platform, root, "domain", name="other")
    project = await create(platform, root, "project", name="near", domain="default")
    for number in range(5):
        name = f"bob{number}"
        await ensure_user(platform, name)
        await asyncio.gather(
            change(platform, root, "user", name, domain="other"),
            change_members(platform, root, project.id, MembersRequest(add=[name])),
        )
        found = await find_user(platform, name)
        assert found is not None
        assert project.id not in found.projects


async def test_purging_and_using_at_once_ends_in_words(platform: Platform):
    root = await site(platform)
    kind = noun_of("keypair-policy")
    for number in range(5):
        policy = await create(platform, root, "keypair-policy", name=f"gold{number}")
        results = await asyncio.gather(
            create(platform, root, "keypair", user="site", resource_policy=policy.name),
            purge_noun(platform, root, kind, policy.name),
            return_exceptions=True,
        )
        (refused,) = [r for r in results if isinstance(r, BaseException)]
        assert isinstance(refused, HubError), refused
        if isinstance(refused, InUseError):
            assert "in use" in refused.message or "use" in refused.message


async def test_the_audit_tells_that_a_script_changed_and_not_what_is_in_it(
    platform: Platform,
):
    root = await site(platform)
    key = await create(platform, root, "keypair", user="site")
    canary = "export TOKEN=canary-of-a-script"
    await change(platform, root, "keypair", key.name, bootstrap_script=canary)
    shown = await read_noun(platform, root, noun_of("keypair"), key.name)
    assert shown.bootstrap_script == canary
    async with platform.database.read() as connection:
        told = await list_changes(connection, key.id, 1)
        rows = (await connection.exec_driver_sql("SELECT * FROM audit")).all()
    assert "bootstrap_script" in told[0].fields
    assert canary not in repr(rows)
