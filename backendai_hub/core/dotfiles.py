"""Dotfiles and bootstrap scripts: what may stand in them, and which ones win.

A *dotfile* is a small text file that is put into a session's home at its start. A
*bootstrap script* runs there once, before the session is RUNNING. Domain, project and
keypair may each have dotfiles; the more specific scope wins.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError

DOTFILES_BYTES: Final = 64 << 10
"""How long all dotfiles of one scope may be together, packed."""
BOOTSTRAP_BYTES: Final = 64 << 10
REQUEST_BOOTSTRAP_BYTES: Final = 16 << 10
"""How long a script may be that comes with the request for a session."""
BOOTSTRAP_SECONDS: Final = 300.0
"""How long a bootstrap script may run before the session fails."""

PATH_LENGTH: Final = 256
NAME_BYTES: Final = 255
"""The longest name a file system takes."""
DEPTH: Final = 8

RESERVED: Final = frozenset(
    {".terminfo", ".jupyter", ".ssh", ".ssh/authorized_keys", ".local", ".config"}
)
"""What sessions make themselves; files below the folders among them are allowed."""
CLOSED: Final = (".ssh/authorized_keys", ".backendai")
"""Nothing below these either: the one is a file, the other the platform's own."""

_PERMISSION: Final = re.compile(r"[0-7]{3}", re.ASCII)
_UNWRITABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Characters that show nothing, or something else than what is there."""


class Dotfile(msgspec.Struct, frozen=True, kw_only=True):
    """One file: ``path`` is relative to the home, ``permission`` octal like "644"."""

    path: str
    permission: str = "644"
    content: str = ""


class DotfileClash(msgspec.Struct, frozen=True, kw_only=True):
    """A dotfile that was left out: one path can not be both file and folder."""

    scope: str
    path: str
    winner: str

    def __str__(self) -> str:
        """Say what was left out and why."""
        return (
            f"the {self.scope}'s dotfile {self.path!r} is left out: {self.winner!r} of"
            " a more specific scope makes a file where this one needs a folder, or a"
            " folder where it needs a file"
        )


class MergedDotfiles(msgspec.Struct, frozen=True):
    """What a session gets, and what it does not get because of a clash."""

    files: list[Dotfile]
    clashes: list[DotfileClash]


# -- what may be written -----------------------------------------------------------


def check_dotfile_path(path: str) -> None:
    """Refuse a path that could lead out of the home or into what is not the user's."""
    problem = _find_path_problem(path)
    if problem:
        raise InvalidRequestError(f"dotfile {_show(path)}: {problem}")


def _find_path_problem(path: str) -> str:
    if not path or len(path) > PATH_LENGTH:
        return (
            f"its path has {len(path)} characters; it must have 1 to {PATH_LENGTH},"
            " such as '.bashrc'"
        )
    return _find_text_problem(path) or _find_place_problem(path)


def _find_text_problem(path: str) -> str:
    if any(unicodedata.category(character) in _UNWRITABLE for character in path):
        return "its path holds control or invisible characters; leave them out"
    if not unicodedata.is_normalized("NFC", path):
        return (
            "its path holds letters and accents as separate characters; write it in"
            " Unicode's normal form C"
        )
    if "\\" in path:
        return "its path holds a backslash; separate folders with '/'"
    return ""


