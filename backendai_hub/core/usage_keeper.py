"""Keeps what nodes have measured in the last minutes, in memory and within bounds.

A *subject* is a container whose measurements are taken: whose it is was looked up once,
and nobody else's node may tell of it. Counters of a container may begin anew when its
agent does; the keeper's sums go on. Moments are given by the caller, in Unix seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from backendai_hub.core.live_usage import (
    FRESH_SECONDS,
    DeviceSeries,
    DeviceUse,
    LiveNode,
    LiveSession,
    UsageNow,
    UsageSeries,
    UsageTotals,
    add_up,
    find_mean,
    find_most,
)
from backendai_hub.core.measures import DeviceSample, Sample
from backendai_hub.core.rings import Ring

SAMPLES: Final = 180
"""How many moments are kept of a container; at one in five seconds, 15 minutes."""
KEPT_SECONDS: Final = 900.0
SESSIONS: Final = 10_000
"""Of how many sessions measurements are kept; more push out those not heard longest."""
_MOST_SUM: Final = 1 << 62
"""More than this no database takes."""
_LONGEST_STEP: Final = 15.0
"""What lies longer between two measurements was not measured."""

_SERIES: Final = (
    "cpu",
    "memory",
    "read_rate",
    "write_rate",
    "receive_rate",
    "send_rate",
    "utilization",
    "device_memory",
)
_COUNTERS: Final = (
    "cpu_seconds",
    "read_bytes",
    "written_bytes",
    "received_bytes",
    "sent_bytes",
)
_ADDED: Final = (
    "cpu",
    "cpu_limit",
    "memory",
    "memory_limit",
    "memory_peak",
    "read_rate",
    "write_rate",
    "receive_rate",
    "send_rate",
    "device_memory",
    "device_memory_limit",
    *_COUNTERS,
)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A container, whose it is, and what it may use.

    ``devices`` are the models of those it has, by name and slices (bits).
    """

    id: str
    session_id: str
    agent_id: str
    owner_id: str
    domain_id: str
    node: str = ""
    host: str = "main1"
    rank: int = 0
    cpu_limit: float | None = None
    memory_limit: int | None = None
    devices: Mapping[tuple[str, int], str] = {}


class _Device:
    """One device of one container."""

    def __init__(self, subject: Subject, sample: DeviceSample, model: str) -> None:
        self.use = _describe(sample, model, subject.host)
        self.ring = Ring(2, SAMPLES)

    def note(self, at: float, sample: DeviceSample) -> None:
        """Keep what it does at *at*."""
        self.use = _describe(sample, self.use.model, self.use.host)
        self.ring.append(at, (sample.utilization, sample.memory))

    def series(self, since: float) -> DeviceSeries:
        """Return what was kept after *since*."""
        times, (utilization, memory) = self.ring.read(since)
        use = self.use
        return DeviceSeries(
            name=use.name,
            model=use.model,
            host=use.host,
            slices=use.slices,
            memory_limit=use.memory_limit,
            time=times,
            utilization=_or_empty(utilization),
            memory=_or_empty(memory),
        )


