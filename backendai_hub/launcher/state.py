"""What the launcher chose once and keeps: the ports, and the first administrator."""

from __future__ import annotations

import msgspec

from backendai_hub.launcher.files import write_private
from backendai_hub.launcher.folder import DataFolder


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The launcher's memory, ``run/state.json``; a port of 0 is not chosen yet.

    ``public`` is where browsers come in; the others are for the processes among
    themselves: the router's table of routes (``proxy_api``), its way to the
    sessions (``gateway``), JupyterHub (``hub``), the hub service (``service``) and
    where agents call in (``agents``).
    """

    public: int = 0
    proxy_api: int = 0
    gateway: int = 0
    hub: int = 0
    service: int = 0
    agents: int = 0
    admin: str = "admin"
    password_shown: bool = False
    hub_api_url: str = ""
    """Set while the platform serves a JupyterHub that the site runs itself."""


def load_state(folder: DataFolder) -> State:
    """Read what was remembered; a new data directory remembers nothing."""
    try:
        return msgspec.json.decode(folder.state.read_bytes(), type=State)
    except FileNotFoundError:
        return State()


def save_state(folder: DataFolder, state: State) -> None:
    """Remember *state*."""
    write_private(folder.state, msgspec.json.format(msgspec.json.encode(state)))
