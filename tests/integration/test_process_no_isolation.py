"""Where no sandbox can be made: one user, and loud words about it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_harness import (
    NOTHING,
    SLEEP,
    Node,
    make_runtime,
    make_spec,
    open_node,
    traces,
    until,
    write_program,
)

from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure

HOME_MAIN = "import os; exec(open(os.path.expanduser('~/main.py')).read())"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(
        tmp_path,
        bwrap="no-such-bubblewrap",
        root_without_isolation=True,
        command=["{python}", "-u", "-c", HOME_MAIN],
    ) as node:
        yield node


async def test_it_serves_one_owner_and_says_so(node: Node) -> None:
    assert node.isolation.tier == "none"
    assert not node.isolation.multi_user
    assert "NO ISOLATION" in node.isolation.notes[0]
    assert any("bubblewrap is not installed" in note for note in node.isolation.notes)

    spec = await node.launch(
        "import os; print(os.environ['BACKENDAI_RUN_DIR'], os.getcwd())\n" + SLEEP
    )
    await node.launch(owner="ann")
    folder = node.folder(spec.id)
    await until(lambda: node.log_of(spec.id) == f"{folder.run} {folder.work}\n")
    assert node.runtime.run_inside(spec.id) == str(folder.run)

    with pytest.raises(RuntimeFailure, match="one user at a time, now ann"):
        await node.launch(owner="bob")


async def test_even_processes_that_hide_are_ended(node: Node) -> None:
    spec = await node.launch(
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "print('ready')\n" + SLEEP
    )
    await until(lambda: node.log_of(spec.id).count("ready") == 2)
    await node.runtime.stop(spec.id, 0.2)
    assert traces(spec.id) == NOTHING


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
async def test_root_without_isolation_is_refused(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, bwrap="no-such-bubblewrap")
    with pytest.raises(RuntimeFailure, match="root_without_isolation"):
        await runtime.open()
    await runtime.close()


async def test_namespaces_can_be_insisted_on(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, bwrap="no-such-bubblewrap", isolation="namespaces")
    with pytest.raises(RuntimeFailure, match="bubblewrap is not installed"):
        await runtime.open()
    await runtime.close()


async def test_an_environment_without_the_boot_module_is_explained(
    tmp_path: Path,
) -> None:
    runtime = make_runtime(
        tmp_path,
        isolation="none",
        root_without_isolation=True,
        command=["{python}", "-m", "no_such_module"],
    )
    with pytest.raises(RuntimeFailure, match="has no no_such_module"):
        await runtime.open()
    await runtime.close()


async def test_starting_twice_makes_one_container_here_too(node: Node) -> None:
    spec = make_spec()
    write_program(node.folder(spec.id), "print('x')\n" + SLEEP)
    await node.runtime.start(spec, ContainerPatch())
    await node.runtime.start(spec, ContainerPatch())
    await until(lambda: node.log_of(spec.id) == "x\n")
