"""What removes a container never removes what was mounted for it.

The worst that storage could do to people is to lose their files with a session that
ends. So everything here goes wrong on purpose: mounts that are still there, mounts
where none belongs, starts and agents that die half way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from pathlib import Path

import msgspec
import pytest

from backendai_agent import mounts_kernel as kernel
from backendai_agent.folders import (
    ContainerFolder,
    StillMountedError,
    container_folder,
    remove_trees,
)
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_agent.runtimes.docker_folders import empty_folders
from backendai_agent.runtimes.process_memory import ProcessMemory
from backendai_agent.runtimes.process_preparation import clear, sweep
from tests.integration.mounts_harness import (
    Host,
    bound,
    hung,
    no_mount_left,
    own_folder,
)
from tests.integration.process_harness import (
    SLEEP,
    make_spec,
    open_node,
    until,
    write_program,
)

tmp_path = own_folder
pytestmark = [
    pytest.mark.bwrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]


@pytest.fixture
def folder(tmp_path):
    """A virtual folder with something precious at some depth."""
    (tmp_path / "host").mkdir()
    made = Host(tmp_path / "host").add("deep/er")
    made.write("deep/er/x", "precious")
    made.write("top", "precious")
    return made


def check_whole(folder):
    assert (folder.path / "top").read_text() == "precious"
    assert (folder.path / "deep/er/x").read_text() == "precious"


def closed(folder):
    """Make removing come to changing modes first, as a stubborn user would."""
    folder.mkdir(parents=True)
    (folder / "inside").mkdir()
    folder.chmod(0)


REMOVALS = {
    "the container's own removal": lambda own: own.remove(),
    "the process runtime's": lambda own: clear(ProcessMemory(own)),
    "what sweeps starts that came to nothing": lambda own: sweep(own.path.parent),
    "the Docker runtime's": lambda own: empty_folders(None, own, ""),
    "the Docker runtime's with the engine's help": lambda own: empty_folders(
        None, own, "an-image"
    ),
    "removing the parts": lambda own: remove_trees([own.run, own.work]),
}


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("place", ["work/data", "work/a/b/c", "run/x", "work"])
async def test_a_mount_where_none_belongs_stops_every_removal(
    tmp_path, folder, removal, place
):
    """A bind from the same file system: no program that removes trees stops there."""
    own = container_folder(tmp_path / "agent", str(uuid.uuid4()))
    own.make()
    at = own.path / place
    at.mkdir(parents=True, exist_ok=True)
    closed(own.work / "shut")
    async with no_mount_left(tmp_path):
        with bound(folder.path, at):
            assert at.stat().st_dev == own.path.stat().st_dev
            with pytest.raises(StillMountedError, match="is a mount"):
                REMOVALS[removal](own)
            check_whole(folder)
        REMOVALS[removal](own)
    check_whole(folder)
    assert not own.work.exists()


async def test_links_to_folders_are_removed_and_not_what_they_lead_to(tmp_path, folder):
    own = container_folder(tmp_path / "agent", str(uuid.uuid4()))
    own.make()
    (own.work / "data").symlink_to(folder.path)
    (own.work / "deep").symlink_to(folder.path / "deep")
    closed(own.work / "shut")
    before = [path.stat().st_mode for path in sorted(folder.path.rglob("*"))]
    own.remove()
    assert not own.path.exists()
    check_whole(folder)
    assert before == [path.stat().st_mode for path in sorted(folder.path.rglob("*"))]


async def test_a_container_removed_while_its_mounts_are_held(tmp_path, folder):
    async with no_mount_left(tmp_path), open_node(tmp_path / "agent") as node:
        keeper = folder.host.mounts(tmp_path / "agent")
        await keeper.open()
        spec = make_spec(mounts=[folder.at("/home/work/data"), folder.at("/x", "ro")])
        own = node.folder(spec.id)
        write_program(own, SLEEP)
        async with keeper.shown(spec, node.runtime) as folders:
            await node.runtime.start(spec, ContainerPatch(folders=folders))
            await node.runtime.stop(spec.id, 0)
            own.remove()
            assert kernel.list_below(tmp_path / "agent/mounts") != []
        assert not own.path.exists()
        check_whole(folder)


async def test_a_running_containers_home_removed_under_it(tmp_path, folder):
    async with no_mount_left(tmp_path), open_node(tmp_path / "agent") as node:
        keeper = folder.host.mounts(tmp_path / "agent")
        await keeper.open()
        spec = make_spec(mounts=[folder.at("/home/work/data")])
        own = node.folder(spec.id)
        write_program(own, SLEEP)
        async with keeper.shown(spec, node.runtime) as folders:
            await node.runtime.start(spec, ContainerPatch(folders=folders))
        own.remove()
        check_whole(folder)
        await node.runtime.stop(spec.id, 0)
        check_whole(folder)


async def test_a_start_that_fails_leaves_no_mount(tmp_path, folder):
    async with no_mount_left(tmp_path), open_node(tmp_path / "agent") as node:
        keeper = folder.host.mounts(tmp_path / "agent")
        await keeper.open()
        mounts = [folder.at("/home/work/data"), folder.at("/home/work/b/c")]
        spec = make_spec(mounts=mounts, image="not-there")
        with pytest.raises(RuntimeFailure, match="prepared environments"):
            async with keeper.shown(spec, node.runtime) as folders:
                await node.runtime.start(spec, ContainerPatch(folders=folders))
        assert kernel.list_below(tmp_path / "agent") == []
        await node.runtime.stop(spec.id, 0)
        node.folder(spec.id).remove()
        check_whole(folder)


async def test_one_who_gives_up_waiting_leaves_no_mount(tmp_path, folder):
    async with no_mount_left(tmp_path), open_node(tmp_path / "agent") as node:
        keeper = folder.host.mounts(tmp_path / "agent")
        await keeper.open()
        spec = make_spec(mounts=[folder.at(f"/home/work/{n}") for n in range(20)])

        async def hold():
            async with keeper.shown(spec, node.runtime):
                await asyncio.Event().wait()

        for pauses in (0, 5, 200):
            waiting = asyncio.create_task(hold())
            for _ in range(pauses):
                await asyncio.sleep(0.001)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert kernel.list_below(tmp_path / "agent") == []
        check_whole(folder)


HOLD = """
import asyncio, sys
from pathlib import Path
from backendai_agent.mounts import Mounts, MountSettings
from backendai_agent.runtimes.base import Resident
from backendai_hub.api.agents import ContainerSpec
import msgspec

