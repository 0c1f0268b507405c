"""Whether guarantees can be kept together: those in one scope, and those on the nodes.

What can never be kept is refused. What the nodes lack is told and nothing more: nodes
come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.slots import describe_amount
from backendai_hub.db import shares
from backendai_hub.db.shares import Scope, ShareRecord, path_of_scope
from backendai_hub.db.tables import DomainRow, ProjectRow, UserRow
from backendai_hub.scheduling.shares import Path

_ROWS: Final = (DomainRow, ProjectRow, UserRow)
_KINDS: Final = ("domain", "project", "user")
_MOST_NAMED: Final = 5

Settings = Mapping[Scope, ShareRecord]


class _Excess(NamedTuple):
    """What the parts of a scope are guaranteed in all, and it has not."""

    above: Path
    slot: str
    parts: Mapping[Path, int]
    most: int
    by_maximum: bool

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    @property
    def amount(self) -> int:
        return self.total - self.most


async def refuse_excess(
    connection: AsyncConnection, before: Settings, after: Settings
) -> None:
    """Refuse to guarantee the parts of a scope more than it has itself.

    A scope that is guaranteed nothing of a resource bounds nothing by it: its parts
    are guaranteed theirs against each other. What was too much already may become
    less, and whatever else may change beside it.
    """
    known = {(e.above, e.slot): e.amount for e in _find_excesses(before)}
    for excess in _find_excesses(after):
        if excess.amount > known.get((excess.above, excess.slot), 0):
            raise InvalidRequestError(await _tell_excess(connection, excess))


def _find_excesses(settings: Settings) -> Iterator[_Excess]:
    records = {path_of_scope(scope): record for scope, record in settings.items()}
    parts: dict[tuple[Path, str], dict[Path, int]] = {}
    for path, record in sorted(records.items()):
        for slot, amount in record.guaranteed.items():
            if len(path) > 1:
                parts.setdefault((path[:-1], slot), {})[path] = amount
    for (above, slot), amounts in parts.items():
        bounds = list(_list_bounds(records, above, slot))
        if bounds:
            most, by_maximum = min(bounds)
            excess = _Excess(above, slot, amounts, most, by_maximum)
            if excess.amount > 0:
                yield excess


def _list_bounds(
    records: Mapping[Path, ShareRecord], above: Path, slot: str
) -> Iterator[tuple[int, bool]]:
    """Yield what a scope may pass on at most, and whether a maximum says so."""
    own = records.get(above, ShareRecord())
    if slot in own.guaranteed:
        yield own.guaranteed[slot], False
    for depth in range(1, len(above) + 1):
        record = records.get(above[:depth], ShareRecord())
        if slot in record.maximum:
            yield record.maximum[slot], True


async def _tell_excess(connection: AsyncConnection, excess: _Excess) -> str:
    kind, part = _KINDS[len(excess.above) - 1], _KINDS[len(excess.above)]
    owners = await shares.name_all(
        connection, _ROWS[len(excess.above) - 1], excess.above[-1:]
    )
    names = await shares.name_all(
        connection, _ROWS[len(excess.above)], {path[-1] for path in excess.parts}
    )
    told = [
        f"{names.get(path[-1], path[-1])} {describe_amount(excess.slot, amount)}"
        for path, amount in sorted(excess.parts.items(), key=lambda p: -p[1])
    ]
    if len(told) > _MOST_NAMED:
        told[_MOST_NAMED:] = [f"and {len(told) - _MOST_NAMED} more"]
    most = describe_amount(excess.slot, excess.most)
    bound = (
        f"it may have at most {most}; guarantee them less, or raise the maximum"
        if excess.by_maximum
        else f"it is guaranteed {most}; guarantee them less, or it more"
    )
    return (
        f"{kind} {owners.get(excess.above[-1], excess.above[-1])}: its {part}s would be"
        f" guaranteed {describe_amount(excess.slot, excess.total)} {excess.slot} in all"
        f" ({', '.join(told)}), and {bound}"
    )


def warn(
    settings: Settings, scope: Scope, capacity: Mapping[str, int], names: Sequence[str]
) -> list[str]:
    """Say what cannot be kept of what is guaranteed to a scope and those beside it.

    *names* are those of the scope: its domain, project and user.
    """
    if not settings[scope].guaranteed:
        return []
    path = path_of_scope(scope)
    beside = [
        record
        for other, record in settings.items()
        if len(path_of_scope(other)) == len(path)
        and path_of_scope(other)[:-1] == path[:-1]
    ]
    return tell_shortage(beside, capacity, names[:-1])


def tell_shortage(
    records: Iterable[ShareRecord], capacity: Mapping[str, int], above: Sequence[str]
) -> list[str]:
    """Say of what more is guaranteed, to those who stand side by side, than there is.

    *above* are the names of the domain and project they are in.
    """
    sums: dict[str, int] = {}
    for record in records:
        for slot, amount in record.guaranteed.items():
            sums[slot] = sums.get(slot, 0) + amount
    whose = f"{_KINDS[len(above)]}s" + (f" of {above[-1]}" if above else "")
    return [
        f"{whose} are guaranteed {describe_amount(slot, total)} {slot} in all, and the"
        f" nodes of the group have {describe_amount(slot, capacity.get(slot, 0))} now:"
        " not all of it can be kept at once"
        for slot, total in sorted(sums.items())
        if total > capacity.get(slot, 0)
    ]
