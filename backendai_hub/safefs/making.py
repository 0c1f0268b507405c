"""Make files, folders and links that belong to the owner of a tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from backendai_hub.safefs.opening import open_beneath, open_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE_MODE: Final = 0o644
FOLDER_MODE: Final = 0o755
_NEW_FILE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL


class Owner(NamedTuple):
    """Whom new files belong to; without one, to whoever this process runs as."""

    user: int
    group: int


def make_file(
    folder: int, parts: Sequence[str], owner: Owner | None, *, mode: int = FILE_MODE
) -> int:
    """Make an empty file, which must not exist, and open it."""
    made = open_beneath(folder, parts, _NEW_FILE, mode, one_mount=True)
    try:
        if owner is not None:
            os.fchown(made, *owner)
    except OSError:
        os.close(made)
        raise
    return made


def make_folder(folder: int, name: str, owner: Owner | None) -> None:
    """Make an empty folder, which must not exist."""
    os.mkdir(name, FOLDER_MODE, dir_fd=folder)
    if owner is not None:
        made = open_folder(folder, (name,), one_mount=True)
        try:
            os.fchown(made, *owner)
        finally:
            os.close(made)


def make_link(folder: int, name: str, target: str, owner: Owner | None) -> None:
    """Make a symbolic link; where it points is the user's affair."""
    os.symlink(target, name, dir_fd=folder)
    if owner is not None:
        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)
