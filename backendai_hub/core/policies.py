"""Resource policies: what a user, a keypair or a project may have.

Three nouns, as in Backend.AI. Their names never change, because people write them
down; a policy that somebody still refers to cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated

import msgspec

from backendai_hub.core.errors import InvalidRequestError, LimitReachedError
from backendai_hub.core.fields import (
    Choice,
    Flag,
    Hosts,
    Line,
    Number,
    Size,
    Slots,
    Slug,
    field,
)
from backendai_hub.core.slots import describe_amount

_MOST = (1 << 31) - 1
_NAME = field(Slug(most=256), "Its name; it never changes.", once=True)
_DESCRIPTION = field(Line(), "What it is for.")
_DEFAULT = field(
    Flag(), "Given to whom nobody gives another; at most one is the default."
)


class Unspecified(StrEnum):
    """What a slot that a policy does not list means."""

    LIMITED = "LIMITED"
    UNLIMITED = "UNLIMITED"


class KeypairPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a keypair, and through their default keypair a user, may use at once."""

    id: str
    name: Annotated[str, _NAME]
    description: Annotated[str, _DESCRIPTION] = ""
    is_default: Annotated[bool, _DEFAULT] = False
    default_for_unspecified: Annotated[
        str,
        field(
            Choice(of=tuple(Unspecified)),
            "What a slot means that total_resource_slots does not list: LIMITED none"
            " of it, UNLIMITED as much as there is.",
        ),
    ] = Unspecified.UNLIMITED
    total_resource_slots: Annotated[
        dict[str, str],
        field(
            Slots(),
            "The most that may be in use at once, by slot; 'inf' is no limit.",
        ),
    ] = {}
    max_concurrent_sessions: Annotated[
        int,
        field(
            Number(least=-1),
            "How many sessions may run at once; more wait in the queue. 0 or less is"
            " no limit.",
        ),
    ] = 5
    max_concurrent_sftp_sessions: Annotated[
        int,
        field(
            Number(least=-1),
            "The same for system sessions, such as SFTP, which count only here.",
        ),
    ] = 1
    max_pending_session_count: Annotated[
        int | None,
        field(
            Number(optional=True),
            "How many sessions may wait at once; more are refused. Null is no limit.",
        ),
    ] = None
    max_pending_session_resource_slots: Annotated[
        dict[str, str],
        field(
            Slots(),
            "The most that waiting sessions may ask for together; only listed slots"
            " are limited.",
        ),
    ] = {}
    max_containers_per_session: Annotated[
        int,
        field(
            Number(least=-1),
            "How many containers one session may have. 0 or less is no limit.",
        ),
    ] = 1
    max_session_lifetime: Annotated[
        int,
        field(
            Number(),
            "Seconds after its start at which a session is ended; 0 is never.",
        ),
    ] = 0
    idle_timeout: Annotated[
        int,
        field(
            Number(least=-1, most=15_552_000),
            "Seconds without use after which an interactive session is ended; 0 is"
            " never, -1 what the site's configuration says.",
        ),
    ] = 3600
    max_priority: Annotated[
        int | None,
        field(
            Number(most=100, optional=True),
            "The highest priority (0 to 100) that may be asked for; null is no limit.",
        ),
    ] = None
    max_job_priority: Annotated[
        int | None,
        field(
            Number(least=-_MOST, most=_MOST, optional=True),
            "The highest job priority that may be asked for: who has more of it may"
            " displace others, where a resource group lets them. Null is no limit.",
        ),
    ] = 0
    allows_not_preemptible: Annotated[
        bool,
        field(
            Flag(),
            "Whether sessions may be asked for that are never displaced, whatever job"
            " priority others have.",
        ),
    ] = True
    allowed_vfolder_hosts: Annotated[
        dict[str, list[str]],
        field(Hosts(), "Storage hosts and what is permitted on each."),
    ] = {}
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class UserPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may keep."""

    id: str
    name: Annotated[str, _NAME]
    description: Annotated[str, _DESCRIPTION] = ""
    is_default: Annotated[bool, _DEFAULT] = False
    max_vfolder_count: Annotated[
        int, field(Number(), "How many virtual folders; 0 is no limit.")
    ] = 0
    max_quota_scope_size: Annotated[
        str,
        field(Size(unlimited=True), "How much all of them may hold; -1 is no limit."),
    ] = "-1"
    max_session_count_per_model_session: Annotated[
        int, field(Number(), "How many replicas one deployment may have.")
    ] = 10
    max_customized_image_count: Annotated[
        int, field(Number(), "How many images may be made of sessions.")
    ] = 3
    max_concurrent_logins: Annotated[
        int | None,
        field(
            Number(least=1, optional=True),
            "How many places one may be logged in from at once; null is no limit.",
        ),
    ] = None
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class ProjectPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a project may keep."""

    id: str
    name: Annotated[str, _NAME]
    description: Annotated[str, _DESCRIPTION] = ""
    is_default: Annotated[bool, _DEFAULT] = False
    max_vfolder_count: Annotated[
        int, field(Number(), "How many virtual folders; 0 is no limit.")
    ] = 0
    max_quota_scope_size: Annotated[
        str,
        field(Size(unlimited=True), "How much all of them may hold; -1 is no limit."),
    ] = "-1"
    max_network_count: Annotated[
        int, field(Number(), "How many networks may be kept.")
    ] = 3
    revision: int = 1
    created_at: str = ""
    modified_at: str = ""


