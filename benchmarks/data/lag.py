"""How late an event loop is, when it was to do something every 2 ms.

    python -m benchmarks.data.lag

Run as a program it does nothing else, until its input ends, and then says in
milliseconds how late it was at most: that is what the machine did to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator

BEAT_SECONDS = 0.002


class Lag:
    """How late the loop was at most."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT_SECONDS)
            late = time.perf_counter() - began - BEAT_SECONDS
            self.worst = max(self.worst, late)


class Idle:
    """A process beside all else that does nothing but look how late it is."""

    worst = 0.0
    """Milliseconds; known when it has ended."""


@contextlib.contextmanager
def idle_beside() -> Iterator[Idle]:
    """Have such a process, and learn at the end how late it was."""
    idle = Idle()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.data.lag"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    try:
        yield idle
    finally:
        said, _ = process.communicate("")
        idle.worst = float(said)


async def be_idle() -> None:
    lag = Lag()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    watch = asyncio.create_task(lag.watch())
    print("ready", flush=True)
    await ended.wait()
    watch.cancel()
    print(f"{1000 * lag.worst:.2f}")


if __name__ == "__main__":
    asyncio.run(be_idle())
