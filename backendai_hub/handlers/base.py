"""The one way HTTP comes in: who asks, may they, decode, do, answer.

A handler method is decorated with :func:`operation`, which names the action it is;
its annotations say what it reads and answers. From these come the access check, the
decoding, the status code and the OpenAPI document.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import secrets
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import msgspec
from jupyterhub.services.auth import HubOAuth
from tornado import web

from backendai_hub.api.problems import CONTENT_TYPE, describe
from backendai_hub.client.agents import AgentClient
from backendai_hub.core.access import PEOPLE, Caller, Principal, can
from backendai_hub.core.errors import (
    ForbiddenError,
    HubError,
    MalformedRequestError,
    TooLargeError,
    TooManyRequestsError,
    UnauthenticatedError,
    UnavailableError,
)
from backendai_hub.core.tenancy import Actor
from backendai_hub.db.signals import Signals
from backendai_hub.handlers.identify import ACT_FOR, Identity, identify
from backendai_hub.handlers.identities import Identities
from backendai_hub.handlers.limiter import RateLimiter, RateState, rate_headers
from backendai_hub.handlers.page_cache import PageCache
from backendai_hub.handlers.problems import as_hub_error
from backendai_hub.handlers.trail import SeenKeys, Trail
from backendai_hub.operations.bulletin import Bulletin
from backendai_hub.operations.explain import ExplanationDesk
from backendai_hub.operations.log_desk import LogDesk
from backendai_hub.operations.logins import LoginDesk
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.queues import QueueDesk
from backendai_hub.operations.simulations import SimulationDesk

log = logging.getLogger("backendai_hub.handlers")

MOST_READ = 4 << 20
"""What is read at all; a connection that sends more is closed."""

Method = Callable[..., Awaitable[Any]]

SAFE_HEADERS: Final = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""With these a browser guesses at nothing, keeps nothing, and frames nothing."""

_STARTED: Final = secrets.token_hex(4)
_REQUESTS: Final = itertools.count(1)


def make_request_id() -> str:
    """Name a request, as no other is named; by it, it is found in logs."""
    return f"{_STARTED}{next(_REQUESTS):08x}"


@dataclass(frozen=True)
class Credentials:
    """The tokens this process itself checks, without asking JupyterHub."""

    spawner: str
    router: str


@dataclass(frozen=True)
class Service:
    """What handlers work with; one per process, in the application's settings."""

    platform: Platform
    signals: Signals
    credentials: Credentials
    prefix: str
    hub_auth: HubOAuth | None = None
    assets: str = ""
    stopping: list[bool] = field(default_factory=list)
    limiter: RateLimiter = field(default_factory=RateLimiter)
    logins: LoginDesk = field(default_factory=LoginDesk)
    key_logins: SeenKeys = field(default_factory=SeenKeys)
    identities: Identities = field(default_factory=Identities)
    pages: PageCache = field(default_factory=PageCache)
    explanations: ExplanationDesk = field(default_factory=ExplanationDesk)
    simulations: SimulationDesk = field(default_factory=SimulationDesk)
    bulletin: Bulletin = field(default_factory=Bulletin)
    nodes: AgentClient | None = None
    """Who asks nodes something; nobody does where there are no certificates."""
    queues: QueueDesk = field(init=False)
    logs: LogDesk = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queues", QueueDesk(self.explanations))
        object.__setattr__(self, "logs", LogDesk(self.signals, self.nodes))


@dataclass(frozen=True)
class Operation:
    """What :func:`operation` knows of a method, for checks and for OpenAPI."""

    action: str
    status: int
    summary: str
    body: Any
    answer: Any
    query: Any
    filters: tuple[str, ...]
    """Parameters by which a list of nouns can be narrowed, beside its paging."""
    method: str


