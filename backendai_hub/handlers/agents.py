"""Routes for nodes (mutual TLS) and for the data plane's route table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from backendai_hub.api.agents import (
    AgentReport,
    AssignmentSet,
    EnrollAnswer,
    EnrollRequest,
    LogParcel,
    ReportAnswer,
    RouteTable,
)
from backendai_hub.core.access import Action, Caller, Principal
from backendai_hub.core.errors import MalformedRequestError, NotFoundError
from backendai_hub.core.measures import Measures
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import nodes
from backendai_hub.operations.authority import AGENT_SUFFIX
from backendai_hub.operations.lifecycle import ROUTES
from backendai_hub.operations.live_usage import accept_measures
from backendai_hub.operations.logs import accept_log
from backendai_hub.operations.reports import accept_report

MOST_WAIT = 60.0

Document = TypeVar("Document", AssignmentSet, RouteTable)


class FollowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Wait up to ``wait`` seconds for a version newer than ``newer_than``."""

    newer_than: int = 0
    wait: float = 0.0
    epoch: int | None = None


class RenewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a certificate that lasts longer."""

    csr: str


class FollowHandler(APIHandler):
    """A versioned document that can be waited for."""

    async def follow(
        self,
        name: str,
        load: Callable[[], Awaitable[Document]],
        version: Callable[[Document], tuple[int, int | None]],
    ) -> Document:
        """Return the document once it is newer than asked, or when time is up."""
        query = self.decode_query(FollowQuery, tolerant=True)
        if not 0 <= query.wait <= MOST_WAIT:
            raise MalformedRequestError(f"wait is between 0 and {MOST_WAIT:g} seconds")
        signals = self.service.signals
        clock = asyncio.get_running_loop().time
        until = clock() + query.wait
        while True:
            ticket = signals.ticket(name)
            document = await load()
            left = until - clock()
            # Another version than the asker's counts as news also when it is older:
            # after a restore from a backup it is the truth.
            have, epoch = version(document)
            news = have != query.newer_than or query.epoch not in {None, epoch}
            if news or left <= 0 or self.service.stopping:
                return document
            await signals.wait(name, ticket, left)


class RoutesHandler(FollowHandler):
    """Where sessions answer; for the router."""

    path = "api/routes"

    @operation(Action.READ_ROUTES, query=FollowQuery)
    async def get(self) -> RouteTable:
        """Read the route table, waiting for a newer one if asked to."""
        return await self.follow(
            ROUTES,
            lambda: nodes.load_routes(self.platform),
            lambda d: (d.version, None),
        )


class AgentLinkHandler(FollowHandler):
    """A route on the nodes' own listener: the certificate is the identity."""

    async def identify(self) -> Principal:
        """Read the node's id from its certificate."""
        try:
            certificate = self.request.get_ssl_certificate()
        except AttributeError:  # the node has hung up meanwhile
            certificate = None
        agent_id = _certified(certificate)
        if agent_id is None:
            return Principal(caller=Caller.ANONYMOUS)
        return Principal(caller=Caller.AGENT, name=agent_id, id=agent_id)


def _certified(certificate: Any) -> str | None:
    if not isinstance(certificate, dict):
        return None
    names = [v for k, v in certificate.get("subjectAltName", ()) if k == "DNS"]
    ids = [n.removesuffix(AGENT_SUFFIX) for n in names if n.endswith(AGENT_SUFFIX)]
    return ids[0] if len(names) == len(ids) == 1 else None


class EnrollHandler(AgentLinkHandler):
    """How a node joins."""

    path = "agent/v1/enroll"

    @operation(Action.ENROLL_AGENT, status=201)
    async def post(self, body: EnrollRequest) -> EnrollAnswer:
        """Exchange a single-use token for a certificate."""
        return await nodes.enroll_agent(self.platform, body)


class RenewHandler(AgentLinkHandler):
    """How a node stays."""

    path = "agent/v1/renew"

    @operation(Action.SERVE_AGENT)
    async def post(self, body: RenewRequest) -> EnrollAnswer:
        """Give a node a certificate that lasts longer."""
        return await nodes.renew_certificate(
            self.platform, self.principal.name, body.csr
        )


class AssignmentsHandler(AgentLinkHandler):
    """What a node should run."""

    path = "agent/v1/assignments"

    @operation(Action.SERVE_AGENT, query=FollowQuery)
    async def get(self) -> AssignmentSet:
        """Read the node's assignments, waiting for newer ones if asked to."""
        agent_id = self.principal.name
        return await self.follow(
            f"assignments:{agent_id}",
            lambda: nodes.load_assignments(self.platform, agent_id),
            lambda d: (d.generation, d.epoch),
        )


class ReportHandler(AgentLinkHandler):
    """What a node sees."""

    path = "agent/v1/report"
    most_body = 4 << 20

    @operation(Action.SERVE_AGENT)
    async def put(self, body: AgentReport) -> ReportAnswer:
        """Take in a node's account of itself."""
        return await accept_report(self.platform, self.principal.name, body)


class MeasuresHandler(AgentLinkHandler):
    """What a node measures."""

    path = "agent/v1/usage"

    @operation(Action.SERVE_AGENT, status=204)
    async def put(self, body: Measures) -> None:
        """Take in what a node and its containers use now."""
        await accept_measures(self.platform, self.principal.name, body)


class LogParcelHandler(AgentLinkHandler):
    """What is left of a container."""

    path = "agent/v1/log"
    most_body = 2 << 20

    @operation(Action.SERVE_AGENT, status=204)
    async def put(self, body: LogParcel) -> None:
        """Take in the end of what a container has printed."""
        await accept_log(self.platform, self.principal.name, body)


class NoSuchRouteHandler(APIHandler):
    """Everything that is not a route."""

    async def prepare(self) -> None:
        """Refuse."""
        raise NotFoundError("there is no such route")
