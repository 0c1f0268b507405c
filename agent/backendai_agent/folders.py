"""Where things lie in the agent's folder, and how they are written.

``<data_dir>/containers/<id>/`` belongs to one container. It and everything above
it is open to the agent only; ``run`` is what the container sees as
``/run/backendai`` and ``work`` as ``/home/work``, so nothing in those two may be
followed blindly: the session's user writes there.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backendai_agent.mounts_kernel import list_below
from backendai_hub.core.ids import is_id

INSIDE: Final = "/run/backendai"
"""Where a container finds its own ``run`` folder."""


@dataclass(frozen=True)
class ContainerFolder:
    """The paths of one container's folder on the node."""

    path: Path

    @property
    def run(self) -> Path:
        """What the container sees as ``/run/backendai``."""
        return self.path / "run"

    @property
    def work(self) -> Path:
        """What the container sees as ``/home/work``; lost at its end."""
        return self.path / "work"

    @property
    def activation(self) -> Path:
        """Environment and arguments; the container removes it when it has read it."""
        return self.run / "activation.json"

    @property
    def preparation(self) -> Path:
        """What the container says of its owner's files and script; not trusted."""
        return self.run / "preparation.json"

    @property
    def outcome(self) -> Path:
        """What a batch session's runner says of its command; not trusted."""
        return self.run / "outcome.json"

    @property
    def lease(self) -> Path:
        """Until when a batch session may run that may run elsewhere, too."""
        return self.run / "lease"

    @property
    def released(self) -> Path:
        """Is there once the main container of a cluster may run its command."""
        return self.run / "released"

    @property
    def hub_socket(self) -> Path:
        """Where the container reaches the platform."""
        return self.run / "hub.sock"

    @property
    def lab_socket(self) -> Path:
        """Where JupyterLab answers, in runtimes that share a folder with it."""
        return self.run / "lab.sock"

    @property
    def record(self) -> Path:
        """What the agent wrote down about the container; out of its reach."""
        return self.path / "record.json"

    def make(self) -> None:
        """Create the folder, empty where it is new."""
        for folder in (self.path.parent, self.path, self.run, self.work):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove(self) -> None:
        """Remove the folder and all in it; absent is success."""
        remove_trees([self.path])


def container_folder(data_dir: Path | str, container_id: str) -> ContainerFolder:
    """Return the folder of *container_id*; refuses anything but a UUID."""
    if not is_id(container_id):
        raise ValueError(f"{container_id[:80]!r} is not a container id")
    return ContainerFolder(Path(data_dir) / "containers" / container_id)


class StillMountedError(OSError):
    """Something is mounted in what was to be removed; it may be somebody's files."""


def check_unmounted(paths: Iterable[Path]) -> None:
    """Raise StillMountedError if anything is mounted at *paths* or below them.

    Nothing of ours ever is. But what removes a tree does not stop at a folder that is
    mounted in it from the same file system, and would empty that folder, too.
    """
    for path in paths:
        if found := list_below(path):
            raise StillMountedError(f"{found[0]} is a mount: nothing there is removed")


def remove_trees(paths: Iterable[Path]) -> None:
    """Remove *paths* and all in them, whatever others made there; absent is success.

    Trees may be deeper than Python can follow, so tools do it that were made for
    it. Raises OSError, without the names that others chose, if something is left;
    nothing at all is removed where something is mounted.
    """
    present = [path for path in paths if os.path.lexists(path)]
    check_unmounted(present)
    names = [str(path) for path in present]
    if not names or _run_tool("/bin/rm", "-rf", "--one-file-system", "--", *names):
        return
    # Folders that their owner has closed to himself.
    _run_tool("/bin/chmod", "-R", "u+rwX", "--", *names)
    if not _run_tool("/bin/rm", "-rf", "--one-file-system", "--", *names):
        raise OSError(f"cannot remove all that was left in {', '.join(names)}")


def _run_tool(*command: str) -> bool:
    done = subprocess.run(  # noqa: S603 - the paths are our own
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return done.returncode == 0


def write_durably(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace *path* by *content*: all of it or, after any crash, none of it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
