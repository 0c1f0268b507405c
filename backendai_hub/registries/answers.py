"""What a registry's answers mean: documents, pages, or a sentence of what is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from backendai_hub.core.errors import (
    RegistryError,
    RegistryLacksError,
    RegistryRefusedError,
    RegistryUnsupportedError,
)
from backendai_hub.registries.connection import Answer, Ask, Connection

T = TypeVar("T")

MOST_PAGES: Final = 1000

# Before there was a code for it, registries took a tag to delete for a bad digest.
_UNSUPPORTED: Final = frozenset({"UNSUPPORTED", "DIGEST_INVALID"})
_LONGEST_TOLD: Final = 200


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class _Problems(msgspec.Struct, frozen=True):
    errors: list[_Problem] = []


async def fetch(connection: Connection, request: Ask, what: str) -> Answer:
    """Send *request*; raises a sentence about *what* unless it was carried out."""
    answer = await connection.ask(request)
    if 200 <= answer.status < 300:
        return answer
    raise explain(connection, answer, what)


def explain(connection: Connection, answer: Answer, what: str) -> RegistryError:
    """Make an error of an *answer* that refuses *what*."""
    problem = _first_problem(answer.body)
    told = " ".join(filter(None, (problem.code, problem.message)))
    # Redacted before it is cut: half a password is one, too.
    told = connection.redact(told)[:_LONGEST_TOLD]
    answered = f"{answer.status}{told and f', {told!r}'}"
    unsupported = answer.status in {405, 501} or problem.code in _UNSUPPORTED
    if unsupported:
        return connection.error(
            f"does not do this: {what} (it answered {answered})",
            RegistryUnsupportedError,
            answered=answer.status,
        )
    if answer.status in {401, 403}:
        return connection.error(
            f"refuses {what} (it answered {answered}); give it the name and password"
            " of a user who may do this",
            RegistryRefusedError,
            answered=answer.status,
        )
    if answer.status == 404:
        return connection.error(
            f"does not have {what} (it answered {answered})",
            RegistryLacksError,
            answered=404,
        )
    wait = answer.headers.get("Retry-After", "")
    later = f"; try again in {wait} seconds" if wait.isdecimal() else ""
    return connection.error(
        f"failed at {what}: it answered {answered}{later}", answered=answer.status
    )


def read(connection: Connection, body: bytes, kind: type[T], what: str) -> T:
    """Read *body* as JSON of the shape *kind*."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise connection.error(
            f"sent {what} in a shape that cannot be read: {error}"
        ) from error


async def follow_pages(
    connection: Connection, request: Ask, what: str
) -> AsyncIterator[Answer]:
    """Yield one answer for each page of *request*.

    Of the link to the next page only the query is used, so that no registry can send
    our requests anywhere else.
    """
    seen = set[str]()
    while len(seen) < MOST_PAGES:
        seen.add(request.query)
        answer = await fetch(connection, request, what)
        yield answer
        query = find_next(answer.headers.getall("Link", []))
        if query is None:
            return
        if query in seen:
            raise connection.error(f"goes in circles with the pages of {what}")
        request = msgspec.structs.replace(request, query=query)
    raise connection.error(f"did not end {what} after {MOST_PAGES} pages")


def find_next(links: Iterable[str]) -> str | None:
    """Return the query of the link with ``rel="next"``, None if there is none."""
    for link in ",".join(links).split("<")[1:]:
        target, _, parameters = link.partition(">")
        given = parameters.lower().replace('"', "").replace(" ", "").rstrip(",")
        if "rel=next" in given.split(";"):
            return urlencode(parse_qsl(urlsplit(target).query, keep_blank_values=True))
    return None


def _first_problem(body: bytes) -> _Problem:
    try:
        problems = msgspec.json.decode(body, type=_Problems).errors
    except (msgspec.MsgspecError, RecursionError):
        return _Problem()
    return problems[0] if problems else _Problem()
