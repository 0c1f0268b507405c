"""Routes about tenants beyond the common verbs: members, dotfiles, secrets, limits."""

from __future__ import annotations

from typing import ClassVar

from backendai_hub.core.access import Action
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.groups import GroupAccess
from backendai_hub.core.tenancy import Keypair, Membership
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import dotfiles, group_access, members, presets
from backendai_hub.operations.secrets import issue_keypair_secret
from backendai_hub.operations.usage import UsageReport, verify_usage


class MembersHandler(APIHandler):
    """Who is in a project."""

    path = "api/projects/{reference}/members"

    @operation(Action.READ_MEMBERS)
    async def get(self, reference: str) -> list[Membership]:
        """List a project's members; plain members see themselves."""
        return await members.list_members(self.platform, self.principal, reference)

    @operation(Action.CHANGE_MEMBERS)
    async def post(
        self, reference: str, body: members.MembersRequest
    ) -> list[members.MemberResult]:
        """Add people to a project and remove others; each ends for itself."""
        return await members.change_members(
            self.platform, self.principal, reference, body
        )


class _DotfilesHandler(APIHandler):
    kind: ClassVar[str] = ""

    @operation(Action.READ_DOTFILES)
    async def get(self, reference: str) -> list[Dotfile]:
        """Read the dotfiles that sessions get from here."""
        return await dotfiles.read_dotfiles(
            self.platform, self.principal, self.kind, reference
        )


class _TenantDotfilesHandler(_DotfilesHandler):
    @operation(Action.CHANGE_TENANT_DOTFILES)
    async def put(
        self, reference: str, body: dotfiles.DotfilesRequest
    ) -> list[Dotfile]:
        """Replace the dotfiles that everybody's sessions get from here."""
        return await dotfiles.write_dotfiles(
            self.platform, self.principal, self.kind, reference, body
        )


class DomainDotfilesHandler(_TenantDotfilesHandler):
    """The dotfiles of a domain."""

    path = "api/domains/{reference}/dotfiles"
    kind = "domain"


class ProjectDotfilesHandler(_TenantDotfilesHandler):
    """The dotfiles of a project."""

    path = "api/projects/{reference}/dotfiles"
    kind = "project"


class KeypairDotfilesHandler(_DotfilesHandler):
    """The dotfiles of a keypair."""

    path = "api/keypairs/{reference}/dotfiles"
    kind = "keypair"

    @operation(Action.CHANGE_DOTFILES)
    async def put(
        self, reference: str, body: dotfiles.DotfilesRequest
    ) -> list[Dotfile]:
        """Replace the dotfiles that sessions get from here."""
        return await dotfiles.write_dotfiles(
            self.platform, self.principal, self.kind, reference, body
        )


class KeypairSecretHandler(APIHandler):
    """The secret of a keypair."""

    path = "api/keypairs/{reference}/secret"

    @operation(Action.ISSUE_SECRET)
    async def post(self, reference: str) -> Keypair:
        """Issue a new secret, shown this once; the old one is refused from now on."""
        return await issue_keypair_secret(self.platform, self.principal, reference)


class GroupAccessHandler(APIHandler):
    """Who may use a resource group."""

    path = "api/resource-groups/{reference}/access"

    @operation(Action.READ_GROUP_ACCESS)
    async def get(self, reference: str) -> list[GroupAccess]:
        """List the domains, projects and keypairs that may use a resource group."""
        return await group_access.list_access(self.platform, self.principal, reference)

    @operation(Action.CHANGE_GROUP_ACCESS)
    async def post(
        self, reference: str, body: group_access.GroupAccessRequest
    ) -> list[GroupAccess]:
        """Open a resource group to some and close it to others."""
        return await group_access.change_access(
            self.platform, self.principal, reference, body
        )


class PresetCheckHandler(APIHandler):
    """What could start now."""

    path = "api/presets/check"

    @operation(Action.CHECK_PRESETS, query=presets.PresetCheckQuery)
    async def get(self) -> presets.PresetCheck:
        """Say which presets could start now, and what is left of every limit."""
        return await presets.check_presets(
            self.platform,
            self.principal,
            self.require_user(),
            self.decode_query(presets.PresetCheckQuery),
        )


class UsageHandler(APIHandler):
    """The verifier of what is counted as used."""

    path = "api/usage/verify"

    @operation(Action.VERIFY_USAGE)
    async def get(self) -> UsageReport:
        """Compare what is counted as used with what really is; changes nothing."""
        return await verify_usage(self.platform)
