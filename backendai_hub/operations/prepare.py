"""Reading a request for a session: all that can be said of it before it is stored.

Nothing here changes anything. Asking for a session ends with the first objection; a
dry run goes on after it, so that all are told at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.core.access import Action, Caller, Principal, may_ever
from backendai_hub.core.agents import protocol_for
from backendai_hub.core.clusters import (
    ClusterMode,
    ClusterStrategy,
    check_size,
    choose_strategy,
    list_seats,
)
from backendai_hub.core.dotfiles import Dotfile
from backendai_hub.core.errors import (
    ForbiddenError,
    InvalidRequestError,
    NeverFitsError,
)
from backendai_hub.core.images import Image
from backendai_hub.core.mounts import Mount, check_dotfiles
from backendai_hub.core.objections import Objections
from backendai_hub.core.policies import (
    SubmissionCaps,
    check_caps,
    check_job_priority,
    check_not_preemptible,
)
from backendai_hub.core.quotas import find_shortfalls
from backendai_hub.core.sessions import (
    WAITING_WORDS,
    SessionStatus,
    SessionType,
    check_session_name,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.db.groups import GroupRecord
from backendai_hub.db.limits import load_caps, recall_limits
from backendai_hub.db.nouns import load_slot_rules
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations import dotfiles
from backendai_hub.operations.absent_hosts import leave_out_absent, leave_out_resting
from backendai_hub.operations.batch_requests import Extras, check_batch, read_extras
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.request_amounts import (
    check_accelerators,
    check_slots,
    resolve_amounts,
)
from backendai_hub.operations.request_choices import (
    Place,
    choose_group,
    choose_image,
    choose_project,
    choose_session_priority,
    load_place,
)
from backendai_hub.operations.session_mounts import (
    choose_mounts,
    labels_of,
)
from backendai_hub.operations.users import check_may_enter
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.reasons import explain_never
from backendai_hub.scheduling.snapshot import Member, PendingSession

NOT_ATTACHED = "waiting for JupyterHub to attach its server"
QUEUED = WAITING_WORDS[SessionStatus.PENDING]
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_MOST_ENVIRON = 512 * 1024


class Asking(NamedTuple):
    """Who asks for what."""

    platform: Platform
    principal: Principal
    user: Actor
    request: SessionRequest
    key: str | None = None
    """Names the request, so that it makes one session however often it is sent."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The session as it would be stored, and what it was made from."""

    record: SessionRecord
    image: Image
    group: GroupRecord
    place: Place
    caps: Sequence[SubmissionCaps]


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """The same with all that only a session that is new needs."""

    record: SessionRecord
    dependencies: list[str]
    files: list[Dotfile]
    bootstrap: str
    mounts: list[Mount] = []


async def prepare(asking: Asking, objections: Objections) -> Prepared | None:
    """Read a request; None if it names too little that there is to say any more."""
    database, user = asking.platform.database, asking.user
    _check_fields(asking, objections)
    keypair_id = asking.principal.keypair_id or user.keypair_id
    project_id = group = image = None
    with objections.noted():
        project_id = choose_project(user, asking.request)
        targets = (user.domain_id, project_id, keypair_id)
        group = await choose_group(database, user, asking.request, targets)
    place = Place((), Cluster(()))
    if group is not None:
        place = await load_place(database, group.id)
    with objections.noted():
        image = await choose_image(database, user, asking.request, place.nodes)
    if project_id is None or group is None or image is None:
        return None
    caps = await database.recall(
        ("caps", keypair_id), lambda c: load_caps(c, keypair_id)
    )
    slot_types, required = await database.recall("slot rules", load_slot_rules)
    record = None
    with objections.noted():
        record = _build(asking, image, objections)
    if record is None:
        return None
    record = msgspec.structs.replace(
        record,
        project_id=project_id,
        keypair_id=keypair_id,
        resource_group_id=group.id,
        priority=choose_session_priority(asking.request, group, caps),
    )
    check_slots(record.each, slot_types, required, objections)
    check_accelerators(image, record.each, slot_types, objections)
    return Prepared(record=record, image=image, group=group, place=place, caps=caps)


async def complete(
    asking: Asking, prepared: Prepared, objections: Objections
) -> Completed:
    """Look at all that matters for a session that there is not yet."""
    record, request = prepared.record, asking.request
    database = asking.platform.database
    for cap in prepared.caps:
        with objections.noted():
            check_caps(cap, priority=record.priority, containers=request.cluster_size)
    if request.job_priority is not None:
        with objections.noted():
            check_job_priority(request.job_priority, prepared.caps)
    if not request.is_preemptible:
        with objections.noted():
            check_not_preemptible(prepared.caps)
    files: list[Dotfile] = []
    bootstrap = ""
    with objections.noted():
        files, bootstrap = await dotfiles.gather(
            asking.platform, record, request.bootstrap_script
        )
    extras = Extras({}, [])
    with objections.noted():
        async with database.glance() as connection:
            extras = await read_extras(
                connection,
                asking.principal,
                asking.user,
                request=request,
                group=prepared.group,
            )
    record = msgspec.structs.replace(record, **extras.fields)
    mounts = await _find_mounts(asking, record, files, objections)
    mounts, missing = leave_out_absent(asking.platform, mounts, prepared.place.nodes)
    if missing:
        record = msgspec.structs.replace(record, reason=f"{record.reason}; {missing}")
    labels = {**record.labels, **labels_of(mounts)}
    record = msgspec.structs.replace(record, labels=labels)
    prepared = msgspec.structs.replace(prepared, record=record)
    await _check_can_ever_start(asking.platform, prepared, objections)
    return Completed(
        record=record,
        dependencies=extras.dependencies,
        files=files,
        bootstrap=bootstrap,
        mounts=mounts,
    )


