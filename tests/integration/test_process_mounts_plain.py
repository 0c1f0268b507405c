"""Folders where the agent may not mount: whole ones, of the agent's own user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from backendai_agent.mounts import Mounts, MountSettings
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from tests.integration.mounts_harness import Host, own_folder
from tests.integration.process_harness import (
    PREAMBLE,
    SLEEP,
    make_spec,
    open_node,
    write_program,
)

tmp_path = own_folder
pytestmark = pytest.mark.bwrap

AS_ROOT = os.geteuid() == 0
HOME_MAIN = "import os; exec(open(os.path.expanduser('~/main.py')).read())"
SANDBOXED = PREAMBLE
IN_HOME = PREAMBLE.replace("/home/work/", "")
USE = """
attempt("read", lambda: open("data/x").read())
attempt("write", lambda: open("data/y", "w").write("y"))
attempt("own", lambda: os.stat("data/y").st_uid == os.getuid())
"""
only_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become another user")
not_root = pytest.mark.skipif(AS_ROOT, reason="root may mount")


@pytest.fixture
def host(tmp_path):
    (tmp_path / "host").mkdir()
    return Host(tmp_path / "host", owner=(os.geteuid(), os.getegid()))


async def make_keeper(host, data_dir):
    settings = MountSettings(hosts={"local": str(host.root)})
    keeper = Mounts(data_dir, settings)
    await keeper.open()
    await keeper.look()
    assert keeper.present == ["local"]
    return keeper


async def ask(node, keeper, program, *mounts, preamble):
    spec = make_spec(mounts=list(mounts))
    own = node.folder(spec.id)
    write_program(own, f"{preamble}{program}\ntell()\n{SLEEP}")
    async with keeper.shown(spec, node.runtime) as folders:
        await node.runtime.start(spec, ContainerPatch(folders=folders))
    answer = await node.result(spec)
    await node.runtime.stop(spec.id, 0)
    own.remove()
    return answer


@not_root
async def test_a_sandbox_sees_the_folder_itself(tmp_path, host):
    folder = host.add()
    folder.write("x", "hello")
    keeper = await make_keeper(host, tmp_path / "agent")
    assert "may not mount" in keeper.notes[0]
    async with open_node(tmp_path / "agent") as node:
        assert node.isolation.tier == "namespaces"
        answer = await ask(
            node, keeper, USE, folder.at("/home/work/data"), preamble=SANDBOXED
        )
        assert answer == {
            "read": ["done", "'hello'"],
            "write": ["done", "1"],
            "own": ["done", "True"],
        }
        answer = await ask(
            node, keeper, USE, folder.at("/home/work/data", "ro"), preamble=SANDBOXED
        )
        assert answer["read"][0] == "done"
        assert "Read-only file system" in answer["write"][1]
        for refused in (
            folder.at("/home/work/data", subpath=["a"]),
            folder.at("/home/work/data", owner_uid=os.geteuid() + 1),
        ):
            with pytest.raises(RuntimeFailure, match=r"only whole|belong to"):
                await ask(node, keeper, USE, refused, preamble=SANDBOXED)
    assert sorted(p.name for p in folder.path.iterdir()) == ["x", "y"]


@not_root
async def test_without_a_sandbox_there_is_a_link_to_the_folder(tmp_path, host):
    folder = host.add()
    folder.write("x", "hello")
    keeper = await make_keeper(host, tmp_path / "agent")
    traits = {
        "bwrap": "no-such-bubblewrap",
        "command": ["{python}", "-u", "-c", HOME_MAIN],
    }
    async with open_node(tmp_path / "agent", **traits) as node:
        assert node.isolation.tier == "none"
        deep = USE.replace("data/", "some/where/data/")
        for target, program in (
            ("/home/work/data", USE),
            ("/home/work/some/where/data", deep),
        ):
            answer = await ask(
                node, keeper, program, folder.at(target), preamble=IN_HOME
            )
            assert answer["read"] == ["done", "'hello'"], answer
            assert answer["own"] == ["done", "True"]
        with pytest.raises(RuntimeFailure, match="nothing would keep"):
            await ask(
                node, keeper, USE, folder.at("/home/work/data", "ro"), preamble=IN_HOME
            )
    assert sorted(p.name for p in folder.path.iterdir()) == ["x", "y"]


@only_root
async def test_without_a_sandbox_roots_sessions_own_no_folder():
    """They are users of their own, and nothing could show them files as theirs."""
    with tempfile.TemporaryDirectory(prefix="backendai-") as name:
        reachable = Path(name)
        reachable.chmod(0o711)
        (reachable / "host").mkdir()
        host = Host(reachable / "host")
        keeper = await make_keeper(host, reachable / "agent")
        traits = {
            "bwrap": "no-such-bubblewrap",
            "command": ["{python}", "-u", "-c", HOME_MAIN],
            "environment": "/usr",
            "open_folder": str(reachable / "sessions"),
        }
        async with open_node(reachable / "agent", **traits) as node:
            mount = host.add().at("/home/work/data")
            with pytest.raises(RuntimeFailure, match="belong to 1000:1000, the sess"):
                await ask(node, keeper, USE, mount, preamble=IN_HOME)
