"""Putting into words why a session waits, for who may read what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from backendai_hub.api.explanations import PossibleChange, Why
from backendai_hub.core.sessions import SessionStatus
from backendai_hub.core.times import format_time
from backendai_hub.db.batch import tell_waits
from backendai_hub.db.sessions import SessionRecord
from backendai_hub.scheduling.changes import Change, tell_change
from backendai_hub.scheduling.explained import Explanation
from backendai_hub.scheduling.snapshot import PendingSession

LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_LINKS: Final = 4
"""So many of those that wait for each other are named."""


class Asked(NamedTuple):
    """What has to be known of a session beside what the scheduler knows."""

    record: SessionRecord
    groups: Mapping[str, str]
    """The resource groups that it may wait in, by id, with their names."""
    least: Mapping[str, int]
    group_hold: str = ""
    """Why it is held up, if that is its resource group's alone."""


class Seen(NamedTuple):
    """What an answer is put into words with: a session, and names."""

    session: PendingSession
    nodes: Mapping[str, str]
    after: str = ""
    """The session that has to end, as far as the reader may know."""
    through: Sequence[str] = ()
    """Those that wait between it and that one, and have to end as well."""
    windows: Mapping[str, str] = {}
    """What is said of reservations, and the names of those the reader may know."""


def tell_why(asked: Asked, found: Explanation, seen: Seen) -> Why:
    """Say all that is known of why a session waits."""
    session = seen.session
    names = {**seen.nodes, **asked.groups}
    told = Why(
        session=found.session,
        status=SessionStatus.PENDING,
        position=found.position,
        waiting=found.waiting,
        reasons=[_name_windows(reason, seen.windows) for reason in found.reasons],
        changes=[_tell_change(c, session, names) for c in found.changes],
        starts_at=_moment(found.starts),
        at_the_earliest=found.at_the_earliest,
        hangs_on=tell_forecast(found, seen.after, seen.through),
    )
    moment = asked.record.starts_at
    if moment is None or session.hold != tell_waits(asked.record, (), LONG_AGO):
        return told
    # Nothing but its own time holds it up so far.
    return replace(
        told,
        starts_at=format_time(moment),
        at_the_earliest=True,
        hangs_on="if there is room for it then",
    )


def _tell_change(
    change: Change, session: PendingSession, names: Mapping[str, str]
) -> PossibleChange:
    group = change.group
    # Who takes an amount or a group over with one click changes nothing else.
    left = change.released and group is not None
    is_all = change == Change(request=change.request, group=group, released=left)
    return PossibleChange(
        text=tell_change(change, session, names),
        yours=change.is_own,
        slots=change.request.to_text() if change.request and is_all else None,
        resource_group=names.get(group) if group is not None and is_all else None,
    )


def tell_forecast(found: Explanation, after: str, through: Sequence[str] = ()) -> str:
    """Say what a start hangs on; ``after`` is a name that the reader may know.

    *through* are the names of those that wait for it, the last one's first.
    """
    if found.starts is None:
        return found.unknown
    if through:
        return _tell_chain(through, after if found.after else None)
    who = f"session {after}" if after else "a session"
    if found.window:
        who = "a reservation"
    said = f"when {who}{f' on {found.node}' if found.node else ''} ends"
    if found.at_the_earliest and found.ahead and not found.behind:
        said += f"; {found.ahead} before it in the queue may make it later"
    elif found.ahead:
        said += f", with {found.ahead} before it in the queue"
    if found.behind:
        said += f"; {found.behind} behind it in the queue may make it later"
    return said


def _tell_chain(through: Sequence[str], after: str | None) -> str:
    """Say whom a start hangs on, and whom that one waits for, and so on."""
    first, *others = through
    if after is not None:
        others.append(after or "another session")
    if not others:
        return f"when session {first} ends, which waits itself"
    links = others[1:_MOST_LINKS]
    chain = others[0] + "".join(f", which waits for {name}" for name in links)
    more = len(others) - _MOST_LINKS
    return f"when session {first} ends, which waits for {chain}" + (
        f", and {more} more" if more > 0 else ""
    )


def _name_windows(text: str, windows: Mapping[str, str]) -> str:
    for said, name in windows.items():
        text = text.replace(said, f"{name} ({said})")
    return text


def _moment(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return format_time(datetime.fromtimestamp(seconds, UTC))
