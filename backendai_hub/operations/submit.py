"""Asking for a session: what has been prepared is stored once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Action, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import ConflictError, TooManyRequestsError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.mounts import Mount
from backendai_hub.core.objections import FIRST, Objections
from backendai_hub.core.policies import SubmissionCaps, check_pending
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.core.slots import ResourceSlots
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import (
    batch,
    images,
    session_lists,
    session_views,
    sessions,
    tenancy,
)
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.prepare import QUEUED, Asking, complete, prepare
from backendai_hub.operations.session_mounts import store_mounts


class Submission(msgspec.Struct, frozen=True):
    """The session, and whether this call has made it."""

    session: Session
    created: bool


class Born(msgspec.Struct, frozen=True):
    """What a session is born with: kept sealed, told only to its node."""

    environ: dict[str, str]
    argv: list[str]
    files: list[Dotfile] = []
    bootstrap: str = ""
    command: str = ""


class _New(msgspec.Struct, frozen=True):
    """All that is stored of a new session, and what it has to stay within."""

    record: SessionRecord
    dependencies: list[str]
    sealed: bytes
    caps: Sequence[SubmissionCaps]
    mounts: Sequence[Mount] = ()


async def submit_session(
    platform: Platform,
    principal: Principal,
    user: Actor,
    request: SessionRequest,
    key: str | None = None,
) -> Submission:
    """Store a session in the queue, or return the one this key has made already.

    Raises :class:`InvalidRequestError` for what can never be, naming what, how much
    and what to do; nothing is stored then. What cannot start *now* is accepted.
    """
    asking = Asking(platform, principal, user, request, key)
    prepared = await prepare(asking, FIRST)
    assert prepared is not None  # the first objection has ended it otherwise
    async with platform.database.glance() as connection:
        known = await _find_known(connection, prepared.record, request)
    if known is not None:
        await _attach(platform, known, request)
        return await _answer(platform, known.id, created=False)
    done = await complete(asking, prepared, FIRST)
    born = Born(
        request.environ,
        request.argv,
        done.files,
        done.bootstrap,
        request.startup_command or "",
    )
    sealed = platform.vault.seal(born)
    new = _New(done.record, done.dependencies, sealed, prepared.caps, done.mounts)
    return await _store_or_find(asking, new)


async def _store_or_find(asking: Asking, new: _New) -> Submission:
    platform, user, request = asking.platform, asking.user, asking.request
    record = new.record
    try:
        await _store(asking, new)
    except IntegrityError:
        # Somebody was faster with the same key, server or name.
        async with platform.database.read() as connection:
            known = await _find_known(connection, record, request)
            same_name = await session_lists.find_live(
                connection, user.id, name=record.name
            )
        if known is None and same_name is None:
            raise ConflictError(
                "your user, project, keypair, resource group or environment has just"
                " been removed; look what there is and ask again"
            ) from None
        if known is None:
            raise name_taken(record.name) from None
        await _attach(platform, known, request)
        return await _answer(platform, known.id, created=False)
    return await _answer(platform, record.id, created=True)


def name_taken(name: str) -> ConflictError:
    """Say that somebody's live session has this name already."""
    return ConflictError(
        f"you already have a session named {name!r}; stop it first or choose another"
        " name"
    )


async def _answer(platform: Platform, session_id: str, *, created: bool) -> Submission:
    async with platform.database.glance() as connection:
        session = await session_views.get_session(connection, session_id)
    return Submission(session, created)


async def _find_known(
    connection: AsyncConnection, record: SessionRecord, request: SessionRequest
) -> SessionRecord | None:
    """Find the session this request has made before, or is attached to already."""
    found = await session_lists.find_made(
        connection,
        record.owner_id,
        key=record.idempotency_key,
        server=None if request.attachment is None else record.server,
    )
    for known in found:
        if known.idempotency_key != record.idempotency_key:
            continue
        if known.request_hash != record.request_hash:
            raise ConflictError(
                "Idempotency-Key: this key was used for a different request; use a"
                " new key",
                session=known.id,
            )
        return known
    return found[0] if found else None


async def check_queue(
    connection: AsyncConnection,
    asking: Asking,
    record: SessionRecord,
    caps: Sequence[SubmissionCaps],
    objections: Objections,
) -> None:
    """Object to one session more where a user has, or lets wait, as many as may be."""
    user_id, most = asking.user.id, asking.platform.settings.max_live_sessions
    live = await session_lists.count_live(connection, user_id)
    if live >= most:
        objections.add(
            TooManyRequestsError(
                f"you have {live} sessions waiting or running, the most allowed is"
                f" {most}; stop one first"
            )
        )
    for cap in caps:
        if not cap.limits_waiting:
            continue
        waiting, asked = await session_lists.sum_waiting(
            connection, user_id, cap.keypair_id
        )
        with objections.noted():
            check_pending(cap, waiting=waiting, asked=asked, request=record.request)


async def _store(asking: Asking, new: _New) -> None:
    platform, user, record = asking.platform, asking.user, new.record
    async with platform.database.transaction() as tx:
        # Locked, so that many requests at once are counted one after the other.
        await tenancy.lock_user(tx, user.id)
        await check_queue(tx.connection, asking, record, new.caps, FIRST)
        await sessions.insert_session(tx, record)
        await batch.insert_dependencies(tx, record.id, new.dependencies)
        await store_mounts(tx, record.id, new.mounts)
        if record.image_id is not None:
            await images.note_use(tx, record.image_id)
        await sessions.put_secret(tx, record.id, new.sealed)
        tx.audit(
            Act(
                action=Action.CREATE_SESSION,
                object_kind="session",
                object_id=record.id,
                object_name=record.name,
                domain_id=record.domain_id,
                owner_id=record.owner_id,
                after={
                    "image": record.image,
                    "project": user.projects.get(record.project_id, ""),
                    "slots": ResourceSlots(record.slots).to_text(),
                },
            )
        )
        tx.record(
            Event(
                kind=EventKind.SESSION_SUBMITTED,
                text=record.reason,
                actor=user.name,
                session_id=record.id,
                owner_id=record.owner_id,
                status=record.status,
            )
        )
        tx.wake("scheduler", "attachments")


async def _attach(
    platform: Platform, known: SessionRecord, request: SessionRequest
) -> None:
    """Give a session that was asked for by API what JupyterHub adds to it."""
    if request.attachment is None or known.ready:
        return
    async with platform.database.transaction() as tx:
        record = await sessions.get_record(tx.connection, known.id, lock=True)
        if record.ready or record.status is not SessionStatus.PENDING:
            return
        stored = await sessions.get_secrets(tx.connection, [record.id])
        born = msgspec.convert(platform.vault.open(stored[record.id]), Born)
        born = msgspec.structs.replace(born, environ=request.environ, argv=request.argv)
        await sessions.replace_secret(tx, record.id, platform.vault.seal(born))
        await sessions.change_session(
            tx,
            record,
            ready=True,
            reason=QUEUED,
            prefix=request.attachment.prefix,
        )
        tx.wake("scheduler")
