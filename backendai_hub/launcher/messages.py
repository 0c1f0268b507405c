"""What a supervisor tells whoever started it, in the same process or through a pipe."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from backendai_hub.launcher.bring_up import Ready
from backendai_hub.launcher.events import Event


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """Why the platform did not come up."""

    text: str
    detail: str = ""


class Happened(msgspec.Struct, frozen=True, kw_only=True, tag="event"):
    """Something happened to one of the processes."""

    event: Event


class Arrived(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """Everything answers; *joined* when another supervisor keeps it so."""

    ready: Ready
    joined: bool = False


Message = Failure | Happened | Arrived
Send = Callable[[Message], None]
