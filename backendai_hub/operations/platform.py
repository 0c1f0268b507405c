"""What every operation needs: the database, secrets, identities, and settings."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken

from backendai_hub.core.directory import GroupRule
from backendai_hub.core.errors import HubError
from backendai_hub.core.idleness import ActivityWatch
from backendai_hub.core.ids import make_id
from backendai_hub.db.engine import Database
from backendai_hub.operations.authority import Authority
from backendai_hub.operations.guesses import GuessLimiter
from backendai_hub.operations.policy_faults import PolicyFaults
from backendai_hub.operations.refusals import RefusalLimiter
from backendai_hub.operations.underway import Underway
from backendai_hub.operations.usage_book import UsageBook
from backendai_hub.storage.hosts import StorageHosts


def new_id() -> str:
    """Make an id from the wall clock and the system's entropy."""
    return make_id(time.time_ns() // 1_000_000, os.urandom(10))


class SecretLostError(HubError):
    """A stored secret cannot be read with the present key."""

    code = "secret-lost"
    title = "A stored secret cannot be read"


class Vault:
    """Encrypts what sessions are born with; the key lives outside the database."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def seal(self, document: Any) -> bytes:
        """Encrypt *document*."""
        return self._fernet.encrypt(msgspec.msgpack.encode(document))

    def open(self, ciphertext: bytes) -> Any:
        """Decrypt a document; raises :class:`SecretLostError` with another key."""
        try:
            return msgspec.msgpack.decode(self._fernet.decrypt(ciphertext))
        except InvalidToken as error:
            raise SecretLostError(
                "the database key does not open this session's secret; put the"
                " key back with which the database was written"
            ) from error


class KeyUses:
    """How often keypairs have been used since that was last written down."""

    def __init__(self) -> None:
        self._uses: dict[str, tuple[int, datetime]] = {}

    def note(self, keypair_id: str, moment: datetime, count: int = 1) -> None:
        """Note that a keypair has been used."""
        known, last = self._uses.get(keypair_id, (0, moment))
        self._uses[keypair_id] = (known + count, max(last, moment))

    def take(self) -> dict[str, tuple[int, datetime]]:
        """Return what has been noted, and begin anew."""
        taken, self._uses = self._uses, {}
        return taken

    def put_back(self, uses: Mapping[str, tuple[int, datetime]]) -> None:
        """Note again what could not be written down."""
        for keypair_id, (count, last) in uses.items():
            self.note(keypair_id, last, count)


@dataclass(frozen=True)
class Settings:
    """The parts of the configuration that operations follow."""

    hub_base: str = "/"
    default_cpu: int = 1000
    default_memory: int = 1 << 30
    quotas: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    superadmins: frozenset[str] = frozenset()
    join_domain: str = ""
    """The domain new users join; empty: the default one."""
    join_project: str = "default"
    """The project of their domain that new users join, if there is one."""
    group_rules: tuple[GroupRule, ...] = ()
    """What JupyterHub's groups give."""
    hub_admins_are_superadmins: bool = False
    max_password_days: int = 0
    """After so many days a password has to be changed; 0: never."""
    max_images_per_rescan: int = 10_000
    """Tags that are read of one registry at most."""
    max_live_sessions: int = 100
    """Sessions of one user that wait or run at once; more are refused."""
    idle_timeout: int = 0
    """Seconds without use that end a session whose policy leaves it to the site; 0:
    never."""
    audit_heads: str = ""
    """The file that keeps heads of the audit outside of the database; empty: none."""
    heartbeat_seconds: float = 5.0
    suspect_seconds: float = 15.0
    lost_seconds: float = 40.0
    lease_seconds: float = 240.0
    """What may run elsewhere stops by itself when its node was not heard so long."""
    lease_margin_seconds: float = 60.0
    """So much later it is taken for stopped, and may start again."""
    folder_owners: frozenset[str] = frozenset({"user", "project"})
    """Whose virtual folders can be: a user's, a project's, or either."""
    hide_agents: bool = False
    """Whether only administrators see nodes."""
    storage_shows_use: bool = True
    """Whether everybody sees how full storage hosts are, in percent."""
    max_upload_size: int = 0
    """Bytes that one uploaded file may have; 0: as many as there is room for."""
    file_trash_days: int = 30
    """Files that were thrown away so long ago are removed for good; 0: never."""
    storage_grace: timedelta = timedelta(days=1)
    """What belongs to nobody on a storage host is kept for so long."""
    upload_stall_seconds: float = 60.0
    """An upload of which nothing comes for so long is cut off."""
    folder_trash_days: int = 30
    """Folders that were thrown away so long ago are removed for good; 0: never."""


@dataclass(frozen=True)
class Platform:
    """One running control plane."""

    database: Database
    vault: Vault
    authority: Authority
    settings: Settings = field(default_factory=Settings)
    new_id: Callable[[], str] = new_id
    actors: dict[str, Any] = field(default_factory=dict)
    """What is known of people who asked lately; emptied whenever tenancy changes."""
    rescans: dict[str, Any] = field(default_factory=dict)
    """The latest reading of each registry, by its id."""
    refusals: RefusalLimiter = field(default_factory=RefusalLimiter)
    """How many refusals have been written into the audit lately."""
    checking_audit: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the audit is checked, which takes a while: once at a time."""
    guesses: GuessLimiter = field(default_factory=GuessLimiter)
    """Attempts at passwords that were wrong."""
    told: set[str] = field(default_factory=set)
    """What the log has been told once."""
    key_uses: KeyUses = field(default_factory=KeyUses)
    activity: ActivityWatch = field(default_factory=ActivityWatch)
    """What JupyterHub says of the use of sessions' servers."""
    usage: UsageBook = field(default_factory=UsageBook)
    """What nodes have measured in the last minutes."""
    storage: StorageHosts = field(default_factory=StorageHosts)
    """Where virtual folders lie; without a host everything is refused in words."""
    policy_faults: PolicyFaults = field(default_factory=PolicyFaults)
    """What is wrong with the sequencers and placements of resource groups."""
    folder_work: Underway = field(default_factory=Underway)
    """What is done to folders on disk at this moment."""
