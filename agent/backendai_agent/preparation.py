"""What a session tells of its preparation: its owner's files and bootstrap script.

The session's user writes in the folder where this lies, so it is read like anything
from a stranger: no link is followed, nothing is waited for, and what it says is only
ever shown to that user.
"""

from __future__ import annotations

import os
import stat
from typing import Final

import msgspec

from backendai_agent.folders import ContainerFolder
from backendai_hub.api.agents import ContainerSpec

LONGEST: Final = 1 << 14
REASON_LENGTH: Final = 1000
TOO_OLD: Final = (
    "this environment can neither write dotfiles nor run a bootstrap script: it was"
    " built with an older version of the platform; build it anew"
)

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Preparation(msgspec.Struct, frozen=True):
    """How the preparation went; an empty *failure* is success."""

    failure: str = ""


def read_preparation(folder: ContainerFolder) -> Preparation | None:
    """Read what the session says; None if it says nothing that can be read."""
    try:
        text = read_from_session(folder, folder.preparation.name)
        told = msgspec.json.decode(text, type=Preparation)
    except (OSError, msgspec.MsgspecError):
        return None
    return Preparation(clean_words(told.failure))


def read_from_session(folder: ContainerFolder, name: str) -> bytes:
    """Read the beginning of a file that the session's user may have written."""
    above = os.open(folder.run, _FOLDER)
    try:
        descriptor = os.open(name, _FILE, dir_fd=above)
    finally:
        os.close(above)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return b""
        return file.read(LONGEST)


def clean_words(words: str) -> str:
    """Make what a session says fit to be shown."""
    visible = "".join(c if c.isprintable() else " " for c in words)
    return visible.strip()[:REASON_LENGTH]


def find_omission(spec: ContainerSpec, folder: ContainerFolder) -> str:
    """Say what keeps a session that answers from counting as prepared.

    An environment that knows nothing of files and scripts would start without them,
    and nobody would notice.
    """
    if not spec.files and not spec.bootstrap.strip():
        return ""
    told = read_preparation(folder)
    return TOO_OLD if told is None else told.failure
