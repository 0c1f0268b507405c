"""Acts: who did what to which object, and how it ended.

One row for every change, refusal and login, chained by a keyed hash so that what has
been written cannot be altered, removed or reordered without being seen.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation did to one object; the request it came with is added to it.

    ``before`` and ``after`` hold the fields that changed, as the API shows them.
    Secrets are never among them.
    """

    action: str
    object_kind: str
    object_name: str
    object_id: str | None = None
    domain_id: str | None = None
    owner_id: str | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
