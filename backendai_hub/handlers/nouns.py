"""The routes of every noun: a collection, one item, and many items at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any

import msgspec
from sqlalchemy.exc import DBAPIError

from backendai_hub.api.nouns import BulkAnswer, BulkResult, bulk_type, page_type
from backendai_hub.core.errors import (
    HubError,
    InvalidRequestError,
    MalformedRequestError,
)
from backendai_hub.core.nouns import NOUNS, Noun, Verb
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.problems import as_hub_error
from backendai_hub.operations import nouns as verbs

MOST_AT_ONCE = 1000
Entry = tuple[Verb, int, Callable[[], Awaitable[Any]], str | None]


class PurgeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is removed along with an item and would otherwise stay, by commas.

    With users: ``shared-folders``.
    """

    also: str = ""


class NounHandler(APIHandler):
    """What the routes of all nouns have in common."""

    def read_precondition(self) -> int | None:
        """Return the revision that ``If-Match`` names; none means any."""
        given = self.request.headers.get("If-Match")
        if given is None or given.strip() == "*":
            return None
        text = given.strip().removeprefix("W/").strip('"')
        if not (text.isascii() and text.isdigit()) or len(text) > 18:
            raise MalformedRequestError(
                f"If-Match: {given[:64]!r} is not the ETag of an answer of this API"
            )
        return int(text)

    def show(self, item: Any) -> Any:
        """Name the item's revision, for ``If-Match`` later on."""
        self.set_header("ETag", f'"{item.revision}"')
        return item

    def read_filters(self) -> dict[str, str]:
        """Return the query parameters; several of one name are one list."""
        return {
            name: ",".join(self.get_query_arguments(name))
            for name in self.request.query_arguments
        }


@cache
def handlers_of(noun: Noun) -> tuple[type[APIHandler], ...]:
    """Make the routes of *noun*; the more exact path comes first."""
    return (_make_bulk(noun), _make_one(noun), _make_collection(noun))


def _make_collection(noun: Noun) -> type[APIHandler]:
    page: Any = page_type(noun)
    words = noun.name.replace("-", " ")

    async def get(self: NounHandler) -> Any:
        items, following = await verbs.list_nouns(
            self.platform, self.principal, noun, self.read_filters()
        )
        return page(items=items, next=following)

    async def post(self: NounHandler, body: Any) -> Any:
        item = await verbs.create_noun(self.platform, self.principal, noun, body)
        place = f"{self.service.prefix}api/{noun.plural}/{item.id}"
        self.set_header("Location", place)
        return self.show(item)

    methods = {
        "get": _method(
            get,
            f"List {noun.plural.replace('-', ' ')}, a page at a time.",
            operation(
                noun.action(Verb.READ), answer=page, filters=("search", *noun.filters)
            ),
        )
    }
    if Verb.CREATE in noun.verbs:
        methods["post"] = _method(
            post,
            f"Make a {words}.",
            operation(
                noun.action(Verb.CREATE),
                status=201,
                body=noun.create_type,
                answer=noun.shown,
            ),
        )
    return _handler(noun, "Collection", f"api/{noun.plural}", methods)


def _make_one(noun: Noun) -> type[APIHandler]:
    words = noun.name.replace("-", " ")

    async def get(self: NounHandler, reference: str) -> Any:
        return self.show(
            await verbs.read_noun(self.platform, self.principal, noun, reference)
        )

    async def patch(self: NounHandler, reference: str, body: Any) -> Any:
        return self.show(
            await verbs.change_noun(
                self.platform,
                self.principal,
                noun,
                reference,
                body,
                revision=self.read_precondition(),
            )
        )

    async def delete(self: NounHandler, reference: str) -> None:
        also = self.decode_query(PurgeQuery).also if noun.purge_also else ""
        await verbs.purge_noun(
            self.platform,
            self.principal,
            noun,
            reference,
            revision=self.read_precondition(),
            also=[thing.strip() for thing in also.split(",") if thing.strip()],
        )

    methods = {
        "get": _method(
            get,
            f"Read one {words}, by id or name.",
            operation(noun.action(Verb.READ), answer=noun.shown),
        ),
        "patch": _method(
            patch,
            f"Change fields of a {words}; what is left out stays.",
            operation(
                noun.action(Verb.UPDATE), body=noun.change_type, answer=noun.shown
            ),
        ),
    }
    if Verb.PURGE in noun.verbs:
        methods["delete"] = _method(
            delete,
            f"Remove a {words} for good.",
            operation(
                noun.action(Verb.PURGE),
                status=204,
                query=PurgeQuery if noun.purge_also else None,
            ),
        )
    return _handler(noun, "", f"api/{noun.plural}/{{reference}}", methods)