class SubmissionCaps(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a keypair policy that are judged when a session is asked for.

    Amounts are in smallest units; None is no limit. They hold for all a user asks for,
    or with ``keypair_id`` for what is asked for with that keypair.
    """

    policy: str
    keypair_id: str | None = None
    max_pending_session_count: int | None
    max_pending_session_resource_slots: Mapping[str, int | None]
    max_containers_per_session: int
    max_priority: int | None
    max_job_priority: int | None = 0
    allows_not_preemptible: bool = True

    @property
    def limits_waiting(self) -> bool:
        """Whether what waits is limited at all."""
        return self.max_pending_session_count is not None or bool(
            self.max_pending_session_resource_slots
        )


def choose_priority(caps: Iterable[SubmissionCaps], usual: int) -> int:
    """Return the priority of a session that asks for none: never above a cap."""
    return min([usual, *(c.max_priority for c in caps if c.max_priority is not None)])


def check_priority(priority: int, limits: Iterable[SubmissionCaps] = ()) -> None:
    """Refuse a priority that is none, or above what a policy allows."""
    if not 0 <= priority <= 100:
        raise InvalidRequestError(f"priority: {priority} is not between 0 and 100")
    for caps in limits:
        if caps.max_priority is not None and priority > caps.max_priority:
            raise InvalidRequestError(
                f"priority: {priority} is above {caps.max_priority}, the most that the"
                f" keypair policy {caps.policy} allows"
            )


def check_job_priority(priority: int, limits: Iterable[SubmissionCaps]) -> None:
    """Refuse a job priority above what a policy allows."""
    for caps in limits:
        if caps.max_job_priority is not None and priority > caps.max_job_priority:
            raise InvalidRequestError(
                f"job_priority: {priority} is above {caps.max_job_priority}, the most"
                f" that the keypair policy {caps.policy} allows"
            )


def check_not_preemptible(limits: Iterable[SubmissionCaps]) -> None:
    """Refuse a session that nobody displaces, where a policy does not allow it."""
    for caps in limits:
        if not caps.allows_not_preemptible:
            raise InvalidRequestError(
                f"is_preemptible: the keypair policy {caps.policy} allows no sessions"
                " that are never displaced; ask without it, and save in time when the"
                " session is told to leave"
            )


def check_caps(caps: SubmissionCaps, *, priority: int, containers: int) -> None:
    """Refuse what a policy never allows; raises :class:`InvalidRequestError`."""
    check_priority(priority, [caps])
    most = caps.max_containers_per_session
    if containers < 1:
        raise InvalidRequestError("cluster_size: a session has at least 1 container")
    if 0 < most < containers:
        raise InvalidRequestError(
            f"cluster_size: {containers} containers are more than {most}, the most that"
            f" the keypair policy {caps.policy} allows in one session"
        )


def check_pending(
    caps: SubmissionCaps,
    *,
    waiting: int,
    asked: Mapping[str, int],
    request: Mapping[str, int],
) -> None:
    """Refuse one more waiting session where a policy limits them.

    ``waiting`` sessions ask for ``asked`` together by now. Raises
    :class:`LimitReachedError` with every shortfall.
    """
    parts = []
    most = caps.max_pending_session_count
    if most is not None and waiting + 1 > most:
        parts.append(f"{waiting} of {most} sessions wait already")
    for slot, limit in caps.max_pending_session_resource_slots.items():
        wanted = asked.get(slot, 0) + request.get(slot, 0)
        if limit is not None and wanted > limit:
            parts.append(
                f"{slot} {describe_amount(slot, asked.get(slot, 0))} of"
                f" {describe_amount(slot, limit)} waits already, asks"
                f" {describe_amount(slot, request.get(slot, 0))}"
            )
    if parts:
        raise LimitReachedError(
            f"the keypair policy {caps.policy} limits what may wait: "
            + "; ".join(parts)
            + "; wait until something starts, or cancel it"
        )
