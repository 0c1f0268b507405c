"""Drivers by name: ours, and those that other packages register."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Final

import msgspec

from backendai_hub.core.configuration import ConfigurationError
from backendai_hub.storage.drivers.base import StorageDriver

GROUP: Final = "backendai_hub.storage"
OURS: Final = MappingProxyType(
    {
        "btrfs": "backendai_hub.storage.drivers.btrfs:BtrfsDriver",
        "cephfs": "backendai_hub.storage.drivers.cephfs:CephfsDriver",
        "dir": "backendai_hub.storage.drivers.dir:DirDriver",
        "fake": "backendai_hub.storage.drivers.fake:FakeDriver",
        "gluster": "backendai_hub.storage.drivers.gluster:GlusterDriver",
        "xfs": "backendai_hub.storage.drivers.xfs:XfsDriver",
    }
)


def find_driver(name: str) -> type[StorageDriver]:
    """Import the driver called *name*; raises ``ConfigurationError``."""
    known = {**OURS, **{point.name: point.value for point in entry_points(group=GROUP)}}
    if name not in known:
        raise ConfigurationError(
            f"no storage driver {name!r} is installed; there are"
            f" {', '.join(sorted(known))}"
        )
    module, _, attribute = known[name].partition(":")
    found: type[StorageDriver] = getattr(importlib.import_module(module), attribute)
    return found


def make_driver(
    name: str, host: str, path: str, options: dict[str, Any]
) -> StorageDriver:
    """Make the driver of *host*; raises ``ConfigurationError`` about its options."""
    driver = find_driver(name)
    try:
        read = msgspec.convert(options, driver.Options)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"c.HubService.storage_hosts[{host!r}]: driver {name}: {error}"
        ) from error
    return driver(host, path, read)
