"""Look after running sessions: their logs, their networks, and their memory.

Memory is looked at only where no control group keeps it; networks are connected
here both after a start and when the agent comes back or a helper has died.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.process_limits import Limits
from backendai_agent.runtimes.process_memory import ProcessMemory, StartRecord
from backendai_agent.runtimes.process_network import attach
from backendai_agent.runtimes.process_preparation import find_containers
from backendai_agent.runtimes.process_supervisor import (
    Watcher,
    end_all,
    tree_memory,
)
from backendai_agent.runtimes.process_view import OUT_OF_MEMORY, is_running

EVERY_SECONDS: Final = 2.0
_PATIENCE: Final = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Tended:
    """What is looked after, and by which means."""

    folder: Path
    limits: Limits
    slirp: str | None
    log_bytes: int


async def tend(tended: Tended, watcher: Watcher) -> None:
    """Look after the sessions until cancelled."""
    while True:
        try:
            running = await asyncio.to_thread(tend_files, tended)
            for memory, record in running:
                connect(memory, record, tended.slirp, watcher)
        except (OSError, RuntimeFailure):
            _log.exception("looking after the sessions failed")
        await asyncio.sleep(EVERY_SECONDS)


def tend_files(tended: Tended) -> list[tuple[ProcessMemory, StartRecord]]:
    """Bound logs and memory once; returns the containers that run."""
    running = [(m, r) for m, r in find_containers(tended.folder) if is_running(m)]
    for memory, record in running:
        memory.bound_log(tended.log_bytes)
        if tended.limits.kind == "watchdog" and record.memory:
            _bound_memory(memory, record, tended.limits)
    return running


def _bound_memory(memory: ProcessMemory, record: StartRecord, limits: Limits) -> None:
    init = memory.sandbox_init()
    root = init.pid if init else memory.supervisor()
    if root is None or tree_memory(root) <= record.memory:
        return
    _log.warning("container %s exceeds its memory: killing it", record.id)
    memory.reason.write_text(OUT_OF_MEMORY, encoding="utf-8")
    if init is None:
        end_all(memory, record.id, limits, patience=_PATIENCE)
        return
    try:
        os.kill(init.pid, signal.SIGKILL)
    except ProcessLookupError:  # it was faster
        return


def connect(
    memory: ProcessMemory, record: StartRecord, slirp: str | None, watcher: Watcher
) -> None:
    """Give a running session its network, if it should have one and has none."""
    if slirp is None or record.network != "slirp" or not memory.has_started():
        return
    pid = attach(memory, slirp, privileged=record.uid is not None)
    if pid is not None:
        watcher.watch(f"{record.id}/network", pid, lock=memory.network_lock)
