"""The client of the hub service's API."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from backendai_hub.api.sessions import Resources
from backendai_hub.client.accounts import Accounts
from backendai_hub.client.audit import Audit
from backendai_hub.client.backoff import Backoff
from backendai_hub.client.collection import Collection
from backendai_hub.client.credentials import Credential, KeypairLogin, Token
from backendai_hub.client.files import Files
from backendai_hub.client.folders import FolderVerbs, Storage
from backendai_hub.client.images import ImageVerbs
from backendai_hub.client.logins import Logins
from backendai_hub.client.nodes import Nodes
from backendai_hub.client.schedule import Schedule
from backendai_hub.client.sessions import Sessions
from backendai_hub.client.shares import Shares
from backendai_hub.client.ssh_keys import SSHKeys
from backendai_hub.client.tenancy import (
    DotfileStore,
    GroupAccesses,
    Keys,
    Limits,
    Members,
)
from backendai_hub.client.transport import Transport
from backendai_hub.core.groups import ResourceGroup, ResourcePreset, ResourceSlotType
from backendai_hub.core.images import ImageRecord, Registry
from backendai_hub.core.nouns import noun_of
from backendai_hub.core.operators import Reservation
from backendai_hub.core.policies import KeypairPolicy, ProjectPolicy, UserPolicy
from backendai_hub.core.tenancy import Domain, Keypair, Project, User
from backendai_hub.core.vfolders import Folder


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who the service takes the caller for."""

    name: str
    roles: list[str] = []
    domain: str | None = None
    project: str | None = None
    projects: list[str] = []


class HubClient:
    """Talk to the hub service, asynchronously.

    ``url`` is the service's address, with or without ``api/`` at its end. What is
    shown is a keypair (``access_key`` and ``secret_key``), or a token of JupyterHub,
    as text or as the path of a file, which is read again when the service does not
    take the token any more. Errors are those of :mod:`backendai_hub.core.errors`; an
    unreachable service is an ``UnavailableError`` after a few tries.
    """

    def __init__(  # noqa: PLR0913 - each way to say who asks is usual
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout: float = 30.0,
        backoff: Backoff | None = None,
    ) -> None:
        shown: Credential
        if access_key is None and secret_key is None:
            shown = Token(token, file=Path(token_file) if token_file else None)
        elif access_key and secret_key and token is None and token_file is None:
            shown = KeypairLogin(access_key, secret_key)
        else:
            raise ValueError("give an access key with its secret key, or a token")
        self._speak(
            Transport(url, shown, tls=tls, timeout=timeout, backoff=backoff), None
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Make the client that the environment describes.

        A keypair for scripts (``BACKENDAI_ENDPOINT``, ``BACKENDAI_ACCESS_KEY``,
        ``BACKENDAI_SECRET_KEY``) comes before what a session has by itself.
        """
        key, secret = (environ.get(f"BACKENDAI_{n}_KEY") for n in ("ACCESS", "SECRET"))
        endpoint = environ.get("BACKENDAI_ENDPOINT") or environ.get("BACKENDAI_API_URL")
        if key and secret and endpoint:
            return cls(endpoint, access_key=key, secret_key=secret)
        try:
            url = environ["BACKENDAI_API_URL"]
            token = environ["JUPYTERHUB_API_TOKEN"]
        except KeyError as missing:
            raise LookupError(
                f"{missing.args[0]} is not set: this is not inside a Backend.AI"
                " session; set BACKENDAI_ENDPOINT, BACKENDAI_ACCESS_KEY and"
                " BACKENDAI_SECRET_KEY, or give the service's address and a token"
            ) from None
        return cls(url, token=token)

    def acting_for(self, user: str) -> Self:
        """Return a client that speaks for *user* over the same connections.

        Only tokens of services trusted with it (the spawner's) may.
        """
        other = type(self).__new__(type(self))
        other._speak(self._transport, user)  # noqa: SLF001 - one of our own kind
        return other

    def _speak(self, transport: Transport, act_for: str | None) -> None:
        self._transport = transport
        self._act_for = act_for
        self.sessions = Sessions(transport, act_for)
        self.accounts = Accounts(transport)
        self.logins = Logins(transport)
        self.image_verbs = ImageVerbs(transport, act_for)
        self.folder_verbs = FolderVerbs(transport, act_for)
        self.storage = Storage(transport, act_for)
        self.nodes = Nodes(transport, act_for)
        self.schedule = Schedule(transport, act_for)
        self.audit = Audit(transport, act_for)
        self.members = Members(transport, act_for)
        self.dotfiles = DotfileStore(transport, act_for)
        self.ssh_keys = SSHKeys(transport, act_for)
        self.group_access = GroupAccesses(transport, act_for)
        self.shares = Shares(transport, act_for)
        self.keys = Keys(transport, act_for)
        self.limits = Limits(transport, act_for)
        self._make_collections(transport, act_for)

    def _make_collections(self, transport: Transport, act_for: str | None) -> None:
        def of(name: str) -> Any:
            return Collection(transport, act_for, noun_of(name))

        self.domains: Collection[Domain] = of("domain")
        self.projects: Collection[Project] = of("project")
        self.users: Collection[User] = of("user")
        self.keypairs: Collection[Keypair] = of("keypair")
        self.keypair_policies: Collection[KeypairPolicy] = of("keypair-policy")
        self.user_policies: Collection[UserPolicy] = of("user-policy")
        self.project_policies: Collection[ProjectPolicy] = of("project-policy")
        self.resource_groups: Collection[ResourceGroup] = of("resource-group")
        self.presets: Collection[ResourcePreset] = of("preset")
        self.reservations: Collection[Reservation] = of("reservation")
        self.slot_types: Collection[ResourceSlotType] = of("slot-type")
        self.registries: Collection[Registry] = of("registry")
        self.images: Collection[ImageRecord] = of("image")
        self.folders: Collection[Folder] = of("folder")

    def nouns(self, name: str) -> Collection[Any]:
        """Return the part about the noun called *name*, such as ``user-policy``."""
        found: Collection[Any] = getattr(self, noun_of(name).plural.replace("-", "_"))
        return found

    def files(self, folder: str) -> Files:
        """Return the part about the files in a folder, which has this name or id."""
        return Files(self._transport, self._act_for, folder)

    async def me(self) -> Caller:
        """Return who the service takes the caller for."""
        return await self._transport.get("me", Caller, act_for=self._act_for)

    async def resources(self) -> Resources:
        """Return the environments to choose from, and the room there is now."""
        return await self._transport.get("resources", Resources, act_for=self._act_for)

    async def version(self) -> str:
        """Return the service's version; needs no token."""
        answer = await self._transport.get("", dict[str, Any])
        return str(answer["version"])

    async def close(self) -> None:
        """Close the connections, also those of clients made by ``acting_for``."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()