def _make_bulk(noun: Noun) -> type[APIHandler]:
    async def post(self: NounHandler, body: Any) -> BulkAnswer:
        context = (self.platform, self.principal, noun)
        creates = getattr(body, "create", ())
        purges = getattr(body, "purge", ())
        work: list[Entry] = [
            *(
                (Verb.CREATE, i, partial(verbs.create_noun, *context, c), _name(c))
                for i, c in enumerate(creates)
            ),
            *(
                (
                    Verb.UPDATE,
                    i,
                    partial(verbs.change_noun, *context, e.reference, e.fields),
                    e.reference,
                )
                for i, e in enumerate(body.update)
            ),
            *(
                (Verb.PURGE, i, partial(verbs.purge_noun, *context, r), r)
                for i, r in enumerate(purges)
            ),
        ]
        if len(work) > MOST_AT_ONCE:
            raise InvalidRequestError(
                f"{len(work)} entries; at most {MOST_AT_ONCE} at once"
            )
        results = [await _attempt(self, noun, *entry) for entry in work]
        failed = sum(1 for result in results if result.error is not None)
        return BulkAnswer(
            succeeded=len(results) - failed, failed=failed, results=results
        )

    methods = {
        "post": _method(
            post,
            f"Make, change and remove many {noun.plural.replace('-', ' ')}; each ends"
            " for itself.",
            operation(noun.action(Verb.READ), body=bulk_type(noun), answer=BulkAnswer),
        )
    }
    methods["many"] = True
    return _handler(noun, "Bulk", f"api/{noun.plural}/bulk", methods)


def _name(wanted: Any) -> str | None:
    return getattr(wanted, "name", None)


async def _attempt(
    handler: NounHandler,
    noun: Noun,
    verb: Verb,
    index: int,
    do: Callable[[], Awaitable[Any]],
    name: str | None,
) -> BulkResult:
    try:
        item = await do()
    except (HubError, DBAPIError) as failure:
        error = as_hub_error(failure, 500)
        await handler.trail.refuse_entry(noun.action(verb), noun.name, name, error)
        return BulkResult(
            verb=verb,
            index=index,
            name=name,
            status=error.status,
            error=error.message,
            code=error.code,
        )
    return BulkResult(
        verb=verb,
        index=index,
        status={Verb.CREATE: 201, Verb.PURGE: 204}.get(verb, 200),
        id=getattr(item, "id", None),
        name=getattr(item, "name", name),
        secret=getattr(item, "secret", None),
    )


def _method(function: Any, summary: str, decorate: Any) -> Any:
    function.__doc__ = summary
    return decorate(function)


def _handler(
    noun: Noun, kind: str, path: str, methods: dict[str, Any]
) -> type[APIHandler]:
    name = f"{noun.shown.__name__}{kind}Handler"
    document = f"{noun.plural.replace('-', ' ').capitalize()} {kind.lower()}".strip()
    return type(name, (NounHandler,), {"path": path, "__doc__": document, **methods})


NOUN_HANDLERS: tuple[type[APIHandler], ...] = tuple(
    handler for noun in NOUNS for handler in handlers_of(noun)
)
