"""The client of the hub service, for notebooks, scripts and our own processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backendai_hub.client.hub import HubClient
    from backendai_hub.client.sync import Client

__all__ = ["Client", "HubClient"]


def __getattr__(name: str) -> Any:
    # Commands that only need this package's lock file start without an HTTP client.
    if name == "Client":
        from backendai_hub.client.sync import Client  # noqa: PLC0415

        return Client
    if name == "HubClient":
        from backendai_hub.client.hub import HubClient  # noqa: PLC0415

        return HubClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
