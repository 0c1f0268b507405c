"""What to do next, as a pure function of what is wanted, seen and remembered.

*desired* comes from the hub service, *observed* from the runtime, *past* from the
agent's own records. The one rule all others serve: the main program of a container
is started at most once. Whether it began is known for certain, because the
container itself removes its activation file on beginning:

- recorded as STARTING, activation still there: it never began, so starting (again)
  is safe, whatever half of a container a crash left behind;
- anything later: it began, so its absence or end is *reported*, never repaired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from backendai_agent.runtimes.base import Observed
from backendai_hub.api.agents import (
    ContainerReport,
    ContainerSpec,
    ContainerState,
    DesiredState,
    DeviceShare,
)

VANISHED = "it disappeared from the node: something other than the agent removed it"


SLICE = "#"
"""Between a device that is cut and the number of a slice of it."""
HELD = "waiting until the previous session has let go of {}"


class Phase(StrEnum):
    """How far a container has come, as the agent wrote it down."""

    STARTING = "starting"
    STARTED = "started"
    READY = "ready"
    ENDED = "ended"
    REMOVED = "removed"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent remembers of one container; ``began`` is never unlearned.

    ``state``, ``reason`` and ``exit_code`` tell how an ENDED container ended,
    ``devices`` what it was given, ``job`` whether it runs a command of its own: the
    hub service says so only while it wants it.
    """

    session_id: str
    phase: Phase
    began: bool = False
    state: ContainerState = ContainerState.EXITED
    reason: str = ""
    exit_code: int | None = None
    devices: list[str] = []
    job: bool = False


def list_devices(spec: ContainerSpec) -> list[str]:
    """List the devices that *spec* has a share of; of one that is cut, the slices."""
    return list(
        dict.fromkeys(name for share in spec.shares for name in _name_parts(share))
    )


def _name_parts(share: DeviceShare) -> Iterator[str]:
    if not share.slices:
        yield share.device
    for number in range(share.slices.bit_length()):
        if share.slices >> number & 1:
            yield f"{share.device}{SLICE}{number}"


class Work(StrEnum):
    """What is being done to a container right now."""

    START = "start"
    PROBE = "probe"
    STOP = "stop"
    SETTLING = "settling"
    """Something ended while the runtime was being asked: look again first."""


@dataclass(frozen=True)
class Start:
    """Make the container and start its main program."""

    spec: ContainerSpec


@dataclass(frozen=True)
class Wait:
    """Do not start the container yet, and say why."""

    spec: ContainerSpec
    reason: str


@dataclass(frozen=True)
class Probe:
    """Wait for the running container to answer."""

    spec: ContainerSpec


@dataclass(frozen=True)
class Stop:
    """End the container; *keep* what is remembered of it for its owner to read."""

    spec: ContainerSpec
    keep: bool = False


@dataclass(frozen=True)
class End:
    """Write down that the container has ended by itself."""

    spec: ContainerSpec
    state: ContainerState
    reason: str
    exit_code: int | None = None


Action = Start | Wait | Probe | Stop | End


def diff(
    desired: Iterable[ContainerSpec],
    observed: Iterable[Observed],
    *,
    past: Mapping[str, Record],
    busy: Mapping[str, Work],
    whole: Collection[str] = (),
) -> list[Action]:
    """List what has to be done. Containers nobody named are never touched.

    A device of *whole* is never in two containers: the hub service may have given up
    waiting for the end of the one before, so who comes next waits here for it.
    """
    desired = list(desired)
    seen = {container.id: container for container in observed}
    given = {spec.id: list_devices(spec) for spec in desired}
    holders = _find_holders(seen, given, past, busy)
    actions: list[Action] = []
    for spec in desired:
        decide = _decide_absent if spec.desired is DesiredState.ABSENT else _decide
        action = decide(spec, seen.get(spec.id), past.get(spec.id), busy.get(spec.id))
        if isinstance(action, Start):
            own = [d for d in given[spec.id] if d in whole or SLICE in d]
            held = [device for device in own if _rivals(device, holders) - {spec.id}]
            if held:
                action = Wait(spec, HELD.format(", ".join(held)))
            else:
                for device in own:
                    holders[device].add(spec.id)
        if action is not None:
            actions.append(action)
    return actions


