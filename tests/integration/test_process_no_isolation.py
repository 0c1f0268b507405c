"""Where no sandbox can be made: one user, never root, and loud words about it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from process_harness import (
    NOTHING,
    PREAMBLE,
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
IN_HOME = PREAMBLE.replace("/home/work/", "")
AS_ROOT = os.geteuid() == 0
only_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become another user")


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="backendai-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def traits(reachable: Path) -> dict[str, Any]:
    """A node without bubblewrap, and a Python that everybody can read."""
    given: dict[str, Any] = {
        "bwrap": "no-such-bubblewrap",
        "command": ["{python}", "-u", "-c", HOME_MAIN],
        "open_folder": str(reachable / "sessions"),
    }
    return {**given, "environment": "/usr"} if AS_ROOT else given


@pytest.fixture
async def node(tmp_path: Path, traits: dict[str, Any]) -> AsyncIterator[Node]:
    tmp_path.chmod(0o700)
    async with open_node(tmp_path, **traits) as node:
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
    run, work = folder.run.resolve(), folder.work.resolve()
    await until(lambda: node.log_of(spec.id) == f"{run} {work}\n")
    assert node.runtime.run_inside(spec.id) == str(run)

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


@only_root
async def test_even_processes_that_lose_their_mark_are_ended(
    tmp_path: Path, traits: dict[str, Any]
) -> None:
    async with open_node(tmp_path, limits="watchdog", **traits) as node:
        spec = await node.launch(
            "import os, sys\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork(): os._exit(0)\n"
            "    print(os.getpid())\n"
            "    os.execve('/bin/sleep', ['sleep', '600'], {})\n" + SLEEP
        )
        await until(lambda: node.log_of(spec.id).strip().isdecimal())
        hidden = Path("/proc", node.log_of(spec.id).strip())
        assert hidden.exists()
        await node.runtime.stop(spec.id, 0.2)
        await until(lambda: not hidden.exists())


@only_root
async def test_under_root_a_session_is_a_user_who_owns_nothing_else(
    node: Node, tmp_path: Path
) -> None:
    other = await node.launch()
    program = (
        "attempt('who', lambda: (os.getresuid(), os.getresgid(), os.getgroups()))\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "attempt('power', lambda: sorted(set(line.split()[1] for line in lines\n"
        "    if line.startswith('Cap'))))\n"
        "attempt('setuid', lambda: os.setuid(0))\n"
        "attempt('privileges', lambda: [line for line in lines\n"
        "    if line.startswith('NoNewPrivs')])\n"
        f"attempt('agent', lambda: os.listdir({str(tmp_path)!r}))\n"
        "attempt('above', lambda: os.listdir('../..'))\n"
        "attempt('log', lambda: open('../process/log').read())\n"
        f"other = {str(node.folder(other.id).path.resolve())!r}\n"
        "attempt('other', lambda: os.listdir(other + '/work'))\n"
        "attempt('kill', lambda: os.kill(1, 15))\n"
        "attempt('write', lambda: open('mine', 'w').write('x'))\n"
        "attempt('home', lambda: os.path.samefile(os.environ['HOME'], '.'))\n"
    )
    spec = await node.launch(IN_HOME + program + "tell()\n" + SLEEP)
    found = await node.result(spec)

    uid = node.folder(spec.id).work.stat().st_uid
    assert uid >= 200000
    assert uid != node.folder(other.id).work.stat().st_uid
    assert found["who"] == ["done", repr(((uid,) * 3, (uid,) * 3, []))]
    assert found["power"] == ["done", "['0000000000000000']"]
    assert found["privileges"] == ["done", "['NoNewPrivs:\\t1']"]
    for refused in ("setuid", "agent", "above", "log", "other", "kill"):
        assert found[refused][0] == "refused", refused
    assert found["write"][0] == "done"
    assert found["home"] == ["done", "True"]


@only_root
async def test_under_root_nothing_is_left_of_a_session(node: Node) -> None:
    spec = await node.launch("open('file', 'w')\n" + SLEEP)
    folder = node.folder(spec.id).path.resolve()
    await until((folder / "work" / "file").exists)
    await node.runtime.stop(spec.id, 0.2)
    assert not folder.exists()
    assert list(folder.parent.iterdir()) == []


@only_root
async def test_the_sessions_are_found_again_where_they_were_put(
    tmp_path: Path, traits: dict[str, Any]
) -> None:
    first = make_runtime(tmp_path, **traits)
    await first.open()
    spec = make_spec()
    write_program(Node(first, None, tmp_path).folder(spec.id), SLEEP)
    await first.start(spec, ContainerPatch())
    await first.close()
    async with open_node(tmp_path, **traits) as node:
        seen = await node.see(spec.id)
        assert seen is not None
        assert seen.running


@only_root
async def test_a_python_that_only_root_can_read_is_refused_by_its_path(
    reachable: Path, tmp_path: Path, traits: dict[str, Any]
) -> None:
    closed = reachable / "closed"
    closed.mkdir(mode=0o700)
    made = ["/usr/bin/python3", "-m", "venv", "--without-pip", str(closed / "venv")]
    subprocess.run(made, check=True)
    runtime = make_runtime(tmp_path, **{**traits, "environment": f"{closed}/venv"})
    with pytest.raises(RuntimeFailure, match=rf"{closed} \(mode 0700\).*bubblewrap"):
        await runtime.open()
    await runtime.close()


@only_root
async def test_a_place_that_sessions_cannot_reach_is_refused_by_its_path(
    tmp_path: Path, traits: dict[str, Any]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    tmp_path.chmod(0o700)
    runtime = make_runtime(tmp_path, **{**traits, "open_folder": f"{closed}/open"})
    with pytest.raises(RuntimeFailure, match=r"\(mode 0700\).*open_folder"):
        await runtime.open()
    await runtime.close()


async def test_namespaces_can_be_insisted_on(tmp_path: Path) -> None:
    runtime = make_runtime(tmp_path, bwrap="no-such-bubblewrap", isolation="namespaces")
    with pytest.raises(RuntimeFailure, match="bubblewrap is not installed"):
        await runtime.open()
    await runtime.close()


async def test_an_environment_without_the_boot_module_is_explained(
    tmp_path: Path, traits: dict[str, Any]
) -> None:
    command = ["{python}", "-m", "no_such_module"]
    runtime = make_runtime(tmp_path, **{**traits, "command": command})
    with pytest.raises(RuntimeFailure, match="has no no_such_module"):
        await runtime.open()
    await runtime.close()


async def test_starting_twice_makes_one_container_here_too(node: Node) -> None:
    spec = make_spec()
    write_program(node.folder(spec.id), "print('x')\n" + SLEEP)
    await node.runtime.start(spec, ContainerPatch())
    await node.runtime.start(spec, ContainerPatch())
    await until(lambda: node.log_of(spec.id) == "x\n")
