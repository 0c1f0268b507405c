"""One client per JupyterHub process and service, shared by all its spawners."""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from backendai_hub.client.hub import HubClient
from backendai_spawner.connection import ConnectionSettings

_Clients = dict[tuple[str, str], HubClient]
_clients: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients]] = (
    WeakKeyDictionary()
)


def shared_client(settings: ConnectionSettings) -> HubClient:
    """Return the client for *settings* in the running event loop."""
    mine = _clients.setdefault(asyncio.get_running_loop(), {})
    where = (settings.service_url, settings.token_file)
    if where not in mine:
        mine[where] = HubClient(where[0], token_file=where[1])
    return mine[where]


async def close_shared_clients() -> None:
    """Close the running event loop's connections; the next use opens new ones.

    The clients stay: a request under way may still open a connection again, which
    then is closed with the others the next time.
    """
    for client in list(_clients.get(asyncio.get_running_loop(), {}).values()):
        await client.close()
