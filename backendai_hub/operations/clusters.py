"""What becomes of a session as its containers come up, run and end.

A session with several containers is as far as the least advanced of them, and RUNNING
when all run. When one ends the others are stopped, and the session has ended, or
starts again, once every node has confirmed that: nothing of it overlaps with what
comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from backendai_hub.api.agents import ContainerReport, ContainerState
from backendai_hub.core.clusters import ClusterRole
from backendai_hub.core.dotfiles import BOOTSTRAP_SECONDS
from backendai_hub.core.sessions import (
    DEADLINES,
    STARTING,
    TRANSITIONS,
    WAITING_WORDS,
    SessionStatus,
)
from backendai_hub.db import containers
from backendai_hub.db.containers import ContainerRecord
from backendai_hub.db.engine import Transaction
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.operations.batch import end_attempt
from backendai_hub.operations.lifecycle import (
    explain,
    give_up,
    leave,
    move,
    start_again,
    wind_up,
)

PHASES: Final[Mapping[ContainerState, SessionStatus]] = MappingProxyType(
    {
        ContainerState.PREPARING: SessionStatus.PREPARING,
        ContainerState.PULLING: SessionStatus.PULLING,
        ContainerState.CREATING: SessionStatus.CREATING,
        ContainerState.RUNNING: SessionStatus.RUNNING,
    }
)
_ENDED: Final = frozenset({ContainerState.EXITED, ContainerState.GONE})
_SETTLING: Final = frozenset(
    {SessionStatus.TERMINATING, SessionStatus.RESCHEDULING, SessionStatus.PREEMPTED}
)
_ORDER: Final = (
    "scheduled",
    "preparing",
    "pulling",
    "creating",
    "running",
    "exited",
    "stranded",
    "gone",
)
"""How far a container is. One that prepares may fetch its image and prepare again."""


def progress_of(state: str) -> int:
    """Tell how far a container in *state* is, as a number that grows."""
    return _ORDER.index(state)


def describe_end(seen: ContainerReport) -> str:
    """Say why a container is not there any more."""
    if seen.reason:
        return seen.reason
    if seen.state is ContainerState.EXITED:
        return f"its main process ended with code {seen.exit_code}"
    return "its container disappeared from the node"


def has_ended_well(record: SessionRecord, seen: ContainerReport) -> bool:
    """Tell whether the end of an interactive session is what its owner wanted."""
    gone = seen.state is ContainerState.GONE
    return record.status is SessionStatus.RUNNING and (gone or seen.exit_code == 0)


def allow_time(
    tx: Transaction, status: SessionStatus, *, bootstrap: bool
) -> dict[str, Any]:
    """Give a session that first runs its owner's script the time to do so."""
    usual = DEADLINES.get(status)
    if status is not SessionStatus.CREATING or not bootstrap or usual is None:
        return {}
    seconds = usual + BOOTSTRAP_SECONDS
    return {"deadline_at": tx.now + timedelta(seconds=seconds)}


def is_news(container: ContainerRecord, seen: ContainerReport) -> bool:
    """Tell whether a report says more of a container than is known."""
    state = str(seen.state)
    if state == container.state:
        return bool(seen.reason) and seen.reason != container.reason
    if {state, container.state} == {"preparing", "pulling"}:
        return True
    return progress_of(state) > progress_of(container.state)


async def note(tx: Transaction, container_id: str, seen: ContainerReport) -> None:
    """Keep what a container's node says of it."""
    await containers.note_state(
        tx,
        container_id,
        str(seen.state),
        reason=seen.reason,
        exit_code=seen.exit_code,
    )


async def advance(
    tx: Transaction, record: SessionRecord, container_id: str, seen: ContainerReport
) -> None:
    """Move a cluster, whose row is locked, to what is seen of one of its containers."""
    members = await containers.list_members(tx.connection, record.id)
    member = next(m for m in members if m.id == container_id)
    if seen.state is not ContainerState.GONE and not is_news(member, seen):
        return
    await note(tx, container_id, seen)
    if seen.state in _ENDED:
        await _end(tx, record, member, seen)
        return
    members = await containers.list_members(tx.connection, record.id)
    await _come_up(tx, record, members, bootstrap=seen.bootstrap)


async def _come_up(
    tx: Transaction,
    record: SessionRecord,
    members: Sequence[ContainerRecord],
    *,
    bootstrap: bool,
) -> None:
    """Be as far as the least advanced container."""
    last = min(members, key=lambda m: progress_of(m.state))
    if last.state == "scheduled" or last.is_over:
        status = record.status
    else:
        status = PHASES[ContainerState(last.state)]
    if status is SessionStatus.RUNNING:
        if status in TRANSITIONS[record.status]:
            await move(tx, record, status, "")
        return
    reason = _describe(members, last, status)
    if status in TRANSITIONS[record.status]:
        changes = allow_time(tx, status, bootstrap=bootstrap)
        await move(tx, record, status, reason, **changes)
    elif record.status in STARTING:
        await explain(tx, record, reason)


def _describe(
    members: Sequence[ContainerRecord], last: ContainerRecord, status: SessionStatus
) -> str:
    """Say which container the others wait for, and what that one waits for."""
    running = sum(m.state == "running" for m in members)
    words = last.reason or WAITING_WORDS.get(status, "")
    return f"{running} of {len(members)} containers run; {last.host}: {words}"


async def _end(
    tx: Transaction,
    record: SessionRecord,
    member: ContainerRecord,
    seen: ContainerReport,
) -> None:
    """Draw the consequences of the end of one container."""
    if record.status in _SETTLING:
        await settle(tx, record)
        return
    is_main = member.role == ClusterRole.MAIN
    if is_main and record.is_batch:
        await end_attempt(tx, record, seen)
    elif is_main and has_ended_well(record, seen):
        await wind_up(
            tx,
            record,
            SessionStatus.TERMINATED,
            describe_end(seen),
            exit_code=seen.exit_code,
        )
    else:
        code = seen.exit_code if is_main else record.exit_code
        reason = f"container {member.host}: {describe_end(seen)}"
        await give_up(tx, record, reason, exit_code=code)


async def settle(tx: Transaction, record: SessionRecord) -> bool:
    """End a cluster that is being stopped, or start it again, if it has stopped."""
    if record.status is SessionStatus.PREEMPTED:
        return await leave(tx, record)
    members = await containers.list_members(tx.connection, record.id)
    if record.status is SessionStatus.RESCHEDULING:
        if all(member.has_left for member in members):
            await start_again(tx, record)
            return True
        return False
    if not all(member.is_over for member in members):
        return False
    code = record.exit_code
    if code is None and members:
        code = members[0].exit_code
    await move(
        tx,
        record,
        SessionStatus(record.ends_as or SessionStatus.TERMINATED),
        record.reason.split(";", 1)[0],
        exit_code=code,
    )
    return True
