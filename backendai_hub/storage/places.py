"""Where things lie on a host, and how a worker gets hold of them.

Inside a scope, beside its folders, lies what belongs to them but is not theirs to see:
uploads that are not complete, what was thrown away, what is being removed or made.
All of it counts in the scope's quota. A place that is not managed has the same in its
own folder ``.backendai``: what was thrown away there is everybody's, and all else lies
in a folder called by the *mark* of its platform, since others may use the place, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from backendai_hub.core.errors import (
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from backendai_hub.core.ids import is_id
from backendai_hub.core.vfolders import folder_parts, split_scope
from backendai_hub.safefs.errors import in_words
from backendai_hub.safefs.making import Owner
from backendai_hub.safefs.opening import open_folder, open_root
from backendai_hub.safefs.tree import Tree
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.ops import Place

UPLOADS: Final = ".uploads"
TRASH: Final = ".trash"
REMOVING: Final = ".removing"
CLONING: Final = ".cloning"
STAGING: Final = ".staging"
TASK: Final = "task-"
"""So the names begin, in the last of these, of what belongs to tasks."""
OURS: Final = ".backendai"
"""Where an unmanaged folder keeps what is not for people to see."""
UNMARKED: Final = "unmarked"
"""The mark of a platform that was given none."""
FOLDER_MODE: Final = 0o755
PRIVATE_MODE: Final = 0o700


class Ground:
    """The root of a host, opened anew for each operation, so that it is still it."""

    def __init__(self, config: HostConfig, mark: str = UNMARKED) -> None:
        self._config = config
        self.marked = (OURS, mark)
        """Where, in an unmanaged folder, only this platform keeps things."""
        owner = config.read_owner()
        self.owner = Owner(*owner) if owner else None

    @property
    def path(self) -> str:
        """Where it is."""
        return self._config.path

    @contextmanager
    def root(self) -> Iterator[int]:
        """Open the host's root; refuse a mount point where nothing is mounted."""
        try:
            opened = open_root(self.path)
        except OSError as error:
            raise UnavailableError(f"{self.path}: {error.strerror}") from error
        try:
            if self._config.require_mount:
                check_mounted(opened, self.path)
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def scope(self, name: str) -> Iterator[int]:
        """Open a scope."""
        split_scope(name)
        with self.root() as root:
            opened = _open_ours(root, [name], f"scope {name}")
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def folder(self, place: Place) -> Iterator[int]:
        """Open a virtual folder itself: the root of what people see of it."""
        with self._base(place) as (base, parts):
            opened = _open_ours(base, parts, "the folder")
        try:
            if place.within:
                opened = self._step_into_part(opened, place.within)
            yield opened
        finally:
            os.close(opened)

    def _step_into_part(self, folder: int, person: str) -> int:
        """Open somebody's own part of a folder instead of it, made if it is missing."""
        name = check_uuid(person, "within")
        with in_words(()):
            part = make_folders(folder, [name], mode=FOLDER_MODE)
        try:
            give(part, self.owner)
        except OSError:
            os.close(part)
            raise
        os.close(folder)
        return part

    @contextmanager
    def tree(self, place: Place) -> Iterator[Tree]:
        """Open a virtual folder as a tree; what is new in it is the owner's."""
        with self.folder(place) as opened:
            yield Tree(opened, owner=self.owner)

    @contextmanager
    def beside(self, place: Place, *names: str) -> Iterator[int]:
        """Open a folder of ours that belongs to *place*, making it if it is missing."""
        shared = names[:1] == (TRASH,)
        with self._beside(place, shared=shared) as base, in_words(()):
            opened = make_folders(base, names, mode=PRIVATE_MODE)
        try:
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _base(self, place: Place) -> Iterator[tuple[int, tuple[str, ...]]]:
        if place.unmanaged:
            with self._unmanaged(place.unmanaged) as opened:
                yield opened, ()
            return
        parts = parts_of(place)
        with self.root() as root:
            yield root, parts

    @contextmanager
    def _beside(self, place: Place, *, shared: bool) -> Iterator[int]:
        if place.unmanaged:
            ours = (OURS,) if shared else self.marked
            with self._unmanaged(place.unmanaged) as folder:
                opened = make_folders(folder, ours, mode=PRIVATE_MODE)
            try:
                yield opened
            finally:
                os.close(opened)
            return
        with self.scope(place.scope) as scope:
            yield scope

    @contextmanager
    def _unmanaged(self, path: str) -> Iterator[int]:
        top, parts = self._split_unmanaged(path)
        try:
            root = open_root(top)
        except OSError as error:
            raise UnavailableError(f"{top}: {error.strerror}") from error
        try:
            opened = _open_ours(root, parts, f"the folder {path}")
        finally:
            os.close(root)
        try:
            yield opened
        finally:
            os.close(opened)

    def _split_unmanaged(self, path: str) -> tuple[str, tuple[str, ...]]:
        wanted = Path(path)
        for top in self._config.unmanaged_roots:
            if wanted.is_absolute() and wanted.is_relative_to(top):
                return top, wanted.relative_to(top).parts
        raise InvalidRequestError(
            f"unmanaged_path: {path!r} is not below a folder that this host's"
            " configuration allows (unmanaged_roots)"
        )


def make_folders(base: int, names: Sequence[str], *, mode: int) -> int:
    """Open *names* below *base*, each made if it is missing."""
    folder = os.dup(base)
    for name in names:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=folder)
                os.fsync(folder)
            deeper = open_folder(folder, [name])
        finally:
            os.close(folder)
        folder = deeper
    return folder


def parts_of(place: Place) -> tuple[str, ...]:
    """Return where a managed place lies below the root; refuse what is no id."""
    return folder_parts(place.scope, check_uuid(place.folder_id, "folder_id"))


def check_uuid(given: str, what: str) -> str:
    """Return an id in its usual spelling, fit to be the name of a file of ours."""
    if not is_id(given):
        raise InvalidRequestError(f"{what}: {given[:64]!r} is not an id")
    return str(UUID(given))


def check_mounted(root: int, path: str) -> None:
    """Refuse a root that is no mount point: what is mounted there usually is absent."""
    parent = os.open("..", os.O_PATH | os.O_DIRECTORY, dir_fd=root)
    try:
        if _mount_id(parent) == _mount_id(root):
            raise UnavailableError(
                f"nothing is mounted at {path}; mount the storage there"
            )
    finally:
        os.close(parent)


def give(descriptor: int, owner: Owner | None) -> None:
    """Make *owner* the owner of what is open, if we may decide about that."""
    if owner is None:
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != owner:
        os.fchown(descriptor, *owner)


def _open_ours(base: int, parts: Sequence[str], what: str) -> int:
    try:
        return open_folder(base, parts)
    except FileNotFoundError:
        raise NotFoundError(f"{what} does not exist on the storage") from None


def _mount_id(descriptor: int) -> str:
    facts = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
    return next(line for line in facts.splitlines() if line.startswith("mnt_id:"))
