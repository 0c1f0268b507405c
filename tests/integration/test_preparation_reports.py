"""Dotfiles and bootstrap script at the hub: sealed, handed on, waited for."""

from __future__ import annotations

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.api.agents import SessionFile
from backendai_hub.core.dotfiles import BOOTSTRAP_SECONDS
from backendai_hub.core.sessions import DEADLINES, Session, SessionStatus
from backendai_hub.db import containers, session_views
from backendai_hub.db import sessions as rows
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.platform import Platform
from tests.factories import Clock, add_node, seen, start

FILE = {"path": ".netrc", "permission": "600", "content": "hunter2"}


async def container_of(platform: Platform, session: Session) -> str:
    async with platform.database.read() as connection:
        found = await containers.list_containers(connection, session_id=session.id)
    return found[0].id


async def read(platform: Platform, session_id: str) -> Session:
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, session_id)


async def give(platform: Platform, session: Session, **more: object) -> bytes:
    """Seal what the session is born with, as submitting does."""
    sealed = platform.vault.seal({"environ": {"A": "1"}, "argv": [], **more})
    async with platform.database.transaction() as tx:
        await rows.replace_secret(tx, session.id, sealed)
    return sealed


async def test_files_and_script_reach_the_sessions_own_node(platform: Platform):
    node = await add_node(platform)
    session = await start(platform)
    sealed = await give(platform, session, files=[FILE], bootstrap="echo hi")
    assert b"hunter2" not in sealed

    [spec] = (await load_assignments(platform, node.id)).containers
    assert spec.files == [
        SessionFile(path=".netrc", permission="600", content="hunter2")
    ]
    assert (spec.bootstrap, spec.environ) == ("echo hi", {"A": "1"})


async def test_a_session_from_before_has_neither(platform: Platform):
    node = await add_node(platform)
    await give(platform, await start(platform))
    [spec] = (await load_assignments(platform, node.id)).containers
    assert (spec.files, spec.bootstrap) == ([], "")


async def test_a_script_has_its_time_and_no_more(platform: Platform):
    clock = platform.database.clock
    assert isinstance(clock, Clock)
    usual = DEADLINES[SessionStatus.CREATING]
    assert usual is not None
    node = await add_node(platform)
    plain = await start(platform, server="a", slots={"cpu": 1})
    prepared = await start(platform, server="b", slots={"cpu": 1})
    one, two = [await container_of(platform, s) for s in (plain, prepared)]
    await node.report(
        [seen(one, State.CREATING), seen(two, State.CREATING, bootstrap=True)]
    )
    words = "running the bootstrap script"
    await node.report([seen(two, State.CREATING, bootstrap=True, reason=words)])
    assert (await read(platform, prepared.id)).reason == words

    clock.pass_(usual + 1)
    await end_overdue(platform)
    assert (await read(platform, plain.id)).status is SessionStatus.ERROR
    assert (await read(platform, prepared.id)).status is SessionStatus.CREATING

    clock.pass_(BOOTSTRAP_SECONDS)
    await end_overdue(platform)
    assert (await read(platform, prepared.id)).status is SessionStatus.ERROR


async def test_why_the_script_failed_is_the_sessions_reason(platform: Platform):
    node = await add_node(platform)
    session = await start(platform)
    container = await container_of(platform, session)
    await node.report([seen(container, State.CREATING, bootstrap=True)])
    why = "the bootstrap script ended with exit code 3: no such package"
    await node.report([seen(container, State.EXITED, reason=why, exit_code=1)])

    ended = await read(platform, session.id)
    assert (ended.status, ended.reason) == (SessionStatus.ERROR, why)
    async with platform.database.read() as connection:
        assert await rows.get_secrets(connection, [session.id]) == {}
