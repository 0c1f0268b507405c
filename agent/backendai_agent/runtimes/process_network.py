"""Connect a session's own network namespace to the outside, through slirp4netns.

The helper runs beside the session, not in it, and ends with the shell above the
session: it waits on a named pipe that the shell holds open. It is attached after
the start, so that no session waits for its network to become ready.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.process_memory import ProcessMemory, is_locked
from backendai_agent.runtimes.process_supervisor import spawn, take_lock

NAMESERVER: Final = "10.0.2.3"
_NS_GET_USERNS: Final = 0xB701
_LOCK_FD: Final = 3
_EXIT_FD: Final = 4
_USERNS_FD: Final = 5
_TUN: Final = Path("/dev/net/tun")
_BLACKHOLE: Final = str(Path(__file__).with_name("process_blackhole.py"))


def why_no_slirp(program: str | None) -> str:
    """Say why slirp4netns cannot be used here; empty if it can."""
    if program is None:
        return "slirp4netns is not installed"
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{_TUN} cannot be opened: {error.strerror}"
    return ""


def is_attached(memory: ProcessMemory) -> bool:
    """Tell whether the session's network helper lives."""
    return is_locked(memory.network_lock)


def attach(memory: ProcessMemory, program: str, *, privileged: bool) -> int | None:
    """Start the network helper of a running session; returns its process id.

    Returns None if the session has ended, or has its helper already.
    """
    init = memory.sandbox_init()
    if init is None or is_attached(memory):
        return None
    places: dict[int, int] = {}
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        places[_LOCK_FD] = os.open(memory.network_lock, flags, 0o600)
        take_lock(places[_LOCK_FD])
        reading = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        places[_EXIT_FD] = os.open(memory.alive, reading)
        command = [program, "--configure", "--mtu=65520", "--disable-host-loopback"]
        command.append(f"--exit-fd={_EXIT_FD}")
        if privileged:
            command.append("--enable-sandbox")
        else:
            places[_USERNS_FD] = _owner_of_network(init.pid)
            command.append(f"--userns-path=/proc/self/fd/{_USERNS_FD}")
        with _log(memory) as log:
            places |= {0: log, 1: log, 2: log}
            owner = [] if privileged else [str(_USERNS_FD)]
            closing = [sys.executable, "-I", "-S", _BLACKHOLE, str(init.pid), *owner]
            command += [str(init.pid), "tap0"]
            return spawn([*closing, "--", *command], environ={}, places=places)
    finally:
        for target, descriptor in places.items():
            if target > 2:
                os.close(descriptor)


@contextlib.contextmanager
def _log(memory: ProcessMemory) -> Iterator[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    descriptor = os.open(memory.path / "network.log", flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _owner_of_network(pid: int) -> int:
    """Open the user namespace that owns the network namespace of *pid*.

    It is not that of *pid* itself: bubblewrap shuts the session into one more,
    which has no power over the network.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC
    network = os.open(f"/proc/{pid}/ns/net", flags)
    try:
        return fcntl.ioctl(network, _NS_GET_USERNS)
    finally:
        os.close(network)
