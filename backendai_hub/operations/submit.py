"""Asking for a session: check, then store it once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Action, Caller, Principal
from backendai_hub.core.audit import Act
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NeverFitsError,
    TooManyRequestsError,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.fields import check_not_both
from backendai_hub.core.images import Image
from backendai_hub.core.names import fold, suggest
from backendai_hub.core.policies import (
    SubmissionCaps,
    check_caps,
    check_pending,
    choose_priority,
)
from backendai_hub.core.quotas import find_shortfalls
from backendai_hub.core.sessions import (
    WAITING_WORDS,
    Session,
    SessionStatus,
    SessionType,
    check_session_name,
)
from backendai_hub.core.slots import (
    MILLI,
    ResourceSlots,
    describe_amount,
    format_amount,
    parse_amount,
    parse_slots,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.db import batch, images, sessions, tenancy
from backendai_hub.db.engine import Database
from backendai_hub.db.groups import GroupRecord, list_allowed
from backendai_hub.db.limits import load_caps, recall_limits
from backendai_hub.db.nouns import load_slot_rules
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.db.snapshots import load_nodes
from backendai_hub.operations import dotfiles
from backendai_hub.operations.batch_requests import check_batch, read_extras
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.users import check_may_enter
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.reasons import explain_never
from backendai_hub.scheduling.snapshot import NodeState, PendingSession

NOT_ATTACHED = "waiting for JupyterHub to attach its server"
_QUEUED = WAITING_WORDS[SessionStatus.PENDING]
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_MOST_ENVIRON = 512 * 1024
_LONGEST_NAME = 512


class Submission(msgspec.Struct, frozen=True):
    """The session, and whether this call has made it."""

    session: Session
    created: bool


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
    spawner = principal.caller is Caller.SPAWNER
    _check_spawner_fields(request, spawner=spawner)
    check_batch(principal, request)
    if key is not None and _KEY.fullmatch(key) is None:
        raise InvalidRequestError(
            "Idempotency-Key: use 1 to 128 visible ASCII characters"
        )
    check_may_enter(user)
    keypair_id = principal.keypair_id or user.keypair_id
    database = platform.database
    project_id = _choose_project(user, request)
    group = await _choose_group(database, user, request, project_id, keypair_id)
    place = await _load_place(database, group.id)
    image = await _choose_image(database, user, request, place.nodes)
    caps = await database.recall(
        ("caps", keypair_id), lambda c: load_caps(c, keypair_id)
    )
    slot_types, required = await database.recall("slot rules", load_slot_rules)
    record = _build(platform, user, request, image, key)
    record = msgspec.structs.replace(
        record,
        project_id=project_id,
        keypair_id=keypair_id,
        resource_group_id=group.id,
        priority=_priority(request, group, caps),
    )
    _check_known(record.request, slot_types)
    _check_required(record.request, required)
    async with database.glance() as connection:
        known = await _find_known(connection, record, request)
    if known is None:
        for cap in caps:
            check_caps(cap, priority=record.priority, containers=request.cluster_size)
        _check_containers(request)
        files, bootstrap = await dotfiles.gather(
            database, record, request.bootstrap_script
        )
        async with database.glance() as connection:
            extras = await read_extras(
                connection, principal, user, request=request, group=group
            )
        record = msgspec.structs.replace(record, **extras.fields)
        await _check_can_ever_start(database, record, image, group, place)
    if known is not None:
        await _attach(platform, known, request)
        return await _answer(platform, known.id, created=False)
    command = request.startup_command or ""
    born = Born(request.environ, request.argv, files, bootstrap, command)
    new = _New(record, extras.dependencies, platform.vault.seal(born), caps)
    return await _store_or_find(platform, user, new, request=request)


async def _store_or_find(
    platform: Platform, user: Actor, new: _New, *, request: SessionRequest
) -> Submission:
    record = new.record
    try:
        await _store(platform, user, new)
    except IntegrityError:
        # Somebody was faster with the same key, server or name.
        async with platform.database.read() as connection:
            known = await _find_known(connection, record, request)
            same_name = await sessions.find_live(connection, user.id, name=record.name)
        if known is None and same_name is None:
            raise ConflictError(
                "your user, project, keypair, resource group or environment has just"
                " been removed; look what there is and ask again"
            ) from None
        if known is None:
            raise ConflictError(
                f"you already have a session named {record.name!r}; stop it first or"
                " choose another name"
            ) from None
        await _attach(platform, known, request)
        return await _answer(platform, known.id, created=False)
    return await _answer(platform, record.id, created=True)


async def _answer(platform: Platform, session_id: str, *, created: bool) -> Submission:
    async with platform.database.glance() as connection:
        session = await sessions.get_session(connection, session_id)
    return Submission(session, created)


def _check_spawner_fields(request: SessionRequest, *, spawner: bool) -> None:
    is_batch = request.type is SessionType.BATCH
    environ = request.environ and not is_batch
    if not spawner and (request.attachment or environ or request.argv):
        raise ForbiddenError(
            "attachment, environ and argv are JupyterHub's to set; leave them out"
        )
    if not is_batch and request.type is not SessionType.INTERACTIVE:
        raise InvalidRequestError(
            "type: only 'interactive' and 'batch' sessions can be started, not"
            f" {request.type!r}"
        )
    if sum(len(k) + len(v) for k, v in request.environ.items()) > _MOST_ENVIRON:
        raise InvalidRequestError(
            f"environ: more than {_MOST_ENVIRON >> 10} KiB of variables"
        )
    for name, value in request.environ.items():
        if _VARIABLE.fullmatch(name) is None or "\0" in value:
            raise InvalidRequestError(
                f"environ: {name[:64]!r} is not a variable's name, or its value holds a"
                " NUL character"
            )


def _choose_project(user: Actor, request: SessionRequest) -> str:
    """Return the project's id: the one named, or the user's usual one."""
    if request.project is None:
        if user.project_id is not None and user.project_id in user.projects:
            return user.project_id
        if len(user.projects) == 1:
            return next(iter(user.projects))
        names = ", ".join(sorted(user.projects.values()))
        raise InvalidRequestError(
            f"project: name one of yours: {names}"
            if names
            else "project: you are in no project that is active; ask an administrator"
        )
    for project_id, name in user.projects.items():
        if fold(request.project) in {fold(name), project_id}:
            return project_id
    names = ", ".join(sorted(user.projects.values())) or "none"
    raise InvalidRequestError(
        f"project: you are not a member of {request.project[:128]!r}; yours: {names}"
    )


class _Place(NamedTuple):
    """The nodes of a resource group, and what can be asked of them."""

    nodes: Sequence[NodeState]
    cluster: Cluster


async def _load_place(database: Database, group_id: str) -> _Place:
    """Return a group's nodes; what is free of them may be out of date."""

    async def read(connection: AsyncConnection) -> _Place:
        every = await load_nodes(connection, whose=False)
        nodes = [n for n in every if n.group == group_id]
        return _Place(nodes, Cluster(nodes))

    return await database.recall(("place", group_id), read, ("agents", "devices"))


