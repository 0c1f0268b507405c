"""Password accounts, as the API tells of them.

Here and not with the verbs, so that whoever only reads an answer, as the command
``backendai`` does, need not import the database for it.
"""

from __future__ import annotations

import msgspec


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An account's one-time password: shown here and never again."""

    name: str
    password: str
