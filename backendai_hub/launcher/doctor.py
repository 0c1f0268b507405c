"""Judging a machine: what is good, what could be better, and what must change."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import msgspec

from backendai_hub.client.lockfile import holder
from backendai_hub.core.slots import describe_amount
from backendai_hub.launcher import machine
from backendai_hub.launcher.folder import DataFolder
from backendai_hub.launcher.ports import is_free
from backendai_hub.launcher.state import load_state

_GIB: Final = 1 << 30
_EXTRAS: Final = ("", "hub", "spawner", "agent", "lab")


class Severity(StrEnum):
    """How much a finding matters."""

    GOOD = "good"
    ADVICE = "advice"
    SERIOUS = "serious"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at; ``remedy`` says what to do about it."""

    subject: str
    severity: Severity
    text: str
    remedy: str = ""


def examine(folder: DataFolder) -> list[Finding]:
    """Look at everything that the platform depends on."""
    docker, sandbox = machine.docker_info(), machine.try_bubblewrap()
    return [
        judge_python(sys.version_info[:3]),
        *judge_packages(),
        judge_docker(docker),
        judge_bubblewrap(sandbox),
        *judge_separation(isolated=docker is not None or sandbox == ""),
        judge_namespaces(allowed=machine.user_namespaces()),
        judge_cgroups(machine.cgroup_tier()),
        judge_slirp(present=machine.has_program("slirp4netns")),
        judge_disk(machine.free_space(folder.root)),
        *judge_folder(folder),
        judge_ports(folder),
        judge_clock(folder, synchronised=machine.clock_is_synchronised()),
    ]


def judge_python(version: tuple[int, int, int]) -> Finding:
    """Judge the interpreter."""
    text = f"Python {'.'.join(map(str, version))}"
    if version >= (3, 11, 0):
        return _good("python", text)
    return _serious("python", f"{text} is too old", "install Python 3.11 or newer")


def judge_packages() -> Iterator[Finding]:
    """Judge the versions of what is installed against what we declare."""
    # Imported here because only this command needs it.
    from packaging.requirements import Requirement  # noqa: PLC0415

    try:
        declared = importlib.metadata.requires("backendai-hub") or []
    except importlib.metadata.PackageNotFoundError:
        text = "backendai-hub itself is not installed; it runs from its sources"
        yield _advice("packages", text, "pip install it, or run `make up`")
        return
    count = 0
    for line in declared:
        wanted = Requirement(line)
        if wanted.name == "backendai-hub" or not _applies(wanted):
            continue
        count += 1
        yield from _judge_package(wanted.name, wanted.specifier)
    yield _good("packages", f"{count} requirements looked at")


def _applies(wanted: Any) -> bool:
    if wanted.marker is None:
        return True
    return any(wanted.marker.evaluate({"extra": extra}) for extra in _EXTRAS)


def _judge_package(name: str, specifier: Any) -> Iterator[Finding]:
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        yield _serious(
            "packages", f"{name} is missing", f'pip install "{name}{specifier}"'
        )
        return
    if not specifier.contains(found, prereleases=True):
        text = f"{name} {found} does not fit {specifier}"
        yield _serious("packages", text, f'pip install "{name}{specifier}"')


def judge_docker(info: Mapping[str, Any] | None) -> Finding:
    """Judge the Docker Engine; without live-restore its restart kills sessions."""
    if info is None:
        return _advice(
            "docker",
            "no engine answers; sessions run as processes of this machine",
            "install docker.io (Debian) and start it to run sessions in containers",
        )
    text = f"engine {info.get('ServerVersion', 'of unknown version')}"
    if not info.get("LiveRestoreEnabled"):
        return _serious(
            "docker",
            f"{text} without live-restore: when it restarts, all sessions are killed",
            'put {"live-restore": true} into /etc/docker/daemon.json and reload it'
            " (kill -HUP of dockerd)",
        )
    return _good("docker", f"{text}, live-restore on")


def judge_bubblewrap(said: str | None) -> Finding:
    """Judge the sandbox program, by what starting a sandbox said."""
    if said is None:
        return _advice(
            "bubblewrap",
            "not installed: without Docker, sessions are not separated from each other"
            " and only one user is served",
            "apt-get install bubblewrap",
        )
    if said:
        return _advice(
            "bubblewrap",
            f"installed, but a sandbox does not start: {said}",
            "allow user namespaces, or use Docker",
        )
    return _good("bubblewrap", "sandboxes start")


