"""Import JupyterHub's single-user server without the Hub's database code.

``jupyterhub.singleuser`` shares modules with the Hub, and through them loads
SQLAlchemy, Alembic and every Hub page handler: about a third of a session's start,
for code that a session can never reach because it has no database. While those
shared modules are imported, small *stand-ins* take the place of the unreachable
ones; afterwards they are removed again, so that anybody who really needs SQLAlchemy
in the same process gets the real one.

This is an economy, never a condition: if a release of JupyterHub needs more of a
stand-in than it has, everything is imported the ordinary way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final

SERVER: Final = "jupyterhub.singleuser.extension"


class DatabaseError(Exception):
    """Stands in for SQLAlchemy's base error, which nothing here can raise."""


class HealthPage:
    """Stands in for the Hub's health page, which a session does not serve."""


def ignore_request(handler: Any) -> None:
    """Stand in for the Hub's request metrics; Jupyter Server keeps its own."""


STAND_INS: Final[dict[str, dict[str, Any]]] = {
    "sqlalchemy": {"__path__": []},
    "sqlalchemy.exc": {"SQLAlchemyError": DatabaseError},
    "jupyterhub.orm": {},
    "jupyterhub.roles": {},
    "jupyterhub.handlers": {"__path__": []},
    "jupyterhub.handlers.pages": {"HealthCheckHandler": HealthPage},
    "jupyterhub.metrics": {"prometheus_log_method": ignore_request},
}


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


def import_single_user() -> Any:
    """Import JupyterHub's server extension and return its application class."""
    before = set(sys.modules)
    try:
        with stand_ins():
            module = import_module(SERVER)
    except (ImportError, AttributeError):
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == "jupyterhub":
                del sys.modules[name]
        module = import_module(SERVER)
    return module.JupyterHubSingleUser
