"""How registries are asked which repositories they have.

Plain ones keep a catalog; Harbor shows the catalog to its administrators alone and
lists a project's repositories by an API of its own; the large public ones list
nothing, and the administrator names the repositories.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final
from urllib.parse import quote

import msgspec

from backendai_hub.core.errors import (
    RegistryLacksError,
    RegistryRefusedError,
    RegistryUnlistedError,
    RegistryUnsupportedError,
)
from backendai_hub.registries.answers import fetch, follow_pages, read
from backendai_hub.registries.connection import Ask, Connection
from backendai_hub.registries.names import is_repository

PAGE_SIZE: Final = 100

_CATALOG: Final = "the list of its repositories"

log = logging.getLogger(__name__)


class _Catalog(msgspec.Struct, frozen=True):
    repositories: list[str] | None = None


class _HarborRepository(msgspec.Struct, frozen=True):
    name: str


async def list_catalog(
    connection: Connection, project: str | None
) -> AsyncIterator[str]:
    """List the registry's own catalog; of one *project*, if one is given."""
    request = Ask(
        path="/v2/_catalog", query=f"n={PAGE_SIZE}", scope="registry:catalog:*"
    )
    try:
        async for answer in follow_pages(connection, request, _CATALOG):
            page = read(connection, answer.body, _Catalog, _CATALOG)
            for name in keep_named(page.repositories or [], is_repository):
                if project is None or f"{name}/".startswith(f"{project}/"):
                    yield name
    except (
        RegistryRefusedError,
        RegistryLacksError,
        RegistryUnsupportedError,
    ) as error:
        await ping(connection)  # a wrong password is another trouble than no list
        raise connection.error(
            "does not list its repositories"
            f" (it answered {error.fields['answered']}); name the repositories to read",
            RegistryUnlistedError,
            answered=error.fields["answered"],
        ) from error


async def list_harbor(connection: Connection, project: str) -> AsyncIterator[str]:
    """List the repositories of one *project* of a Harbor."""
    what = f"the repositories of project {project}"
    request = Ask(
        path=f"/api/v2.0/projects/{quote(project, safe='')}/repositories",
        query=f"page=1&page_size={PAGE_SIZE}",
        scope="harbor",
        sends_password=True,
    )
    async for answer in follow_pages(connection, request, what):
        page = read(connection, answer.body, list[_HarborRepository], what)
        for name in keep_named((entry.name for entry in page), is_repository):
            if name.startswith(f"{project}/"):
                yield name


async def ping(connection: Connection) -> None:
    """Make sure that a registry answers, and lets us in."""
    what = "the check of its version"
    answer = await fetch(connection, Ask(path="/v2/", scope="registry"), what)
    told = answer.headers.get("Docker-Distribution-Api-Version", "")
    kind = answer.headers.get("Content-Type", "")
    if not told.startswith("registry/") and kind.startswith("text/html"):
        raise connection.error("answered with a page for people: it is no registry")


def keep_named(names: Iterable[str], is_named: Callable[[str], bool]) -> list[str]:
    """Return the names that follow the grammar; how many do not is logged."""
    given = list(names)
    kept = [name for name in given if is_named(name)]
    if len(kept) < len(given):
        log.warning(
            "%d of %d names that a registry sent are none, and left out",
            len(given) - len(kept),
            len(given),
        )
    return kept
