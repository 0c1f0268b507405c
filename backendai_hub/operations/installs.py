"""Images that nodes hold before anybody needs them: what they are told, and tell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import msgspec

from backendai_hub.api.agents import (
    AgentReport,
    ImageProgress,
    ImageState,
    ImageWanted,
    ImageWish,
    RegistryCredential,
)
from backendai_hub.core.events import Event, EventKind
from backendai_hub.core.references import find_registry, host_of, shorten
from backendai_hub.db import agents, installs
from backendai_hub.db.engine import Transaction
from backendai_hub.db.images import load_images
from backendai_hub.db.installs import InstallRecord, RegistryLogin
from backendai_hub.operations.platform import Platform, SecretLostError

_LOG = logging.getLogger(__name__)
_LONGEST_REASON = 2000


def make_new_install(
    platform: Platform,
    *,
    image_id: str,
    agent_id: str,
    reference: str,
    wanted: ImageWish,
    requested_by: str,
) -> InstallRecord:
    """Make the record of something newly asked, for ``put_installs``."""
    now = platform.database.clock()
    return InstallRecord(
        id=platform.new_id(),
        image_id=image_id,
        agent_id=agent_id,
        reference=reference,
        wanted=wanted,
        state=ImageState.WAITING,
        progress=None,
        reason="",
        requested_by=requested_by,
        requested_at=now,
        changed_at=now,
    )


# -- what a node is told ----------------------------------------------------------


def choose_login(
    platform: Platform, login: RegistryLogin | None, reference: str
) -> RegistryCredential | None:
    """Return the login for fetching *reference*, if its registry is the login's own.

    A reference that leads to another host is fetched without.
    """
    if login is None or login.password is None:
        return None
    registry = find_registry(reference)
    if host_of(login.url) not in {registry, host_of(f"https://{registry}")}:
        return None
    try:
        password = str(platform.vault.open(login.password))
    except SecretLostError:
        _LOG.error("the password of the registry %s cannot be read", registry)
        return None
    return RegistryCredential(
        registry=registry, username=login.username, password=password
    )


def list_wanted(
    platform: Platform,
    records: Sequence[InstallRecord],
    logins: Mapping[str, RegistryLogin],
) -> list[ImageWanted]:
    """Say to a node what is asked of it, with the logins it takes."""
    return [
        ImageWanted(
            reference=record.reference,
            wanted=record.wanted,
            credential=choose_login(
                platform, logins.get(record.image_id), record.reference
            )
            if record.wanted is ImageWish.PRESENT
            else None,
        )
        for record in records
    ]


# -- what a node tells ------------------------------------------------------------


class InstallChange(msgspec.Struct, frozen=True, kw_only=True):
    """How far an install is now, where that is not what was known."""

    before: InstallRecord
    state: ImageState
    progress: float | None
    reason: str


def find_changes(
    records: Sequence[InstallRecord], report: AgentReport
) -> list[InstallChange]:
    """List what a node's report changes in what is known of its installs.

    An answer to a wish that was changed since is no answer. A node that does not
    speak of its wishes yet still lists what it holds.
    """
    told = {p.reference: p for p in report.image_progress}
    held = set(report.images)
    changes = []
    for record in records:
        said = told.get(record.reference)
        if said is None or said.wanted is not record.wanted:
            names = {record.reference, shorten(record.reference)}
            if record.wanted is ImageWish.ABSENT or held.isdisjoint(names):
                continue
            said = ImageProgress(
                reference=record.reference,
                wanted=record.wanted,
                state=ImageState.DONE,
            )
        change = _read(record, said)
        if change != (record.state, record.progress, record.reason):
            state, progress, reason = change
            changes.append(
                InstallChange(
                    before=record, state=state, progress=progress, reason=reason
                )
            )
    return changes


def _read(
    record: InstallRecord, said: ImageProgress
) -> tuple[ImageState, float | None, str]:
    amount = said.progress
    if said.state is ImageState.DONE and record.wanted is ImageWish.PRESENT:
        amount = 1.0
    elif amount is not None:
        amount = min(1.0, max(0.0, amount))
    # PostgreSQL keeps no NUL in a text, and a registry's words may hold one.
    return said.state, amount, said.reason.replace("\0", "")[:_LONGEST_REASON]


async def accept_images(
    platform: Platform,
    agent_id: str,
    records: Sequence[InstallRecord],
    report: AgentReport,
) -> None:
    """Write down what a node says of the images it was asked for.

    Nearly always nothing has changed, and nothing is written.
    """
    changes = find_changes(records, report)
    if not changes:
        return
    async with platform.database.transaction() as tx:
        over = False
        told = []
        for change in changes:
            written = await installs.change_install(
                tx,
                change.before,
                state=str(change.state),
                progress=change.progress,
                reason=change.reason,
            )
            if written and is_news(change):
                told.append(change)
            removed = change.before.wanted is ImageWish.ABSENT
            over |= written and removed and change.state is ImageState.DONE
        if told:
            await _record(tx, agent_id, told)
        if over:  # once gone, the image may come back for a session
            await agents.bump_generation(tx, agent_id)


def is_news(change: InstallChange) -> bool:
    """Tell whether people are told: of another state, and of every tenth of the way."""
    before = change.before
    if change.state is not before.state:
        return True
    return int((change.progress or 0) * 10) != int((before.progress or 0) * 10)


async def _record(
    tx: Transaction, agent_id: str, changes: Sequence[InstallChange]
) -> None:
    node = await agents.get_agent(tx.connection, agent_id)
    images = await load_images(tx.connection, [c.before.image_id for c in changes])
    for change in changes:
        image = images[change.before.image_id].name
        tx.record(
            Event(
                kind=EventKind.IMAGE_INSTALL,
                text=f"node {node.name}: {_tell(change, image)}",
                actor=change.before.requested_by,
                agent_id=agent_id,
                status=str(change.state),
            )
        )


def _tell(change: InstallChange, image: str) -> str:
    is_wanted = change.before.wanted is ImageWish.PRESENT
    match change.state:
        case ImageState.DONE:
            return f"has {image}" if is_wanted else f"has {image} no longer"
        case ImageState.FAILED:
            what = "fetch" if is_wanted else "remove"
            return f"cannot {what} {image}: {change.reason}"
        case ImageState.PULLING:
            far = "" if change.progress is None else f", {change.progress:.0%}"
            return f"fetches {image}{far}"
        case ImageState.WAITING:
            return f"waits to {'fetch' if is_wanted else 'remove'} {image}"
