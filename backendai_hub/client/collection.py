"""One noun's part of the client: the same verbs for every noun.

What a noun's fields are is in :mod:`backendai_hub.core.fields`; the service checks
them, so that a client that is older or newer than it can still be used.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from backendai_hub.api.nouns import BulkAnswer
from backendai_hub.client.transport import Again, Transport, segment
from backendai_hub.core.nouns import Noun

T = TypeVar("T", bound=msgspec.Struct)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list; ``next`` is the cursor of the following one."""

    items: list[T]
    next: str | None = None


class Collection(Generic[T]):
    """List, read, make, change and remove items of one noun.

    A *reference* is an id or a name; projects of other domains than one's own are
    ``domain:name``.
    """

    def __init__(self, transport: Transport, act_for: str | None, noun: Noun) -> None:
        self._transport = transport
        self._act_for = act_for
        self._noun = noun

    async def page(
        self,
        /,
        *,
        limit: int | None = None,
        after: str | None = None,
        order: str | None = None,
        search: str | None = None,
        **filters: Any,
    ) -> Page[T]:
        """Return one page; *order* is a field, with ``-`` before it descending.

        A filter may have several values, any of which will do.
        """
        paging = {"limit": limit, "after": after, "order": order, "search": search}
        page: Any = Page[self._noun.shown]  # type: ignore[name-defined]
        found: Page[T] = await self._transport.get(
            self._noun.plural,
            page,
            params={**filters, **paging},
            act_for=self._act_for,
        )
        return found

    async def list(
        self,
        /,
        *,
        order: str | None = None,
        search: str | None = None,
        page_size: int | None = None,
        **filters: Any,
    ) -> AsyncIterator[T]:
        """Yield items, page after page, as they are asked for."""
        after: str | None = None
        while True:
            page = await self.page(
                limit=page_size, after=after, order=order, search=search, **filters
            )
            for item in page.items:
                yield item
            after = page.next
            if after is None:
                return

    async def get(self, reference: str) -> T:
        """Return one item."""
        return await self._transport.get(
            self._path(reference), self._kind, act_for=self._act_for
        )

    async def create(self, /, **fields: Any) -> T:
        """Make an item; what is left out gets its default."""
        return await self._transport.post(
            self._noun.plural,
            fields,
            self._kind,
            act_for=self._act_for,
            again=Again.UNDONE,
        )

    async def update(
        self, reference: str, /, *, if_match: int | None = None, **fields: Any
    ) -> T:
        """Change fields of an item, if it is still at revision *if_match*."""
        return await self._transport.patch(
            self._path(reference),
            fields,
            self._kind,
            if_match=if_match,
            act_for=self._act_for,
        )

    async def purge(
        self,
        reference: str,
        *,
        if_match: int | None = None,
        also: Sequence[str] = (),
    ) -> None:
        """Remove an item for good; with users *also* ``shared-folders``, if wanted."""
        await self._transport.delete(
            self._path(reference),
            params={"also": ",".join(also) or None},
            if_match=if_match,
            act_for=self._act_for,
        )

    async def bulk(
        self,
        *,
        create: Sequence[Mapping[str, Any]] = (),
        update: Mapping[str, Mapping[str, Any]] | None = None,
        purge: Sequence[str] = (),
    ) -> BulkAnswer:
        """Make, change (by reference) and remove many; each ends for itself."""
        wanted: dict[str, builtins.list[Any]] = {
            "create": [dict(fields) for fields in create],
            "update": [
                {"reference": reference, "fields": dict(fields)}
                for reference, fields in (update or {}).items()
            ],
            "purge": builtins.list(purge),
        }
        return await self._transport.post(
            f"{self._noun.plural}/bulk",
            {verb: entries for verb, entries in wanted.items() if entries},
            BulkAnswer,
            act_for=self._act_for,
            again=Again.UNDONE,
        )

    @property
    def _kind(self) -> type[T]:
        kind: Any = self._noun.shown
        shown: type[T] = kind
        return shown

    def _path(self, reference: str) -> str:
        return f"{self._noun.plural}/{segment(reference)}"
