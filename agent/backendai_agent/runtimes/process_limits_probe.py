"""Find out which limits the agent may really set on this node."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from backendai_agent.runtimes.process_limits import (
    Bounds,
    CgroupV1,
    CgroupV2,
    Limits,
    LimitsFailure,
    SystemdUser,
    Watchdog,
)

KINDS: Final = ("cgroup v1", "cgroup v2", "systemd-user", "watchdog")
_LEAF: Final = "agent"
_TRIAL: Final = Bounds(cpu=1000, memory=64 << 20, pids=64)


def find_mounts(mountinfo: str) -> tuple[dict[str, Path], list[Path]]:
    """Read ``/proc/self/mountinfo``: version 1 controllers, version 2 trees."""
    controllers: dict[str, Path] = {}
    unified: list[Path] = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup":
            for name in kind[2].split(","):
                controllers.setdefault(name, Path(fields[4]))
        elif kind[0] == "cgroup2":
            unified.append(Path(fields[4]))
    return controllers, unified


def find_own_groups(cgroups: str) -> dict[str, str]:
    """Read ``/proc/self/cgroup``: where this process is, ``""`` for version 2."""
    places: dict[str, str] = {}
    for line in cgroups.splitlines():
        _, names, place = line.split(":", 2)
        for name in names.split(","):
            places[name] = place
    return places


def choose_limits(prefix: str, *, wanted: str = "auto") -> tuple[Limits, list[str]]:
    """Return the strictest limits that work here, and why stricter ones do not.

    *wanted* names one kind to insist on; then LimitsFailure is raised if it fails.
    """
    mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    own = find_own_groups(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
    controllers, unified = find_mounts(mountinfo)
    tries: dict[str, Callable[[], Limits]] = {
        "cgroup v1": lambda: _try_v1(controllers, own, prefix),
        "cgroup v2": lambda: _try_v2(unified, own, prefix),
        "systemd-user": _try_systemd,
        "watchdog": make_watchdog,
    }
    refused: list[str] = []
    for kind, attempt in tries.items():
        if wanted not in {"auto", kind}:
            continue
        try:
            return attempt(), refused
        except (OSError, LimitsFailure) as error:
            refused.append(f"{kind}: {error}")
    raise LimitsFailure("; ".join(refused) or f"there are no limits called {wanted}")


def make_watchdog() -> Watchdog:
    """Return the limits that work everywhere."""
    return Watchdog(taskset=shutil.which("taskset"), prlimit=shutil.which("prlimit"))


def _try_v1(
    mounts: Mapping[str, Path], own: Mapping[str, str], prefix: str
) -> CgroupV1:
    missing = [n for n in ("cpu", "memory", "pids", "freezer") if n not in mounts]
    if missing:
        raise LimitsFailure(f"no controller {', '.join(missing)} is mounted")
    failure: Exception | None = None
    for delegated in (False, True):
        places = {
            name: path / own.get(name, "/").lstrip("/") if delegated else path
            for name, path in mounts.items()
        }
        limits = CgroupV1(places, prefix)
        try:
            try_out(limits)
        except (OSError, LimitsFailure) as error:
            failure = failure or error
        else:
            return limits
    raise LimitsFailure(str(failure))


def _try_v2(unified: list[Path], own: Mapping[str, str], prefix: str) -> CgroupV2:
    failure = "it is not mounted"
    place = own.get("", "/").removesuffix(f"/{_LEAF}").lstrip("/")
    for mount in unified:
        for base in (mount, mount / place):
            has = (base / "cgroup.controllers").read_text(encoding="ascii").split()
            if not {"cpu", "memory", "pids"} <= set(has):
                failure = f"{base} has no cpu, memory and pids controllers"
                continue
            try:
                if base != mount:
                    _make_room(base)
                limits = CgroupV2(base, prefix)
                try_out(limits)
            except (OSError, LimitsFailure) as error:
                failure = str(error)
            else:
                return limits
    raise LimitsFailure(failure)


def _make_room(base: Path) -> None:
    """Move ourselves below *base*: a group with processes may not limit others."""
    if not os.access(base / "cgroup.subtree_control", os.W_OK):
        raise LimitsFailure(f"{base} is not delegated to us")
    leaf = base / _LEAF
    leaf.mkdir(exist_ok=True)
    for pid in (base / "cgroup.procs").read_text(encoding="ascii").split():
        (leaf / "cgroup.procs").write_text(pid, encoding="ascii")


def try_out(limits: Limits) -> None:
    """Limit a real process and take the limits away again.

    Raises LimitsFailure or OSError: why it cannot be done, and not what clearing away
    makes of it.
    """
    name = f"probe-{uuid.uuid4()}"
    try:
        _limit_trial(limits, name)
    except BaseException:
        with contextlib.suppress(LimitsFailure):
            limits.remove(name)
        raise
    limits.remove(name)


def _limit_trial(limits: Limits, name: str) -> None:
    limits.create(name, _TRIAL)
    script = ['for file do echo 0 > "$file" || exit 1; done', "sh"]
    joined = subprocess.run(  # noqa: S603 - our own script
        ["/bin/sh", "-c", *script, *limits.joins(name)],
        capture_output=True,
        timeout=10,
        check=False,
    )
    if joined.returncode:
        raise LimitsFailure(joined.stderr.decode(errors="replace").strip())


def _try_systemd() -> SystemdUser:
    limits = SystemdUser()
    name = f"probe-{uuid.uuid4()}"
    try:
        tried = subprocess.run(  # noqa: S603 - fixed words
            [*limits.wrap(name, _TRIAL), "/bin/true"],
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LimitsFailure(str(error)) from error
    if tried.returncode:
        raise LimitsFailure(tried.stderr.decode(errors="replace").strip()[:200])
    return limits
