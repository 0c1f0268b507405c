"""Real sessions of the process runtime, and a count of what they leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backendai_agent.folders import ContainerFolder
from backendai_agent.runtimes.base import ContainerPatch, Observed
from backendai_agent.runtimes.process import ProcessRuntime
from backendai_hub.api.agents import ContainerSpec, DesiredState
from backendai_hub.core.agents import Isolation

MAIN = "exec(compile(open('/home/work/main.py').read(), 'main.py', 'exec'))"
"""A session's main program: whatever the test put into its home."""

SLEEP = "import time\nwhile True: time.sleep(60)"

PREAMBLE = """
import ctypes, json, os, signal, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
results = {}
def attempt(name, action):
    try:
        results[name] = ["done", repr(action())[:200]]
    except BaseException as error:
        results[name] = ["refused", f"{type(error).__name__}: {error}"[:200]]
def call(number, *arguments):
    # "done", or the name of the error
    import errno
    ctypes.set_errno(0)
    answer = libc.syscall(number, *arguments)
    if answer == -1:
        raise OSError(ctypes.get_errno(), errno.errorcode[ctypes.get_errno()])
    return answer
def tell():
    with open("/home/work/result.part", "w") as file:
        json.dump(results, file)
    os.rename("/home/work/result.part", "/home/work/result.json")
"""


@dataclass
class Node:
    """A process runtime that is open, in a folder of its own."""

    runtime: ProcessRuntime
    isolation: Isolation
    data_dir: Path

    def folder(self, container_id: str) -> ContainerFolder:
        return ContainerFolder(self.data_dir / "containers" / container_id)

    async def launch(self, program: str = SLEEP, **changes: Any) -> ContainerSpec:
        """Start a session that runs *program*; returns once it runs."""
        spec = make_spec(**changes)
        write_program(self.folder(spec.id), program)
        await self.runtime.start(spec, ContainerPatch())
        return spec

    async def ask(self, program: str, **changes: Any) -> dict[str, list[str]]:
        """Run *program*, which fills ``results``, and return those."""
        tail = f"\ntell()\n{SLEEP}"
        spec = await self.launch(PREAMBLE + program + tail, **changes)
        answer = await self.result(spec)
        await self.runtime.stop(spec.id, 0)
        return answer

    async def result(self, spec: ContainerSpec) -> dict[str, list[str]]:
        path = self.folder(spec.id).work / "result.json"
        await until(path.exists, what=lambda: self.log_of(spec.id))
        return json.loads(path.read_text())

    def log_of(self, container_id: str) -> str:
        path = self.folder(container_id).path / "process" / "log"
        return path.read_text() if path.exists() else "no log"

    async def see(self, container_id: str) -> Observed | None:
        for observed in await self.runtime.list():
            if observed.id == container_id:
                return observed
        return None

    async def until_ended(self, container_id: str) -> Observed:
        async with asyncio.timeout(60):
            while True:
                seen = await self.see(container_id)
                if seen is not None and not seen.running:
                    return seen
                await asyncio.sleep(0.01)


def make_spec(**changes: Any) -> ContainerSpec:
    settings: dict[str, Any] = {
        "id": str(uuid.uuid4()),
        "session_id": str(uuid.uuid4()),
        "desired": DesiredState.RUNNING,
        "session_name": "train",
        "owner": "ann",
        "image": "jupyterlab",
        "cpu": 1000,
        "memory": 256 << 20,
        "shmem": 16 << 20,
    }
    return ContainerSpec(**{**settings, **changes})


def write_program(folder: ContainerFolder, program: str) -> None:
    folder.make()
    path = folder.work / "main.py"
    path.write_text(program)
    path.chmod(0o644)


def make_runtime(data_dir: Path, **traits: Any) -> ProcessRuntime:
    settings = {"network": "none", "command": ["{python}", "-u", "-c", MAIN]}
    return ProcessRuntime(data_dir=str(data_dir), **{**settings, **traits})


@contextlib.asynccontextmanager
async def open_node(data_dir: Path, **traits: Any) -> AsyncIterator[Node]:
    """Open a runtime; at the end stop all it has and close it."""
    runtime = make_runtime(data_dir, **traits)
    isolation = await runtime.open()
    try:
        yield Node(runtime, isolation, data_dir)
    finally:
        for observed in await runtime.list():
            await runtime.stop(observed.id, 0)
        await runtime.close()


async def until(
    check: Callable[[], Any], *, seconds: float = 60.0, what: Callable[[], str] = str
) -> None:
    """Wait for something outside this process to become true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not check():
        assert loop.time() < deadline, f"it did not become true: {what()}"
        await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Traces:
    """What sessions could leave behind on the node."""

    processes: frozenset[int]
    groups: frozenset[str]
    mounts: int


def traces(container_id: str) -> Traces:
    """Find everything on this node that belongs to *container_id*."""
    return Traces(
        frozenset(_processes(container_id)),
        frozenset(map(str, Path("/sys/fs/cgroup").rglob(f"*{container_id}*"))),
        Path("/proc/self/mounts").read_text().count(container_id),
    )


NOTHING = Traces(frozenset(), frozenset(), 0)


def _processes(container_id: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            groups = (entry / "cgroup").read_bytes()
            if container_id.encode() in words + groups:
                found.append(int(entry.name))
    return found