def _find_place_problem(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or parts[0] == "~":
        return "its path is relative to the home; leave out what leads there"
    if not {"", ".", ".."}.isdisjoint(parts):
        return "its path may hold no empty part, no '.' and no '..'"
    if len(parts) > DEPTH:
        return f"its path is {len(parts)} parts deep, the most allowed is {DEPTH}"
    if any(len(part.encode()) > NAME_BYTES for part in parts):
        return f"a part of its path is longer than {NAME_BYTES} bytes"
    taken = next((c for c in CLOSED if path == c or path.startswith(f"{c}/")), None)
    if taken or path in RESERVED:
        return f"{taken or path!r} is reserved; choose another path"
    return ""


def check_dotfile(dotfile: Dotfile) -> None:
    """Refuse a dotfile that cannot be written as it stands."""
    check_dotfile_path(dotfile.path)
    named = f"dotfile {_show(dotfile.path)}"
    if _PERMISSION.fullmatch(dotfile.permission) is None:
        raise InvalidRequestError(
            f"{named}: its permission is {_show(dotfile.permission)}; write three octal"
            " digits, such as '644' or '600'"
        )
    _encode(dotfile.content, what=named)


def check_dotfiles(dotfiles: Sequence[Dotfile]) -> None:
    """Refuse what one scope can not have: bad files, clashes, or too much of them."""
    kept = _Kept()
    for dotfile in dotfiles:
        check_dotfile(dotfile)
        if dotfile.path in kept.files:
            raise InvalidRequestError(
                f"dotfile {_show(dotfile.path)}: it is there already; change that one"
            )
        if other := kept.find_clash(dotfile.path):
            raise InvalidRequestError(
                f"dotfile {_show(dotfile.path)}: it clashes with {other!r}, since a"
                " path cannot be both a file and a folder; remove one of the two"
            )
        kept.add(dotfile.path)
    size = packed_size(dotfiles)
    if size > DOTFILES_BYTES:
        raise InvalidRequestError(
            f"dotfiles: together they are {size} bytes, {size - DOTFILES_BYTES} more"
            f" than the {DOTFILES_BYTES >> 10} KiB allowed; shorten or remove some"
        )


def packed_size(dotfiles: Sequence[Dotfile]) -> int:
    """Tell how many bytes *dotfiles* take when packed."""
    return len(msgspec.msgpack.encode(dotfiles))


def check_bootstrap_script(text: str, *, most: int = BOOTSTRAP_BYTES) -> None:
    """Refuse a bootstrap script that is too long or no text.

    *most* is :data:`REQUEST_BOOTSTRAP_BYTES` for one that comes with a request.
    """
    size = len(_encode(text, what="bootstrap script"))
    if size > most:
        raise InvalidRequestError(
            f"bootstrap script: it is {size} bytes, {size - most} more than the"
            f" {most >> 10} KiB allowed; put the longer part into a file and call that"
        )


def _encode(text: str, *, what: str) -> bytes:
    """Encode *text*; refuses what neither a database nor a file takes as text."""
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(
            f"{what}: its text holds half of a character (a lone surrogate)"
        ) from None
    if b"\0" in content:
        raise InvalidRequestError(f"{what}: its text holds a NUL character")
    return content


def _show(text: str) -> str:
    return ascii(text[:80])


# -- which ones win ----------------------------------------------------------------


def merge_dotfiles(
    *,
    keypair: Iterable[Dotfile] = (),
    project: Iterable[Dotfile] = (),
    domain: Iterable[Dotfile] = (),
) -> MergedDotfiles:
    """Choose what a session gets: of each path the most specific scope's file.

    A file that could only be written by undoing a more specific one is left out, and
    told of.
    """
    files: list[Dotfile] = []
    clashes: list[DotfileClash] = []
    kept = _Kept()
    scopes = {"keypair": keypair, "project": project, "domain": domain}
    for scope, dotfiles in scopes.items():
        for dotfile in dotfiles:
            if dotfile.path in kept.files:
                continue
            if winner := kept.find_clash(dotfile.path):
                clashes.append(
                    DotfileClash(scope=scope, path=dotfile.path, winner=winner)
                )
                continue
            kept.add(dotfile.path)
            files.append(dotfile)
    return MergedDotfiles(files, clashes)


class _Kept:
    """The paths chosen so far, and the folders that they need."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._folders: dict[str, str] = {}

    def add(self, path: str) -> None:
        self.files.add(path)
        for folder in _folders_of(path):
            self._folders.setdefault(folder, path)

    def find_clash(self, path: str) -> str | None:
        """Find the path that is a folder of *path*, or has *path* as a folder."""
        above = next((f for f in _folders_of(path) if f in self.files), None)
        return above or self._folders.get(path)


def _folders_of(path: str) -> Iterator[str]:
    parts = path.split("/")
    for depth in range(1, len(parts)):
        yield "/".join(parts[:depth])
