"""Traces: nodes, requests and what else decides, in a form that files can hold.

JSON lines have one record on each; ``kind`` says what it is. CSV has one table for all
kinds, with a head; what a kind has no use for stays empty. Times are whole seconds
from the beginning of the trace.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.slots import ResourceSlots, parse_slots
from backendai_hub.scheduling.plugins import (
    UnknownPolicyError,
    find_placement,
    find_sequencer,
)
from backendai_hub.scheduling.trace_records import (
    Amounts,
    Record,
    TraceGroup,
    TraceLimit,
    TraceNode,
    TraceQuota,
    TraceRequest,
    TraceRunning,
    TraceSession,
    TraceWindow,
)

MOST_RECORDS: Final = 50_000
COLUMNS: Final = (
    "kind", "id", "name", "submit", "owner", "project", "domain", "group", "slots",
    "devices", "run_time", "lifetime", "priority", "architecture", "nodes", "labels",
    "node", "held", "remaining", "scope", "weight", "sequencer", "placement",
    "allow_split", "reserve_after", "max_lifetime", "closed", "starts", "ends",
    "open_to", "notice", "job_priority", "preemptible", "layout", "waited", "ran",
    "guaranteed", "maximum", "reserve_wide_after",
)  # fmt: skip
_INTEGERS: Final = frozenset(
    {"submit", "run_time", "lifetime", "priority", "remaining"}
    | {"reserve_after", "max_lifetime", "starts", "ends", "notice"}
    | {"job_priority", "waited", "ran", "reserve_wide_after"}
)
_PAIRS: Final = ("slots", "labels", "guaranteed", "maximum")
_YES_OR_NO: Final = {"yes": True, "no": False}


class TraceError(InvalidRequestError):
    """A trace that cannot be read; it names the line and the field."""


class Line(msgspec.Struct, frozen=True):
    """A record, and where it stands."""

    number: int
    record: Record


def read_trace(text: str) -> list[Line]:
    """Read a trace, whichever of the two forms it has."""
    lines = text.lstrip("\ufeff").splitlines()
    first = next((line for line in lines if line.strip()), "")
    if not first:
        raise TraceError("the trace is empty; it needs at least one node")
    reading = _read_json(lines) if first.lstrip().startswith("{") else _read_csv(lines)
    found: list[Line] = []
    for line in reading:
        if len(found) >= MOST_RECORDS:
            raise TraceError(
                f"line {line.number}: a trace has at most {MOST_RECORDS} records;"
                " leave some out"
            )
        found.append(line)
    _check(found)
    return found


def _read_json(lines: list[str]) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield Line(number, _refuse_at(number, decoder.decode, line))


def _refuse_at(number: int, read: Callable[[Any], Any], given: Any) -> Any:
    """Read what is given, or refuse it with its line and field."""
    try:
        return read(given)
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".") or "the record"
        raise TraceError(f"line {number}: {field}: {_plain(said)}") from None
    except msgspec.DecodeError as error:
        raise TraceError(f"line {number}: this is no JSON: {error}") from None


def _plain(said: str) -> str:
    return said[:1].lower() + said[1:]


def _read_csv(lines: list[str]) -> Iterator[Line]:
    reader = csv.reader(io.StringIO("\n".join(lines)))
    head: list[str] = []
    for row in reader:
        number = reader.line_num
        if not any(cell.strip() for cell in row):
            continue
        if not head:
            head = [cell.strip() for cell in row]
            _check_head(number, head)
            continue
        if len(row) > len(head):
            raise TraceError(f"line {number}: more cells than the head has columns")
        cells = {
            name: cell.strip()
            for name, cell in zip(head, row, strict=False)
            if cell.strip()
        }
        document = {k: _read_cell(number, k, cell) for k, cell in cells.items()}
        yield Line(
            number, _refuse_at(number, lambda d: msgspec.convert(d, Record), document)
        )


def _check_head(number: int, head: list[str]) -> None:
    for name in head:
        if name not in COLUMNS:
            raise TraceError(
                f"line {number}: there is no column {name[:64]!r}; there are"
                f" {', '.join(COLUMNS)}"
            )
    if "kind" not in head:
        raise TraceError(f"line {number}: kind: the head has to have this column")


def _read_cell(number: int, column: str, cell: str) -> Any:
    try:
        return _CELLS.get(column, str)(cell)
    except (ValueError, KeyError):
        raise TraceError(
            f"line {number}: {column}: {cell[:64]!r} cannot be read"
        ) from None


def _read_weight(cell: str) -> float:
    weight = float(cell)
    if not math.isfinite(weight):
        raise ValueError(cell)
    return weight


def _read_pairs(text: str) -> dict[str, str]:
    """Read ``cpu=2 mem=4g``."""
    pairs = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise ValueError(word)
        pairs[name] = value
    return pairs


def _read_device(text: str) -> dict[str, Any]:
    """Read ``8*gpu:cuda.device=1``."""
    head, colon, slots = text.partition(":")
    count, star, name = head.partition("*")
    if not colon:
        raise ValueError(text)
    return {
        "name": (name if star else head).strip(),
        "count": int(count) if star else 1,
        "slots": _read_pairs(slots),
    }


def _read_held(text: str) -> dict[str, dict[str, str]]:
    """Read ``host:cpu=2 mem=4g+gpu0:cuda.device=1``."""
    parts = (part.partition(":") for part in text.split("+"))
    return {name.strip(): _read_pairs(rest) for name, _, rest in parts}


_CELLS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_PAIRS, _read_pairs),
    "weight": _read_weight,
    "allow_split": _YES_OR_NO.__getitem__,
    "preemptible": _YES_OR_NO.__getitem__,
    "nodes": str.split,
    "open_to": str.split,
    "devices": lambda cell: [_read_device(part) for part in cell.split("+")],
    "held": _read_held,
}


# --- what has to fit together ---------------------------------------------------------


def _check(lines: list[Line]) -> None:
    nodes: dict[str, set[str]] = {}
    slots: set[str] = set()
    seen: dict[tuple[str, str], int] = {}
    for number, record in ((line.number, line.record) for line in lines):
        if isinstance(record, TraceNode):
            once(seen, number, "name", f"the node {record.name}")
            amounts = [
                read_amounts(number, "slots", record.slots),
                *(read_amounts(number, "devices", d.slots) for d in record.devices),
            ]
            slots.update(slot for bag in amounts for slot in bag)
            nodes[record.name] = set()
        elif isinstance(record, TraceSession):
            once(seen, number, "id", f"the session {record.id}")
    if not nodes:
        raise TraceError("the trace has no node; there is nothing to run on")
    if not slots:
        raise TraceError("the nodes of the trace have nothing to give")
    for number, record in ((line.number, line.record) for line in lines):
        _check_names(number, record, nodes, slots)


def once(seen: dict[tuple[str, str], int], number: int, field: str, what: str) -> None:
    """Note what there may be only one of."""
    before = seen.setdefault((field, what), number)
    if before != number:
        raise TraceError(f"line {number}: {field}: {what} is in line {before} already")


def _check_names(
    number: int, record: Record, nodes: Mapping[str, object], slots: set[str]
) -> None:
    match record:
        case TraceRequest():
            _check_request(number, record, nodes, slots)
        case TraceLimit():
            read_amounts(number, "slots", record.slots)
        case TraceQuota():
            _check_quota(number, record)
        case TraceRunning() if record.node not in nodes:
            raise TraceError(f"line {number}: node: there is no node {record.node!r}")
        case TraceWindow():
            _check_nodes(number, record.nodes, nodes)
            if record.ends <= record.starts:
                raise TraceError(
                    f"line {number}: ends: {record.ends} is not after {record.starts},"
                    " when it starts"
                )
        case TraceGroup():
            _check_policies(number, record)
        case _:
            pass


def _check_policies(number: int, record: TraceGroup) -> None:
    for field, find in (("sequencer", find_sequencer), ("placement", find_placement)):
        try:
            find(getattr(record, field))
        except UnknownPolicyError as error:
            raise TraceError(f"line {number}: {field}: {error}") from None


def _check_request(
    number: int, record: TraceRequest, nodes: Mapping[str, object], slots: set[str]
) -> None:
    asked = read_amounts(number, "slots", record.slots)
    if not len(asked):
        raise TraceError(f"line {number}: slots: it asks for nothing")
    for slot in asked:
        if slot not in slots:
            raise TraceError(f"line {number}: slots: no node has {slot!r}")
    _check_nodes(number, record.nodes, nodes)
    together: dict[str, int] = {}
    for member in record.members:
        for slot, amount in read_amounts(number, "members", member.slots).items():
            together[slot] = together.get(slot, 0) + amount
    if record.members and together != dict(asked):
        raise TraceError(f"line {number}: members: together they do not ask for slots")


def _check_quota(number: int, record: TraceQuota) -> None:
    if record.owner is not None and record.project is None:
        raise TraceError(f"line {number}: project: an owner's quota has to name it")
    guaranteed = read_amounts(number, "guaranteed", record.guaranteed)
    maximum = dict(read_amounts(number, "maximum", record.maximum))
    for slot, amount in guaranteed.items():
        if amount > maximum.get(slot, amount):
            raise TraceError(f"line {number}: guaranteed: more {slot} than the maximum")


def _check_nodes(
    number: int, names: tuple[str, ...], nodes: Mapping[str, object]
) -> None:
    for name in names:
        if name not in nodes:
            raise TraceError(f"line {number}: nodes: there is no node {name!r}")


def read_amounts(number: int, field: str, given: Amounts) -> ResourceSlots:
    """Read amounts as people write them, or name the line they are in."""
    try:
        return parse_slots(given)
    except InvalidRequestError as error:
        raise TraceError(f"line {number}: {field}: {error.message}") from None


def write_trace(records: Iterator[Record] | list[Record]) -> str:
    """Write a trace as JSON lines."""
    return "".join(f"{msgspec.json.encode(record).decode()}\n" for record in records)
