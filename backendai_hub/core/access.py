"""Who may do what: one table, one function, default no.

A credential is a *caller* (a role for people) and, for people, the *scopes* it
carries. Each action belongs to a *resource*; a caller's own rights on it need the
scope ``custom:backendai:<resource>``, and the rights of an administrator's role need
``custom:backendai:admin:<resource>`` besides. What runs inside a notebook holds a
token with the scopes of sessions and data only, so it never has more than its user's
rights on these.

What somebody may not see is *not found*, never *forbidden*: its existence is not
told.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from backendai_hub.core.nouns import NOUNS
from backendai_hub.core.tenancy import Role


class Caller(StrEnum):
    """What kind of credential a request carries."""

    ANONYMOUS = "anonymous"
    USER = "user"
    DOMAIN_ADMIN = "domain-admin"
    SUPERADMIN = "superadmin"
    MONITOR = "monitor"
    SPAWNER = "spawner"
    ROUTER = "router"
    AGENT = "agent"


PEOPLE: Final = frozenset(
    {Caller.USER, Caller.DOMAIN_ADMIN, Caller.SUPERADMIN, Caller.MONITOR}
)
CALLER_OF_ROLE: Final = {
    Role.USER: Caller.USER,
    Role.DOMAIN_ADMIN: Caller.DOMAIN_ADMIN,
    Role.SUPERADMIN: Caller.SUPERADMIN,
    Role.MONITOR: Caller.MONITOR,
}


class Resource(StrEnum):
    """What actions are about; the part of a scope that changes."""

    SESSIONS = "sessions"
    DATA = "data"
    ACCOUNT = "account"
    TENANCY = "tenancy"
    POLICIES = "policies"
    RESOURCES = "resources"
    IMAGES = "images"
    NODES = "nodes"
    AUDIT = "audit"


def user_scope(resource: Resource) -> str:
    """Name the scope of one's own rights on *resource*."""
    return f"custom:backendai:{resource}"


def admin_scope(resource: Resource) -> str:
    """Name the scope that a role's rights on *resource* need."""
    return f"custom:backendai:admin:{resource}"


USER_SCOPE: Final = "custom:backendai:user"
"""Stands for every scope of one's own rights."""
ADMIN_SCOPE: Final = "custom:backendai:admin"
"""Stands for every scope of a role's rights."""
USER_SCOPES: Final = frozenset(user_scope(r) for r in Resource)
ADMIN_SCOPES: Final = frozenset(admin_scope(r) for r in Resource)
SESSION_SCOPES: Final = frozenset(
    {user_scope(Resource.SESSIONS), user_scope(Resource.DATA)}
)
"""What the token of a user's server carries."""


def expand_scopes(held: frozenset[str] | set[str]) -> frozenset[str]:
    """Return *held* with what the two umbrella scopes stand for."""
    found = set(held)
    if USER_SCOPE in held:
        found |= USER_SCOPES
    if ADMIN_SCOPE in held:
        found |= ADMIN_SCOPES
    return frozenset(found)


