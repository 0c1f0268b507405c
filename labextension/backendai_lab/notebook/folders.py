"""Virtual folders as objects of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from backendai_hub.api.files import FileEntry
from backendai_hub.core.vfolders import Folder
from backendai_lab.notebook.link import Link
from backendai_lab.notebook.plain import Table, show_bytes
from backendai_lab.notebook.shown import Tabular
from backendai_lab.notebook.texts import Words


class NotebookFolder(Tabular):
    """One folder: its fields, as of the last look, and the files in it."""

    def __init__(self, owner: Folders, folder: Folder) -> None:
        self._owner = owner
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._folder, name)

    def files(self, path: str = "") -> list[FileEntry]:
        """Return what lies at *path*."""

        async def gather() -> list[FileEntry]:
            files = self._owner.link.client.files(self._folder.id)
            return [entry async for entry in files.list(path)]

        return self._owner.link.run(gather())

    def upload(
        self, *sources: str | Path, to: str = "", conflict: str = "fail"
    ) -> None:
        """Upload files to the path *to* of the folder; what has begun is resumed."""
        files = self._owner.link.client.files(self._folder.id)
        for source in map(Path, sources):
            target = f"{to.strip('/')}/{source.name}".strip("/")
            self._owner.link.run(files.upload(source, target, conflict=conflict))

    def download(self, path: str, target: str | Path | None = None) -> Path:
        """Download one file; return where it lies."""
        place = Path(target or Path(path).name)
        files = self._owner.link.client.files(self._folder.id)
        self._owner.link.run(files.download(path, place))
        return place

    def tabulate(self) -> tuple[Table, str]:
        """Return it as a table of one row."""
        return self._owner.tabulate_these([self._folder])


class FolderList(list[NotebookFolder], Tabular):
    """Folders that were found, which show themselves as a table."""

    def __init__(self, owner: Folders, folders: Iterable[NotebookFolder]) -> None:
        super().__init__(folders)
        self._owner = owner

    __repr__ = Tabular.__repr__
    __hash__ = None  # type: ignore[assignment]

    def tabulate(self) -> tuple[Table, str]:
        """Return them as a table."""
        return self._owner.tabulate_these([folder._folder for folder in self])  # noqa: SLF001


class Folders(Tabular):
    """The folders the caller may use; shown by itself, it is their table."""

    def __init__(
        self, link: Link | None = None, *, language: str | None = None
    ) -> None:
        self.link = link or Link()
        self.say = Words(language)

    def list(self, search: str | None = None) -> FolderList:
        """Return the folders, by name; *search* is a part of it."""
        client = self.link.client

        async def gather() -> list[Folder]:
            return [f async for f in client.folders.list(order="name", search=search)]

        found = self.link.run(gather())
        return FolderList(self, [NotebookFolder(self, folder) for folder in found])

    def get(self, reference: str) -> NotebookFolder:
        """Return one folder, by its name or id."""
        found = self.link.run(self.link.client.folders.get(reference))
        return NotebookFolder(self, found)

    __getitem__ = get

    def create(self, name: str, **fields: Any) -> NotebookFolder:
        """Make a folder; *fields* are those of a folder, such as ``project``."""
        made = self.link.run(self.link.client.folders.create(name=name, **fields))
        return NotebookFolder(self, made)

    def tabulate(self) -> tuple[Table, str]:
        """Return all of them as a table."""
        return self.list().tabulate()

    def tabulate_these(self, folders: Sequence[Folder]) -> tuple[Table, str]:
        """Return *folders* as a table."""
        heads = [self.say(k) for k in ("name", "owner", "host", "access", "kept")]
        rows = [
            [
                folder.name,
                folder.project or folder.user or "",
                folder.host,
                self.say(f"access.{folder.access or 'none'}"),
                show_bytes(folder.used_bytes or 0),
            ]
            for folder in folders
        ]
        return (heads, rows), self.say("noFolders")
