"""A client for image registries over the OCI distribution API.

It speaks version 1.1 and Docker's registry v2, which came before it, and knows no
tenants: who may use what is decided above.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

import msgspec

from backendai_hub.core.errors import (
    InvalidRequestError,
    RegistryError,
    RegistryUnsupportedError,
)
from backendai_hub.registries.address import read_address
from backendai_hub.registries.answers import fetch, follow_pages, read
from backendai_hub.registries.catalogs import (
    PAGE_SIZE,
    keep_named,
    list_catalog,
    list_harbor,
    ping,
)
from backendai_hub.registries.connection import MIB, Ask, Connection
from backendai_hub.registries.identity import Credentials, Identity
from backendai_hub.registries.manifests import (
    ACCEPT,
    FoundImage,
    ImageConfig,
    Manifest,
)
from backendai_hub.registries.names import (
    check_digest,
    check_reference,
    check_repository,
    digest_of,
    is_digest,
    is_tag,
    matches_digest,
)

LARGEST_MANIFEST: Final = 4 * MIB
LARGEST_CONFIG: Final = 1 * MIB
MOST_TAGS_COMPARED: Final = 500

_HARBORS: Final = frozenset({"harbor", "harbor2"})


class _Tags(msgspec.Struct, frozen=True):
    tags: list[str] | None = None


class _Document(msgspec.Struct, frozen=True):
    """A manifest or an index, checked against its digest."""

    digest: str
    manifest: Manifest


class RegistryClient:
    """Reads one registry, and removes images from it.

    *kind* is the registry's type; only ``harbor`` and ``harbor2`` make a difference.
    *project* limits what :meth:`repositories` lists; a Harbor needs one. Where a
    registry lists nothing, *repositories* says what is there.
    """

    def __init__(  # noqa: PLR0913 - what describes a registry, each by its name
        self,
        url: str,
        *,
        kind: str = "docker",
        username: str | None = None,
        password: str | None = None,
        verify_tls: bool = True,
        project: str | None = None,
        repositories: Sequence[str] = (),
        timeout: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        origin = read_address(url)
        credentials = Credentials(username, password or "") if username else None
        self._connection = Connection(
            origin,
            Identity(credentials, clock=clock),
            verify_tls=verify_tls,
            timeout=timeout,
        )
        self._is_harbor = kind in _HARBORS
        self._project = check_repository(project) if project else None
        self._repositories = [check_repository(name) for name in repositories]

    def __repr__(self) -> str:
        return f"RegistryClient({str(self._connection.origin)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._connection.close()

    async def ping(self) -> None:
        """Make sure that a registry answers there, and lets us in."""
        await ping(self._connection)

    def repositories(self) -> AsyncIterator[str]:
        """List the repositories: those named, the project's, or the catalog's."""
        if self._repositories:
            return _each(self._repositories)
        if not self._is_harbor:
            return list_catalog(self._connection, self._project)
        if self._project is None:
            raise InvalidRequestError(
                f"the Harbor {self._connection.origin} lists repositories by project;"
                " name the project"
            )
        return list_harbor(self._connection, self._project)

    async def tags(self, repository: str) -> AsyncIterator[str]:
        """List the tags of *repository*."""
        what = f"the tags of {check_repository(repository)}"
        request = Ask(
            path=f"/v2/{repository}/tags/list",
            query=f"n={PAGE_SIZE}",
            scope=f"repository:{repository}:pull",
        )
        async for answer in follow_pages(self._connection, request, what):
            page = read(self._connection, answer.body, _Tags, what)
            for tag in keep_named(page.tags or [], is_tag):
                yield tag

    async def digest(self, repository: str, reference: str) -> str:
        """Return the digest of what *reference* names, without fetching it."""
        request = self._manifest(repository, reference, method="HEAD")
        answer = await fetch(
            self._connection, request, _describe(repository, reference)
        )
        told = answer.headers.get("Docker-Content-Digest", "")
        if is_digest(told):
            return told
        return (await self._fetch_manifest(repository, reference)).digest

    async def resolve(self, repository: str, reference: str) -> list[FoundImage]:
        """Return the Linux images that *reference*, a tag or a digest, names.

        One for each architecture if it names an index; none if it names something
        else than images: charts, signatures and attestations are kept there too.
        """
        document = await self._fetch_manifest(repository, reference)
        tag = "" if is_digest(reference) else reference
        if not document.manifest.is_index():
            found = await self._image(repository, tag, document, None)
            return [] if found is None else [found]
        entries = document.manifest.choose()
        several = [
            await self._image(
                repository,
                tag,
                await self._fetch_manifest(repository, entry.digest),
                machine,
            )
            for machine, entry in entries.items()
        ]
        return [image for image in several if image is not None]

    async def delete(self, repository: str, digest: str) -> None:
        """Remove the manifest or index *digest*, and with it every tag of it."""
        await self._delete(repository, check_digest(digest))

    async def untag(self, repository: str, tag: str) -> None:
        """Remove *tag*, and nothing that another tag needs.

        Registries that cannot remove a tag alone are made to remove what it names if
        no other tag of the repository leads there; otherwise nothing is removed.
        """
        if not is_tag(tag):
            raise InvalidRequestError(f"{tag[:80]!r} is not a tag")
        if self._is_harbor:
            await self._untag_harbor(repository, tag)
            return
        try:
            await self._delete(repository, tag)
        except RegistryUnsupportedError:
            await self._delete_unshared(repository, tag)

    async def _delete(self, repository: str, reference: str) -> None:
        request = self._manifest(
            repository, reference, method="DELETE", actions="delete"
        )
        what = f"the removal of {_describe(repository, reference)}"
        await fetch(self._connection, request, what)

    async def _untag_harbor(self, repository: str, tag: str) -> None:
        project, _, name = check_repository(repository).partition("/")
        # A Harbor wants the slashes of a repository's name encoded twice.
        twice = quote(quote(name, safe=""), safe="")
        request = Ask(
            method="DELETE",
            path=f"/api/v2.0/projects/{project}/repositories/{twice}"
            f"/artifacts/{tag}/tags/{tag}",
            scope="harbor",
            sends_password=True,
        )
        what = f"the removal of {_describe(repository, tag)}"
        await fetch(self._connection, request, what)

    async def _delete_unshared(self, repository: str, tag: str) -> None:
        digest = await self.digest(repository, tag)
        others = [name async for name in self.tags(repository) if name != tag]
        if len(others) > MOST_TAGS_COMPARED:
            raise self._connection.error(
                f"cannot remove one tag alone, and {repository} has too many tags to"
                " tell which of them need the same image; remove it in the registry",
                RegistryUnsupportedError,
            )
        needs = await asyncio.gather(
            *(self._needs(repository, other, digest) for other in others)
        )
        sharing = [other for other, need in zip(others, needs, strict=True) if need]
        if sharing:
            raise self._connection.error(
                f"cannot remove the tag {tag} of {repository} alone, and the same image"
                f" is also {', '.join(sorted(sharing)[:10])}; remove it there",
                RegistryUnsupportedError,
                shared_with=sorted(sharing),
            )
        await self._delete(repository, digest)

    async def _needs(self, repository: str, tag: str, digest: str) -> bool:
        """Tell whether *tag* leads to *digest*, at once or through an index."""
        found = await self._fetch_manifest(repository, tag)
        entries = found.manifest.manifests or []
        return digest in {found.digest, *(entry.digest for entry in entries)}

    async def _image(
        self, repository: str, tag: str, document: _Document, machine: str | None
    ) -> FoundImage | None:
        manifest = document.manifest
        if not manifest.is_image() or manifest.config is None:
            return None
        config = await self._fetch_config(repository, manifest.config.digest)
        if machine is None:
            if not config.platform().is_usable():
                return None
            machine = config.platform().machine()
        return FoundImage(
            repository=repository,
            tag=tag,
            digest=document.digest,
            config_digest=manifest.config.digest,
            architecture=machine,
            size_bytes=manifest.size_bytes(),
            labels=config.labels(),
            created=config.created_at(),
        )

    async def _fetch_manifest(self, repository: str, reference: str) -> _Document:
        what = _describe(repository, reference)
        request = self._manifest(repository, reference)
        answer = await fetch(self._connection, request, what)
        told = answer.headers.get("Docker-Content-Digest", "")
        for digest in filter(is_digest, (reference, told)):
            if not matches_digest(answer.body, digest):
                raise self._altered(what, digest)
        digest = reference if is_digest(reference) else digest_of(answer.body)
        return _Document(digest, read(self._connection, answer.body, Manifest, what))

    async def _fetch_config(self, repository: str, digest: str) -> ImageConfig:
        what = f"the configuration {digest} of {repository}"
        request = Ask(
            path=f"/v2/{repository}/blobs/{digest}",
            scope=f"repository:{repository}:pull",
            accept="*/*",
            largest=LARGEST_CONFIG,
            follows_redirects=True,
        )
        answer = await fetch(self._connection, request, what)
        if not matches_digest(answer.body, digest):
            raise self._altered(what, digest)
        return read(self._connection, answer.body, ImageConfig, what)

    def _manifest(
        self,
        repository: str,
        reference: str,
        *,
        method: str = "GET",
        actions: str = "pull",
    ) -> Ask:
        check_repository(repository)
        return Ask(
            method=method,
            path=f"/v2/{repository}/manifests/{check_reference(reference)}",
            scope=f"repository:{repository}:{actions}",
            accept=ACCEPT,
            largest=LARGEST_MANIFEST,
        )

    def _altered(self, what: str, digest: str) -> RegistryError:
        return self._connection.error(
            f"sent something else as {what} than its digest {digest} names; do not use"
            " it before you know who altered it"
        )


async def _each(names: Sequence[str]) -> AsyncIterator[str]:
    for name in names:
        yield name


def _describe(repository: str, reference: str) -> str:
    mark = "@" if is_digest(reference) else ":"
    return f"{repository}{mark}{reference}"
