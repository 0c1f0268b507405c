"""Reading a registry: what it has comes on offer, and what it has no longer goes.

Every image is written for itself, so that none is lost because another one is bad, and
nothing is taken away that could not be looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, IntegrityError

from backendai_hub.api.images import (
    RescanRequest,
    RescanState,
    RescanStatus,
    SkippedTag,
)
from backendai_hub.core.errors import (
    ConflictError,
    HubError,
    InvalidRequestError,
    RegistryError,
    RegistryLacksError,
)
from backendai_hub.core.names import fold
from backendai_hub.core.references import host_of
from backendai_hub.core.times import format_time
from backendai_hub.db import catalog, installs
from backendai_hub.db.engine import Transaction
from backendai_hub.operations.found_images import (
    describe_found,
    find_changes,
    name_image,
    read_owner,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.registries.client import RegistryClient
from backendai_hub.registries.manifests import FoundImage

AT_ONCE: Final = 4
"""Tags of one registry that are looked at at the same time."""
MOST_SKIPPED: Final = 500
"""Skipped tags that are listed; of more only the number is told."""
MOST_FAILURES: Final = 10
"""So many failures in a row, and the registry is taken to be down."""

_OPEN: Final = frozenset({RescanState.WAITING, RescanState.RUNNING})
_LONGEST_REASON: Final = 1000

log = logging.getLogger(__name__)


class Rescan:
    """One reading of a registry: what was asked for, and how far it is."""

    def __init__(
        self, registry: Mapping[str, Any], request: RescanRequest, requested_by: str
    ) -> None:
        self.registry_id = str(registry["id"])
        self.registry = str(registry["name"])
        self.request = request
        self.requested_by = requested_by
        self.state = RescanState.WAITING
        self.total = self.done = self.added = self.updated = self.removed = 0
        self.skipped: list[SkippedTag] = []
        self.skipped_more = 0
        self.reason = ""
        self.started_at: datetime | None = None
        self.ended_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it waits or is under way."""
        return self.state in _OPEN

    def begin(self, now: datetime) -> None:
        """Note that it is under way."""
        self.state = RescanState.RUNNING
        self.started_at = now

    def end(self, state: RescanState, now: datetime, reason: str = "") -> None:
        """Note how it has ended."""
        self.state = state
        self.ended_at = now
        self.reason = reason[:_LONGEST_REASON]

    def skip(self, repository: str, tag: str, reason: str) -> None:
        """Note what is not on offer, and why."""
        if len(self.skipped) < MOST_SKIPPED:
            reason = reason[:_LONGEST_REASON]
            self.skipped.append(
                SkippedTag(repository=repository, tag=tag, reason=reason)
            )
        else:
            self.skipped_more += 1

    def tell(self) -> RescanStatus:
        """Return it as the API shows it."""
        return RescanStatus(
            registry=self.registry,
            state=self.state,
            repository=self.request.repository,
            project=self.request.project,
            total=self.total,
            done=self.done,
            added=self.added,
            updated=self.updated,
            removed=self.removed,
            skipped=list(self.skipped),
            skipped_more=self.skipped_more,
            reason=self.reason,
            requested_by=self.requested_by,
            started_at=format_time(self.started_at),
            ended_at=format_time(self.ended_at),
        )


def open_client(
    platform: Platform,
    registry: Mapping[str, Any],
    request: RescanRequest | None = None,
) -> RegistryClient:
    """Make a client of a registry, with its login."""
    password = registry["password"]
    request = request or RescanRequest()
    named = [request.repository] if request.repository else registry["repositories"]
    return RegistryClient(
        registry["url"],
        kind=registry["type"],
        username=registry["username"] or None,
        password=None if password is None else str(platform.vault.open(password)),
        verify_tls=registry["ssl_verify"],
        project=request.project or registry["project"] or None,
        # A project that is asked for is listed, whatever else is named.
        repositories=() if request.project and not request.repository else named,
    )


