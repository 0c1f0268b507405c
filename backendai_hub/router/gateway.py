"""From a session's public path to its container, by way of the node's agent."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp.web import BaseRequest, StreamResponse

from backendai_hub.api.agents import Route
from backendai_hub.router.forward import Destination, Forwarder
from backendai_hub.router.refusals import RefusalError
from backendai_hub.router.requests import Address
from backendai_hub.router.table import SessionTable
from backendai_hub.router.targets import BadTargetError, Target, parse_target

_AGENT_DOMAIN: Final = "agent.backendai.internal"
#: How long a request may wait for the route of a session that has just started.
ROUTE_PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """The router's own certificate, and the authority that made the agents'."""

    authority: Path
    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """Return a client context that shows our certificate and checks theirs."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.certificate, self.key)
        return context


class Gateway:
    """Serves requests under the sessions' prefixes."""

    def __init__(
        self,
        table: SessionTable,
        *,
        credentials: Credentials | None,
        log: logging.Logger,
        patience: float = ROUTE_PATIENCE,
    ) -> None:
        self._table = table
        self._credentials = credentials
        self._log = log
        self._patience = patience
        self._targets: dict[tuple[str, str], Target] = {}

    async def serve(
        self,
        request: BaseRequest,
        address: Address,
        *,
        forwarder: Forwarder,
        touch: Callable[[], None] = lambda: None,
    ) -> StreamResponse:
        """Forward *request* to its session's container, or refuse it in words."""
        route = await self._table.find_soon(address.path, patience=self._patience)
        if route is None:
            raise self._no_session()
        try:
            target = self._target(route)
        except (BadTargetError, OSError) as error:
            self._log.error("Agent %s is not spoken to: %s", route.agent_id, error)
            raise _unreachable() from None
        onward = Destination(
            target,
            f"/containers/{route.container}/apps/{route.app}{address.raw}",
            _unreachable,
            touch,
        )
        return await forwarder.forward(request, address, onward)

    def forget_agents(self) -> None:
        """Drop what is kept for agents that no route mentions any more."""
        known = self._table.agents
        for key in [key for key in self._targets if key[0] not in known]:
            del self._targets[key]

    def _target(self, route: Route) -> Target:
        key = (route.agent_id, route.agent_url)
        target = self._targets.get(key)
        if target is None:
            target = self._targets[key] = self._make_target(route)
        return target

    def _make_target(self, route: Route) -> Target:
        plain = parse_target(route.agent_url)
        if self._credentials is None or plain.scheme != "https":
            raise BadTargetError(f"agent {route.agent_id} cannot be trusted")
        # A context of its own for every agent: connections are pooled by context,
        # so a connection to one agent is never taken for another's that has the
        # same address.
        return Target(
            plain.scheme,
            plain.host,
            plain.port,
            plain.base_path,
            tls=self._credentials.context(),
            server_hostname=f"{route.agent_id}.{_AGENT_DOMAIN}",
        )

    def _no_session(self) -> RefusalError:
        if self._table.version is None:
            return RefusalError(
                503,
                "routes-unknown",
                "It is not known yet where sessions run, because the platform's"
                " service has not answered since this router started."
                " Please try again in a moment.",
                ours=True,
                retry_after=5,
            )
        return RefusalError(
            404,
            "no-session",
            "No session is running at this address. It has ended, or has not"
            " started yet. You can start one from the home page.",
            ours=True,
        )


def _unreachable() -> RefusalError:
    return RefusalError(
        503,
        "node-unreachable",
        "The node on which this session runs does not answer. The session may"
        " still be running; your work is lost only if the node is."
        " Please try again in a moment.",
        ours=True,
        retry_after=5,
    )
