"""Count a session as used while it works, though nobody looks.

Jupyter Server counts requests, and messages of kernels and terminals with a page; it
tells JupyterHub when the last of them was. A cell that computes for hours without
printing says nothing, and a terminal whose page is closed prints unnoticed. They
count here, so that no session is taken for unused while it works.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from jupyter_server.utils import ensure_async
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

SETTING: Final = "backendai_last_activity"
"""Jupyter Server counts every setting whose name ends like this."""

INTERVAL: Final = "JUPYTERHUB_ACTIVITY_INTERVAL"
"""Every so many seconds JupyterHub is told; it has a default of its own."""

CHECKS_PER_REPORT: Final = 4


def find_activity(
    kernels: Iterable[Mapping[str, Any]],
    terminals: Iterable[Any],
    *,
    now: datetime,
) -> datetime | None:
    """Tell when a kernel or terminal worked last: now while a kernel is busy."""
    if any(kernel.get("execution_state") == "busy" for kernel in kernels):
        return now
    moments = [getattr(terminal, "last_activity", None) for terminal in terminals]
    return max((moment for moment in moments if moment is not None), default=None)


async def note_activity(server: ServerApp) -> None:
    """Note once what the kernels and terminals of *server* do."""
    settings = server.web_app.settings
    listed: Any = server.kernel_manager.list_kernels()  # type: ignore[no-untyped-call]
    kernels = await ensure_async(listed)
    manager = settings.get("terminal_manager")
    terminals = list(manager.terminals.values()) if manager is not None else []
    worked = find_activity(kernels, terminals, now=datetime.now(UTC))
    if worked is not None:
        settings[SETTING] = worked


def watch_activity(server: ServerApp) -> PeriodicCallback:
    """Note it from now on, several times for each of the reports to JupyterHub."""
    report_seconds = int(os.environ.get(INTERVAL) or 300)

    async def note() -> None:
        await note_activity(server)

    watch = PeriodicCallback(note, 1000 * report_seconds / CHECKS_PER_REPORT)
    watch.start()
    return watch