class Reading:
    """What has been seen of a registry so far."""

    def __init__(
        self,
        platform: Platform,
        rescan: Rescan,
        registry: Mapping[str, Any],
        client: RegistryClient,
        known: Mapping[str, str],
    ) -> None:
        self._platform = platform
        self._rescan = rescan
        self._registry = registry
        self._client = client
        self._known = known
        self._host = host_of(registry["url"])
        self._tags: list[tuple[str, str]] = []
        self._names: dict[str, tuple[str, str]] = {}
        self._unseen: set[str] = set()
        """Repositories of which it is not known what they have."""
        self._there: dict[str, frozenset[str] | None] = {}
        """Architectures by name; None: it could not be looked at."""
        self._failures = 0
        self._down: RegistryError | None = None
        self.left_out = ""

    async def list_tags(self) -> None:
        """List what there is to look at; without a list nothing can be done."""
        async for repository in self._client.repositories():
            if not await self._list_tags_of(repository):
                self.left_out = (
                    f"it has more than {len(self._tags)} tags, the most that are read"
                    " at once; name a project or repository, or raise"
                    " HubService.max_images_per_rescan"
                )
                return

    async def _list_tags_of(self, repository: str) -> bool:
        """List the tags of one repository; tell whether there is room for more."""
        most = self._platform.settings.max_images_per_rescan
        try:
            async for tag in self._client.tags(repository):
                if len(self._tags) >= most:
                    return False
                self._add(repository, tag)
        except RegistryLacksError as error:
            if self._rescan.request.repository or self._registry["repositories"]:
                self._rescan.skip(repository, "", error.message)
        except RegistryError as error:
            self._unseen.add(repository)
            self._rescan.skip(repository, "", error.message)
            self._count_failure(error)
            if self._down is not None:
                raise self._down from error
        return True

    def _add(self, repository: str, tag: str) -> None:
        key = fold(name_image(self._host, repository, tag))
        if key in self._names:
            if self._names[key] != (repository, tag):
                other = self._names[key][1]
                reason = f"its name differs from the tag {other} only in case"
                self._rescan.skip(repository, tag, reason)
            return
        self._names[key] = (repository, tag)
        self._tags.append((repository, tag))
        self._rescan.total += 1

    async def take_all(self) -> None:
        """Look at every tag, a few at a time."""
        waiting = iter(self._tags)
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._work(waiting))
        if self._down is not None:
            raise self._down

    async def _work(self, waiting: Iterator[tuple[str, str]]) -> None:
        for repository, tag in waiting:
            if self._down is not None:
                return
            await self._take(repository, tag)
            self._rescan.done += 1

    async def _take(self, repository: str, tag: str) -> None:
        key = fold(name_image(self._host, repository, tag))
        self._there[key] = None
        try:
            found = await self._client.resolve(repository, tag)
        except RegistryError as error:
            self._rescan.skip(repository, tag, error.message)
            self._count_failure(error)
            return
        self._failures = 0
        if not found:
            self._rescan.skip(repository, tag, "it is not an image for Linux")
        for image in found:
            await self._take_image(image)
        self._there[key] = frozenset(image.architecture for image in found)

    async def _take_image(self, found: FoundImage) -> None:
        try:
            await self._write(found)
        except HubError as error:
            reason = f"{found.architecture}: {error.message}"
            self._rescan.skip(found.repository, found.tag, reason)
        except IntegrityError:
            reason = f"{found.architecture}: it was changed at the same time"
            self._rescan.skip(found.repository, found.tag, reason)
        except DBAPIError:
            raise
        except Exception:
            # One image that nobody has thought of must not keep the others away.
            log.exception("%s:%s could not be read", found.repository, found.tag)
            reason = f"{found.architecture}: unexpected; see the service's log"
            self._rescan.skip(found.repository, found.tag, reason)

    async def _write(self, found: FoundImage) -> None:
        columns = describe_found(self._host, found, self._known)
        columns["registry_id"] = self._registry["id"]
        owner = columns["owner_id"] = read_owner(found.labels)
        async with self._platform.database.transaction() as tx:
            if owner is not None and not await catalog.is_user(tx.connection, owner):
                raise InvalidRequestError(f"its owner {owner} is no user here")
            row = await catalog.lock_image(tx, columns["name"], found.architecture)
            if row is None:
                await self._check_name(tx, columns["name"])
                new = {**columns, "minimum": columns["label_minimum"]}
                await catalog.insert_image(tx, self._platform.new_id(), new)
            else:
                self._check_ours(row)
                changes = find_changes(row, columns)
                if not changes:
                    return
                await catalog.change_image(tx, row["id"], changes)
                if "references" in changes:  # nodes keep the old one till it is removed
                    wishes = await catalog.list_wishes(tx.connection, [row["id"]])
                    await installs.forget_installs(tx, wishes)
            tx.wake("scheduler")
        is_new = row is None or row["status"] != "ALIVE"
        self._rescan.added += is_new
        self._rescan.updated += not is_new

    async def _check_name(self, tx: Transaction, name: str) -> None:
        taken = await catalog.find_alias(tx.connection, name)
        if taken is not None:
            raise ConflictError(f"{name} is an alias of {taken['name']}")

    def _check_ours(self, row: Mapping[str, Any]) -> None:
        if row["registry_id"] != self._registry["id"] and row["status"] == "ALIVE":
            raise ConflictError("another registry here offers it already")

    def _count_failure(self, error: RegistryError) -> None:
        """Tell a registry that is down, or wants to be left alone, from bad images."""
        answered = error.fields.get("answered")
        if answered is not None and answered != 429 and answered < 500:
            self._failures = 0
            return
        if type(error) is RegistryError:
            self._failures += 1
        if self._failures >= MOST_FAILURES and self._down is None:
            self._down = RegistryError(
                f"given up after {self._failures} failures in a row: {error.message}",
                **error.fields,
            )

    async def forget_gone(self) -> None:
        """Take off offer what the registry no longer has."""
        if self.left_out:
            return
        async with self._platform.database.read() as connection:
            offered = await catalog.list_offered(connection, self._registry["id"])
        gone = [i.id for i in offered if self._is_gone(i)]
        if not gone:
            return
        async with self._platform.database.transaction() as tx:
            self._rescan.removed = await catalog.forget_images(tx, gone)
            wishes = await catalog.list_wishes(tx.connection, gone)
            await installs.forget_installs(tx, wishes)

    def _is_gone(self, image: catalog.OfferedImage) -> bool:
        request = self._rescan.request
        if request.repository is not None:
            in_scope = image.repository == request.repository
        elif request.project is not None:
            in_scope = f"{image.repository}/".startswith(f"{request.project}/")
        else:
            in_scope = True
        if not in_scope or image.repository in self._unseen:
            return False
        there = self._there.get(image.name_key, frozenset())
        return there is not None and image.architecture not in there