class Action(StrEnum):
    """What routes do beside the common verbs of nouns."""

    READ_VERSION = "version:read"
    READ_SPEC = "spec:read"
    OPEN_CONSOLE = "console:open"
    READ_SELF = "self:read"
    READ_RESOURCES = "resources:read"
    CREATE_SESSION = "session:create"
    CHECK_SESSION = "session:check"
    READ_SESSION = "session:read"
    RENAME_SESSION = "session:rename"
    TERMINATE_SESSION = "session:terminate"
    PRIORITIZE_SESSION = "session:prioritize"
    HOLD_SESSION = "session:hold"
    RELEASE_SESSION = "session:release"
    READ_QUEUE = "queue:read"
    READ_SCHEDULE = "schedule:read"
    READ_EVENTS = "events:read"
    READ_LOG = "log:read"
    READ_SPAWNED = "spawned:read"
    READ_AGENTS = "agents:read"
    READ_AGENT_SUMMARIES = "agent-summary:read"
    UPDATE_AGENT = "agent:update"
    DRAIN_AGENT = "agent:drain"
    UNDRAIN_AGENT = "agent:undrain"
    FREEZE_GROUP = "resource-group:freeze"
    UNFREEZE_GROUP = "resource-group:unfreeze"
    VERIFY_ACCOUNT = "account:verify"
    CHECK_ACCOUNT = "account:check"
    CREATE_ACCOUNT = "account:create"
    READ_ACCOUNT = "account:read"
    RESET_PASSWORD = "account:reset"  # noqa: S105 - a name
    CHANGE_PASSWORD = "account:change"  # noqa: S105 - a name
    READ_MEMBERS = "members:read"
    CHANGE_MEMBERS = "members:update"
    ISSUE_SECRET = "keypair:issue"  # noqa: S105 - a name
    READ_DOTFILES = "dotfiles:read"
    CHANGE_DOTFILES = "dotfiles:update"
    CHANGE_TENANT_DOTFILES = "tenant-dotfiles:update"
    READ_SSH_KEY = "ssh-key:read"
    CHANGE_SSH_KEY = "ssh-key:update"
    READ_GROUP_ACCESS = "resource-group-access:read"
    CHANGE_GROUP_ACCESS = "resource-group-access:update"
    CHECK_PRESETS = "preset:check"
    RESCAN_IMAGES = "image:rescan"
    CHANGE_ALIASES = "image:alias"
    FORGET_IMAGE = "image:forget"
    UNTAG_IMAGE = "image:untag"
    INSTALL_IMAGE = "image:install"
    READ_INSTALLS = "image:installs"
    VERIFY_USAGE = "usage:verify"
    READ_SHARES = "shares:read"
    CHANGE_SHARES = "shares:update"
    READ_AUDIT = "audit:read"
    VERIFY_AUDIT = "audit:verify"
    START_LOGIN = "login:start"
    CONFIRM_LOGIN = "login:confirm"
    END_LOGINS = "login:end"
    READ_ROUTES = "routes:read"
    TRASH_FOLDER = "folder:trash"
    RESTORE_FOLDER = "folder:restore"
    PURGE_FOLDER = "folder:purge"
    CLONE_FOLDER = "folder:clone"
    INVITE_TO_FOLDER = "folder:invite"
    SHARE_FOLDER = "folder:share"
    LEAVE_FOLDER = "folder:leave"
    TRANSFER_FOLDER = "folder:transfer"
    READ_FOLDER_ACTIVITY = "folder-activity:read"
    READ_GUESTS = "folder-guest:read"
    READ_INVITATIONS = "invitation:read"
    ANSWER_INVITATION = "invitation:answer"
    READ_FOLDER_TASKS = "folder-task:read"
    CANCEL_FOLDER_TASK = "folder-task:cancel"
    READ_STORAGE_HOSTS = "storage-host:read"
    READ_REMAINS = "storage-remain:read"
    CHECK_STORAGE = "storage-remain:check"
    READ_QUOTA_SCOPES = "quota-scope:read"
    CHANGE_QUOTA_SCOPE = "quota-scope:update"
    LIST_FILES = "file:read"
    DOWNLOAD_FILE = "file:download"
    MAKE_DIRECTORY = "file:make-directory"
    MOVE_FILE = "file:move"
    COPY_FILE = "file:copy"
    TRASH_FILE = "file:trash"
    RESTORE_FILE = "file:restore"
    EMPTY_FILE_TRASH = "file:empty-trash"
    EXTRACT_FILE = "file:extract"
    WRITE_FILE = "file:write"
    CHECK_UPLOADS = "upload:check"
    READ_UPLOADS = "upload:read"
    UPLOAD_FILE = "file:upload"
    CONTINUE_UPLOAD = "upload:serve"
    END_UPLOAD = "upload:end"
    ENROLL_AGENT = "agent:enroll"
    SERVE_AGENT = "agent:serve"


class Reach(StrEnum):
    """Over which objects an action extends."""

    OWN = "own"
    DOMAIN = "domain"
    ALL = "all"


Rights = Mapping[Caller, Reach]
_C, _A, _R = Caller, Action, Resource
_OWN, _DOMAIN, _ALL = Reach.OWN, Reach.DOMAIN, Reach.ALL


def _rights(
    user: Reach | None = None,
    admin: Reach | None = None,
    superadmin: Reach | None = None,
    monitor: Reach | None = None,
    **others: Reach,
) -> Rights:
    people = {
        _C.USER: user,
        _C.DOMAIN_ADMIN: admin or user,
        _C.SUPERADMIN: superadmin,
        _C.MONITOR: monitor,
    }
    found = {c: r for c, r in people.items() if r is not None}
    return MappingProxyType({**found, **{Caller(c): r for c, r in others.items()}})


_ANYBODY: Final = MappingProxyType(dict.fromkeys(_C, _ALL))
_SESSION = _rights(_OWN, _DOMAIN, _ALL, spawner=_OWN)
_SESSION_READ = _rights(_OWN, _DOMAIN, _ALL, _ALL, spawner=_OWN)
_TENANT_READ = _rights(_OWN, _DOMAIN, _ALL, _ALL)
_TENANT_WRITE = _rights(None, _DOMAIN, _ALL)
_OWN_WRITE = _rights(_OWN, _DOMAIN, _ALL)
_SITE_READ = _rights(None, None, _ALL, _ALL)
_SITE_WRITE = _rights(None, None, _ALL)
_ALL_READ = _rights(_ALL, _ALL, _ALL, _ALL)
_POLICY_READ = _rights(_OWN, _ALL, _ALL, _ALL)