async def _choose_group(
    database: Database,
    user: Actor,
    request: SessionRequest,
    project_id: str,
    keypair_id: str,
) -> GroupRecord:
    """Return the resource group: the one named, or the first that may be used."""
    targets = (user.domain_id, project_id, keypair_id)
    opened = await database.recall(
        ("groups", *targets), lambda c: list_allowed(c, targets)
    )
    # What is kept for system sessions is not told of.
    opened = [g for g in opened if g.is_public]
    if request.resource_group is not None:
        wanted = fold(request.resource_group)
        named = [g for g in opened if wanted in {fold(g.name), g.id}]
        if not named or not named[0].is_active:
            names = ", ".join(g.name for g in opened if g.is_active) or "none"
            state = "not active" if named else "not open to you"
            raise InvalidRequestError(
                f"resource_group: {request.resource_group[:64]!r} is {state}; open:"
                f" {names}"
            )
        opened = named
    active = [g for g in opened if g.is_active]
    if not active:
        raise InvalidRequestError(
            f"resource_group: {opened[0].name} is not active"
            if opened
            else "resource_group: no resource group is open to your domain, project or"
            " keypair; ask an administrator"
        )
    for group in active:
        if request.type in group.options.allowed_session_types:
            return group
    kinds = ", ".join(active[0].options.allowed_session_types)
    raise InvalidRequestError(
        f"type: the resource group {active[0].name} takes {kinds} sessions only, not"
        f" {request.type!r}"
    )


async def _choose_image(
    database: Database,
    user: Actor,
    request: SessionRequest,
    nodes: Sequence[NodeState],
) -> Image:
    """Return the image for the architecture that is asked for, or that nodes have."""
    found: list[Image] = []
    if len(request.image) <= _LONGEST_NAME:  # longer ones are not worth keeping
        found = await database.recall(
            ("images", user.domain_id, user.id, request.image),
            lambda c: images.find_images(c, user.domain_id, user.id, request.image),
            ("images", "image_aliases"),
        )
    if not found:
        async with database.glance() as connection:
            offered = await images.list_images(connection, user.domain_id, user.id)
        names = list(dict.fromkeys(i.name for i in offered))
        shown = ", ".join(names[:10]) or "none yet"
        raise InvalidRequestError(
            f"image: there is no environment {request.image[:128]!r}; on offer:"
            f" {shown}{', …' if len(names) > 10 else ''}"
        )
    if request.architecture is not None:
        same = [i for i in found if i.architecture == request.architecture]
        if not same:
            built = ", ".join(sorted(i.architecture for i in found))
            raise InvalidRequestError(
                f"architecture: {found[0].name} is built for {built}, not for"
                f" {request.architecture[:64]!r}"
            )
        return same[0]
    there = {n.architecture for n in nodes}
    return next((i for i in found if i.architecture in there), found[0])


