"""What a session has printed is told while it is on its way from its node."""

from __future__ import annotations

import pytest

from backendai_hub.api.agents import LogParcel
from backendai_hub.client.agents import AgentClient, LogText
from backendai_hub.db.signals import Signals
from backendai_hub.operations.log_desk import LogDesk
from backendai_hub.operations.logs import LogQuery, accept_log, read_log
from backendai_hub.operations.platform import Platform
from tests.factories import Node, add_node, principal_of
from tests.jobs import State, begin, tell


class Delivering(AgentClient):
    """A node that has given away what it had of a log when it is asked for it."""

    def __init__(self, platform: Platform, node: Node) -> None:
        self._platform, self._node = platform, node

    async def read_log(
        self, agent_id: str, url: str, *, container: str, tail: int
    ) -> LogText:
        parcel = LogParcel(container=container, content=b"its last words\n")
        await accept_log(self._platform, self._node.id, parcel)
        return LogText(b"", None)


@pytest.fixture
async def node(platform: Platform) -> Node:
    return await add_node(platform)


async def test_a_log_that_leaves_its_node_while_it_is_asked_for_is_not_empty(
    platform: Platform, node: Node
):
    session = await begin(platform)
    await tell(platform, node, session, State.RUNNING)

    log = await read_log(
        platform,
        await principal_of(platform, "alice"),
        session.id,
        query=LogQuery(),
        desk=LogDesk(Signals(), Delivering(platform, node)),
    )

    assert log.text == "its last words\n"