class _Container:
    """What is kept of one container."""

    def __init__(self, subject: Subject, totals: UsageTotals) -> None:
        self.subject = subject
        self.totals = totals
        self.written = totals
        self.now: UsageNow | None = None
        self.is_former = False
        """Another one has taken its place; what it still uses is not told."""
        self.ring = Ring(len(_SERIES), SAMPLES)
        self.devices: dict[tuple[str, int], _Device] = {}
        self._counted: dict[str, float] = {}

    def note(self, at: float, sample: Sample) -> None:
        """Keep *sample*, taken at *at*."""
        known = self.subject.devices
        held = [d for d in sample.devices if (d.device, d.slices) in known]
        for device in held:
            key = (device.device, device.slices)
            if key not in self.devices:
                self.devices[key] = _Device(self.subject, device, known[key])
            self.devices[key].note(at, device)
        uses = [self.devices[d.device, d.slices].use for d in held]
        self._count(at, sample, uses)
        self.now = show(
            at,
            sample,
            uses,
            cpu_limit=self.subject.cpu_limit,
            memory_limit=self.subject.memory_limit,
            totals=self.totals,
        )
        self.ring.append(at, [getattr(self.now, name) for name in _SERIES])

    def tell(self, now: float) -> UsageNow | None:
        """Return what it uses, if that is known of *now*."""
        known = self.now is not None and is_fresh(self.now.at, now)
        return self.now if known and not self.is_former else None

    def _count(self, at: float, sample: Sample, uses: list[DeviceUse]) -> None:
        """Go on with the sums; where an agent counts anew, nothing counts twice."""
        sums: dict[str, Any] = {}
        for name in _COUNTERS:
            value = getattr(sample, name)
            total = getattr(self.totals, name)
            if value is not None:
                last = self._counted.get(name)
                if last is None:  # the first that this process hears of it
                    total = max(value, total or 0)
                else:
                    total = min(_MOST_SUM, (total or 0) + max(0, value - last))
                self._counted[name] = value
            sums[name] = total
        memory = add_up(use.memory for use in uses)
        self.totals = UsageTotals(
            memory_peak=find_most((self.totals.memory_peak, sample.memory)),
            device_seconds=self._count_devices(at, uses),
            device_memory_peak=find_most((self.totals.device_memory_peak, memory)),
            **sums,
        )

    def _count_devices(self, at: float, uses: list[DeviceUse]) -> float | None:
        busy = add_up(use.utilization for use in uses)
        if busy is None:
            return self.totals.device_seconds
        step = 0.0 if self.now is None else at - self.now.at
        if not 0 < step <= _LONGEST_STEP:
            step = 0.0
        return (self.totals.device_seconds or 0.0) + busy * step


class _Session:
    """What is kept of one session."""

    def __init__(self, subject: Subject) -> None:
        self.id = subject.session_id
        self.owner_id = subject.owner_id
        self.domain_id = subject.domain_id
        self.containers: dict[str, _Container] = {}
        self.noted_at = 0.0
        self.number = 0
        self._shown: tuple[int, LiveSession | None] = (-1, None)

    def live(self, now: float) -> LiveSession | None:
        """Return what it uses now; None if that is not known."""
        if not is_fresh(self.noted_at, now):
            return None
        number, shown = self._shown
        if number != self.number:
            used = join(self._fresh(now))
            shown = None if used is None else _of_session(self.id, used)
            self._shown = (self.number, shown)
        return shown

    def _fresh(self, now: float) -> list[UsageNow]:
        found = (container.tell(now) for container in self.containers.values())
        return [used for used in found if used is not None]


