"""Sessions outlive the agent, and a start cut short leaves nothing for ever."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest
from process_harness import (
    NOTHING,
    SLEEP,
    make_spec,
    open_node,
    traces,
    until,
    write_program,
)

from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch
from backendai_agent.runtimes.process_supervisor import find_marked

pytestmark = pytest.mark.bwrap

AGENT = """
import asyncio, sys
sys.path[:0] = {path!r}
from pathlib import Path
from process_harness import make_runtime, make_spec, write_program
from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch

async def main():
    runtime = make_runtime(Path({data_dir!r}))
    await runtime.open()
    folder = ContainerFolder(Path({data_dir!r}, "containers", {id!r}))
    write_program(folder, {program!r})
    print("open", flush=True)
    await runtime.start(make_spec(id={id!r}), ContainerPatch())
    print("started", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


async def start_agent(
    data_dir: Path, container_id: str, program: str = SLEEP, **environ: str
) -> asyncio.subprocess.Process:
    """Start an agent of its own process, which starts the container."""
    script = AGENT.format(
        path=sys.path, data_dir=str(data_dir), id=container_id, program=program
    )
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environ},
    )


async def read_line(agent: asyncio.subprocess.Process) -> str:
    assert agent.stdout is not None
    async with asyncio.timeout(60):
        return (await agent.stdout.readline()).decode().strip()


async def kill(agent: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        agent.kill()
    assert agent.stdout is not None
    await agent.stdout.read()
    await agent.wait()


async def test_a_session_outlives_its_agent_and_is_taken_over(tmp_path: Path) -> None:
    spec = make_spec()
    folder = ContainerFolder(tmp_path / "containers" / spec.id)
    program = (
        "import os, time\nprint('began', flush=True)\n"
        "while not os.path.exists('/home/work/end'): time.sleep(0.01)\n"
        "raise SystemExit(7)"
    )
    agent = await start_agent(tmp_path, spec.id, program)
    assert [await read_line(agent), await read_line(agent)] == ["open", "started"]
    await kill(agent)

    async with open_node(tmp_path) as node:
        seen = await node.see(spec.id)
        assert seen is not None
        assert seen.running
        await node.runtime.start(spec, ContainerPatch())
        (folder.work / "end").touch()
        async with asyncio.timeout(60):
            assert await anext(node.runtime.changes()) == spec.id
        seen = await node.until_ended(spec.id)
        assert (seen.exit_code, node.log_of(spec.id)) == (7, "began\n")


async def test_an_end_while_the_agent_is_away_is_known(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        spec = await node.launch("raise SystemExit(4)")
        await node.runtime.close()
        await until((node.folder(spec.id).path / "process" / "exit").exists)
        async with open_node(tmp_path) as again:
            seen = await again.see(spec.id)
            assert seen is not None
            assert (seen.running, seen.exit_code) == (False, 4)


async def test_an_agent_that_dies_before_the_start_leaves_a_start_to_repeat(
    tmp_path: Path,
) -> None:
    spec = make_spec()
    agent = await start_agent(
        tmp_path,
        spec.id,
        "print('x')\n" + SLEEP,
        BACKENDAI_CRASHPOINT="agent.created",
    )
    assert [await read_line(agent), await read_line(agent)] == ["open", ""]
    await agent.wait()
    assert agent.returncode == -signal.SIGKILL

    async with open_node(tmp_path) as node:
        seen = await node.see(spec.id)
        assert seen is not None
        assert (seen.running, seen.reason) == (False, "its start was interrupted")
        await node.runtime.start(spec, ContainerPatch())
        await until(lambda: node.log_of(spec.id) == "x\n")


@pytest.mark.parametrize("milliseconds", [1, 4, 7, 10, 13, 16, 20, 25, 32, 40])
async def test_a_start_cut_short_anywhere_is_removed_without_a_trace(
    tmp_path: Path, milliseconds: int
) -> None:
    spec = make_spec()
    agent = await start_agent(tmp_path, spec.id)
    assert await read_line(agent) == "open"
    await asyncio.sleep(milliseconds / 1000)  # the moment is the test's parameter
    await kill(agent)

    async with open_node(tmp_path) as node:
        await node.runtime.stop(spec.id, 0)
        assert await node.runtime.list() == []
        await until(lambda: traces(spec.id) == NOTHING)
        assert not node.folder(spec.id).path.exists()


@pytest.mark.parametrize("limits", ["auto", "watchdog"])
async def test_a_sandbox_half_made_is_ended_with_its_orphans(
    tmp_path: Path, limits: str
) -> None:
    """Killing bubblewrap early leaves its child waiting for ever, see the traps."""
    async with open_node(tmp_path, limits=limits) as node:
        for _ in range(10):
            spec = make_spec()
            write_program(node.folder(spec.id), SLEEP)
            starting = asyncio.create_task(node.runtime.start(spec, ContainerPatch()))
            async with asyncio.timeout(60):
                while not (marked := list(find_marked(spec.id))):
                    await asyncio.sleep(0)
            for pid in marked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await asyncio.wait({starting})
            starting.exception()
            await node.runtime.stop(spec.id, 0)
            await until(lambda spec=spec: traces(spec.id) == NOTHING)


async def test_a_session_whose_supervisor_was_killed_is_still_seen_and_ended(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path) as node:
        spec = await node.launch()
        pid = int((node.folder(spec.id).path / "process" / "pid").read_text())
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            assert await anext(node.runtime.changes()) == spec.id
        seen = await node.see(spec.id)
        assert seen is not None
        assert seen.running
        await node.runtime.stop(spec.id, 0)
        assert traces(spec.id) == NOTHING


async def test_a_process_id_alone_is_not_believed(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        spec = await node.launch("raise SystemExit(0)")
        await node.until_ended(spec.id)
        process = node.folder(spec.id).path / "process"
        (process / "pid").write_text(f"{os.getpid()}\n")
        (process / "init").write_text(f"{os.getpid()} 1")
        (process / "exit").unlink()
        seen = await node.see(spec.id)
        assert seen is not None
        assert not seen.running
        await node.runtime.stop(spec.id, 0)  # and we are still here
