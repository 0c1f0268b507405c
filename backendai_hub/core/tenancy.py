"""Who people are here: domains, projects, users and their roles."""

from __future__ import annotations

from enum import StrEnum

import msgspec

DEFAULT_DOMAIN = "default"
DEFAULT_PROJECT = "default"


class Role(StrEnum):
    """What a user may do beyond their own things."""

    USER = "user"
    SUPERADMIN = "superadmin"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person JupyterHub has logged in, placed in a domain and a project."""

    id: str
    name: str
    role: Role
    domain_id: str
    domain: str
    project_id: str
    project: str


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller may know of themselves."""

    name: str
    roles: list[Role]
    domain: str
    project: str