# noun: its resource, and who may read, create, update and purge it.
_NOUNS: Final = {
    "domain": (_R.TENANCY, _TENANT_READ, _SITE_WRITE, _TENANT_WRITE, _SITE_WRITE),
    "project": (_R.TENANCY, _TENANT_READ, _TENANT_WRITE, _TENANT_WRITE, _TENANT_WRITE),
    "user": (_R.TENANCY, _TENANT_READ, _TENANT_WRITE, _OWN_WRITE, _SITE_WRITE),
    "keypair": (_R.ACCOUNT, _TENANT_READ, _OWN_WRITE, _OWN_WRITE, _OWN_WRITE),
    "keypair-policy": (
        _R.POLICIES,
        _POLICY_READ,
        _SITE_WRITE,
        _SITE_WRITE,
        _SITE_WRITE,
    ),
    "user-policy": (_R.POLICIES, _POLICY_READ, _SITE_WRITE, _SITE_WRITE, _SITE_WRITE),
    "project-policy": (
        _R.POLICIES,
        _POLICY_READ,
        _SITE_WRITE,
        _SITE_WRITE,
        _SITE_WRITE,
    ),
    "resource-group": (
        _R.RESOURCES,
        _TENANT_READ,
        _SITE_WRITE,
        _SITE_WRITE,
        _SITE_WRITE,
    ),
    "preset": (_R.RESOURCES, _TENANT_READ, _SITE_WRITE, _SITE_WRITE, _SITE_WRITE),
    "reservation": (
        _R.RESOURCES,
        _SITE_READ,
        _SITE_WRITE,
        _SITE_WRITE,
        _SITE_WRITE,
    ),
    "slot-type": (_R.RESOURCES, _ALL_READ, _SITE_WRITE, _SITE_WRITE, _SITE_WRITE),
    "registry": (_R.IMAGES, _SITE_READ, _SITE_WRITE, _SITE_WRITE, _SITE_WRITE),
    "image": (_R.IMAGES, _TENANT_READ, _SITE_WRITE, _SITE_WRITE, _SITE_WRITE),
    # JupyterHub's page offers people the folders that they can have in a session.
    "folder": (
        _R.DATA,
        _rights(_OWN, _DOMAIN, _ALL, _ALL, spawner=_OWN),
        _OWN_WRITE,
        _OWN_WRITE,
        _OWN_WRITE,
    ),
}