class _Node(msgspec.Struct, frozen=True):
    """What is used of one node."""

    agent_id: str
    name: str
    now: UsageNow
    number: int


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one container, to be shown."""

    subject: Subject
    now: UsageNow | None
    series: UsageSeries
    devices: list[DeviceSeries]
    totals: UsageTotals


class UsageKeeper:
    """The measurements of the last minutes, of every session and node."""

    def __init__(self, *, most: int = SESSIONS) -> None:
        self._most = most
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._owned: dict[str, set[str]] = {}
        self._subjects: dict[str, _Container] = {}
        self._nodes: dict[str, _Node] = {}
        self._number = 0
        self.kept_from: float | None = None

    # -- taking in -----------------------------------------------------------------

    def subject(self, container_id: str) -> Subject | None:
        """Return what is known of a container, if anything is."""
        found = self._subjects.get(container_id)
        return None if found is None else found.subject

    def learn(self, subject: Subject, totals: UsageTotals) -> None:
        """Take up a container; *totals* are what was written down of it before."""
        session = self._sessions.get(subject.session_id)
        if session is None:
            session = self._sessions[subject.session_id] = _Session(subject)
            self._owned.setdefault(subject.owner_id, set()).add(session.id)
        for other in session.containers.values():
            if other.subject.host == subject.host:
                other.is_former = True
        container = _Container(subject, totals)
        session.containers[subject.id] = self._subjects[subject.id] = container

    def note(self, at: float, sample: Sample) -> None:
        """Keep what was measured of a container that is known."""
        container = self._subjects[sample.id]
        session = self._sessions[container.subject.session_id]
        container.note(at, sample)
        self._number += 1
        session.noted_at, session.number = at, self._number
        self._sessions.move_to_end(session.id)
        self.kept_from = at if self.kept_from is None else self.kept_from
        while len(self._sessions) > self._most:
            self._forget(next(iter(self._sessions)))

    def note_node(self, at: float, agent_id: str, name: str, sample: Sample) -> None:
        """Keep what was measured of a whole node."""
        uses = [_describe(d, "", "") for d in sample.devices]
        used = show(
            at,
            sample,
            uses,
            cpu_limit=sample.cpu_limit,
            memory_limit=sample.memory_limit,
        )
        self._number += 1
        self._nodes[agent_id] = _Node(agent_id, name, used, self._number)

    def forget_old(self, now: float) -> None:
        """Let go of what is older than anybody is shown."""
        for session in list(self._sessions.values()):
            if session.noted_at > now - KEPT_SECONDS:
                break  # those behind it were heard of later
            self._forget(session.id)
        for agent_id, node in list(self._nodes.items()):
            if node.now.at <= now - KEPT_SECONDS:
                del self._nodes[agent_id]

    def _forget(self, session_id: str) -> None:
        session = self._sessions.pop(session_id)
        for container_id in session.containers:
            del self._subjects[container_id]
        owned = self._owned[session.owner_id]
        owned.discard(session_id)
        if not owned:
            del self._owned[session.owner_id]

    # -- showing -------------------------------------------------------------------

    @property
    def number(self) -> int:
        """How many measurements were taken in; what comes later has a greater one."""
        return self._number

    def list_live(
        self, now: float, *, after: int = 0, domain_id: str | None = None
    ) -> Iterator[LiveSession]:
        """Yield what sessions use, the last heard of first, if later than *after*.

        Of one domain, or of all.
        """
        for session in reversed(self._sessions.values()):
            if session.number <= after:
                return
            wanted = domain_id is None or session.domain_id == domain_id
            shown = session.live(now) if wanted else None
            if shown is not None:
                yield shown

    def list_owned(
        self, owner_id: str, now: float, *, after: int = 0
    ) -> Iterator[LiveSession]:
        """Yield what the sessions of one owner use, if heard of later than *after*."""
        for session_id in self._owned.get(owner_id, ()):
            session = self._sessions[session_id]
            shown = session.live(now) if session.number > after else None
            if shown is not None:
                yield shown

    def whose(self, session_id: str) -> tuple[str, str] | None:
        """Return the owner and the domain of a session of which something is kept."""
        session = self._sessions.get(session_id)
        return None if session is None else (session.owner_id, session.domain_id)

    def find_live(self, session_id: str, now: float) -> LiveSession | None:
        """Return what one session uses now, if that is known."""
        session = self._sessions.get(session_id)
        return None if session is None else session.live(now)

    def list_known(self, session_id: str, now: float, since: float) -> list[Known]:
        """List what is kept of a session's containers, the main one first."""
        session = self._sessions.get(session_id)
        containers = [] if session is None else list(session.containers.values())
        return [
            Known(
                subject=container.subject,
                now=container.tell(now),
                series=_read_series(container.ring, since),
                devices=[d.series(since) for d in container.devices.values()],
                totals=container.totals,
            )
            for container in sorted(containers, key=lambda c: c.subject.rank)
        ]

    def find_node(self, agent_id: str, now: float) -> UsageNow | None:
        """Return what is used of a node now, if that is known."""
        node = self._nodes.get(agent_id)
        if node is None or not is_fresh(node.now.at, now):
            return None
        return node.now

    def list_nodes(self, now: float, *, after: int = 0) -> list[LiveNode]:
        """List what is used of nodes, if heard of later than *after*."""
        return [
            _of_node(node)
            for node in self._nodes.values()
            if node.number > after and is_fresh(node.now.at, now)
        ]

    # -- what outlives this process ------------------------------------------------

    def list_unwritten(
        self, now: float, *, also_running: bool = False
    ) -> dict[str, UsageTotals]:
        """Return the sums that are not written down of containers that have ended.

        That is those that are measured no more; or all of them.
        """
        return {
            container.subject.id: container.totals
            for container in self._subjects.values()
            if container.now is not None
            and container.totals != container.written
            and (also_running or not is_fresh(container.now.at, now))
        }

    def note_written(self, container_id: str, totals: UsageTotals) -> None:
        """Note that the sums of a container have been written down."""
        container = self._subjects.get(container_id)
        if container is not None:
            container.written = totals