def _find_holders(
    seen: Mapping[str, Observed],
    given: Mapping[str, Sequence[str]],
    past: Mapping[str, Record],
    busy: Mapping[str, Work],
) -> defaultdict[str, set[str]]:
    """Find which containers, named or not, have which device in hand."""
    holders: defaultdict[str, set[str]] = defaultdict(set)
    for container_id in {*seen, *busy}:
        remembered = past.get(container_id)
        work, found = busy.get(container_id), seen.get(container_id)
        if _may_run(found, remembered, work):
            devices = remembered.devices if remembered else ()
            for device in (*devices, *given.get(container_id, ())):
                holders[device].add(container_id)
    return holders


def _rivals(device: str, holders: Mapping[str, set[str]]) -> set[str]:
    """Return who has a device in hand, or of one that is cut any part of that slice.

    Who has all of a device has its slices, and the other way round.
    """
    parent, is_slice, _ = device.partition(SLICE)
    found = set(holders.get(device, ()))
    if is_slice:
        return found | holders.get(parent, set())
    for other, containers in holders.items():
        if other.startswith(f"{device}{SLICE}"):
            found |= containers
    return found


def _may_run(seen: Observed | None, past: Record | None, work: Work | None) -> bool:
    if seen is not None and seen.running:
        return True
    if work is Work.STOP:  # its start may have to be waited for first
        return past is None or past.phase is Phase.STARTING
    return work is not None


def _decide_absent(
    spec: ContainerSpec,
    seen: Observed | None,
    past: Record | None,
    work: Work | None,
) -> Action | None:
    if work in {Work.STOP, Work.SETTLING}:
        return None
    remembered = past is not None and past.phase is not Phase.REMOVED
    return Stop(spec) if seen or remembered or work else None


def _decide(
    spec: ContainerSpec,
    seen: Observed | None,
    past: Record | None,
    work: Work | None,
) -> Action | None:
    phase = past.phase if past else None
    if work in {Work.START, Work.STOP, Work.SETTLING} or phase is Phase.REMOVED:
        return None
    if phase is Phase.ENDED:
        return Stop(spec, keep=True) if seen and seen.running else None
    if seen and seen.running:
        return None if work is Work.PROBE or phase is Phase.READY else Probe(spec)
    if past is None:
        return _end(spec, seen) if seen else Start(spec)
    return _end(spec, seen) if past.began else Start(spec)


def _end(spec: ContainerSpec, seen: Observed | None) -> End:
    if seen is None:
        return End(spec, ContainerState.GONE, VANISHED)
    return End(spec, ContainerState.EXITED, seen.reason or "it ended", seen.exit_code)


@dataclass(frozen=True)
class Showing:
    """What an action in progress wants shown."""

    state: ContainerState
    progress: float | None = None
    reason: str = ""


def describe(
    spec: ContainerSpec, past: Record | None, showing: Showing | None
) -> ContainerReport:
    """Say in a report where the container *spec* stands."""
    if past is not None and past.phase is Phase.ENDED:
        shown = Showing(past.state, reason=past.reason)
    elif past is None or past.phase is Phase.REMOVED:
        absent = spec.desired is DesiredState.ABSENT or past is not None
        state = ContainerState.GONE if absent else ContainerState.PREPARING
        shown = showing if showing and past is None else Showing(state)
    else:
        ready = past.phase is Phase.READY
        state = ContainerState.RUNNING if ready else ContainerState.CREATING
        shown = showing or Showing(state)
    return ContainerReport(
        id=spec.id,
        session_id=spec.session_id,
        state=shown.state,
        reason=shown.reason[:2000],
        exit_code=past.exit_code if past else None,
        progress=shown.progress,
        bootstrap=bool(spec.bootstrap.strip()),
    )


def find_unknown(
    desired: Sequence[ContainerSpec], observed: Iterable[Observed]
) -> list[str]:
    """List what runs here without the hub service having asked for it."""
    named = {spec.id for spec in desired}
    return sorted(seen.id for seen in observed if seen.id not in named)