async def _find_mounts(
    asking: Asking,
    record: SessionRecord,
    files: Sequence[Dotfile],
    objections: Objections,
) -> list[Mount]:
    """Choose the session's folders; object to those that cannot be had."""
    with objections.noted():
        mounts = await choose_mounts(
            asking.platform,
            asking.principal,
            asking.user,
            record.project_id,
            asking.request,
        )
        check_dotfiles(mounts, [file.path for file in files])
        return mounts
    return []


def _check_fields(asking: Asking, objections: Objections) -> None:
    """Object to what does not go together, whatever there is in the database."""
    request = asking.request
    spawner = asking.principal.caller is Caller.SPAWNER
    is_batch = request.type is SessionType.BATCH
    environ = request.environ and not is_batch
    if not spawner and (request.attachment or environ or request.argv):
        objections.add(
            ForbiddenError(
                "attachment, environ and argv are JupyterHub's to set; leave them out"
            )
        )
    if not is_batch and request.type is not SessionType.INTERACTIVE:
        objections.add(
            InvalidRequestError(
                "type: only 'interactive' and 'batch' sessions can be started, not"
                f" {request.type!r}"
            )
        )
    if sum(len(k) + len(v) for k, v in request.environ.items()) > _MOST_ENVIRON:
        objections.add(
            InvalidRequestError(
                f"environ: more than {_MOST_ENVIRON >> 10} KiB of variables"
            )
        )
    for name, value in request.environ.items():
        if _VARIABLE.fullmatch(name) is None or "\0" in value:
            objections.add(
                InvalidRequestError(
                    f"environ: {name[:64]!r} is not a variable's name, or its value"
                    " holds a NUL character"
                )
            )
    with objections.noted():
        check_batch(asking.principal, request)
    if asking.key is not None and _KEY.fullmatch(asking.key) is None:
        objections.add(
            InvalidRequestError(
                "Idempotency-Key: use 1 to 128 visible ASCII characters"
            )
        )
    with objections.noted():
        check_may_enter(asking.user)
    # JupyterHub asks for everybody whom it lets in: it does not know our roles.
    if not may_ever(asking.user.role, Action.CREATE_SESSION):
        objections.add(
            ForbiddenError(
                "monitors look at everything and start nothing; ask a superadmin for"
                " another role"
            )
        )


def _build(asking: Asking, image: Image, objections: Objections) -> SessionRecord:
    platform, user, request = asking.platform, asking.user, asking.request
    slots, shmem = resolve_amounts(platform, image, request, objections)
    session_id = platform.new_id()
    name = request.name
    if name is None:
        name = f"{_name_after(image)}-{session_id[-6:]}"
    with objections.noted():
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
        reason=QUEUED if ready else NOT_ATTACHED,
        agent_id=None,
        server=server,
        prefix=prefix,
        ready=ready,
        exit_code=None,
        idempotency_key=asking.key or session_id,
        request_hash=_hash(request),
        revision=1,
        created_at=now,
        scheduled_at=None,
        started_at=None,
        ended_at=None,
        deadline_at=None,
        **_cluster(request, objections),
    )


def _cluster(request: SessionRequest, objections: Objections) -> dict[str, Any]:
    """Read how many containers there are to be, and how they are to lie.

    Beyond what there may be, it is read as a session of one.
    """
    strategy = None
    size = 1
    with objections.noted():
        check_size(request.cluster_size)
        size = max(1, request.cluster_size)
    with objections.noted():
        strategy = choose_strategy(request.cluster_mode, request.cluster_strategy)
    return {
        "cluster_size": size,
        "cluster_mode": str(request.cluster_mode),
        "cluster_strategy": None if strategy is None else str(strategy),
    }


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


async def _check_can_ever_start(
    platform: Platform, prepared: Prepared, objections: Objections
) -> None:
    record, place = prepared.record, prepared.place
    scopes = await recall_limits(platform.database, [record])
    own = [scopes[key] for key in record.scopes if key in scopes]
    shortfalls = list(find_shortfalls(record.charge, own))
    if shortfalls:
        objections.add(
            NeverFitsError(
                "more than a limit allows even when nothing runs: "
                + "; ".join(map(str, shortfalls))
            )
        )
    if not any(node.devices for node in place.nodes):
        # The first node may still be on its way, or has just come and is about to tell
        # what it has: it waits, with that reason.
        return
    # An agent that is too old for it may be upgraded while it waits.
    labels = leave_out_resting(platform, record.labels)
    asked = msgspec.structs.replace(
        pending(record, prepared.image), protocol=1, labels=labels
    )
    never = explain_never(place.cluster, asked)
    if never is not None:
        objections.add(
            NeverFitsError(
                f"no node of the resource group {prepared.group.name} could ever run"
                f" this: {never}"
            )
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
        preemptible=record.is_preemptible,
        lifetime=record.batch_timeout,
        nodes=tuple(record.agents or record.preferred_agents),
        only_nodes=bool(record.agents),
        labels=record.labels,
        protocol=protocol_for(record.type, record.cluster_size),
        members=_list_members(record),
        layout=_layout(record),
    )


def _list_members(record: SessionRecord) -> tuple[Member, ...]:
    """List the containers of a cluster, by what they are called in it."""
    if not record.is_cluster:
        return ()
    each = record.each
    seats = list_seats(record.cluster_size)
    return tuple(Member(name=seat.host, request=each) for seat in seats)


def _layout(record: SessionRecord) -> Literal["one-node", "spread", "pack"]:
    if record.cluster_mode != ClusterMode.MULTI_NODE:
        return "one-node"
    return "spread" if record.cluster_strategy == ClusterStrategy.SPREAD else "pack"
