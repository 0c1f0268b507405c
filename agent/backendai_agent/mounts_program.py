"""Shows a container its folders: a program that may be killed when it takes long.

A storage host that hangs makes whoever opens something on it wait for ever. The agent
must not, so it lets this program do what touches a host, and waits only so long. It
reads one :class:`Order` and answers with one :class:`Outcome`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from backendai_agent import mounts_kernel as kernel
from backendai_agent.mounts_plan import Step, check_owner
from backendai_agent.runtimes.base import Resident, RuntimeFailure
from backendai_hub.core.errors import HubError
from backendai_hub.safefs.opening import open_beneath

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY
_CANNOT_MAP: Final = {
    errno.EINVAL,
    errno.ENOSPC,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
}
"""How the kernel says that it cannot map owners there: of this file system, at all."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to do: bind the *steps* in ``room``; without one only look whether all are.

    ``user`` is who the session's processes are on the node. ``parent`` is who waits.
    """

    parent: int
    room: str
    steps: list[Step]
    user: tuple[int, int] = (0, 0)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How it went; an empty ``failure`` is success."""

    failure: str = ""


def run(order: Order) -> Outcome:
    """Carry out *order*; a refusal is told in words for the session's owner."""
    try:
        with contextlib.ExitStack() as opened:
            if order.room:
                _bind_all(order, opened)
            else:
                for step in order.steps:
                    _open_source(step, opened)
    except (RuntimeFailure, HubError) as refusal:
        return Outcome(failure=str(refusal))
    except OSError as error:
        return Outcome(failure=f"folders cannot be mounted on this node: {error}")
    return Outcome()


def _bind_all(order: Order, opened: contextlib.ExitStack) -> None:
    room = Path(order.room)
    kernel.mount_room(order.room)
    sources: list[int] = []
    trees: list[int] = []
    for number, step in enumerate(order.steps):
        source = _open_source(step, opened)
        tree = _keep(opened, kernel.clone_tree(source))
        _seal(tree, step, order.user, opened)
        if step.inside is None:
            path = room / str(number)
            path.mkdir(mode=0o700)
            place = _keep(opened, os.open(path, _FOLDER | os.O_NOFOLLOW))
        else:
            outer = order.steps[step.inside]
            place = _open_inside(
                step, outer, trees[step.inside], sources[step.inside], opened
            )
        kernel.put_tree(tree, place)
        sources.append(source)
        trees.append(tree)


def _keep(opened: contextlib.ExitStack, descriptor: int) -> int:
    opened.callback(os.close, descriptor)
    return descriptor


def _seal(
    tree: int, step: Step, user: tuple[int, int], opened: contextlib.ExitStack
) -> None:
    """Say what may be done through a mount, and whose its files are."""
    flags = kernel.NO_SUID | kernel.NO_DEVICES
    flags |= kernel.READ_ONLY if step.read_only else 0
    if step.owner is None:
        kernel.change_tree(tree, flags)
        return
    try:
        users = _keep(opened, kernel.map_users(step.owner, user))
        kernel.change_tree(tree, flags, users=users)
    except OSError as error:
        if error.errno not in _CANNOT_MAP:
            raise
        check_owner(step, Resident(*user))
        kernel.change_tree(tree, flags)


def _open_source(step: Step, opened: contextlib.ExitStack) -> int:
    """Open what is to be shown, following no link that anybody could have made."""
    try:
        root = _keep(opened, os.open(step.root, _FOLDER | os.O_CLOEXEC))
        os.statvfs(root)  # which its server has to answer
    except OSError as error:
        raise RuntimeFailure(
            f"the storage host {step.host!r} is not there on this node, so the folder"
            f" for {step.target} cannot be mounted ({error.strerror})"
        ) from error
    try:
        folder = _keep(opened, open_beneath(root, step.parts, _FOLDER))
    except OSError as error:
        raise RuntimeFailure(
            f"the folder for {step.target} is not on the storage host {step.host!r}"
            f" any more ({error.strerror})"
        ) from error
    if not step.subpath:
        return folder
    try:
        return _descend(folder, step.subpath, step.owner if step.make else None, opened)
    except OSError as error:
        raise RuntimeFailure(_explain(step.subpath, step.target, error)) from error


def _open_inside(
    step: Step,
    outer: Step,
    tree: int,
    source: int,
    opened: contextlib.ExitStack,
) -> int:
    """Open the place in another folder where this one goes, made if it is missing."""
    try:
        if not outer.read_only:
            _descend(source, step.rest, outer.owner or _owner_of(source), opened)
        return _keep(opened, open_beneath(tree, step.rest, _FOLDER))
    except OSError as error:
        raise RuntimeFailure(_explain(step.rest, outer.target, error)) from error


def _explain(parts: Sequence[str], target: str, error: OSError) -> str:
    path = "/".join(parts)[:200]
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        why = "it is no folder, or leads through a link, and links are not followed"
    elif error.errno == errno.ENOENT:
        why = "there is no such folder"
    else:
        why = error.strerror or str(error)
    return f"{path!r} in the folder for {target} cannot be mounted: {why}"


def _owner_of(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_uid, found.st_gid


def _descend(
    folder: int,
    parts: Sequence[str],
    owner: tuple[int, int] | None,
    opened: contextlib.ExitStack,
) -> int:
    """Open *parts* in *folder*; with *owner* make what is missing, as that user's."""
    try:
        return _keep(opened, open_beneath(folder, parts, _FOLDER))
    except FileNotFoundError:
        if owner is None:
            raise
    for name in parts:
        folder = _keep(opened, _open_or_make(folder, name, owner))
    return folder


def _open_or_make(folder: int, name: str, owner: tuple[int, int]) -> int:
    try:
        return open_beneath(folder, [name], _FOLDER)
    except FileNotFoundError:
        pass
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:  # another session has made it just now
        return open_beneath(folder, [name], _FOLDER)
    # To be given away it has to be opened for more than being named.
    made = open_beneath(folder, [name], os.O_RDONLY | os.O_DIRECTORY)
    if os.geteuid() == 0:
        os.fchown(made, *owner)
    return made


def main() -> None:
    """Read an order from standard input and answer on standard output."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    kernel.die_with(order.parent)
    os.umask(0o022)
    sys.stdout.buffer.write(msgspec.json.encode(run(order)))


if __name__ == "__main__":
    main()
