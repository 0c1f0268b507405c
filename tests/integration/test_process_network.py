"""Sessions reach the outside, and neither this node's loopback nor one another."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_harness import NOTHING, PREAMBLE, SLEEP, Node, open_node, traces, until

from backendai_agent import mounts_kernel as kernel
from backendai_agent.runtimes.process_memory import ProcessMemory
from backendai_agent.runtimes.process_network import is_attached, why_no_slirp
from backendai_agent.runtimes.process_supervisor import find_marked

pytestmark = pytest.mark.bwrap

WAIT_FOR_NETWORK = """
def until_up():
    until = time.monotonic() + 60
    while "tap0" not in open("/proc/net/route").read():
        if time.monotonic() > until: raise OSError("no network came")
        time.sleep(0.02)
until_up()
"""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    lack = why_no_slirp("/usr/bin/slirp4netns")
    if lack:
        pytest.skip(lack)
    async with open_node(tmp_path, network="auto") as node:
        assert node.isolation.network == "slirp4netns"
        yield node


async def test_the_network_comes_after_the_start(node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = await node.ask(
            WAIT_FOR_NETWORK
            + f"""
results["resolver"] = open("/etc/resolv.conf").read()
attempt("loopback", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
attempt("node", lambda: socket.create_connection(("10.0.2.2", {port}), 2))
# Choosing a route is enough to be refused; nothing is sent.
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
attempt("metadata", lambda: udp.connect(("169.254.169.254", 80)))
"""
        )
    assert found.pop("resolver") == "nameserver 10.0.2.3\n"
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "loopback": "refused",
        "node": "refused",
        "metadata": "refused",
    }


async def test_the_helper_ends_with_the_session(node: Node) -> None:
    spec = await node.launch()
    memory = ProcessMemory(node.folder(spec.id))
    await until(lambda: is_attached(memory))
    await node.runtime.stop(spec.id, 0)
    await until(lambda: traces(spec.id) == NOTHING)
    await until(lambda: not _helpers(), what=lambda: str(_helpers()))


async def test_a_helper_that_died_is_replaced(node: Node) -> None:
    spec = await node.launch(PREAMBLE + WAIT_FOR_NETWORK + "tell()\n" + SLEEP)
    await node.result(spec)
    memory = ProcessMemory(node.folder(spec.id))
    helper = _helpers()[0]
    os.kill(helper, signal.SIGKILL)
    async with asyncio.timeout(60):
        assert await anext(node.runtime.changes()) == spec.id
    await until(lambda: is_attached(memory) and helper not in _helpers())
    assert list(find_marked(spec.id))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
async def test_a_helper_takes_no_mount_of_the_machine_away(
    node: Node, tmp_path: Path
) -> None:
    """slirp4netns detaches all it sees; on most machines mounts are shared."""
    outer = tmp_path / "shared"
    inner = outer / "inner"
    outer.mkdir()
    subprocess.run(["mount", "--bind", outer, outer], check=True)
    try:
        subprocess.run(["mount", "--make-shared", outer], check=True)
        inner.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", inner], check=True)
        spec = await node.launch(PREAMBLE + WAIT_FOR_NETWORK + "tell()\n" + SLEEP)
        await node.result(spec)
        assert inner.is_mount()
    finally:
        kernel.detach(str(outer))


def _helpers() -> list[int]:
    """The network helpers that are our children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    found = []
    for pid in children:
        with contextlib.suppress(OSError):  # it ends just now
            if Path(f"/proc/{pid}/comm").read_text().strip() == "slirp4netns":
                found.append(int(pid))
    return found


async def test_the_nodes_own_network_is_only_for_those_who_ask(tmp_path: Path) -> None:
    async with open_node(tmp_path, network="host") as node:
        assert node.isolation.network == "host"
        assert any("share this node's network" in note for note in node.isolation.notes)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            found = await node.ask(
                "attempt('node', lambda: socket.create_connection"
                f"(('127.0.0.1', {port}), 2))"
            )
        assert found["node"][0] == "done"
