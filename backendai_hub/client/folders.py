"""The client's parts about virtual folders beyond the common verbs, and storage."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from backendai_hub.api.folders import (
    ActivityPage,
    CloneAnswer,
    FolderOutcomes,
    Guest,
    Invitation,
    InviteOutcome,
    QuotaScope,
    QuotaScopePage,
    StorageHost,
    TaskPage,
)
from backendai_hub.api.storage import RemainsPage, StorageCheck, StorageCheckRequest
from backendai_hub.client.tenancy import Part
from backendai_hub.client.transport import Again, segment
from backendai_hub.core.vfolders import Folder, FolderPermission, FolderTask

T = TypeVar("T")


class FolderVerbs(Part):
    """What is done with whole folders; what is in them is elsewhere."""

    async def trash(self, folder: str) -> Folder:
        """Throw a folder into the trash."""
        return await self._do(folder, "trash", {}, Folder)

    async def restore(self, folder: str, *, name: str | None = None) -> Folder:
        """Take a folder out of the trash, by another name if its own is taken."""
        return await self._do(folder, "restore", {"name": name}, Folder)

    async def purge(
        self, folder: str, *, name: str, force: bool = False
    ) -> Folder | None:
        """Remove a folder for good; *name* is its name, typed once more."""
        body = {"name": name, "force": force}
        kind: Any = Folder | None
        left: Folder | None = await self._do(folder, "purge", body, kind)
        return left

    async def trash_many(self, folders: Sequence[str]) -> FolderOutcomes:
        """Throw many folders into the trash; each ends for itself."""
        return await self._many("trash", list(folders))

    async def restore_many(self, folders: Sequence[str]) -> FolderOutcomes:
        """Take many folders out of the trash; each ends for itself."""
        return await self._many("restore", list(folders))

    async def clone(self, folder: str, name: str, /, **more: Any) -> CloneAnswer:
        """Begin to copy a folder into a new one."""
        return await self._do(folder, "clone", {"name": name, **more}, CloneAnswer)

    async def transfer(
        self, folder: str, *, user: str | None = None, project: str | None = None
    ) -> Folder:
        """Give a folder to another user, or to a project."""
        body = {"user": user, "project": project}
        return await self._do(folder, "transfer", body, Folder)

    async def activity(
        self, folder: str, *, limit: int = 50, after: str | None = None
    ) -> ActivityPage:
        """Return what was done to a folder, the newest first."""
        return await self._transport.get(
            _below(folder, "activity"),
            ActivityPage,
            params={"limit": str(limit), "after": after},
            act_for=self._act_for,
        )

    # --- sharing -----------------------------------------------------------------

    async def invite(
        self, folder: str, users: Sequence[str], permission: str = "ro"
    ) -> Sequence[InviteOutcome]:
        """Invite people, by name or address; each ends for itself."""
        body = {"users": list(users), "permission": permission}
        return await self._do(folder, "invite", body, tuple[InviteOutcome, ...])

    async def guests(self, folder: str) -> Sequence[Guest]:
        """Return whom a folder is shared with, and members it is something else for."""
        return await self._transport.get(
            _below(folder, "share"), tuple[Guest, ...], act_for=self._act_for
        )

    async def share(
        self, folder: str, user: str, permission: FolderPermission | str | None
    ) -> Sequence[Guest]:
        """Say what one person may do from now on; None takes it back."""
        body = {"changes": [{"user": user, "permission": permission}]}
        return await self._do(folder, "share", body, tuple[Guest, ...])

    async def leave(self, folder: str, *, user: str | None = None) -> None:
        """Leave a folder that somebody else shares."""
        await self._do(folder, "leave", {"user": user}, type(None))

    async def invitations(self, *, state: str = "pending") -> Sequence[Invitation]:
        """Return invitations that one has got or made."""
        return await self._transport.get(
            "invitations",
            tuple[Invitation, ...],
            params={"state": state},
            act_for=self._act_for,
        )

    async def accept(self, invitation: str) -> Invitation:
        """Accept an invitation."""
        return await self._transport.post(
            f"invitations/{segment(invitation)}/accept",
            {},
            Invitation,
            act_for=self._act_for,
            again=Again.UNDONE,
        )

    async def decline(self, invitation: str) -> None:
        """Reject an invitation, or take back one's own."""
        await self._transport.delete(
            f"invitations/{segment(invitation)}", act_for=self._act_for
        )

    # --- tasks -------------------------------------------------------------------

    async def tasks(
        self, *, folder: str | None = None, state: str | None = None, limit: int = 20
    ) -> TaskPage:
        """Return what is or was done to folders in the background."""
        return await self._transport.get(
            "folder-tasks",
            TaskPage,
            params={"folder": folder, "state": state, "limit": str(limit)},
            act_for=self._act_for,
        )

    async def task(self, task: str) -> FolderTask:
        """Return how far a task is."""
        return await self._transport.get(
            f"folder-tasks/{segment(task)}", FolderTask, act_for=self._act_for
        )

    async def cancel(self, task: str) -> None:
        """Cancel a task; what it has half done is undone."""
        await self._transport.delete(
            f"folder-tasks/{segment(task)}", act_for=self._act_for
        )

    async def _do(self, folder: str, verb: str, body: Any, kind: type[T]) -> T:
        return await self._transport.post(
            _below(folder, verb),
            body,
            kind,
            act_for=self._act_for,
            again=Again.UNDONE,
        )

    async def _many(self, verb: str, folders: builtins.list[str]) -> FolderOutcomes:
        return await self._transport.post(
            f"folders/{verb}",
            {"folders": folders},
            FolderOutcomes,
            act_for=self._act_for,
            again=Again.UNDONE,
        )


class Storage(Part):
    """Storage hosts, and who holds how much on them."""

    async def hosts(self) -> Sequence[StorageHost]:
        """Return the hosts one may use, with how they are."""
        return await self._transport.get(
            "storage-hosts", tuple[StorageHost, ...], act_for=self._act_for
        )

    async def scopes(
        self, *, host: str | None = None, kind: str | None = None
    ) -> AsyncIterator[QuotaScope]:
        """Yield the quota scopes one may see."""
        after: str | None = None
        while True:
            page = await self._transport.get(
                "quota-scopes",
                QuotaScopePage,
                params={"host": host, "kind": kind, "after": after, "limit": "200"},
                act_for=self._act_for,
            )
            for scope in page.items:
                yield scope
            after = page.next
            if after is None:
                return

    async def check(
        self, *, host: str | None = None, repair: bool = False
    ) -> StorageCheck:
        """Compare what lies on storage hosts with what is known, and clean up."""
        return await self._transport.post(
            "storage-remains/check",
            StorageCheckRequest(host=host, repair=repair),
            StorageCheck,
            act_for=self._act_for,
            again=Again.UNDONE,
        )

    async def remains(
        self, *, host: str | None = None, after: str | None = None
    ) -> RemainsPage:
        """Return a part of what was found on storage hosts and belongs to nobody."""
        return await self._transport.get(
            "storage-remains",
            RemainsPage,
            params={"host": host, "after": after, "limit": "200"},
            act_for=self._act_for,
        )

    async def limit(self, host: str, scope: str, /, **limits: Any) -> QuotaScope:
        """Set ``limit_bytes`` and ``limit_files``; None is what the policy says."""
        return await self._transport.patch(
            f"quota-scopes/{segment(host)}/{segment(scope)}",
            limits,
            QuotaScope,
            act_for=self._act_for,
        )


def _below(folder: str, rest: str) -> str:
    return f"folders/{segment(folder)}/{rest}"