def _priority(
    request: SessionRequest, group: GroupRecord, caps: Sequence[SubmissionCaps]
) -> int:
    if request.priority is None:
        return choose_priority(caps, group.session_options.priority)
    return request.priority


def _check_known(request: ResourceSlots, known: Mapping[str, str]) -> None:
    check_not_both(request)
    for slot, amount in request.items():
        if slot not in known:
            raise InvalidRequestError(
                f"{slot}: there is no such resource here{suggest(slot, known)}; there"
                f" are {', '.join(known)}"
            )
        if known[slot] == "unique" and amount != MILLI:
            raise InvalidRequestError(
                f"{slot}: can be had once; ask for 1, not"
                f" {describe_amount(slot, amount)}"
            )


def _check_required(request: ResourceSlots, required: Iterable[str]) -> None:
    for slot in required:
        if not request[slot]:
            raise InvalidRequestError(
                f"{slot}: every session needs some of it; ask for more than 0"
            )


def _check_containers(request: SessionRequest) -> None:
    if request.cluster_size != 1:
        raise InvalidRequestError(
            f"cluster_size: sessions have one container, not {request.cluster_size}"
        )


def _build(
    platform: Platform,
    user: Actor,
    request: SessionRequest,
    image: Image,
    key: str | None,
) -> SessionRecord:
    slots, shmem = resolve_amounts(platform, image, request)
    session_id = platform.new_id()
    name = request.name
    if name is None:
        name = f"{_name_after(image)}-{session_id[-6:]}"
    check_session_name(name)
    attachment = request.attachment
    server: str | None = None
    prefix: str | None = None
    if attachment is not None:
        server, prefix = attachment.server, attachment.prefix
    elif request.type is not SessionType.BATCH:
        server = f"s-{session_id[-12:]}"
        prefix = f"{platform.settings.hub_base}user/{quote(user.name)}/{server}/"
    # Nothing of a batch session is JupyterHub's.
    ready = attachment is not None or server is None
    now = platform.database.clock()
    return SessionRecord(
        id=session_id,
        name=name,
        type=str(request.type),
        owner_id=user.id,
        domain_id=user.domain_id,
        project_id="",
        image_id=image.id,
        image=image.name,
        slots=dict(slots.items()),
        shmem=shmem,
        status=SessionStatus.PENDING,
        reason=_QUEUED if ready else NOT_ATTACHED,
        agent_id=None,
        server=server,
        prefix=prefix,
        ready=ready,
        exit_code=None,
        idempotency_key=key or session_id,
        request_hash=_hash(request),
        revision=1,
        created_at=now,
        scheduled_at=None,
        started_at=None,
        ended_at=None,
        deadline_at=None,
    )


def _name_after(image: Image) -> str:
    """Begin a session's name with its image's, which may be of any form."""
    last = image.name.rsplit("/", 1)[-1].partition("@")[0]
    plain = re.sub(r"[^a-zA-Z0-9._-]+", "-", last)[:50]
    return plain.strip("-._") or "session"


