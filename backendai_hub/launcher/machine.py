"""What this machine is and has, found out by looking; nothing is judged here."""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any, Final

_DOCKER_SOCKET: Final = "/var/run/docker.sock"
_TIME_ERROR: Final = 5
"""What the kernel answers while its clock is not synchronised (adjtimex(2))."""


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=5.0)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def docker_socket() -> str:
    """Return where the Docker Engine should answer."""
    return os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or _DOCKER_SOCKET


def docker_info() -> dict[str, Any] | None:
    """Return what the Docker Engine says of itself, or None if none answers."""
    connection = _SocketConnection(docker_socket())
    try:
        connection.request("GET", "/info")
        response = connection.getresponse()
        found: dict[str, Any] = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
    else:
        return found if response.status == 200 else None
    finally:
        connection.close()


def try_bubblewrap() -> str | None:
    """Start an empty sandbox; "" if it works, what it said if not, None if absent."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    argv = [
        program,
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "true",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            argv, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or "it failed"


def user_namespaces() -> bool:
    """Tell whether this user may make user namespaces."""
    if os.geteuid() != 0:
        for name in ("kernel/unprivileged_userns_clone", "user/max_user_namespaces"):
            if _read(f"/proc/sys/{name}") == "0":
                return False
    return _read("/proc/sys/user/max_user_namespaces") != "0"


def cgroup_tier() -> str:
    """Tell which control groups there are: ``writable``, ``read-only``, ``v1``, none.

    Writable means that limits can be set from here.
    """
    root = Path("/sys/fs/cgroup")
    if not (root / "cgroup.controllers").exists():
        return "v1" if (root / "memory").exists() else "none"
    own = _read("/proc/self/cgroup").rpartition("::")[2].lstrip("/")
    return "writable" if os.access(root / own, os.W_OK) else "read-only"


def clock_is_synchronised() -> bool | None:
    """Tell whether the kernel believes its clock; None if it cannot be asked."""
    libc = ctypes.CDLL(None, use_errno=True)
    state = libc.ntp_adjtime(ctypes.create_string_buffer(512))
    return None if state < 0 else state != _TIME_ERROR


def has_program(name: str) -> bool:
    """Tell whether a program can be found."""
    return shutil.which(name) is not None


def free_space(path: Path) -> int:
    """Return the free bytes where *path* is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""
