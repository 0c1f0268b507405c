"""Reading and ending sessions, for people and for the spawner."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.explanations import Why
from backendai_hub.api.sessions import (
    EventMessage,
    HistoryPage,
    SessionPage,
    ShownSession,
    SpawnedSession,
)
from backendai_hub.core.access import Action, Principal, Reach, Target, can, reach
from backendai_hub.core.audit import Act
from backendai_hub.core.errors import (
    ForbiddenError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
)
from backendai_hub.core.events import EventKind
from backendai_hub.core.ids import is_id
from backendai_hub.core.sessions import (
    QUEUED,
    TERMINAL,
    WAITING_WORDS,
    Session,
    SessionStatus,
    SessionType,
    tell_stopped,
    tell_stopped_by_force,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.core.times import format_time
from backendai_hub.db import attempts, history, session_lists, session_views, sessions
from backendai_hub.db.explanations import load_explanations, load_places
from backendai_hub.db.history import EventRecord, Listener
from backendai_hub.db.session_mounts import load_mounts
from backendai_hub.db.session_views import SessionFilter
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.cluster_places import describe_network
from backendai_hub.operations.idleness import find_session_idle_end
from backendai_hub.operations.lifecycle import move
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.session_order import (
    check_order,
    decode_cursor,
    encode_cursor,
)

MOST_PER_PAGE = 200
_GROUPS = {
    "live": [s for s in SessionStatus if s not in TERMINAL],
    "ended": sorted(TERMINAL),
}


def _statuses(word: str | None) -> list[SessionStatus] | None:
    if word is None or word == "all":
        return None
    if word in _GROUPS:
        return _GROUPS[word]
    try:
        return [SessionStatus(word.upper())]
    except ValueError:
        choices = ", ".join(["all", "live", "ended", *SessionStatus])
        raise InvalidRequestError(
            f"status: there is no {word[:32]!r}; use one of {choices}"
        ) from None


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a list of sessions; what is left out narrows nothing."""

    status: str | None = None
    owner: str | None = None
    search: str | None = None
    type: str | None = None
    project: str | None = None
    resource_group: str | None = None
    agent: str | None = None
    limit: int = 20
    after: str | None = None
    order: str = "-created_at"


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a session's history: what comes behind number ``after``."""

    after: int = 0
    limit: int = 50


class Sight(msgspec.Struct, frozen=True):
    """Everything about who asks that decides which sessions a list shows them."""

    extent: Reach | None
    user_id: str
    domain_id: str


def sight_of(principal: Principal) -> Sight:
    """Tell how far *principal* sees."""
    extent = reach(principal, Action.READ_SESSION)
    return Sight(extent, principal.id, principal.domain_id)


async def list_sessions(
    platform: Platform, principal: Principal, query: ListQuery
) -> SessionPage:
    """Return one page of the sessions the caller may see.

    ``owner`` may be a user's name, or ``*`` for everybody's where that is allowed;
    without it, one's own.
    """
    return await read_page(platform, choose_sessions(sight_of(principal), query), query)


def choose_sessions(sight: Sight, query: ListQuery) -> SessionFilter:
    """Tell which sessions *query* is about; what nobody can ask for is refused."""
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    check_order(query.order)
    own = query.owner is None or sight.extent in {None, Reach.OWN}
    in_domain = sight.extent is Reach.DOMAIN and not own
    return SessionFilter(
        owner_id=sight.user_id if own else None,
        domain_id=sight.domain_id if in_domain else None,
        owner_name=None if query.owner in {None, "*"} else query.owner,
        statuses=_statuses(query.status),
        search=_clean(query.search),
        kind=_type(query.type),
        project=_clean(query.project),
        resource_group=_clean(query.resource_group),
        agent=_clean(query.agent),
        order=query.order,
    )


def _clean(word: str | None) -> str | None:
    """Take away what no name has, and what databases refuse."""
    return (word or "").replace("\0", "").strip() or None


