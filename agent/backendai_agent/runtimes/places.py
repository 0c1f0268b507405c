"""What stands in a session's home where its folders are going to be.

An engine would make missing ones itself, as root's, so that a session could not write
beside a folder that it sees at ``project/data``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from backendai_agent.runtimes.base import RuntimeFailure, ShownFolder
from backendai_hub.safefs.opening import open_beneath, open_root

HOME: Final = PurePosixPath("/home/work")
_FOLDER: Final = os.O_PATH | os.O_DIRECTORY
_MODE: Final = 0o755

Owner = tuple[int, int] | None
"""The user and group who own what is made; None: whoever makes it."""


def make_places(work: Path, folders: Iterable[ShownFolder], owner: Owner) -> None:
    """Make in *work*, a session's home, the empty folders that *folders* go over."""
    for inside, _ in _below_home(folders):
        with contextlib.ExitStack() as opened:
            _make(work, inside, owner, opened)


def make_links(work: Path, folders: Iterable[ShownFolder], owner: Owner) -> None:
    """Make in *work* links to *folders*, for sessions that see the node as it is."""
    for inside, folder in _below_home(folders):
        with contextlib.ExitStack() as opened:
            above = _make(work, inside[:-1], owner, opened)
            _link(folder, inside[-1], above)
            if owner is not None:
                os.chown(inside[-1], *owner, dir_fd=above, follow_symlinks=False)


def _link(folder: ShownFolder, name: str, above: int) -> None:
    try:
        os.symlink(folder.source, name, dir_fd=above)
    except FileExistsError:
        with contextlib.suppress(OSError):
            if os.readlink(name, dir_fd=above) == folder.source:
                return  # of an earlier start
        raise RuntimeFailure(
            f"{folder.target} is taken by something else in the session's home"
        ) from None


def _below_home(
    folders: Iterable[ShownFolder],
) -> Iterable[tuple[tuple[str, ...], ShownFolder]]:
    for folder in folders:
        target = PurePosixPath(folder.target)
        if target.is_relative_to(HOME) and target != HOME:
            yield target.relative_to(HOME).parts, folder


def _make(
    work: Path, parts: tuple[str, ...], owner: Owner, opened: contextlib.ExitStack
) -> int:
    """Open *parts* of *work*, made where they are missing; follows no link."""
    here = open_root(work)
    opened.callback(os.close, here)
    for name in parts:
        try:
            here = _step(here, name, owner)
        except OSError as error:
            path = HOME.joinpath(*parts)
            raise RuntimeFailure(
                f"no folder can be mounted at {path}: {name!r} is no folder in the"
                " session's home"
            ) from error
        opened.callback(os.close, here)
    return here


def _step(here: int, name: str, owner: Owner) -> int:
    try:
        os.mkdir(name, _MODE, dir_fd=here)
    except FileExistsError:
        return open_beneath(here, [name], _FOLDER)
    # What was opened is changed, and not what may have that name by now.
    made = open_beneath(here, [name], os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fchmod(made, _MODE)  # whatever our umask
        if owner is not None:
            os.fchown(made, *owner)
    except OSError:
        os.close(made)
        raise
    return made
