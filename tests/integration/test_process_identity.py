"""What administrators say of a person or a resource group, in real sandboxes."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_preparation import UserRange, check_can_be
from backendai_hub.api.agents import Identity
from tests.integration.process_harness import PREAMBLE, SLEEP, Node, open_node

CAROL = Identity(uid=54321, gid=54322, gids=[54400, 54401])
USERS = UserRange(200000, 10000)
WHO = """
import grp, pwd
attempt("ids", lambda: (os.getuid(), os.getgid(), sorted(os.getgroups())))
attempt("names", lambda: (pwd.getpwuid(os.getuid()).pw_name,
                          grp.getgrgid(os.getgid()).gr_name))
status = open("/proc/self/status").read()
attempt("power", lambda: [line.split()[1] for line in status.splitlines()
                          if line.startswith(("CapBnd", "NoNewPrivs"))])
attempt("install", lambda: open("/home/work/.local/lib/mine", "w"))
"""

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give users")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(tmp_path, isolation="namespaces") as node:
        yield node


def reach(port: int) -> str:
    return (
        "attempt('node', lambda: socket.create_connection"
        f"(('127.0.0.1', {port}), 2).close())"
    )


# -- as whom a session runs ------------------------------------------------------


@root_only
async def test_a_session_runs_with_the_numbers_of_its_owner(node: Node) -> None:
    spec = await node.launch(PREAMBLE + WHO + f"\ntell()\n{SLEEP}", identity=CAROL)
    found = await node.result(spec)
    assert found["ids"] == ["done", "(54321, 54322, [54400, 54401])"]
    assert found["names"] == ["done", "('work', 'work')"]
    assert found["power"] == ["done", "['0000000000000000', '1']"]
    assert found["install"][0] == "done"
    made = (node.folder(spec.id).work / "result.json").stat()
    assert (made.st_uid, made.st_gid) == (54321, 54322)
    above = node.folder(spec.id).path.stat()
    assert (above.st_uid, above.st_mode & 0o777) == (0, 0o700)


@root_only
async def test_only_a_group_may_be_given(node: Node) -> None:
    found = await node.ask(WHO, identity=Identity(gid=54322))
    assert found["ids"][1].endswith(", 54322, [])"), found
    assert int(found["ids"][1].strip("(").split(",")[0]) >= 200000


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        (Identity(uid=0), "runs neither as user nor as group 0"),
        (Identity(gid=0), "runs neither as user nor as group 0"),
        (Identity(uid=5000, gids=[0]), "runs neither as user nor as group 0"),
        (Identity(uid=200123), "gives such numbers to sessions of others"),
        (Identity(gids=[200123]), "gives such numbers to sessions of others"),
    ],
)
def test_nobody_is_made_root_or_somebody_else(identity: Identity, why: str) -> None:
    with pytest.raises(RuntimeFailure, match=why):
        check_can_be(identity, privileged=True, users=USERS)


def test_an_agent_that_is_not_root_says_that_it_cannot() -> None:
    check_can_be(None, privileged=False, users=USERS)
    with pytest.raises(RuntimeFailure, match="needs an agent that runs as root"):
        check_can_be(CAROL, privileged=False, users=USERS)


# -- the node's own network ------------------------------------------------------


async def test_the_nodes_network_is_refused_until_its_operator_allows_it(
    node: Node,
) -> None:
    with pytest.raises(RuntimeFailure, match="this node's operator has not allowed"):
        await node.launch(host_network=True)


async def test_only_sessions_that_shall_be_are_on_the_nodes_network(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, allow_host_network=True) as node:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            there = await node.ask(reach(port), host_network=True)
            not_there = await node.ask(reach(port))
    assert there["node"][0] == "done"
    assert not_there["node"][0] == "refused"
