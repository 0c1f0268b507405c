"""Lay out what a container needs on disk before it starts, and clear it away.

Ownership is the point of this module. Where the agent is root every container gets
a host user of its own: its ``work`` and ``run`` folders and the activation in it
belong to that user, everything above them to root alone. Where the agent is a
plain user the folders are its own, and the sandbox's user stands for it.
"""

from __future__ import annotations

import os
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backendai_agent.addresses import is_address
from backendai_agent.folders import INSIDE, ContainerFolder, remove_trees
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure, ShownFolder
from backendai_agent.runtimes.identities import check_identity
from backendai_agent.runtimes.places import make_links, make_places
from backendai_agent.runtimes.process_environment import Environment
from backendai_agent.runtimes.process_memory import ProcessMemory, StartRecord
from backendai_agent.runtimes.process_packages import choose_room, make_room
from backendai_agent.runtimes.process_plain import open_way
from backendai_agent.runtimes.process_sandbox import HOME
from backendai_agent.runtimes.process_tiers import NONE, write_etc
from backendai_hub.api.agents import ContainerSpec, Identity
from backendai_hub.core.ids import is_id

CAPABILITIES: Final = "nvidia-caps"
DRIVER: Final = "/usr/local/nvidia/lib64"
"""Where nodes of Kubernetes keep the libraries of NVIDIA's driver."""
DRIVER_FOLDERS: Final = (
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/module",
)
"""What CUDA reads to find its devices; without it, it does not start."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the runtime decided for a container before its folder is made."""

    environment: Environment
    tier: str
    network: str
    nameservers: tuple[str, ...] = ()
    seccomp: bytes | None = None


class UserRange:
    """Host users for containers: ``count`` of them from ``first``."""

    def __init__(self, first: int, count: int) -> None:
        self._first = first
        self._count = count
        self._lock = threading.Lock()
        self._given: dict[str, int] = {}

    def give(self, container_id: str, used: Iterable[int]) -> int:
        """Choose a user that no other container has.

        Where to look first follows from the id, so that a user is not at once
        given to the next container, and two agents on a node seldom meet.
        """
        with self._lock:
            if container_id in self._given:
                return self._given[container_id]
            taken = {*used, *self._given.values()}
            begin = zlib.crc32(container_id.encode())
            for step in range(self._count):
                uid = self._first + (begin + step) % self._count
                if uid not in taken:
                    self._given[container_id] = uid
                    return uid
        raise RuntimeFailure(
            f"all {self._count} users from {self._first} on are in use on this node;"
            " raise ProcessRuntime.uid_count"
        )

    def __contains__(self, number: int) -> bool:
        """Tell whether *number* may be some container's user."""
        return self._first <= number < self._first + self._count

    def take_back(self, container_id: str) -> None:
        """The container is gone; its user may be given again."""
        with self._lock:
            self._given.pop(container_id, None)


def find_containers(folder: Path) -> Iterator[tuple[ProcessMemory, StartRecord]]:
    """Yield every container that this runtime has started below *folder*."""
    try:
        entries = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    for entry in entries:
        if is_id(entry.name):
            memory = ProcessMemory(ContainerFolder(entry))
            record = memory.read_record()
            if record is not None:
                yield memory, record


def prepare(
    memory: ProcessMemory,
    spec: ContainerSpec,
    choice: Choice,
    *,
    uid: int | None,
    folders: tuple[ShownFolder, ...] = (),
) -> StartRecord:
    """Make the container's folder and write down what is going to be started."""
    memory.container.make()
    memory.path.mkdir(mode=0o700, exist_ok=True)
    memory.forget_run()
    record = StartRecord(
        id=spec.id,
        session_id=spec.session_id,
        session_name=spec.session_name,
        owner=spec.owner,
        image=choice.environment.name,
        cpu=spec.cpu,
        memory=spec.memory,
        uid=uid,
        gid=None if spec.identity is None else spec.identity.gid,
        gids=() if spec.identity is None else tuple(spec.identity.gids),
        tier=choice.tier,
        network=choice.network,
    )
    memory.write_record(record)
    owner = None if uid is None else (uid, record.group or uid)
    work, room = memory.container.work, choose_room(folders)
    make_room(work, choice.environment, owner=owner, name=room)
    (make_links if choice.tier == NONE else make_places)(work, folders, owner)
    hand_over(memory, record)
    memory.etc.mkdir(mode=0o755, exist_ok=True)
    write_etc(
        memory.etc,
        uid,
        gid=record.gid,
        nameservers=choice.nameservers,
        hostname=spec.cluster.host,
        others=find_others(spec, choice.network),
    )
    if choice.seccomp is not None:
        memory.seccomp.write_bytes(choice.seccomp)
    return record


def find_others(spec: ContainerSpec, network: str) -> dict[str, str]:
    """Return where the session's other containers are reached from this one.

    Only on the node's own network they are: elsewhere each has a network of its own,
    and a name that leads nowhere is worse than none.
    """
    if network != "host":
        return {}
    place = spec.cluster
    here = dict.fromkeys(place.beside, "127.0.0.1")
    found = {
        name: here.get(name, place.addresses.get(name, "")) for name in place.hosts
    }
    return {
        name: address
        for name, address in found.items()
        if name != place.host and is_address(address)
    }