_OTHERS: Final[Mapping[str, tuple[Resource | None, Rights]]] = {
    _A.READ_VERSION: (None, _ANYBODY),
    _A.READ_SPEC: (None, _ANYBODY),
    _A.OPEN_CONSOLE: (_R.SESSIONS, _rights(_OWN, _DOMAIN, _ALL, _ALL)),
    _A.READ_SELF: (_R.SESSIONS, _SESSION_READ),
    _A.READ_RESOURCES: (_R.SESSIONS, _SESSION_READ),
    _A.CREATE_SESSION: (_R.SESSIONS, _rights(_OWN, _OWN, _OWN, spawner=_OWN)),
    _A.CHECK_SESSION: (_R.SESSIONS, _rights(_OWN, _OWN, _OWN, spawner=_OWN)),
    _A.READ_SESSION: (_R.SESSIONS, _SESSION_READ),
    _A.RENAME_SESSION: (_R.SESSIONS, _OWN_WRITE),
    _A.TERMINATE_SESSION: (_R.SESSIONS, _SESSION),
    _A.PRIORITIZE_SESSION: (_R.SESSIONS, _OWN_WRITE),
    _A.HOLD_SESSION: (_R.SESSIONS, _OWN_WRITE),
    _A.RELEASE_SESSION: (_R.SESSIONS, _OWN_WRITE),
    _A.READ_QUEUE: (_R.SESSIONS, _TENANT_READ),
    _A.READ_SCHEDULE: (_R.NODES, _SITE_READ),
    _A.READ_EVENTS: (_R.SESSIONS, _SESSION_READ),
    _A.READ_LOG: (_R.SESSIONS, _SESSION),
    _A.READ_SPAWNED: (None, _rights(spawner=_OWN)),
    _A.READ_AGENTS: (_R.NODES, _SITE_READ),
    _A.READ_AGENT_SUMMARIES: (_R.SESSIONS, _TENANT_READ),
    _A.UPDATE_AGENT: (_R.NODES, _SITE_WRITE),
    _A.DRAIN_AGENT: (_R.NODES, _SITE_WRITE),
    _A.UNDRAIN_AGENT: (_R.NODES, _SITE_WRITE),
    _A.FREEZE_GROUP: (_R.RESOURCES, _SITE_WRITE),
    _A.UNFREEZE_GROUP: (_R.RESOURCES, _SITE_WRITE),
    _A.VERIFY_ACCOUNT: (None, _rights(spawner=_ALL)),
    _A.CHECK_ACCOUNT: (None, _rights(spawner=_ALL)),
    _A.CREATE_ACCOUNT: (_R.TENANCY, _TENANT_WRITE),
    _A.READ_ACCOUNT: (_R.ACCOUNT, _TENANT_READ),
    _A.RESET_PASSWORD: (_R.TENANCY, _TENANT_WRITE),
    _A.CHANGE_PASSWORD: (_R.ACCOUNT, _rights(_OWN, _OWN, _OWN, _OWN)),
    _A.READ_MEMBERS: (_R.TENANCY, _TENANT_READ),
    _A.CHANGE_MEMBERS: (_R.TENANCY, _TENANT_WRITE),
    _A.ISSUE_SECRET: (_R.ACCOUNT, _OWN_WRITE),
    _A.READ_DOTFILES: (_R.ACCOUNT, _TENANT_READ),
    _A.CHANGE_DOTFILES: (_R.ACCOUNT, _OWN_WRITE),
    _A.CHANGE_TENANT_DOTFILES: (_R.TENANCY, _TENANT_WRITE),
    _A.READ_SSH_KEY: (_R.ACCOUNT, _rights(_OWN, _OWN, _OWN)),
    _A.CHANGE_SSH_KEY: (_R.ACCOUNT, _rights(_OWN, _OWN, _OWN)),
    _A.READ_GROUP_ACCESS: (_R.RESOURCES, _SITE_READ),
    _A.CHANGE_GROUP_ACCESS: (_R.RESOURCES, _SITE_WRITE),
    _A.CHECK_PRESETS: (_R.SESSIONS, _SESSION_READ),
    _A.RESCAN_IMAGES: (_R.IMAGES, _SITE_WRITE),
    _A.CHANGE_ALIASES: (_R.IMAGES, _SITE_WRITE),
    _A.FORGET_IMAGE: (_R.IMAGES, _rights(_OWN, _OWN, _ALL)),
    _A.UNTAG_IMAGE: (_R.IMAGES, _SITE_WRITE),
    _A.INSTALL_IMAGE: (_R.IMAGES, _SITE_WRITE),
    _A.READ_INSTALLS: (_R.IMAGES, _SITE_READ),
    _A.VERIFY_USAGE: (_R.RESOURCES, _SITE_READ),
    _A.READ_SHARES: (_R.RESOURCES, _rights(None, _DOMAIN, _ALL, _ALL)),
    _A.CHANGE_SHARES: (_R.RESOURCES, _TENANT_WRITE),
    _A.READ_AUDIT: (_R.AUDIT, _TENANT_READ),
    _A.VERIFY_AUDIT: (_R.AUDIT, _SITE_READ),
    _A.START_LOGIN: (None, _ANYBODY),
    _A.CONFIRM_LOGIN: (_R.ACCOUNT, _rights(_OWN, _OWN, _OWN, _OWN)),
    _A.END_LOGINS: (_R.ACCOUNT, _rights(_OWN, _OWN, _OWN, _OWN)),
    _A.READ_ROUTES: (None, _rights(router=_ALL)),
    _A.TRASH_FOLDER: (_R.DATA, _OWN_WRITE),
    _A.RESTORE_FOLDER: (_R.DATA, _OWN_WRITE),
    _A.PURGE_FOLDER: (_R.DATA, _OWN_WRITE),
    _A.CLONE_FOLDER: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.INVITE_TO_FOLDER: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.SHARE_FOLDER: (_R.DATA, _OWN_WRITE),
    _A.LEAVE_FOLDER: (_R.DATA, _rights(_OWN, _OWN, _ALL)),
    _A.TRANSFER_FOLDER: (_R.DATA, _SITE_WRITE),
    # Not the spawner's: people choose a folder on its page, and no more.
    _A.READ_FOLDER_ACTIVITY: (_R.DATA, _TENANT_READ),
    _A.READ_GUESTS: (_R.DATA, _TENANT_READ),
    _A.READ_INVITATIONS: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.ANSWER_INVITATION: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.READ_FOLDER_TASKS: (_R.DATA, _TENANT_READ),
    _A.CANCEL_FOLDER_TASK: (_R.DATA, _OWN_WRITE),
    _A.READ_STORAGE_HOSTS: (_R.DATA, _TENANT_READ),
    _A.READ_REMAINS: (_R.DATA, _SITE_READ),
    _A.CHECK_STORAGE: (_R.DATA, _SITE_WRITE),
    _A.READ_QUOTA_SCOPES: (_R.DATA, _TENANT_READ),
    _A.CHANGE_QUOTA_SCOPE: (_R.DATA, _SITE_WRITE),
    # What one may do inside a folder follows from the folder, not from a role.
    _A.LIST_FILES: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.DOWNLOAD_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.MAKE_DIRECTORY: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.MOVE_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.COPY_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.TRASH_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.RESTORE_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.EMPTY_FILE_TRASH: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.EXTRACT_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.WRITE_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.CHECK_UPLOADS: (None, _ANYBODY),
    _A.READ_UPLOADS: (_R.DATA, _OWN_WRITE),
    _A.UPLOAD_FILE: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.CONTINUE_UPLOAD: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.END_UPLOAD: (_R.DATA, _rights(_OWN, _OWN, _OWN)),
    _A.ENROLL_AGENT: (None, _rights(anonymous=_OWN, agent=_OWN)),
    _A.SERVE_AGENT: (None, _rights(agent=_OWN)),
}