def judge_separation(*, isolated: bool) -> Iterator[Finding]:
    """Judge what separates sessions; without anything, say so loudly."""
    if isolated:
        yield _good("isolation", "sessions are kept apart")
        return
    remedy = "apt-get install bubblewrap slirp4netns, or use Docker"
    if os.geteuid() != 0:
        text = "NONE: sessions can do what you can do here; one user only is served"
        yield _advice("isolation", text, remedy)
        return
    yield _advice(
        "isolation",
        "NONE: sessions are plain processes of users without rights, which read what"
        " every user here can; one user only is served",
        remedy,
    )
    closed = next(filter(None, map(find_closed, (sys.prefix, sys.base_prefix))), None)
    if closed is not None:
        yield _serious(
            "isolation",
            f"and those users cannot use this Python: {closed} is closed to them",
            f"{remedy}, or install below /opt, Python included",
        )


def find_closed(path: str) -> Path | None:
    """Return the first folder on the way to *path* that others cannot enter."""
    end = Path(path).resolve()
    way = (*reversed(end.parents), end)
    return next((step for step in way if not step.stat().st_mode & 0o001), None)


def judge_namespaces(*, allowed: bool) -> Finding:
    """Judge whether this user may make user namespaces."""
    if allowed:
        return _good("namespaces", "user namespaces may be made")
    return _advice(
        "namespaces",
        "this user may not make user namespaces, so sandboxes cannot start",
        "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000",
    )


def judge_cgroups(tier: str) -> Finding:
    """Judge how limits can be kept."""
    if tier == "writable":
        return _good("cgroups", "version 2, writable: limits are kept by the kernel")
    remedy = "run as root, or in a systemd user session with Delegate=yes"
    if tier == "read-only":
        text = "version 2, not writable: sandboxed sessions are watched, not limited"
        return _advice("cgroups", text, remedy)
    text = "no version 2 hierarchy: sandboxed sessions are watched, not limited"
    return _advice("cgroups", text, "boot with systemd.unified_cgroup_hierarchy=1")


def judge_slirp(*, present: bool) -> Finding:
    """Judge whether sandboxed sessions can have a network of their own."""
    if present:
        return _good("slirp4netns", "found: sandboxes can have their own network")
    return _advice(
        "slirp4netns",
        "not installed: sandboxed sessions have no network, only the platform",
        "apt-get install slirp4netns",
    )


def judge_disk(free: int) -> Finding:
    """Judge the room for databases, logs and the files of sessions."""
    text = f"{describe_amount('mem', free)} free"
    if free < _GIB:
        return _serious("disk", f"only {text}", "make room, or move the data directory")
    if free < 10 * _GIB:
        return _advice("disk", f"only {text}", "sessions keep their files there")
    return _good("disk", text)


def judge_folder(folder: DataFolder) -> Iterator[Finding]:
    """Judge who can read the keys."""
    if not folder.root.exists():
        yield _good("data", f"{folder.root} will be made by `backendai up`")
        return
    if folder.root.stat().st_uid != os.geteuid():
        text = f"{folder.root} belongs to another user"
        yield _serious("data", text, "run the command as that user")
        return
    paths = (folder.root, folder.keys)
    for path in paths:
        if path.exists() and path.stat().st_mode & 0o077:
            text = f"{path} can be entered by other users"
            yield _serious("data", text, f"chmod 700 {path}")
            return
    yield _good("data", f"{folder.root} is closed to others")


def judge_ports(folder: DataFolder) -> Finding:
    """Judge whether the remembered public port is ours or free."""
    port = load_state(folder).public
    if port == 0:
        return _good("ports", "chosen at the first start")
    if holder(folder.lock("router")) is not None:
        return _good("ports", f"{port} is served by our router")
    if is_free("127.0.0.1", port):
        return _good("ports", f"{port} is free")
    return _serious(
        "ports",
        f"{port} is used by another program",
        "stop it, or choose another with `backendai up --port`",
    )


def judge_clock(folder: DataFolder, *, synchronised: bool | None) -> Finding:
    """Judge the clock: certificates and tokens depend on it."""
    authority = folder.key("ca.crt")
    # A day's grace: certificates begin a day before they are made.
    if authority.exists() and authority.stat().st_mtime > time.time() + 86_400:
        return _serious(
            "clock",
            "it is more than a day before the time our certificates were made",
            "set the clock",
        )
    if synchronised is False:
        text = "the kernel's clock is not synchronised"
        return _advice("clock", text, "run chrony or systemd-timesyncd")
    return _good("clock", "synchronised" if synchronised else "after the certificates'")


def _good(subject: str, text: str) -> Finding:
    return Finding(subject=subject, severity=Severity.GOOD, text=text)


def _advice(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject=subject, severity=Severity.ADVICE, text=text, remedy=remedy)


def _serious(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject=subject, severity=Severity.SERIOUS, text=text, remedy=remedy)
