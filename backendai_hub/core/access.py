"""Who may do what: one table, one function, default no.

Handlers name the *action*; lists and streams are filtered by the same function's
answer for the caller. What belongs to somebody else is *not found*, never
*forbidden*: its existence is not told.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from backendai_hub.core.tenancy import Role


class Caller(StrEnum):
    """What kind of credential a request carries."""

    ANONYMOUS = "anonymous"
    USER = "user"
    SUPERADMIN = "superadmin"
    SPAWNER = "spawner"
    ROUTER = "router"
    AGENT = "agent"


class Action(StrEnum):
    """Everything a route may do."""

    READ_VERSION = "version:read"
    READ_SPEC = "spec:read"
    OPEN_CONSOLE = "console:open"
    READ_SELF = "self:read"
    READ_RESOURCES = "resources:read"
    CREATE_SESSION = "session:create"
    READ_SESSION = "session:read"
    TERMINATE_SESSION = "session:terminate"
    READ_EVENTS = "events:read"
    READ_SPAWNED = "spawned:read"
    READ_AGENTS = "agents:read"
    VERIFY_ACCOUNT = "account:verify"
    CREATE_ACCOUNT = "account:create"
    READ_ROUTES = "routes:read"
    ENROLL_AGENT = "agent:enroll"
    SERVE_AGENT = "agent:serve"


class Reach(StrEnum):
    """Over which objects an action extends."""

    OWN = "own"
    ALL = "all"


_C, _A = Caller, Action
_PEOPLE_OWN = {_C.USER: Reach.OWN, _C.SUPERADMIN: Reach.ALL, _C.SPAWNER: Reach.OWN}
_ANYBODY = dict.fromkeys(_C, Reach.ALL)

MATRIX: Final[Mapping[Action, Mapping[Caller, Reach]]] = MappingProxyType(
    {
        _A.READ_VERSION: _ANYBODY,
        _A.READ_SPEC: _ANYBODY,
        _A.OPEN_CONSOLE: {_C.USER: Reach.OWN, _C.SUPERADMIN: Reach.ALL},
        _A.READ_SELF: _PEOPLE_OWN,
        _A.READ_RESOURCES: _PEOPLE_OWN,
        _A.CREATE_SESSION: _PEOPLE_OWN,
        _A.READ_SESSION: _PEOPLE_OWN,
        _A.TERMINATE_SESSION: _PEOPLE_OWN,
        _A.READ_EVENTS: _PEOPLE_OWN,
        _A.READ_SPAWNED: {_C.SPAWNER: Reach.OWN},
        _A.READ_AGENTS: {_C.SUPERADMIN: Reach.ALL},
        _A.VERIFY_ACCOUNT: {_C.SPAWNER: Reach.ALL},
        _A.CREATE_ACCOUNT: {_C.SUPERADMIN: Reach.ALL},
        _A.READ_ROUTES: {_C.ROUTER: Reach.ALL},
        _A.ENROLL_AGENT: {_C.ANONYMOUS: Reach.OWN, _C.AGENT: Reach.OWN},
        _A.SERVE_AGENT: {_C.AGENT: Reach.OWN},
    }
)
"""A caller that is not named for an action may not do it."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, and with what kind of credential.

    ``name`` is the user (for the spawner, the user it acts for), or the agent's id.
    ``id`` is that user's id once it is known here.
    """

    caller: Caller
    name: str = ""
    id: str = ""
    role: Role = Role.USER


def reach(principal: Principal, action: Action) -> Reach | None:
    """Tell over which objects *principal* may do *action*; None means none."""
    return MATRIX.get(action, {}).get(principal.caller)


def can(principal: Principal, action: Action, owner_id: str | None = None) -> bool:
    """Tell whether *principal* may do *action* to an object of *owner_id*."""
    extent = reach(principal, action)
    if extent is None:
        return False
    return extent is Reach.ALL or owner_id is None or owner_id == principal.id
