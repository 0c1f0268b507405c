"""Looking at the platform from outside, and stopping it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from backendai_hub.client.lockfile import holder
from backendai_hub.core.errors import UnavailableError
from backendai_hub.launcher.bring_up import running_processes
from backendai_hub.launcher.commands import Layout
from backendai_hub.launcher.folder import PROCESSES, DataFolder
from backendai_hub.launcher.platform_api import PlatformApi, make_token
from backendai_hub.launcher.state import load_state


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One process; without a pid it does not run."""

    name: str
    pid: int | None
    uptime_seconds: float | None = None


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as the hub service knows it."""

    name: str
    status: str
    runtime: str
    unknown_containers: int = 0


class PlatformStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The platform at a glance; what could not be asked is None."""

    running: bool
    url: str | None
    data_dir: str
    processes: list[ProcessStatus]
    sessions: int | None
    nodes: list[NodeStatus] | None


async def read_status(folder: DataFolder) -> PlatformStatus:
    """Find out how the platform is."""
    layout = Layout(folder=folder, state=load_state(folder))
    alive = running_processes(folder)
    supervisor = holder(folder.lock("supervisor"))
    processes = [_process_status("supervisor", supervisor)]
    processes += [_process_status(name, alive.get(name)) for name in PROCESSES]
    sessions: int | None = None
    nodes: list[NodeStatus] | None = None
    if {"hub", "service"} <= set(alive):
        with suppress(UnavailableError):
            api = await open_api(layout)
            sessions = len(await api.live_sessions())
            nodes = [
                NodeStatus(
                    name=agent.name,
                    status=str(agent.status),
                    runtime=agent.isolation.runtime,
                    unknown_containers=len(agent.unknown_containers),
                )
                for agent in await api.agents()
            ]
    return PlatformStatus(
        running=supervisor is not None,
        url=layout.public_url if "router" in alive else None,
        data_dir=str(folder.root),
        processes=processes,
        sessions=sessions,
        nodes=nodes,
    )


async def open_api(layout: Layout) -> PlatformApi:
    """Return the API as the administrator; raises :class:`UnavailableError`."""
    if layout.attached:
        raise UnavailableError(
            "the JupyterHub is your own, and gives us no administrator's token:"
            " end the sessions there"
        )
    token = await make_token(layout, seconds=300, note="made by the backendai command")
    if token is None:
        raise UnavailableError("JupyterHub does not answer, so there is no way in")
    return PlatformApi(layout.service_url, token)


def stop_platform(folder: DataFolder, timeout: float) -> list[str]:
    """Stop the supervisor and whatever runs without one; returns what was stopped."""
    stopped = []
    supervisor = holder(folder.lock("supervisor"))
    before = running_processes(folder)
    if supervisor is not None:
        stopped += _stop_process("supervisor", supervisor, timeout)
    for name, pid in running_processes(folder).items():
        _stop_process(name, pid, timeout)
    left = running_processes(folder)
    return stopped + [name for name in before if name not in left]


def _stop_process(name: str, pid: int, timeout: float) -> list[str]:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return []
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        if not _wait_end(descriptor, timeout):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            _wait_end(descriptor, 5.0)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)
    return [name]


def _wait_end(descriptor: int, timeout: float) -> bool:
    async def wait() -> bool:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        try:
            await asyncio.wait_for(ended.wait(), timeout)
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(descriptor)
        return True

    return asyncio.run(wait())


def _process_status(name: str, pid: int | None) -> ProcessStatus:
    uptime = None if pid is None else _uptime(pid)
    return ProcessStatus(name=name, pid=pid, uptime_seconds=uptime)


def _uptime(pid: int) -> float | None:
    """Return how long a process has run, from the kernel's own account."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    started = int(text.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return round(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 1)