def _type(word: str | None) -> SessionType | None:
    if not word:
        return None
    try:
        return SessionType(word)
    except ValueError:
        choices = ", ".join(SessionType)
        raise InvalidRequestError(
            f"type: there is no {word[:32]!r}; use one of {choices}"
        ) from None


async def read_page(
    platform: Platform, wanted: SessionFilter, query: ListQuery
) -> SessionPage:
    """Read the page that *query* asks for of the sessions in *wanted*."""
    after = None if query.after is None else decode_cursor(query.order, query.after)
    async with platform.database.glance() as connection:
        found = await session_views.list_sessions(
            connection, wanted, limit=query.limit + 1, after=after
        )
        page = found[: query.limit]
        waiting = [row.id for row in page if row.status is SessionStatus.PENDING]
        places = await load_places(connection, waiting)
    more = len(found) > query.limit
    last = encode_cursor(query.order, page[-1]) if more else None
    return SessionPage(items=page, next=last, places=places)


async def get_session(
    platform: Platform, principal: Principal, session_id: str
) -> ShownSession:
    """Return one session the caller may see; others' are not found."""
    async with platform.database.read() as connection:
        await get_allowed(connection, principal, session_id, Action.READ_SESSION)
        shown = await session_views.get_session(connection, session_id)
        containers = await session_views.list_cluster(connection, [session_id])
        shown = msgspec.structs.replace(
            shown, containers=containers.get(session_id, [])
        )
        network = await describe_network(connection, shown)
        why = await load_explanations(connection, [session_id])
        mounts = await load_mounts(connection, [session_id])
        ends = None
        if shown.status is SessionStatus.RUNNING:
            ends = await find_session_idle_end(platform, connection, session_id)
    shown = msgspec.structs.replace(
        shown,
        cluster_network=network,
        idle_expires_at=format_time(ends),
    )
    return ShownSession(
        **asdict(shown),
        why=why.get(session_id),
        mounts=mounts.get(session_id, []),
    )


async def list_history(
    platform: Platform, principal: Principal, session_id: str, query: HistoryQuery
) -> HistoryPage:
    """Return one page of what the scheduler has tried for a session, oldest first."""
    if not 1 <= query.limit <= MOST_PER_PAGE:
        raise InvalidRequestError(
            f"limit: {query.limit} is not between 1 and {MOST_PER_PAGE}"
        )
    if not 0 <= query.after < 1 << 63:
        raise MalformedRequestError("after: not a number of this list")
    async with platform.database.read() as connection:
        await get_allowed(connection, principal, session_id, Action.READ_SESSION)
        found = await attempts.list_attempts(
            connection, session_id, after=query.after, limit=query.limit + 1
        )
    page = found[: query.limit]
    more = len(found) > query.limit
    return HistoryPage(items=page, next=page[-1].id if more else None)


async def get_allowed(
    connection: AsyncConnection,
    principal: Principal,
    session_id: str,
    action: Action,
    *,
    lock: bool = False,
) -> SessionRecord:
    """Read a session the caller may do this to; others' are not found."""
    missing = NotFoundError(f"there is no session {session_id[:64]!r}")
    if not is_id(session_id):
        raise missing
    try:
        record = await sessions.get_record(connection, session_id, lock=lock)
    except NotFoundError:
        raise missing from None
    target = Target(record.owner_id, record.domain_id)
    if not can(principal, Action.READ_SESSION, target):
        raise missing
    if not can(principal, action, target):
        raise ForbiddenError("you may see this session, but not do this to it")
    return record


