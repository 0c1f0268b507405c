"""Tenants and their limits, made through the operations, for tests of the rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from backendai_hub.core.access import ADMIN_SCOPES, USER_SCOPES, Caller, Principal
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.core.tenancy import Role
from backendai_hub.db import session_views
from backendai_hub.db.invariants import find_breaches
from backendai_hub.operations import nouns
from backendai_hub.operations.agent_changes import AgentChange, change_agent
from backendai_hub.operations.group_access import (
    AccessTarget,
    GroupAccessRequest,
    change_access,
)
from backendai_hub.operations.members import MembersRequest, change_members
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.submit import Submission, submit_session
from backendai_hub.operations.users import ensure_user
from tests.factories import SessionRequest, principal_of, schedule

ROOT = Principal(
    caller=Caller.SUPERADMIN,
    name="root",
    id="root",
    role=Role.SUPERADMIN,
    scopes=USER_SCOPES | ADMIN_SCOPES,
    credential="test",
)


@dataclass
class Office:
    """What a superadmin does all day."""

    platform: Platform

    async def make(self, noun: str, **fields: Any) -> Any:
        found = noun_of(noun)
        body = found.create_type(**fields)
        return await nouns.create_noun(self.platform, ROOT, found, body)

    async def change(self, noun: str, reference: str, **fields: Any) -> Any:
        found = noun_of(noun)
        body = found.change_type(**fields)
        return await nouns.change_noun(self.platform, ROOT, found, reference, body)

    async def read(self, noun: str, reference: str) -> Any:
        return await nouns.read_noun(self.platform, ROOT, noun_of(noun), reference)

    async def purge(self, noun: str, reference: str) -> None:
        await nouns.purge_noun(self.platform, ROOT, noun_of(noun), reference)

    async def list(self, noun: str, **query: str) -> list[Any]:
        found, _ = await nouns.list_nouns(self.platform, ROOT, noun_of(noun), query)
        return found

    async def limit_user(self, name: str, **fields: Any) -> Any:
        """Give somebody's default keypair a policy of its own."""
        await ensure_user(self.platform, name)
        policy = await self.make("keypair-policy", name=f"of-{name}", **fields)
        key = await self.default_key(name)
        await self.change("keypair", key.name, resource_policy=policy.name)
        return policy

    async def default_key(self, user: str) -> Any:
        return (await self.list("keypair", user=user, is_default="true"))[0]

    async def open_group(self, group: str, kind: str, name: str) -> None:
        body = GroupAccessRequest(allow=[AccessTarget(kind=kind, name=name)])  # type: ignore[arg-type]
        await change_access(self.platform, ROOT, group, body)

    async def close_group(self, group: str, kind: str, name: str) -> None:
        body = GroupAccessRequest(deny=[AccessTarget(kind=kind, name=name)])  # type: ignore[arg-type]
        await change_access(self.platform, ROOT, group, body)

    async def move_node(self, name: str, group: str, *, force: bool = False) -> None:
        body = AgentChange(resource_group=group, force=force)
        await change_agent(self.platform, ROOT, name, body)

    async def join(self, project: str, *users: str) -> None:
        results = await change_members(
            self.platform, ROOT, project, MembersRequest(add=list(users))
        )
        assert all(r.error is None for r in results), results

    async def make_domain(self, name: str, **fields: Any) -> Any:
        """Make a domain that may use the local images and the default nodes."""
        made = await self.make(
            "domain", name=name, allowed_docker_registries=["local"], **fields
        )
        await self.open_group("default", "domain", name)
        return made


async def ask_with_key(
    platform: Platform, user: str, keypair_id: str, **request: Any
) -> Submission:
    """Ask for a session as a program does, with one of a user's keypairs."""
    principal = await principal_of(platform, user, Caller.USER)
    principal = Principal(
        **{
            f: getattr(principal, f)
            for f in principal.__struct_fields__
            if f != "keypair_id"
        },
        keypair_id=keypair_id,
    )
    actor = await ensure_user(platform, user)
    submission = await submit_session(
        platform, principal, actor, SessionRequest(**{"image": "lab", **request})
    )
    await make_ready(platform, submission.session.id)
    return submission


async def make_ready(platform: Platform, session_id: str) -> None:
    """Have JupyterHub's part done: only then does the scheduler see a session."""
    async with platform.database.transaction() as tx:
        await tx.execute(
            text("UPDATE sessions SET ready = :yes WHERE id = :id").bindparams(
                yes=True, id=session_id
            )
        )


async def make_system(platform: Platform, session_id: str) -> None:
    """Make a waiting session one of the platform's own, which people cannot ask for."""
    async with platform.database.transaction() as tx:
        await tx.execute(
            text("UPDATE sessions SET type = 'system' WHERE id = :id").bindparams(
                id=session_id
            )
        )


async def read(platform: Platform, session: Session | str) -> Session:
    key = session if isinstance(session, str) else session.id
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, key)


async def why(platform: Platform, session: Session) -> str:
    """Let the scheduler look, and tell why a session still waits."""
    await schedule(platform)
    shown = await read(platform, session)
    assert shown.status is SessionStatus.PENDING, shown
    return shown.reason


async def breaches(platform: Platform) -> list[str]:
    async with platform.database.read() as connection:
        return await find_breaches(connection)
