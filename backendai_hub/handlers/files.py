"""Routes of the files in a folder; their content is in :mod:`.file_contents`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from backendai_hub.api.files import (
    CopyRequest,
    DirectoryRequest,
    EmptyRequest,
    ExtractRequest,
    FileEntry,
    FileOutcomes,
    FilePage,
    FilePlace,
    MoveRequest,
    RestoreFiles,
    TaskAnswer,
    TrashedPage,
    TrashRequest,
)
from backendai_hub.core.access import Action
from backendai_hub.core.errors import HubError, MalformedRequestError, UnavailableError
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.operations import file_tasks as tasks
from backendai_hub.operations import file_trash as trash
from backendai_hub.operations import files as verbs
from backendai_hub.operations.files import EntriesQuery, PathQuery
from backendai_hub.operations.folder_access import OpenFolder

T = TypeVar("T")


class FilesHandler(APIHandler):
    """A route about what is in a folder."""

    _is_left = False

    def decode_query(self, kind: Any, *, tolerant: bool = False) -> Any:
        """Read parameters exactly as they are: blanks may be part of a name."""
        del tolerant
        known = {field.name: field for field in msgspec.structs.fields(kind)}
        found: dict[str, Any] = {}
        for name, values in self.request.query_arguments.items():
            if name not in known:
                raise MalformedRequestError(
                    f"{name[:64]!r} is not a parameter here; use"
                    f" {', '.join(sorted(known))}"
                )
            texts = [_read_text(name, value) for value in values]
            several = known[name].type == list[str]
            found[name] = texts if several else texts[-1]
        return _convert(found, kind)

    _asked: asyncio.Task[Any] | None = None

    async def while_wanted(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what takes long only as long as somebody waits for the answer."""
        asked = asyncio.create_task(work)
        self._asked = asked
        try:
            return await asked
        except asyncio.CancelledError:
            if not asked.cancelled() or not self._is_left:
                raise
            raise UnavailableError("nobody waits for this any more") from None

    def on_connection_close(self) -> None:
        """Stop what nobody waits for."""
        super().on_connection_close()
        self._is_left = True
        if self._asked is not None:
            self._asked.cancel()

    async def open_to_read(self, folder_id: str) -> OpenFolder:
        """Open a folder to look into."""
        return await verbs.open_for_reading(
            self.platform, self.principal, self.user, folder_id
        )

    async def open_to_change(self, folder_id: str) -> OpenFolder:
        """Open a folder to change what is in it."""
        return await verbs.open_for_writing(
            self.platform, self.principal, self.user, folder_id
        )

    async def open_to_add(self, folder_id: str) -> OpenFolder:
        """Open a folder to bring something into it."""
        return await verbs.open_for_adding(
            self.platform, self.principal, self.user, folder_id
        )


def _read_text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise MalformedRequestError(f"{name}: this is not text in UTF-8") from None


def _convert(found: Mapping[str, Any], kind: Any) -> Any:
    try:
        return msgspec.convert(found, kind, strict=False)
    except msgspec.ValidationError as error:
        raise MalformedRequestError(f"a parameter cannot be read: {error}") from None


class EntriesHandler(FilesHandler):
    """What is in a folder."""

    path = "api/folders/{folder_id}/entries"

    @operation(Action.LIST_FILES, query=EntriesQuery)
    async def get(self, folder_id: str) -> FilePage:
        """List a part of what is in a folder, sorted and searched."""
        query = self.decode_query(EntriesQuery)
        opened = await self.open_to_read(folder_id)
        return await self.while_wanted(verbs.list_entries(self.platform, opened, query))


class EntryHandler(FilesHandler):
    """One file, or folder in a folder."""

    path = "api/folders/{folder_id}/entry"

    @operation(Action.LIST_FILES, query=PathQuery)
    async def get(self, folder_id: str) -> FileEntry:
        """Tell what is known of one entry; links are told, never followed."""
        query = self.decode_query(PathQuery)
        opened = await self.open_to_read(folder_id)
        return verbs.show_entry(
            await verbs.stat_entry(self.platform, opened, query.path)
        )


class DirectoriesHandler(FilesHandler):
    """Folders in a folder."""

    path = "api/folders/{folder_id}/directories"

    @operation(Action.MAKE_DIRECTORY, status=201)
    async def post(self, folder_id: str, body: DirectoryRequest) -> FileEntry:
        """Make a folder in a folder."""
        opened = await self.open_to_add(folder_id)
        return await verbs.make_directory(self.platform, opened, body)


