"""Write the owner's dotfiles into the session's home, from inside the session.

The home may outlive the session, so what lies there is the user's. A dotfile is
written where there is nothing, or where there is what an earlier session wrote and
nobody has changed since; those are remembered, by hash, in ``.backendai``. Anything
else is left alone, and told of. No link is followed on the way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OWN: Final = ".backendai"
"""Our folder in the home: what we wrote, and what the bootstrap script printed."""
WRITTEN: Final = "dotfiles.json"
LARGEST: Final = 1 << 20
"""Longer than any dotfile: such a file is not one that we wrote."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LeftAloneError(Exception):
    """A dotfile was not written; the message says why."""


@dataclass(frozen=True)
class File:
    """One file: ``path`` is relative to the home, ``permission`` octal like "644"."""

    path: str
    permission: str
    content: str


def write_dotfiles(home: Path, files: Iterable[File]) -> list[str]:
    """Write *files* into *home*; returns a line for each one that was left alone.

    A home that is full, shut or odd is no reason not to start: its owner needs the
    session to put it in order.
    """
    before = _recall(home)
    now: dict[str, str] = {}
    lines = []
    for file in files:
        try:
            written = _write(home, file, before.get(file.path))
        except LeftAloneError as reason:
            lines.append(f"dotfile {file.path!a} was not written: {reason}")
        except OSError as error:
            lines.append(f"dotfile {file.path!a} was not written: {error.strerror}")
        else:
            if written:
                now[file.path] = written
    if {**before, **now} != before:
        try:
            _remember(home, {**before, **now})
        except OSError as error:
            lines.append(f"the list of dotfiles was not written: {error.strerror}")
    return lines


def _write(home: Path, file: File, known: str | None) -> str | None:
    """Write one file and return its hash; None where the user has the same one."""
    parts = split_path(file.path)
    if re.fullmatch("[0-7]{3}", file.permission) is None:
        raise LeftAloneError(f"{file.permission[:16]!r} is not a permission")
    content = file.content.encode()
    with open_folder(home, parts[:-1]) as folder:
        found = _read(folder, parts[-1])
        if found is not None and _hash(found) != known:
            if found == content:
                return None
            raise LeftAloneError(
                "there is another one, which you made or changed; remove yours to get"
                " the one of your settings"
            )
        put_file(folder, parts[-1], content, mode=int(file.permission, 8))
    return _hash(content)


def split_path(path: str) -> list[str]:
    """Split *path*; refuses one that does not stay below where it starts."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in path:
        raise LeftAloneError("its path leads out of the home")
    return parts


@contextmanager
def open_folder(home: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open the folder *parts* below *home*, making what is missing.

    Each step is taken from the folder before it, and none through a link: nothing
    that somebody puts there meanwhile leads elsewhere.
    """
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=folder)
            try:
                below = os.open(part, _FOLDER, dir_fd=folder)
            except NotADirectoryError:
                raise LeftAloneError(
                    f"{part!a} is a file or a link there, not a folder"
                ) from None
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def put_file(folder: int, name: str, content: bytes, *, mode: int) -> None:
    """Put a file into the open *folder*: all of it, or none."""
    temporary = f".backendai-{secrets.token_hex(8)}"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            # Not left to the umask: this is what was asked for.
            os.fchmod(file.fileno(), mode)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _read(folder: int, name: str) -> bytes | None:
    """Read what is called *name*; None if there is nothing."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            raise LeftAloneError("there is something else: a folder, a link, or large")
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(LARGEST + 1)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _recall(home: Path) -> dict[str, str]:
    """Read which files earlier sessions wrote; what cannot be read was not ours."""
    try:
        with open_folder(home, [OWN]) as folder:
            written = json.loads(_read(folder, WRITTEN) or b"{}")
        return {str(path): str(digest) for path, digest in written.items()}
    except (OSError, ValueError, AttributeError, LeftAloneError):
        return {}


def _remember(home: Path, written: Mapping[str, str]) -> None:
    with suppress(LeftAloneError), open_folder(home, [OWN]) as folder:
        content = json.dumps(dict(sorted(written.items())), indent=1).encode()
        put_file(folder, WRITTEN, content, mode=0o600)
