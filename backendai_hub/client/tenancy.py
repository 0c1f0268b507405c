"""The client's parts about tenants beyond the common verbs of nouns.

The service may say more than what stands here; what is not known is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from backendai_hub.api.sessions import LimitMeter
from backendai_hub.client.transport import Again, Transport, segment
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.groups import GroupAccess
from backendai_hub.core.tenancy import Keypair, Membership

AccessKind = Literal["domain", "project", "keypair"]
Memberships = list[Membership]
Dotfiles = list[Dotfile]
Accesses = list[GroupAccess]


class MemberResult(msgspec.Struct, frozen=True, kw_only=True):
    """How one of many ended; ``error`` says why, if not well."""

    user: str
    added: bool = False
    removed: bool = False
    error: str | None = None
    code: str | None = None


class CheckedPreset(msgspec.Struct, frozen=True, kw_only=True):
    """A preset, and whether a session of it could start now."""

    name: str
    resource_slots: dict[str, str] = {}
    shared_memory: str = "0"
    resource_group: str | None = None
    allocatable: bool = False
    reason: str = ""


class GroupRoom(msgspec.Struct, frozen=True, kw_only=True):
    """How much a resource group has."""

    name: str
    total: dict[str, str] = {}
    using: dict[str, str] = {}
    remaining: dict[str, str] = {}


class PresetCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and use of each scope, room in each group, and the presets."""

    project: str
    resource_group: str | None = None
    limits: list[LimitMeter] = []
    resource_groups: list[GroupRoom] = []
    presets: list[CheckedPreset] = []


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier of usage found; there is no drift if all is well."""

    compared: int
    drift: int
    breaches: list[str] = []


class Part:
    """A part of the client, which speaks for whom the client speaks."""

    def __init__(self, transport: Transport, act_for: str | None) -> None:
        self._transport = transport
        self._act_for = act_for


class Members(Part):
    """Who is in which project."""

    async def list(self, project: str) -> Memberships:
        """Return a project's members; plain members see themselves only."""
        return await self._transport.get(
            _below("projects", project, "members"), Memberships, act_for=self._act_for
        )

    async def change(
        self, project: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> Sequence[MemberResult]:
        """Add people to a project and remove others; each ends for itself."""
        return await self._transport.post(
            _below("projects", project, "members"),
            {"add": add, "remove": remove},
            tuple[MemberResult, ...],
            act_for=self._act_for,
        )


class DotfileStore(Part):
    """The files that sessions get from a domain, a project and a keypair."""

    async def read(self, kind: AccessKind, reference: str) -> Dotfiles:
        """Return what sessions get from there."""
        return await self._transport.get(
            _below(f"{kind}s", reference, "dotfiles"), Dotfiles, act_for=self._act_for
        )

    async def write(
        self, kind: AccessKind, reference: str, files: Sequence[Dotfile]
    ) -> Dotfiles:
        """Replace all that sessions get from there."""
        return await self._transport.put(
            _below(f"{kind}s", reference, "dotfiles"),
            {"files": files},
            Dotfiles,
            act_for=self._act_for,
        )


class GroupAccesses(Part):
    """To whom resource groups are open."""

    async def list(self, group: str) -> Accesses:
        """Return who may use a resource group."""
        return await self._transport.get(
            _below("resource-groups", group, "access"), Accesses, act_for=self._act_for
        )

    async def change(
        self,
        group: str,
        *,
        allow: Sequence[tuple[AccessKind, str]] = (),
        deny: Sequence[tuple[AccessKind, str]] = (),
    ) -> Accesses:
        """Open a group to some, and close it to others; all of it or nothing."""
        return await self._transport.post(
            _below("resource-groups", group, "access"),
            {
                "allow": [{"kind": kind, "name": name} for kind, name in allow],
                "deny": [{"kind": kind, "name": name} for kind, name in deny],
            },
            Accesses,
            act_for=self._act_for,
        )


class Keys(Part):
    """What keypairs can do beyond the common verbs."""

    async def issue(self, access_key: str) -> Keypair:
        """Give a keypair a new secret, shown this once; the old one is void."""
        return await self._transport.post(
            _below("keypairs", access_key, "secret"),
            {},
            Keypair,
            act_for=self._act_for,
            again=Again.UNDONE,
        )


class Limits(Part):
    """What could start now, and what is counted."""

    async def check_presets(
        self, *, project: str | None = None, resource_group: str | None = None
    ) -> PresetCheck:
        """Say which presets could start now, and what is left of every limit."""
        return await self._transport.get(
            "presets/check",
            PresetCheck,
            params={"project": project, "resource_group": resource_group},
            act_for=self._act_for,
        )

    async def verify_usage(self) -> UsageReport:
        """Compare what is counted as used with what really is; changes nothing."""
        return await self._transport.get(
            "usage/verify", UsageReport, act_for=self._act_for
        )


def _below(plural: str, reference: str, rest: str) -> str:
    return f"{plural}/{segment(reference)}/{rest}"