class MoveHandler(FilesHandler):
    """Another place, or name, for an entry."""

    path = "api/folders/{folder_id}/move"

    @operation(Action.MOVE_FILE)
    async def post(self, folder_id: str, body: MoveRequest) -> FilePlace:
        """Move or rename an entry inside its folder."""
        opened = await self.open_to_change(folder_id)
        return await verbs.move_entry(self.platform, opened, body)


class CopyHandler(FilesHandler):
    """A copy of an entry."""

    path = "api/folders/{folder_id}/copy"

    @operation(Action.COPY_FILE, status=202)
    async def post(self, folder_id: str, body: CopyRequest) -> TaskAnswer:
        """Begin to copy an entry; the copy appears when it is complete."""
        opened = await self.open_to_add(folder_id)
        return await tasks.begin_copy(self.platform, opened, self.principal, body)


class ExtractHandler(FilesHandler):
    """What is in an archive."""

    path = "api/folders/{folder_id}/extract"

    @operation(Action.EXTRACT_FILE, status=202)
    async def post(self, folder_id: str, body: ExtractRequest) -> TaskAnswer:
        """Begin to unpack an archive; all of it appears, or nothing."""
        opened = await self.open_to_add(folder_id)
        return await tasks.begin_extracting(self.platform, opened, self.principal, body)


class _ManyFilesHandler(FilesHandler):
    many = True

    async def open_to_delete(self, folder_id: str) -> OpenFolder:
        """Open a folder to delete in it, or put back what was deleted."""
        opened = await self.open_to_change(folder_id)
        opened.check_may_delete()
        return opened

    async def note_refusal(self, name: str, error: HubError) -> None:
        """Write down that one of many was refused."""
        action = self.request_action
        await self.trail.refuse_entry(action, "file", name[:200], error)

    @property
    def request_action(self) -> Action:
        """What this request does."""
        method = getattr(self, (self.request.method or "").lower())
        action: Action = method.operation.action
        return action


class TrashFilesHandler(_ManyFilesHandler):
    """Entries for a folder's trash."""

    path = "api/folders/{folder_id}/entries/trash"

    @operation(Action.TRASH_FILE)
    async def post(self, folder_id: str, body: TrashRequest) -> FileOutcomes:
        """Throw entries into their folder's trash; each ends for itself."""
        opened = await self.open_to_delete(folder_id)
        return await trash.trash_entries(
            self.platform, opened, self.principal, body, self.note_refusal
        )


class TrashedHandler(FilesHandler):
    """A folder's trash."""

    path = "api/folders/{folder_id}/trashed"

    @operation(Action.LIST_FILES, query=trash.TrashQuery)
    async def get(self, folder_id: str) -> TrashedPage:
        """List what was thrown away in a folder, the earliest first."""
        query = self.decode_query(trash.TrashQuery)
        opened = await self.open_to_read(folder_id)
        return await trash.list_trash(self.platform, opened, query)


class RestoreFilesHandler(_ManyFilesHandler):
    """Entries that come out of the trash."""

    path = "api/folders/{folder_id}/trashed/restore"

    @operation(Action.RESTORE_FILE)
    async def post(self, folder_id: str, body: RestoreFiles) -> FileOutcomes:
        """Put back what was thrown away; each ends for itself."""
        opened = await self.open_to_change(folder_id)
        return await trash.restore_entries(
            self.platform, opened, body, self.note_refusal
        )


class EmptyTrashHandler(_ManyFilesHandler):
    """Entries of the trash that go for good."""

    path = "api/folders/{folder_id}/trashed/empty"
    many = False

    @operation(Action.EMPTY_FILE_TRASH, status=202)
    async def post(self, folder_id: str, body: EmptyRequest) -> TaskAnswer:
        """Begin to remove for good what was thrown away, or some of it."""
        opened = await self.open_to_delete(folder_id)
        return await trash.begin_emptying(self.platform, opened, self.principal, body)


FILE_HANDLERS: tuple[type[APIHandler], ...] = (
    EntriesHandler,
    EntryHandler,
    DirectoriesHandler,
    MoveHandler,
    CopyHandler,
    ExtractHandler,
    TrashFilesHandler,
    TrashedHandler,
    RestoreFilesHandler,
    EmptyTrashHandler,
)
