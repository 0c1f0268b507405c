"""Where the hub service is, and what lets a JupyterHub speak to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from traitlets import Unicode, default
from traitlets.config import Configurable

from backendai_hub.core.configuration import ConfigurationError


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``connection.json``, which the hub service writes."""

    service_url: str
    prefix: str = "/services/backendai/"
    gateway_url: str
    service_token_file: str
    spawner_token_file: str


def read_connection(path: str | Path) -> Connection:
    """Read *path*, or say why a JupyterHub cannot be connected with it."""
    place = Path(path).expanduser().absolute()
    try:
        text = place.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the connection file {place} cannot be read ({error.strerror}); start the"
            " Backend.AI service once, as this user, and it writes the file"
        ) from error
    try:
        return msgspec.json.decode(text, type=Connection)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(
            f"the connection file {place} is not what the service writes: {error}"
        ) from error


class ConnectionSettings(Configurable):
    """The traits of everything in a JupyterHub that speaks to the hub service.

    One file says it all; the other traits are for sites that keep the parts in
    different places, and win over the file.
    """

    connection_file = Unicode(
        help="""Path of the ``connection.json`` that the Backend.AI service writes.

        It names the service's and the gateway's addresses and the files that hold
        the tokens. With it, nothing else here needs to be set.
        """,
    ).tag(config=True)

    service_url = Unicode(
        help="""Address of the service, such as
        ``http://127.0.0.1:8090/services/backendai/``. Default: from the connection
        file.
        """,
    ).tag(config=True)

    service_prefix = Unicode(
        help="""Path under which browsers reach the service on this JupyterHub's
        origin. Default: from the connection file.
        """,
    ).tag(config=True)

    token_file = Unicode(
        help="""Path of a file holding the token of the JupyterHub service that may
        act for users (scope ``custom:backendai:act-for``). It is read again when the
        token in it stops being accepted. Default: from the connection file.
        """,
    ).tag(config=True)

    @default("service_url")
    def _default_service_url(self) -> str:
        return self._from_file("service_url")

    @default("service_prefix")
    def _default_service_prefix(self) -> str:
        if not self.connection_file:
            return "/services/backendai/"
        return self._from_file("prefix")

    @default("token_file")
    def _default_token_file(self) -> str:
        return self._from_file("spawner_token_file")

    def _from_file(self, field: str) -> str:
        if not self.connection_file:
            name = type(self).__name__
            raise ConfigurationError(
                f"c.{name}.connection_file is not set; add to jupyterhub_config.py:"
                " import backendai_spawner;"
                " backendai_spawner.install(c, '/path/to/connection.json')"
            )
        return str(getattr(read_connection(self.connection_file), field))
