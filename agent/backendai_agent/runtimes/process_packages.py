"""Room for a session's own packages, on top of its environment.

The environment is the operator's and read-only. ``~/.local`` is made a virtual
environment of the session's own, above it: what ``pip install`` puts there is found
first, by new interpreters and kernels alike, and lost with the session. All in it is
said relative to itself or to the environment, so it does not matter where the session
sees its home.

Where a folder of the user's is mounted at ``~/.local``, the session's own environment
lies beside it, and ``pip install`` puts into the folder what then stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.base import ShownFolder
from backendai_agent.runtimes.process_environment import Environment
from backendai_agent.runtimes.process_sandbox import HOME

FOLDER: Final = ".local"
BESIDE: Final = ".session"
"""The room's name where ``~/.local`` is a folder of the user's."""
_PIP: Final = '#!/bin/sh\nexec "${0%/*}/python" -m pip "$@"\n'
"""The environment's own ``pip`` would install into the environment."""
_KEPT: Final = (
    "import os, site, sys;"
    " site.addsitedir(os.path.join(os.path.dirname(sys.prefix), {}))\n"
)
"""Finds what was installed to stay: the room and the folder lie side by side."""


def choose_room(folders: Iterable[ShownFolder]) -> str:
    """Return the name of the room of a session that sees *folders*."""
    taken = any(shown.target == f"{HOME}/{FOLDER}" for shown in folders)
    return BESIDE if taken else FOLDER


def own_python(home: str, room: str = FOLDER) -> str:
    """Return the interpreter of the session whose home is *home*."""
    return f"{home}/{room}/bin/python"


def room_environ(home: str, room: str) -> dict[str, str]:
    """Return what lets ``pip`` install where it stays, if there is such a place."""
    return {} if room == FOLDER else {"PIP_PREFIX": f"{home}/{FOLDER}"}


def make_room(
    work: Path,
    environment: Environment,
    *,
    owner: tuple[int, int] | None,
    name: str = FOLDER,
) -> None:
    """Make the session's own environment in *work*, unless something is there.

    Nothing of the session may run meanwhile. All of it then belongs to *owner*,
    a user and a group.
    """
    top = work / name
    if os.path.lexists(top):
        return
    python = f"python{environment.version}"
    packages = top / "lib" / python / "site-packages"
    programs = top / "bin"
    for folder in (top, top / "lib", packages.parent, packages, programs):
        folder.mkdir(mode=0o755)
    for program in ("python", "python3", python):
        programs.joinpath(program).symlink_to(environment.base_python)
    for program in ("pip", "pip3"):
        path = programs / program
        path.write_text(_PIP, encoding="utf-8")
        path.chmod(0o755)
    (top / "pyvenv.cfg").write_text(_settings(environment), encoding="utf-8")
    below = "".join(
        f"import site; site.addsitedir({p!r})\n" for p in _below(environment)
    )
    if name != FOLDER:
        kept = f"{FOLDER}/lib/{python}/site-packages"
        below = _KEPT.format(repr(kept)) + below
    (packages / "_environment.pth").write_text(below, encoding="utf-8")
    if owner is not None:
        _give(top, *owner)


def _settings(environment: Environment) -> str:
    home = str(Path(environment.base_python).parent)
    system = "true" if environment.system_packages else "false"
    return (
        f"home = {home}\ninclude-system-site-packages = {system}\n"
        f"version = {environment.version}\n"
    )


def _below(environment: Environment) -> Iterator[str]:
    yield from dict.fromkeys(os.path.realpath(p) for p in environment.packages)


def _give(top: Path, uid: int, gid: int) -> None:
    for folder, folders, files in os.walk(top):
        for name in ("", *folders, *files):
            os.chown(Path(folder) / name, uid, gid, follow_symlinks=False)