def is_fresh(at: float, now: float) -> bool:
    """Tell whether what was measured at *at* says something of *now*."""
    return abs(now - at) <= FRESH_SECONDS


def show(
    at: float,
    sample: Sample,
    uses: list[DeviceUse],
    *,
    cpu_limit: float | None,
    memory_limit: int | None,
    totals: UsageTotals | None = None,
) -> UsageNow:
    """Put what was measured in the form in which it is shown."""
    sums = sample if totals is None else totals
    return UsageNow(
        at=at,
        cpu=sample.cpu,
        cpu_limit=cpu_limit,
        memory=sample.memory,
        memory_limit=memory_limit,
        memory_peak=None if totals is None else totals.memory_peak,
        read_rate=sample.read_rate,
        write_rate=sample.write_rate,
        receive_rate=sample.receive_rate,
        send_rate=sample.send_rate,
        utilization=find_mean(use.utilization for use in uses),
        device_memory=add_up(use.memory for use in uses),
        device_memory_limit=add_up(use.memory_limit for use in uses),
        devices=uses,
        **{name: getattr(sums, name) for name in _COUNTERS},
    )


def join(parts: list[UsageNow]) -> UsageNow | None:
    """Add up what several containers use; None if there is nothing."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    devices = [device for part in parts for device in part.devices]
    sums: dict[str, Any] = {
        name: add_up(getattr(p, name) for p in parts) for name in _ADDED
    }
    return UsageNow(
        at=max(part.at for part in parts),
        utilization=find_mean(device.utilization for device in devices),
        devices=devices,
        **sums,
    )


def join_totals(parts: Iterable[UsageTotals]) -> UsageTotals | None:
    """Add up what several containers have used; None if there are none."""
    known = list(parts)
    if not known:
        return None
    names = UsageTotals.__struct_fields__
    sums: dict[str, Any] = {n: add_up(getattr(p, n) for p in known) for n in names}
    return UsageTotals(**sums)


def join_series(parts: list[UsageSeries], step: float) -> UsageSeries:
    """Add up series of several containers, each of which has moments of its own.

    In every *step* seconds each counts with the last that is known of it there.
    """
    if len(parts) <= 1:
        return parts[0] if parts else UsageSeries()
    cells: dict[int, dict[int, int]] = {}
    for number, part in enumerate(parts):
        for index, at in enumerate(part.time):
            cells.setdefault(int(at // step), {})[number] = index
    slots = sorted(cells)
    columns: dict[str, list[float | None]] = {}
    for name in _SERIES:
        of = find_mean if name == "utilization" else add_up
        columns[name] = _or_empty(
            [
                of(
                    values[index]
                    for number, index in cells[slot].items()
                    if (values := getattr(parts[number], name))
                )
                for slot in slots
            ]
        )
    return UsageSeries(time=[(slot + 1) * step for slot in slots], **columns)


def _read_series(ring: Ring, since: float) -> UsageSeries:
    times, columns = ring.read(since)
    values = {n: _or_empty(c) for n, c in zip(_SERIES, columns, strict=True)}
    return UsageSeries(time=times, **values)


def _or_empty(values: list[float | None]) -> list[float | None]:
    return values if any(value is not None for value in values) else []


def _describe(sample: DeviceSample, model: str, host: str) -> DeviceUse:
    bits = sample.slices
    return DeviceUse(
        name=sample.device,
        model=model,
        host=host,
        slices=[n for n in range(bits.bit_length()) if bits >> n & 1],
        utilization=sample.utilization,
        memory=sample.memory,
        memory_limit=sample.memory_limit,
    )


def _of_session(session_id: str, used: UsageNow) -> LiveSession:
    return LiveSession(session_id=session_id, **msgspec.structs.asdict(used))


def _of_node(node: _Node) -> LiveNode:
    used = msgspec.structs.asdict(node.now)
    return LiveNode(agent_id=node.agent_id, name=node.name, **used)
