"""Checking the site's configuration before anything is started.

A misspelt section or setting is an error, whichever process it is meant for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from traitlets import HasTraits
from traitlets.config import Config

from backendai_hub.core.configuration import check_keys
from backendai_hub.launcher.importing import imports
from backendai_hub.launcher.settings import Launcher, load_config

_CLASS_CHOICES = ("authenticator_class", "spawner_class", "proxy_class")


def read_checked_config(path: Path | None) -> Config:
    """Read the configuration file and refuse keys that nobody reads.

    Raises :class:`~backendai_hub.core.configuration.ConfigurationError`.
    """
    config = load_config(path)
    if set(config) <= {"Launcher"}:
        check_keys(config, [Launcher])
    else:
        check_keys(config, [Launcher, *configurable_classes(config)])
    return config


def configurable_classes(config: Config) -> Iterator[type]:
    """Yield every class of every process that can be configured.

    This imports all of them, which takes a second; it is done only when a site
    has settings for them.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    # ruff: noqa: PLC0415 - imported here for the reason given above
    with imports():
        from jupyterhub.app import JupyterHub
        from traitlets.config import Configurable

        from backendai_agent.app import BackendAIAgent
        from backendai_agent.plugins import load_all_plugins
        from backendai_hub.app import HubService
        from backendai_hub.router.app import Router
        from backendai_spawner.authenticator import BackendAIAuthenticator
        from backendai_spawner.spawner import BackendAISpawner

    # The site may have chosen classes of its own, which have settings of their own.
    given = config.get("JupyterHub", Config())
    chosen = {name: given[name] for name in _CLASS_CHOICES if name in given}
    hub = JupyterHub(config=Config(JupyterHub=chosen))
    yield from (hub.authenticator_class, hub.spawner_class, hub.proxy_class)
    yield from (BackendAISpawner, BackendAIAuthenticator)
    yield from (JupyterHub, HubService, BackendAIAgent, Router, *hub.classes)
    yield from load_all_plugins()
    yield from _descendants(Configurable)


def _descendants(cls: type[HasTraits]) -> Iterator[type]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)
