"""Runtimes and accelerators by name: ours, and those other packages register."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Final

RUNTIMES: Final = MappingProxyType(
    {
        "docker": "backendai_agent.runtimes.docker:DockerRuntime",
        "process": "backendai_agent.runtimes.process:ProcessRuntime",
        "fake": "backendai_agent.runtimes.fake:FakeRuntime",
    }
)
ACCELERATORS: Final = MappingProxyType(
    {
        "host": "backendai_agent.accelerators.host:HostAccelerator",
        "cuda": "backendai_agent.accelerators.cuda:CudaAccelerator",
        "fake": "backendai_agent.accelerators.fake:FakeAccelerator",
    }
)


class NoSuchPluginError(LookupError):
    """Nothing of that name is installed."""


def find_plugins(group: str, ours: MappingProxyType[str, str]) -> dict[str, str]:
    """Map the names in the entry point *group* to where they are defined.

    Ours are there also where the package was not installed but only unpacked.
    """
    installed = {point.name: point.value for point in entry_points(group=group)}
    return {**ours, **installed}


def load_plugin(name: str, known: dict[str, str]) -> type[Any]:
    """Import the class called *name*."""
    if name not in known:
        raise NoSuchPluginError(
            f"{name!r} is not installed; there are {', '.join(sorted(known))}"
        )
    module, _, attribute = known[name].partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def load_all_plugins() -> Iterator[type[Any]]:
    """Import every runtime and accelerator whose own requirements are installed."""
    for group, ours in (
        ("backendai_agent.runtimes", RUNTIMES),
        ("backendai_agent.accelerators", ACCELERATORS),
    ):
        known = find_plugins(group, ours)
        for name in known:
            with contextlib.suppress(ImportError):
                yield load_plugin(name, known)


def load_runtime(name: str) -> type[Any]:
    """Import the runtime called *name*."""
    return load_plugin(name, find_plugins("backendai_agent.runtimes", RUNTIMES))


def load_accelerator(name: str) -> type[Any]:
    """Import the accelerator called *name*."""
    known = find_plugins("backendai_agent.accelerators", ACCELERATORS)
    return load_plugin(name, known)