def _table() -> dict[str, tuple[Resource | None, Rights]]:
    table = {str(action): entry for action, entry in _OTHERS.items()}
    for noun in NOUNS:
        resource, *rights = _NOUNS[noun.name]
        for verb, who in zip(
            ("read", "create", "update", "purge"), rights, strict=True
        ):
            if verb in noun.verbs:
                table[f"{noun.name}:{verb}"] = (resource, who)
    return table


_TABLE: Final = _table()
MATRIX: Final[Mapping[str, Rights]] = MappingProxyType(
    {action: rights for action, (_, rights) in _TABLE.items()}
)
"""A caller that is not named for an action may not do it."""
RESOURCE_OF: Final[Mapping[str, Resource | None]] = MappingProxyType(
    {action: resource for action, (resource, _) in _TABLE.items()}
)
"""Which scope an action needs; None: none, the credential itself is enough."""


def may_ever(role: Role, action: str) -> bool:
    """Tell whether people of *role* may do *action* to anything at all."""
    return CALLER_OF_ROLE[role] in MATRIX.get(action, {})


def is_for_anybody(action: str) -> bool:
    """Tell whether anybody at all may do *action*, whatever it is done to."""
    return MATRIX.get(action) == _ANYBODY


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, and with what kind of credential.

    ``name`` is the user (for the spawner, the user it acts for), or the agent's id;
    ``id`` is that user's id once it is known here. ``holds`` are the ids of what counts
    as theirs: themselves, their domain, projects, policies and resource groups.
    ``acted_as`` is the user for whom an administrator acts, if one does: the rights are
    then that user's.
    """

    caller: Caller
    name: str = ""
    id: str = ""
    role: Role = Role.USER
    domain_id: str = ""
    holds: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    credential: str = ""
    keypair_id: str | None = None
    acted_as: str = ""


class Target(msgspec.Struct, frozen=True):
    """What an action is done to: whose it is, and in which domain."""

    owner_id: str | None = None
    domain_id: str | None = None


def reach(principal: Principal, action: str) -> Reach | None:
    """Tell over which objects *principal* may do *action*; None means none."""
    rights = MATRIX.get(action, {})
    if principal.caller not in PEOPLE:
        return rights.get(principal.caller)
    resource = RESOURCE_OF.get(action)
    if resource is None or admin_scope(resource) in principal.scopes:
        return rights.get(principal.caller)
    if user_scope(resource) in principal.scopes and principal.caller in rights:
        # Without the administrator's scope a role is a plain user's; but who may not
        # do something at all (a monitor changes nothing) may not do it so, either.
        return rights.get(Caller.USER)
    return None


def can(principal: Principal, action: str, target: Target | None = None) -> bool:
    """Tell whether *principal* may do *action* to *target*.

    Without a target: whether there is anything at all they may do it to.
    """
    extent = reach(principal, action)
    if extent is None:
        return False
    if extent is Reach.ALL or target is None:
        return True
    if target.owner_id is not None and target.owner_id in principal.holds:
        return True
    return (
        extent is Reach.DOMAIN
        and target.domain_id is not None
        and target.domain_id == principal.domain_id
    )
