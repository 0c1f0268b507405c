"""Batch sessions on the node: the runner they get, and what it leaves behind.

The session's user writes in the folder where the outcome lies, so it is read like
anything from a stranger; a lie in it harms nobody but the liar.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from backendai_agent.folders import ContainerFolder
from backendai_agent.preparation import clean_words, read_from_session
from backendai_hub.api.agents import ContainerSpec

RUNNER: Final = Path(__file__).with_name("runner.py")
OUT_OF_MEMORY: Final = "out of memory"
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Outcome(msgspec.Struct, frozen=True):
    """How far a command has come; without an exit code, its end says nothing of it."""

    state: Literal["running", "ended"]
    exit_code: int | None = None
    reason: str = ""


def read_outcome(folder: ContainerFolder) -> Outcome | None:
    """Read what the runner says; None if it says nothing that can be read."""
    try:
        text = read_from_session(folder, folder.outcome.name)
        found = msgspec.json.decode(text, type=Outcome)
    except (OSError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(found, reason=clean_words(found.reason))


def find_main_program(
    command: Sequence[str], spec: ContainerSpec, run: str
) -> list[str]:
    """Return what a container runs first: *command*, or its Python with the runner."""
    if not spec.is_job:
        return list(command)
    words = list(command)
    before = words[: words.index("-m")] if "-m" in words else words
    return [*before, f"{run}/{RUNNER.name}"]


def describe_job(spec: ContainerSpec, lease_until: float) -> dict[str, Any]:
    """Build the part of the activation that the runner reads."""
    return {
        "command": spec.command,
        "timeout_seconds": spec.timeout_seconds,
        "grace_seconds": spec.grace_seconds,
        "lease_seconds": spec.lease_seconds,
        "lease_until": lease_until,
        "idle": spec.cluster.is_idle,
        "waits": bool(spec.command) and spec.cluster.size > 1,
    }


def deliver_runner(folder: ContainerFolder) -> None:
    """Put the runner where the container finds it."""
    _put(folder, RUNNER.name, RUNNER.read_bytes())


def write_lease(folder: ContainerFolder, until: float) -> None:
    """Let the container's command run until that moment of this machine's clock."""
    _put(folder, folder.lease.name, f"{until:.3f}\n".encode())


def release(folder: ContainerFolder) -> None:
    """Let a command begin that has waited for the session's other containers."""
    _put(folder, folder.released.name, b"")


def _put(folder: ContainerFolder, name: str, content: bytes) -> None:
    """Put a file into the session's folder; nothing that lies there is followed."""
    above = os.open(folder.run, _OPEN)
    temporary = f".{name}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(temporary, _NEW, 0o644, dir_fd=above)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)
            file.write(content)
        os.replace(temporary, name, src_dir_fd=above, dst_dir_fd=above)
    finally:
        os.close(above)