def operation(
    action: str,
    *,
    status: int = 200,
    query: Any = None,
    body: Any = None,
    answer: Any = None,
    filters: tuple[str, ...] = (),
) -> Callable[[Method], Callable[..., Awaitable[None]]]:
    """Make a handler method do *action*: check access, decode, answer as JSON.

    *body* and *answer* are the method's own annotations where they can be written
    down, and given here where they are made for each noun.
    """

    def decorate(method: Method) -> Callable[..., Awaitable[None]]:
        hints = typing.get_type_hints(method)
        documentation = inspect.getdoc(method) or ""
        described = Operation(
            action=action,
            status=status,
            summary=documentation.split("\n\n")[0].replace("\n", " "),
            body=body or hints.get("body"),
            answer=answer or hints.get("return"),
            query=query,
            filters=filters,
            method=method.__name__,
        )

        @functools.wraps(method)
        async def wrapper(self: APIHandler, *path: str) -> None:
            async with self.trail.doing(described.action):
                arguments = [self.decode_body(described.body)] if described.body else []
                self.set_status(status)
                answered = await method(self, *path, *arguments)
                if answered is not None:
                    self.write_json(answered)
                elif status == 204:
                    self.clear_header("Content-Type")

        wrapper.operation = described  # type: ignore[attr-defined]
        return wrapper

    return decorate


