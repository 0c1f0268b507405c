"""What a site says of its storage hosts, read strictly."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from backendai_hub.core.configuration import ConfigurationError

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_OWNER: Final = re.compile(r"(\d{1,10}):(\d{1,10})")
USER_OF_ROOT: Final = (1000, 1000)
"""Who owns people's files where the service is root and nobody says: sessions' user."""


class HostConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One storage host, as ``c.HubService.storage_hosts`` describes it."""

    driver: str = "dir"
    path: str
    owner: str = ""
    """``uid:gid`` of people's files; empty: the service's own, for root 1000:1000."""
    require_mount: bool = False
    """Refuse everything while nothing is mounted at *path*."""
    unmanaged_roots: list[str] = []
    """Below these, administrators may make folders of what exists already."""
    options: dict[str, Any] = {}
    """What is the driver's own."""

    check_seconds: float = 5.0
    """How often it is looked at."""
    slow_seconds: float = 1.0
    """An answer that takes longer is called slow."""
    hang_seconds: float = 15.0
    """A worker that has not answered for so long is replaced."""
    stuck_seconds: float = 30.0
    """What goes on for so long, though nobody waits for it any more, is stuck."""
    most_requests: int = 256
    """More at once are refused."""
    most_per_user: int = 8
    """So many of them may be one person's; their next ones wait."""
    most_uploads_per_user: int = 32
    """So many parts of uploads, which count for themselves, one person may send."""
    most_per_folder: int = 64
    """So many of them may be about one folder."""
    most_scans_per_user: int = 2
    """So many listings and countings may go on at once for one person."""
    most_scans: int = 4
    """So many listings, and so many countings, go on at once in all."""
    turn_seconds: float = 10.0
    """Who has waited so long for their turn is told to come back later."""

    def read_owner(self) -> tuple[int, int] | None:
        """Return whose files are on it; ``None``: those of the worker's user."""
        found = _OWNER.fullmatch(self.owner)
        if found:
            return int(found[1]), int(found[2])
        return USER_OF_ROOT if os.geteuid() == 0 else None


def read_hosts(described: Mapping[str, Any]) -> dict[str, HostConfig]:
    """Read ``storage_hosts``; keys that a host has not are the driver's options.

    Raises :class:`~backendai_hub.core.configuration.ConfigurationError`.
    """
    return {name: _read_host(name, dict(one)) for name, one in described.items()}


def check_default(hosts: Mapping[str, HostConfig], default: str) -> str:
    """Return the host that is taken where nobody names one."""
    if default and default not in hosts:
        known = ", ".join(sorted(hosts)) or "none"
        raise ConfigurationError(
            f"c.HubService.default_storage_host: there is no host {default!r};"
            f" there are {known}"
        )
    return default or (next(iter(hosts)) if len(hosts) == 1 else "")


def _read_host(name: str, described: dict[str, Any]) -> HostConfig:
    where = f"c.HubService.storage_hosts[{name!r}]"
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{where}: a host's name is up to 63 of a-z, 0-9, '.', '_' and '-'"
        )
    own = set(HostConfig.__struct_fields__)
    options = {key: described.pop(key) for key in set(described) - own}
    options.update(described.pop("options", {}))
    try:
        host = msgspec.convert({**described, "options": options}, HostConfig)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    _check_host(where, host)
    return host


def _check_host(where: str, host: HostConfig) -> None:
    for path in (host.path, *host.unmanaged_roots):
        if not Path(path).is_absolute() or ".." in Path(path).parts:
            raise ConfigurationError(f"{where}: {path!r} is not an absolute path")
    if host.owner and not _OWNER.fullmatch(host.owner):
        raise ConfigurationError(f"{where}.owner: write it as 'uid:gid', in numbers")
    if host.owner and os.geteuid() != 0 and host.read_owner() != _own_ids():
        raise ConfigurationError(
            f"{where}.owner: only root can give files to {host.owner}; leave it out, or"
            " run the service as that user"
        )


def _own_ids() -> tuple[int, int]:
    return os.geteuid(), os.getegid()
