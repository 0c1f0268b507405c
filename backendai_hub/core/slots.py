"""Amounts of resources, as integers in each slot's smallest unit.

A *slot* names what can be handed out: ``cpu`` and every ``count`` slot are kept
in thousandths, ``mem`` and every ``bytes`` slot in bytes, ``unique`` slots are 0
or 1 whole thing. Floats never get in: text such as ``"0.5"`` or ``"16g"`` is read
through :class:`~fractions.Fraction` once, at the edge.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

from backendai_hub.core.errors import InvalidRequestError

MILLI: Final = 1000
LARGEST: Final = 1 << 60
"""No amount, request or capacity may exceed this (1 EiB in bytes)."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}(\.[a-z][a-z0-9-]{0,31}(:[a-z0-9.-]{1,31})?)?")
_BYTES = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>[kmgtpe]?)(i?b)?", re.ASCII)
_COUNT = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_NOT_SLOTS: Final = {
    "shmem": "ask for shared memory with the field 'shmem'",
    "sessions": "sessions are limited by 'max_concurrent_sessions' of a policy",
    "sftp-sessions": "they are limited by 'max_concurrent_sftp_sessions' of a policy",
}
_UNITS: Final = {"e": 60, "p": 50, "t": 40, "g": 30, "m": 20, "k": 10, "": 0}


class SlotType(StrEnum):
    """How a slot is counted."""

    COUNT = "count"
    BYTES = "bytes"
    UNIQUE = "unique"


def slot_type(name: str) -> SlotType:
    """Tell how the slot *name* is counted, by the naming convention."""
    return (
        SlotType.BYTES
        if name in {"mem", "shmem"} or name.endswith(".mem")
        else (SlotType.COUNT)
    )


class ResourceSlots(Mapping[str, int]):
    """An immutable bag of amounts. A slot that is not named counts as zero."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Mapping[str, int] | None = None) -> None:
        self._amounts = {k: v for k, v in (amounts or {}).items() if v}

    def __getitem__(self, slot: str) -> int:
        return self._amounts.get(slot, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def __contains__(self, slot: object) -> bool:
        return slot in self._amounts

    def items(self) -> ItemsView[str, int]:
        """Return pairs of slot and amount, faster than a mapping does by itself."""
        return self._amounts.items()

    def __hash__(self) -> int:
        return hash(frozenset(self._amounts.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResourceSlots):
            return NotImplemented
        return self._amounts == other._amounts

    def __repr__(self) -> str:
        return f"ResourceSlots({self._amounts!r})"

    def __add__(self, other: ResourceSlots) -> ResourceSlots:
        return self._combine(other, 1)

    def __sub__(self, other: ResourceSlots) -> ResourceSlots:
        return self._combine(other, -1)

    def _combine(self, other: ResourceSlots, sign: int) -> ResourceSlots:
        names = {**self._amounts, **other._amounts}
        return ResourceSlots({n: self[n] + sign * other[n] for n in names})

    def fits_in(self, free: ResourceSlots) -> bool:
        """Tell whether every amount here is available in *free*."""
        have = free._amounts.get
        return all(amount <= have(slot, 0) for slot, amount in self._amounts.items())

    def to_text(self) -> dict[str, str]:
        """Return the amounts as users write them, such as ``{"cpu": "0.5"}``."""
        return {name: format_amount(name, value) for name, value in self.items()}


def parse_amount(name: str, given: Any) -> int:
    """Read one amount of slot *name*: ``"0.5"``, ``2``, ``"16g"``, ``"512MiB"``.

    Returns the amount in the slot's smallest unit. Raises
    :class:`InvalidRequestError` for anything negative, fractional beyond that
    unit, not finite, absurdly large, or not a number at all. Units are binary
    (``1g`` is 2**30 bytes), as users of the field expect.
    """
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise InvalidRequestError(
            f"{name}: an amount is a number or text such as '2' or '16g',"
            f" not {type(given).__name__}"
        )
    if isinstance(given, int) and abs(given) > LARGEST:
        # Python refuses to write integers of thousands of digits.
        raise InvalidRequestError(f"{name}: no integer this long is an amount")
    text = str(given).strip().lower()
    shown = f"{name}: {text[:40]!r}"
    if len(text) > 40:
        raise InvalidRequestError(f"{shown}… is not a sensible amount")
    if slot_type(name) is SlotType.BYTES:
        match = _BYTES.fullmatch(text)
        if match is None:
            raise InvalidRequestError(
                f"{shown} is not a size; write a number of bytes, or '512m', '16g'"
            )
        exact = Fraction(match["number"]) * (1 << _UNITS[match["unit"]])
        unit = "whole bytes"
    else:
        if _COUNT.fullmatch(text) is None:
            raise InvalidRequestError(
                f"{shown} is not an amount; write a number that is not negative,"
                " such as '1' or '0.5'"
            )
        exact = Fraction(text) * MILLI
        unit = "thousandths"
    return _to_int(shown, exact, unit)


def _to_int(shown: str, exact: Fraction, unit: str) -> int:
    if exact > LARGEST:
        raise InvalidRequestError(f"{shown} is more than any system could hold")
    if exact.denominator != 1:
        raise InvalidRequestError(f"{shown} is finer than {unit}, the smallest unit")
    return exact.numerator


def parse_slots(given: Mapping[str, Any]) -> ResourceSlots:
    """Read a request's slots; raises :class:`InvalidRequestError` naming the slot."""
    if len(given) > 64:
        raise InvalidRequestError(f"{len(given)} slots named; at most 64 make sense")
    for name in given:
        if _NAME.fullmatch(name) is None:
            raise InvalidRequestError(
                f"{name[:80]!r} is not a slot name; write names such as 'cpu', 'mem'"
                " or 'cuda.device'"
            )
        if name in _NOT_SLOTS:
            raise InvalidRequestError(f"{name} is not a slot: {_NOT_SLOTS[name]}")
    return ResourceSlots({name: parse_amount(name, v) for name, v in given.items()})


def format_amount(name: str, amount: int) -> str:
    """Write *amount* as a user would: ``0.5``, ``2``, ``16g``, ``1536m``."""
    if slot_type(name) is SlotType.BYTES:
        for unit, bits in _UNITS.items():
            if amount and amount % (1 << bits) == 0:
                return f"{amount >> bits}{unit}"
        return "0"
    whole, rest = divmod(amount, MILLI)
    return str(whole) if not rest else f"{whole}.{rest:03d}".rstrip("0")


def describe_amount(name: str, amount: int) -> str:
    """Write *amount* in a sentence: ``16 GiB``, ``0.5``. Sizes are rounded down.

    So what lacks a byte of 16 GiB reads as ``15.9 GiB``, and not as enough.
    """
    if slot_type(name) is not SlotType.BYTES:
        return format_amount(name, amount)
    for unit, bits in _UNITS.items():
        if unit and amount >= 1 << bits:
            whole, rest = divmod(amount * 10 >> bits, 10)
            tenths = f".{rest}" if rest else ""
            return f"{whole}{tenths} {unit.upper()}iB"
    return f"{amount} bytes"