def _hash(request: SessionRequest) -> str:
    """Hash what the user asked for (not what JupyterHub adds for each attempt)."""
    asked = request
    if request.type is not SessionType.BATCH:
        asked = msgspec.structs.replace(request, environ={}, argv=[], attachment=None)
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def resolve_amounts(
    platform: Platform, image: Image, request: SessionRequest
) -> tuple[ResourceSlots, int]:
    """Return the slots and shared memory a request means, in smallest units.

    What is left out comes from what the image prefers; below its minimum is refused.
    Shared memory is part of ``mem`` and has to leave room for the rest.
    """
    minimum = parse_slots(image.minimum)
    given = parse_slots(request.slots)
    preferred = parse_slots(image.preferred)
    # No session runs without these two, so asking for none of them is asking for the
    # usual; none of anything else is an answer.
    named = {s for s in request.slots if given[s] or s not in {"cpu", "mem"}}
    floor = {
        "cpu": platform.settings.default_cpu,
        "mem": platform.settings.default_memory,
    }
    amounts = {
        slot: given[slot]
        if slot in named
        else preferred[slot] or minimum[slot] or floor.get(slot, 0)
        for slot in sorted({*given, *preferred, *minimum, *floor})
    }
    asked = image.shmem if request.shmem is None else request.shmem
    shmem = parse_amount("shmem", asked)
    # Shared memory comes on top of what the image itself needs.
    minimum = minimum + ResourceSlots({"mem": shmem if minimum["mem"] else 0})
    if "mem" not in named:
        amounts["mem"] = max(amounts["mem"], minimum["mem"])
    for slot, least in minimum.items():
        if amounts[slot] < least:
            raise InvalidRequestError(
                f"{slot}: {describe_amount(slot, amounts[slot])} is less than"
                f" {image.name} needs"
                + (" beside its shared memory" if slot == "mem" and shmem else "")
                # Exactly: what is rounded down would be refused again.
                + f"; ask for at least {format_amount(slot, least)}"
            )
    _check_bounds(image, amounts)
    if shmem >= amounts["mem"]:
        raise InvalidRequestError(
            f"shmem: {describe_amount('mem', shmem)} leaves nothing of"
            f" {describe_amount('mem', amounts['mem'])} of memory; ask for more 'mem'"
            " or less 'shmem'"
        )
    return ResourceSlots(amounts), shmem


def _check_bounds(image: Image, amounts: Mapping[str, int]) -> None:
    for slot, text in image.maximum.items():
        if text != "inf" and amounts.get(slot, 0) > parse_amount(slot, text):
            raise InvalidRequestError(
                f"{slot}: {describe_amount(slot, amounts[slot])} is more than"
                f" {image.name} may have; ask for at most"
                f" {describe_amount(slot, parse_amount(slot, text))}"
            )
    for slot, amount in amounts.items():
        if slot.endswith(".device") and amount % MILLI:
            raise InvalidRequestError(
                f"{slot}: devices are given whole; ask for 1, 2, …, not"
                f" {describe_amount(slot, amount)}"
            )


async def _find_known(
    connection: AsyncConnection, record: SessionRecord, request: SessionRequest
) -> SessionRecord | None:
    """Find the session this request has made before, or is attached to already."""
    found = await sessions.find_made(
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


async def _check_can_ever_start(
    database: Database,
    record: SessionRecord,
    image: Image,
    group: GroupRecord,
    place: _Place,
) -> None:
    scopes = await recall_limits(database, [record])
    own = [scopes[key] for key in record.scopes if key in scopes]
    shortfalls = list(find_shortfalls(record.charge, own))
    if shortfalls:
        raise NeverFitsError(
            "more than a limit allows even when nothing runs: "
            + "; ".join(map(str, shortfalls))
        )
    if not place.nodes:
        return  # the first node may still be on its way: it waits, with that reason
    never = explain_never(place.cluster, pending(record, image))
    if never is not None:
        raise NeverFitsError(
            f"no node of the resource group {group.name} could ever run this: {never}"
        )


def pending(record: SessionRecord, image: Image, *, hold: str = "") -> PendingSession:
    """Describe a session to the scheduler."""
    return PendingSession(
        id=record.id,
        owner_id=record.owner_id,
        request=record.request,
        references=image.references,
        architecture=image.architecture,
        scopes=record.scopes,
        charge=record.charge,
        group=record.resource_group_id or "",
        hold=hold,
        job_priority=record.job_priority,
        lifetime=record.batch_timeout,
        nodes=tuple(record.agents or record.preferred_agents),
        only_nodes=bool(record.agents),
    )


async def _check_count(
    connection: AsyncConnection, platform: Platform, user: Actor
) -> None:
    most = platform.settings.max_live_sessions
    live = await sessions.count_live(connection, user.id)
    if live >= most:
        raise TooManyRequestsError(
            f"you have {live} sessions waiting or running, the most allowed is {most};"
            " stop one first"
        )


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


async def _store(platform: Platform, user: Actor, new: _New) -> None:
    record = new.record
    async with platform.database.transaction() as tx:
        # Locked, so that many requests at once are counted one after the other.
        await tenancy.lock_user(tx, user.id)
        await _check_count(tx.connection, platform, user)
        for cap in new.caps:
            if not cap.limits_waiting:
                continue
            waiting, asked = await sessions.sum_waiting(
                tx.connection, user.id, cap.keypair_id
            )
            check_pending(cap, waiting=waiting, asked=asked, request=record.request)
        await sessions.insert_session(tx, record)
        await batch.insert_dependencies(tx, record.id, new.dependencies)
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
            reason=_QUEUED,
            prefix=request.attachment.prefix,
        )
        tx.wake("scheduler")
