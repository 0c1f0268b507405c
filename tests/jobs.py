"""Batch sessions made through the operations, for tests of their rules."""

from __future__ import annotations

from typing import Any

from backendai_hub.api.agents import ContainerState
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.sessions import Session, SessionType
from backendai_hub.db import containers
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.submit import submit_session
from backendai_hub.operations.users import ensure_user
from tests.factories import Node, principal_of, schedule, seen

State = ContainerState


async def ask(
    platform: Platform,
    user: str = "alice",
    *,
    key: str | None = None,
    caller: Caller = Caller.USER,
    **request: Any,
) -> Session:
    """Ask for a batch session, as a person does."""
    wanted = {
        "image": "lab",
        "type": SessionType.BATCH,
        "startup_command": "true",
        **request,
    }
    done = await submit_session(
        platform,
        await principal_of(platform, user, caller),
        await ensure_user(platform, user),
        SessionRequest(**wanted),
        key,
    )
    return done.session


async def begin(platform: Platform, **request: Any) -> Session:
    """Ask for a batch session and have it placed."""
    session = await ask(platform, **request)
    assert await schedule(platform) == 1
    return session


async def containers_of(platform: Platform, session: Session | str) -> list[str]:
    """List the containers that are not gone; the newest is the last."""
    key = session if isinstance(session, str) else session.id
    async with platform.database.read() as connection:
        found = await containers.list_containers(connection, session_id=key)
    return [container.id for container in found]


async def tell(
    platform: Platform, node: Node, session: Session, state: State, **changes: Any
) -> None:
    """Have a node report on the newest container of a session, and no other."""
    container = (await containers_of(platform, session))[-1]
    await node.report([seen(container, state, **changes)])


async def end(
    platform: Platform, node: Node, session: Session, exit_code: int | None = 0
) -> None:
    """Have a session's command end."""
    await tell(platform, node, session, State.EXITED, exit_code=exit_code)


async def stop(platform: Platform, session: Session, *, force: bool = False) -> None:
    """Stop a session as its owner does."""
    principal = await principal_of(platform, session.owner, Caller.USER)
    await verbs.terminate_session(platform, principal, session.id, force=force)