async def terminate_session(
    platform: Platform, principal: Principal, session_id: str, *, force: bool = False
) -> Session:
    """End a session: gracefully, or with ``force`` without waiting for its node.

    Ending an ended session changes nothing. A forced end frees the slots at once,
    and the node removes what is left when it answers again.
    """
    async with platform.database.transaction() as tx:
        record = await get_allowed(
            tx.connection, principal, session_id, Action.TERMINATE_SESSION, lock=True
        )
        tx.audit(_end_act(record, force=force))
        if record.status in QUEUED:
            await move(
                tx,
                record,
                SessionStatus.CANCELLED,
                f"cancelled by {principal.name} before it started",
                actor=principal.name,
            )
        elif record.status not in TERMINAL and force:
            await move(
                tx,
                record,
                SessionStatus.TERMINATED,
                tell_stopped_by_force(principal.name),
                actor=principal.name,
            )
        elif record.status not in TERMINAL | {SessionStatus.TERMINATING}:
            await move(
                tx,
                record,
                SessionStatus.TERMINATING,
                f"{tell_stopped(principal.name)};"
                f" {WAITING_WORDS[SessionStatus.TERMINATING]}",
                actor=principal.name,
            )
    async with platform.database.read() as connection:
        return await session_views.get_session(connection, session_id)


def _end_act(record: SessionRecord, *, force: bool) -> Act:
    return Act(
        action=Action.TERMINATE_SESSION,
        object_kind="session",
        object_id=record.id,
        object_name=record.name,
        domain_id=record.domain_id,
        owner_id=record.owner_id,
        before={"status": str(record.status)},
        after={"force": force},
    )


# --- for the spawner -------------------------------------------------------------


async def get_spawned(
    platform: Platform,
    user: Actor,
    *,
    server: str | None = None,
    key: str | None = None,
) -> SpawnedSession:
    """Return the user's live session on a Hub server, or the one a key has made."""
    async with platform.database.read() as connection:
        if server is not None:
            record = await session_lists.find_live(connection, user.id, server=server)
        else:
            record = await session_lists.find_by_key(connection, user.id, key or "")
        if record is None:
            raise NotFoundError("no session is attached there")
        shown = await session_views.get_session(connection, record.id)
        secrets = await sessions.get_secrets(connection, [record.id])
    token = None
    if record.id in secrets:
        born = platform.vault.open(secrets[record.id])
        token = born.get("environ", {}).get("JUPYTERHUB_API_TOKEN")
    return SpawnedSession(session=shown, token=token)


# --- events ----------------------------------------------------------------------


async def list_messages(
    platform: Platform,
    principal: Principal,
    *,
    after: int,
    session_id: str | None = None,
    limit: int = 200,
) -> list[EventMessage]:
    """List facts after number *after* that the caller may see, oldest first.

    Each carries its session as it is now, and the latest that says of one that it waits
    carries why, so that pages need not ask again. Of folders of others one is told that
    something has changed there, not what: looking there says as much as one may know.
    """
    extent = reach(principal, Action.READ_EVENTS)
    listener = None
    if extent in {None, Reach.OWN}:
        listener = Listener(principal.holds, principal.id, principal.domain_id)
    async with platform.database.read() as connection:
        if session_id is not None:
            await get_allowed(connection, principal, session_id, Action.READ_EVENTS)
        found = await history.list_events(
            connection,
            after=after,
            listener=listener,
            domain_id=principal.domain_id if extent is Reach.DOMAIN else None,
            session_id=session_id,
            limit=limit,
        )
        ids = {e.session_id for e in found if e.session_id is not None}
        shown = {
            s.id: s
            for s in (
                await session_views.get_sessions(connection, list(ids)) if ids else []
            )
        }
        waiting = {
            e.session_id: e.seq
            for e in found
            if e.session_id is not None and e.kind == EventKind.SESSION_WAITING
        }
        told = await load_explanations(connection, waiting.keys())
    whys = {waiting[session_id]: why for session_id, why in told.items()}
    return [
        _message(
            e if listener is None else listener.hear(e),
            shown.get(e.session_id or ""),
            whys.get(e.seq),
        )
        for e in found
    ]


def _message(
    event: EventRecord, session: Session | None, why: Why | None
) -> EventMessage:
    return EventMessage(
        seq=event.seq,
        at=format_time(event.at) or "",
        kind=event.kind,
        session_id=event.session_id,
        text=event.text,
        status=event.status,
        session=session,
        why=why,
        folder_id=event.folder_id,
    )


async def newest_message(platform: Platform) -> int:
    """Return the number of the newest fact: where a new stream begins."""
    async with platform.database.read() as connection:
        return await history.last_event(connection)
