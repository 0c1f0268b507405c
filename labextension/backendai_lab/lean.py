"""Import a session's server without what it can never use.

``jupyterhub.singleuser`` shares modules with the Hub, and through them loads
SQLAlchemy, Alembic and every Hub page handler: about a third of a session's start,
for code that a session can never reach because it has no database. JupyterLab loads
two HTTP clients for listings and an extension manager that a session does not turn
on. While the shared modules are imported, small *stand-ins* take the place of the
unreachable ones; afterwards they are removed again, so that anybody who really needs
SQLAlchemy in the same process gets the real one.

This is an economy, never a condition: if a release of JupyterHub or JupyterLab needs
more of a stand-in than it has, everything is imported the ordinary way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final


class DatabaseError(Exception):
    """Stands in for SQLAlchemy's base error, which nothing here can raise."""


class HealthPage:
    """Stands in for the Hub's health page, which a session does not serve."""


def ignore_request(handler: Any) -> None:
    """Stand in for the Hub's request metrics; Jupyter Server keeps its own."""


def make_pypi_manager(*given: Any, **named: Any) -> Any:
    """Stand in for JupyterLab's extension manager until a site turns it on."""
    module = import_module("jupyterlab.extensions.pypi")
    return module.PyPIExtensionManager(*given, **named)


STAND_INS: Final[dict[str, dict[str, Any]]] = {
    "sqlalchemy": {"__path__": []},
    "sqlalchemy.exc": {"SQLAlchemyError": DatabaseError},
    "jupyterhub.orm": {},
    "jupyterhub.roles": {},
    "jupyterhub.handlers": {"__path__": []},
    "jupyterhub.handlers.pages": {"HealthCheckHandler": HealthPage},
    "jupyterhub.metrics": {"prometheus_log_method": ignore_request},
    "jupyterlab.extensions.pypi": {"PyPIExtensionManager": make_pypi_manager},
}

LATER: Final = ("requests",)
"""Modules that are imported for rare occasions, and loaded when one comes."""


def import_later(name: str) -> None:
    """Let *name* be imported now and loaded when something of it is first used."""
    spec = find_spec(name) if name not in sys.modules else None
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


@contextmanager
def stand_ins() -> Iterator[None]:
    """Put the stand-ins in place of modules that are not loaded yet."""
    placed = []
    for name, attributes in STAND_INS.items():
        if name not in sys.modules:
            module = ModuleType(name, "Stands in for a module a session never uses.")
            module.__dict__.update(attributes)
            sys.modules[name] = module
            placed.append(name)
    try:
        yield
    finally:
        for name in placed:
            del sys.modules[name]


def import_lean(names: Iterable[str]) -> None:
    """Import the modules *names*, with stand-ins where that goes well."""
    before = set(sys.modules)
    try:
        for name in LATER:
            import_later(name)
        with stand_ins():
            for name in names:
                import_module(name)
    except (ImportError, AttributeError):
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in {"jupyterhub", "jupyterlab", *LATER}:
                del sys.modules[name]
        for name in names:
            import_module(name)