def hand_over(memory: ProcessMemory, record: StartRecord) -> None:
    """Give the session its folders, and the activation that lies in one of them.

    The session's user may have put anything at these names, if this is not the
    first time: links are never followed. The relay's socket stays ours.
    """
    if record.uid is None:
        return
    uid, gid = record.uid, record.group or record.uid
    for path in (memory.container.work, memory.container.run):
        os.chown(path, uid, gid, follow_symlinks=False)
    if record.tier == NONE:
        open_way(memory.container.path, record.uid)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open(memory.container.run, flags)
    try:
        name = memory.container.activation.name
        os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:  # it comes later, or was taken up already
        pass
    finally:
        os.close(folder)


def check_patch(patch: ContainerPatch, visible: Iterable[str]) -> list[str]:
    """Check what accelerators and the operator add; returns the visible paths."""
    for device in chosen_nodes(patch):
        if not device.startswith("/dev/") or not Path(device).exists():
            raise RuntimeFailure(f"device {device} is not on this node")
    for node in patch.nodes:
        check_can_be_opened(Path(node))
    for source, target, _ in patch.mounts:
        if not Path(source).exists():
            raise RuntimeFailure(f"{source} is not on this node")
        if ".." in Path(target).parts or not target.startswith("/"):
            raise RuntimeFailure(f"{target} is no place inside a session")
    wanted = [*visible, *(DRIVER_FOLDERS if patch.nodes else ())]
    return [path for path in wanted if Path(path).exists()]


def check_nothing_hidden(folders: Iterable[ShownFolder], paths: Iterable[str]) -> None:
    """Refuse folders that would hide, or lie in, what the session's programs need."""
    needed = [Path(path) for path in paths]
    for shown in folders:
        target = Path(shown.target)
        for path in needed:
            if target.is_relative_to(path) or path.is_relative_to(target):
                raise RuntimeFailure(
                    f"a folder cannot be mounted at {target} on this node, where"
                    " sessions' own programs are"
                )


def check_can_be(
    identity: Identity | None, *, privileged: bool, users: UserRange
) -> None:
    """Raise RuntimeFailure if no session on this node can have *identity*."""
    check_identity(identity)
    if identity is None:
        return
    if not privileged:
        raise RuntimeFailure(
            "an administrator has given the session's owner user or group ids of their"
            " own, which this node cannot give a session: that needs an agent that runs"
            " as root, and bubblewrap"
        )
    for number in (identity.uid, identity.gid, *identity.gids):
        if number is not None and number in users:
            raise RuntimeFailure(
                f"{number} cannot be the session's user or group: this node gives such"
                " numbers to sessions of others (ProcessRuntime.first_uid)"
            )


def chosen_nodes(patch: ContainerPatch) -> tuple[str, ...]:
    """Return the device nodes to bind; CDI names count if nothing stands for them."""
    named = patch.devices
    if patch.nodes:
        named = tuple(name for name in named if name.startswith("/dev/"))
    return (*named, *patch.nodes)


def check_can_be_opened(node: Path) -> None:
    """Refuse a device that the driver has closed to those who are not root."""
    mode = stat.S_IMODE(node.stat().st_mode)
    # What stands for a right, as to an instance of a GPU, is opened to show it only.
    needed = 0o004 if node.parent.name == CAPABILITIES else 0o006
    if os.geteuid() == 0 and mode & needed != needed:
        raise RuntimeFailure(
            f"device {node} is closed to sessions, which are not root (mode"
            f" {mode:04o}); the driver's usual mode is 0666"
        )


def driver_variables(patch: ContainerPatch) -> dict[str, str]:
    """Return what programs need to find a driver that the linker does not know."""
    return {"LD_LIBRARY_PATH": DRIVER} if patch.nodes and Path(DRIVER).is_dir() else {}


def own_home(memory: ProcessMemory, *, isolated: bool) -> str:
    """Return the session's home, in its own eyes."""
    return HOME if isolated else str(memory.container.work.resolve())


def own_run(memory: ProcessMemory, *, isolated: bool) -> str:
    """Return the session's ``run`` folder, in its own eyes."""
    return INSIDE if isolated else str(memory.container.run.resolve())


def clear(memory: ProcessMemory) -> None:
    """Remove what the runtime made, and the container's folder if that empties it.

    The record goes last, so that an interrupted removal is seen and done again.
    """
    container = memory.container
    remove_trees([container.work, container.run])
    memory.path.joinpath("record.json").unlink(missing_ok=True)
    remove_trees([memory.path])
    try:
        container.path.rmdir()
    except OSError:  # absent, or the agent keeps its own record of it there
        return


def sweep(folder: Path) -> None:
    """Remove folders of starts that never came to be written down."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name.startswith(".probe-"):
            remove_trees([entry])
        if not is_id(entry.name) or (entry / "record.json").exists():
            continue
        memory = ProcessMemory(ContainerFolder(entry))
        if memory.read_record() is None and not memory.is_supervised():
            clear(memory)
