"""How a container looks now, read from its folder and its limits."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.base import LogNews, Observed
from backendai_agent.runtimes.process_limits import Limits
from backendai_agent.runtimes.process_memory import ProcessMemory, StartRecord
from backendai_agent.runtimes.process_preparation import find_containers

OUT_OF_MEMORY: Final = "out of memory"
_KILLED: Final = 128 + signal.SIGKILL


def is_running(memory: ProcessMemory) -> bool:
    """Tell whether the main program lives, or is just being started."""
    if memory.has_ended():
        return False
    return memory.is_supervised() or memory.sandbox_init() is not None


def look_at_log(memory: ProcessMemory, since: float) -> LogNews | None:
    """Say what has become of the log *since* then; None: nothing, so far."""
    # What an end leaves behind was printed before it: the end is looked for first.
    has_ended, running = memory.has_ended(), is_running(memory)
    if memory.printed_at() >= since:
        return LogNews.PRINTED
    if has_ended:
        return LogNews.ENDED
    return None if running else LogNews.ABSENT


def observe_all(folder: Path, limits: Limits) -> list[Observed]:
    """List what is below *folder*, and the groups that have no folder any more."""
    found = [observe(m, record, limits) for m, record in find_containers(folder)]
    strange = sorted(limits.names() - {observed.id for observed in found})
    return found + [
        Observed(id=name, session_id="", running=not limits.is_empty(name))
        for name in strange
        if not name.startswith("probe-")
    ]


def observe(memory: ProcessMemory, record: StartRecord, limits: Limits) -> Observed:
    """Say how one container is."""
    if is_running(memory):
        return Observed(id=record.id, session_id=record.session_id, running=True)
    code = memory.exit_code()
    return Observed(
        id=record.id,
        session_id=record.session_id,
        running=False,
        exit_code=code,
        reason=_explain(memory, code, out_of_memory=limits.out_of_memory(record.id)),
    )


def _explain(memory: ProcessMemory, code: int | None, *, out_of_memory: bool) -> str:
    if memory.reason.exists():
        return memory.reason.read_text(encoding="utf-8")
    if not memory.has_started():
        return "its start was interrupted"
    if out_of_memory and code in {None, _KILLED}:
        return OUT_OF_MEMORY
    if code is None:
        return "it ended together with its supervisor: killed from outside"
    if code > 128 and code - 128 in set(signal.Signals):
        return f"killed by {signal.Signals(code - 128).name}"
    return f"exited with code {code}"