class Runtime:
    name = "held"
    async def resident(self, spec):
        return Resident(0, 0)

async def main():
    data_dir, root, spec = sys.argv[1:]
    keeper = Mounts(data_dir, MountSettings(hosts={"local": root}))
    await keeper.open()
    spec = msgspec.json.decode(spec, type=ContainerSpec)
    async with keeper.shown(spec, Runtime()):
        Path(data_dir, "held").touch()
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_a_killed_agent_had_mounted_is_taken_away(tmp_path, folder):
    data_dir = tmp_path / "agent"
    data_dir.mkdir()
    mounts = [folder.at("/home/work/a"), folder.at("/home/work/a/deep", "ro")]
    specs = [make_spec(mounts=mounts) for _ in range(2)]
    async with no_mount_left(tmp_path):
        for spec in specs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", HOLD, str(data_dir), str(folder.host.root)),
                msgspec.json.encode(spec).decode(),
            )
            await until((data_dir / "held").exists)
            process.send_signal(signal.SIGKILL)
            await process.wait()
            (data_dir / "held").unlink()
        room = data_dir / "mounts" / specs[1].id
        assert kernel.list_below(data_dir / "mounts") == [
            str(room),
            str(room / "0"),
            str(room / "0" / "deep"),
        ]
        keeper = folder.host.mounts(data_dir)
        await keeper.open()
        assert kernel.list_below(data_dir) == []
        assert list((data_dir / "mounts").iterdir()) == []
        check_whole(folder)


async def test_who_waits_for_a_host_that_hangs_ends_with_the_agent(tmp_path, folder):
    data_dir = tmp_path / "agent"
    data_dir.mkdir()
    spec = make_spec(mounts=[folder.at("/home/work/a")])
    async with no_mount_left(tmp_path):
        with hung(folder.host.root):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", HOLD, str(data_dir), str(folder.host.root)),
                msgspec.json.encode(spec).decode(),
            )
            room = data_dir / "mounts" / spec.id
            await until(lambda: str(room) in kernel.list_below(data_dir))
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            [child] = children.read_text().split()
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await until(lambda: not Path(f"/proc/{child}").exists())
        await folder.host.mounts(data_dir).open()
        assert kernel.list_below(data_dir) == []
    check_whole(folder)


async def test_removing_reads_names_as_the_kernel_writes_them(tmp_path, folder):
    own = ContainerFolder(tmp_path / "with blank\nand\\more" / str(uuid.uuid4()))
    own.path.mkdir(parents=True)
    own.make()
    with (
        bound(folder.path, own.work),
        pytest.raises(StillMountedError),
    ):
        own.remove()
    own.remove()
    check_whole(folder)
    assert not Path(own.path).exists()
