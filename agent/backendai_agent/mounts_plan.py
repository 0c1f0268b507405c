"""What has to be done to show a container its folders. Pure: nothing is touched.

Where the agent may mount, it binds every folder, or the part of one that is wanted,
to a place of its own, and that place is all a runtime is given. Where it may not, a
runtime is given the folder's own path, or a link to it: whole folders only, for users
could change what a path inside one leads to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

import msgspec

from backendai_agent.runtimes.base import Resident, RuntimeFailure
from backendai_hub.api.agents import MountSpec

HOME: Final = PurePosixPath("/home/work")
MOST: Final = 256
SYSTEM: Final = frozenset(
    {
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"),
        *("lost+found", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr"),
        "var",
    }
)
"""First parts of targets that sessions need themselves."""
_NEVER_HIDDEN: Final = frozenset(map(str, ("/", "/home", HOME)))

ISOLATE: Final = (
    "install bubblewrap on it and let its agent run as root, or use a node with Docker"
)


@dataclass(frozen=True, kw_only=True)
class Site:
    """What this node's operator says of storage, and what its agent may do."""

    hosts: Mapping[str, str] = field(default_factory=dict)
    unmanaged_roots: Sequence[str] = ()
    may_mount: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One folder: where it is found, and what is made of it.

    ``parts`` lead from ``root`` to the folder, ``subpath`` from there to what is
    wanted of it; ``make`` makes what is missing of the latter. ``inside`` is the number
    of the step in whose folder this one's target lies, at ``rest``.
    """

    host: str
    target: str
    root: str
    parts: list[str]
    subpath: list[str]
    make: bool
    read_only: bool
    owner: tuple[int, int] | None
    inside: int | None = None
    rest: list[str] = []


def plan_steps(
    mounts: Sequence[MountSpec], site: Site, resident: Resident
) -> list[Step]:
    """Return what to do, outer folders first; raises RuntimeFailure if it cannot be."""
    if len(mounts) > MOST:
        raise RuntimeFailure(f"{len(mounts)} folders are too many for one session")
    ordered = sorted(mounts, key=lambda m: (PurePosixPath(m.target).parts, m.host))
    steps: list[Step] = []
    for mount in ordered:
        check_target(mount.target)
        step = _find_source(mount, site)
        steps.append(_find_place(step, steps))
    if resident.way != "none":
        for step in steps:
            _check_way(step, site, resident)
    return steps


def check_target(target: str) -> None:
    """Raise RuntimeFailure if a folder at *target* would hide what a session needs.

    The service refuses such targets too; but it is this node that would run it.
    """
    path = PurePosixPath(target)
    plain = str(path) == target and path.root == "/" and ".." not in path.parts
    if not plain or not target.isprintable() or len(target.encode()) > 4000:
        raise RuntimeFailure(f"{target[:200]!r} is no place for a folder")
    if target in _NEVER_HIDDEN or path.parts[1] in SYSTEM:
        raise RuntimeFailure(
            f"a folder cannot be mounted at {target[:200]}: it would hide what the"
            " session itself needs"
        )


def _find_source(mount: MountSpec, site: Site) -> Step:
    root, parts, subpath = "", list(mount.parts), list(mount.subpath)
    if mount.unmanaged:
        # Whoever may write above it can change where it leads, as inside a folder.
        root, inside = _find_unmanaged(mount, site.unmanaged_roots)
        parts, subpath = [], [*inside, *subpath]
    elif mount.host in site.hosts:
        root = site.hosts[mount.host]
        if not parts:
            raise RuntimeFailure(f"nothing leads to the folder for {mount.target}")
    else:
        raise RuntimeFailure(
            f"this node does not have the storage host {mount.host!r}, where the"
            f" folder for {mount.target} is; an operator has to name it in"
            " BackendAIAgent.storage_hosts"
        )
    return Step(
        host=mount.host,
        target=mount.target,
        root=root,
        parts=parts,
        subpath=subpath,
        make=mount.make and not mount.unmanaged,
        read_only=mount.read_only,
        owner=_find_owner(mount),
    )


def _find_owner(mount: MountSpec) -> tuple[int, int] | None:
    if mount.unmanaged:  # it has owners of its own, and keeps them
        return None
    if mount.owner_uid is None or mount.owner_gid is None:
        return None
    return (mount.owner_uid, mount.owner_gid)


def _find_unmanaged(mount: MountSpec, roots: Sequence[str]) -> tuple[str, list[str]]:
    path = PurePosixPath(mount.unmanaged)
    if path.is_absolute() and ".." not in path.parts:
        for root in roots:
            if path.is_relative_to(root):
                return root, list(path.relative_to(root).parts)
    raise RuntimeFailure(
        f"{mount.unmanaged} is not below a folder that this node's operator lets be"
        " mounted (BackendAIAgent.unmanaged_roots)"
    )


def _find_place(step: Step, before: Sequence[Step]) -> Step:
    """Say in which earlier folder the target of *step* lies, if in any."""
    target = PurePosixPath(step.target)
    inside, rest = None, PurePosixPath()
    for number, other in enumerate(before):
        if target == PurePosixPath(other.target):
            raise RuntimeFailure(f"two folders cannot both be mounted at {target}")
        if target.is_relative_to(other.target):
            inside, rest = number, target.relative_to(other.target)
    return msgspec.structs.replace(step, inside=inside, rest=list(rest.parts))


def _check_way(step: Step, site: Site, resident: Resident) -> None:
    if resident.way == "bind" and site.may_mount:
        return
    if step.subpath:
        raise RuntimeFailure(
            f"only whole folders can be mounted on this node, and for {step.target} a"
            f" part of one is wanted: its agent may not mount; {ISOLATE}"
        )
    if step.inside is not None:
        raise RuntimeFailure(
            f"{step.target} lies in another folder of the session, which this node"
            f" cannot do: its agent may not mount; {ISOLATE}"
        )
    check_owner(step, resident)
    if resident.way == "link":
        _check_link(step)


def check_owner(step: Step, resident: Resident) -> None:
    """Refuse a folder whose files would be somebody else's to the session."""
    if step.owner is None or step.owner == (resident.uid, resident.gid):
        return
    raise RuntimeFailure(
        f"the files of storage host {step.host!r} belong to {name(step.owner)}, the"
        f" session runs as {name((resident.uid, resident.gid))} and this node cannot"
        " show it the one as the other; an administrator can give the session's owner"
        f" the container ids {name(step.owner)}, or use other nodes"
    )


def name(owner: tuple[int, int]) -> str:
    """Write a user and a group as people do."""
    return f"{owner[0]}:{owner[1]}"


def _check_link(step: Step) -> None:
    if step.read_only:
        raise RuntimeFailure(
            f"this node does not isolate sessions, so nothing would keep {step.target}"
            f" read-only; {ISOLATE}"
        )
    if not PurePosixPath(step.target).is_relative_to(HOME):
        raise RuntimeFailure(
            f"this node does not isolate sessions and can show folders only below"
            f" {HOME}, not at {step.target}; {ISOLATE}"
        )