class APIHandler(web.RequestHandler):
    """A route of the API. Subclasses only decorate methods."""

    path: ClassVar[str] = ""
    most_body: ClassVar[int] = 1 << 20
    many: ClassVar[bool] = False
    """Whether it does many things at once, each of which is audited for itself."""
    request_id: str = ""
    principal: Principal
    user: Actor | None = None
    rate: RateState | None = None
    on_behalf: str = ""
    """Who really asks, where somebody acts for another."""

    @property
    def service(self) -> Service:
        """What this process works with."""
        service: Service = self.settings["service"]
        return service

    @property
    def platform(self) -> Platform:
        """The control plane."""
        return self.service.platform

    @functools.cached_property
    def trail(self) -> Trail:
        """The rows this request leaves in the audit."""
        return Trail(self)

    @property
    def hub_auth(self) -> HubOAuth | None:
        """JupyterHub's authenticator; its login helpers look for it here."""
        return self.service.hub_auth

    def set_default_headers(self) -> None:
        """Answer nothing that a browser may guess at, keep, or frame."""
        # Asked for again for a refusal, which has to name the same request.
        self.request_id = self.request_id or make_request_id()
        for name, value in SAFE_HEADERS.items():
            self.set_header(name, value)
        self.set_header("X-Request-Id", self.request_id)
        self.clear_header("Server")

    def compute_etag(self) -> None:
        """Make none of what is answered: nouns say their own, which is a revision."""

    def check_xsrf_cookie(self) -> None:
        """Leave it to ``prepare``: only cookies need it, and JupyterHub checks it."""

    async def prepare(self) -> None:
        """Find out who asks, and whether they may; unlisted methods are refused."""
        method = getattr(self, (self.request.method or "").lower(), None)
        described: Operation | None = getattr(method, "operation", None)
        if described is None:
            return  # tornado answers 405 for what has no method here
        async with self.trail.entering(described.action):
            await self.enter(described)

    async def enter(self, described: Operation) -> None:
        """Find out who asks; raises a refusal if they may not."""
        self.principal = await self.identify()
        if can(self.principal, described.action):
            return
        if self.principal.caller is Caller.ANONYMOUS:
            raise UnauthenticatedError(
                "log in, or send a token in the header 'Authorization: token …'"
            )
        raise ForbiddenError(
            f"{self.principal.caller} may not do {described.action} here"
        )

    async def identify(self) -> Principal:
        """Tell whose credential this request carries; nobody's is anonymous."""
        found = await identify(self)
        self.user = found.actor
        self.on_behalf = found.on_behalf
        self.trail.know(found)
        if found.principal.caller in PEOPLE and found.actor is not None:
            self._limit(found)
        await self.trail.note_entry()
        return found.principal

    def recognise(self, found: Identity) -> None:
        """Learn who asks, before it is known whether they may come in."""
        self.trail.know(found)

    def _limit(self, found: Identity) -> None:
        """Count the request; raises :class:`TooManyRequestsError` beyond the limit."""
        assert found.actor is not None
        state = self.service.limiter.count(found.rate_key, found.rate_limit)
        self.rate = state
        self._show_rate()
        if state.exceeded:
            raise TooManyRequestsError(
                f"more than {state.limit} requests in {state.window // 60} minutes;"
                f" the window ends in {state.retry_after} seconds",
                retry_after=state.retry_after,
            )

    def _show_rate(self) -> None:
        if self.rate is None:
            return
        for name, value in rate_headers(self.rate):
            self.set_header(name, value)

    async def ask_hub(self) -> dict[str, Any] | None:
        """Ask JupyterHub whose token or cookie this is; None: nobody's."""
        auth = self.service.hub_auth
        if auth is None:
            return None
        try:
            model: dict[str, Any] | None = await auth.get_user(self, sync=False)
        except web.HTTPError as error:
            if error.status_code >= 500:
                raise UnavailableError(
                    "JupyterHub does not answer at the moment; try again in a few"
                    " seconds",
                    retry_after=3,
                ) from error
            raise ForbiddenError(
                error.log_message or "refused by JupyterHub"
            ) from error
        if model is not None and not getattr(self, "_token_authenticated", False):
            # A cookie came by itself; that the page meant it has to be shown.
            try:
                if self.request.method not in {"GET", "HEAD"}:
                    self._check_same_origin()
                    auth.check_xsrf_cookie(self)
            except (web.HTTPError, ForbiddenError) as error:
                self.trail.suspect(str(model.get("name", "")))
                if isinstance(error, ForbiddenError):
                    raise
                raise ForbiddenError(
                    "the header X-XSRFToken is missing or wrong; reload the page"
                ) from error
        return model

    def _check_same_origin(self) -> None:
        site = self.request.headers.get("Sec-Fetch-Site", "same-origin")
        if site not in {"same-origin", "none"}:
            raise ForbiddenError("a page of another site may not do this")

    async def identify_again(self) -> bool:
        """Ask anew whose credential this is; tell whether it still may do this."""
        self.__dict__.pop("_cached_hub_user", None)
        method = getattr(self, (self.request.method or "").lower())
        try:
            self.principal = await self.identify()
        except HubError:
            return False
        return can(self.principal, method.operation.action)

    def require_user(self) -> Actor:
        """Return the user who asks; a spawner has to name one."""
        if self.user is None:
            raise MalformedRequestError(f"name the user in the header {ACT_FOR}")
        return self.user

    def decode_body(self, kind: Any) -> Any:
        """Read the JSON body strictly; raises :class:`MalformedRequestError`."""
        if len(self.request.body) > self.most_body:
            raise TooLargeError(
                f"the body has {len(self.request.body)} bytes; the most is"
                f" {self.most_body}"
            )
        content_type = self.request.headers.get("Content-Type", "").split(";")[0]
        if content_type.strip().lower() != "application/json":
            raise MalformedRequestError("send the body as 'application/json'")
        try:
            return msgspec.json.decode(self.request.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedRequestError(f"the body cannot be read: {error}") from error

    def decode_query(self, kind: Any, *, tolerant: bool = False) -> Any:
        """Read the query parameters into *kind*.

        Unknown ones are refused, but to nodes and routers, which may be newer.
        """
        given = {k: self.get_query_argument(k) for k in self.request.query_arguments}
        names = kind.__struct_fields__
        for name in given:
            if name not in names and not tolerant:
                raise MalformedRequestError(
                    f"{name[:64]!r} is not a parameter here; use"
                    f" {', '.join(sorted(names))}"
                )
        try:
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            raise MalformedRequestError(
                f"a parameter cannot be read: {error}"
            ) from None

    def write_json(self, answer: Any) -> None:
        """Send *answer*."""
        self.set_header("Content-Type", "application/json")
        self.write(msgspec.json.encode(answer))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a refusal as a problem document; the unexpected with an id only."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        problem = as_hub_error(error, status_code)
        if problem.status >= 500 and not isinstance(error, HubError):
            log.error("request %s failed", self.request_id, exc_info=error)
        self.set_status(problem.status)
        self._show_rate()  # tornado has cleared what was set before
        if problem.status == 401:
            self.set_header("WWW-Authenticate", 'token realm="backendai"')
        if "retry_after" in problem.fields:
            self.set_header("Retry-After", str(problem.fields["retry_after"]))
        self.set_header("Content-Type", CONTENT_TYPE)
        self.finish(msgspec.json.encode(describe(problem, self.request_id)))

    def log_exception(self, *arguments: Any) -> None:
        """Leave it to ``write_error``: refusals are answers, not log lines."""
