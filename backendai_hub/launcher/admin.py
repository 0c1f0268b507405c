"""The first administrator: an account with a password that works once."""

from __future__ import annotations

import secrets
from typing import Final

import msgspec

from backendai_hub.launcher.files import write_private
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.state import State

_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""Without the ones that look alike."""


def make_password() -> str:
    """Return a password of four groups that a person can type: 80 bits."""
    groups = ["".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4)]
    return "-".join(groups)


def prepare_first_admin(folder: DataFolder, state: State) -> str | None:
    """Make the one-time password of the first administrator, if it is still due.

    Only its hash is written; the password itself is returned, to be shown once.
    Returns None when it has been shown in an earlier run.
    """
    if state.password_shown:
        return None
    # Imported here because it is needed once in the life of an installation.
    from argon2 import PasswordHasher  # noqa: PLC0415

    password = make_password()
    content = {"name": state.admin, "password_hash": PasswordHasher().hash(password)}
    write_private(folder.key("first-admin.json"), msgspec.json.encode(content))
    return password
