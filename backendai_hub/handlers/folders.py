"""Routes of virtual folders beyond the common verbs, and of storage hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.exc import DBAPIError

from backendai_hub.api.folders import (
    ActivityPage,
    CloneAnswer,
    CloneRequest,
    FolderOutcome,
    FolderOutcomes,
    Guest,
    Invitation,
    InvitationChange,
    InviteOutcome,
    InviteRequest,
    LeaveRequest,
    PurgeMany,
    PurgeRequest,
    QuotaScope,
    QuotaScopeChange,
    QuotaScopePage,
    RestoreRequest,
    ShareRequest,
    StorageHost,
    TaskPage,
    TransferRequest,
    TrashMany,
)
from backendai_hub.core.access import Action
from backendai_hub.core.errors import HubError, InvalidRequestError
from backendai_hub.core.vfolders import Folder, FolderTask
from backendai_hub.handlers.base import APIHandler, operation
from backendai_hub.handlers.problems import as_hub_error
from backendai_hub.operations import folder_invitations
from backendai_hub.operations import folder_sharing as sharing
from backendai_hub.operations import folders as verbs
from backendai_hub.operations import storage_hosts as hosts
from backendai_hub.operations.folder_cloning import clone_folder
from backendai_hub.operations.folder_transfers import transfer_folder

MOST_AT_ONCE = 1000


class ActivityQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of what was done to a folder."""

    limit: int = 50
    after: str | None = None


class InvitationQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Invitations in which state; ``all`` is any."""

    state: str = "pending"


class _ManyFoldersHandler(APIHandler):
    many = True

    async def do_each(
        self,
        action: Action,
        work: Sequence[tuple[str, Callable[[], Awaitable[Folder | None]]]],
    ) -> FolderOutcomes:
        """Do something to each of many folders, which ends for itself."""
        if len(work) > MOST_AT_ONCE:
            raise InvalidRequestError(
                f"folders: {len(work)} of them; at most {MOST_AT_ONCE} at once"
            )
        results = [await self._attempt(action, *one) for one in work]
        failed = sum(1 for result in results if result.error is not None)
        return FolderOutcomes(
            succeeded=len(results) - failed, failed=failed, results=results
        )

    async def _attempt(
        self,
        action: Action,
        reference: str,
        verb: Callable[[], Awaitable[Folder | None]],
    ) -> FolderOutcome:
        try:
            folder = await verb()
        except (HubError, DBAPIError) as failure:
            error = as_hub_error(failure, 500)
            await self.trail.refuse_entry(action, "folder", reference[:64], error)
            return FolderOutcome(
                reference=reference,
                status=error.status,
                error=error.message,
                code=error.code,
            )
        known: dict[str, Any] = {}
        if folder is not None:
            known = {"id": folder.id, "name": folder.name}
        return FolderOutcome(reference=reference, status=200, **known)


class TrashManyHandler(_ManyFoldersHandler):
    """Many folders for the trash."""

    path = "api/folders/trash"

    @operation(Action.TRASH_FOLDER)
    async def post(self, body: TrashMany) -> FolderOutcomes:
        """Throw folders into the trash; each ends for itself."""
        trash = partial(verbs.trash_folder, self.platform, self.principal)
        return await self.do_each(
            Action.TRASH_FOLDER, [(one, partial(trash, one)) for one in body.folders]
        )


class RestoreManyHandler(_ManyFoldersHandler):
    """Many folders of the trash."""

    path = "api/folders/restore"

    @operation(Action.RESTORE_FOLDER)
    async def post(self, body: TrashMany) -> FolderOutcomes:
        """Take folders out of the trash; each ends for itself."""
        restore = partial(verbs.restore_folder, self.platform, self.principal)
        return await self.do_each(
            Action.RESTORE_FOLDER,
            [(one, partial(restore, one, RestoreRequest())) for one in body.folders],
        )


class PurgeManyHandler(_ManyFoldersHandler):
    """Many folders that are to go for good."""

    path = "api/folders/purge"

    @operation(Action.PURGE_FOLDER)
    async def post(self, body: PurgeMany) -> FolderOutcomes:
        """Remove folders for good, each by its typed name; each ends for itself."""
        purge = partial(verbs.purge_folder, self.platform, self.principal)
        return await self.do_each(
            Action.PURGE_FOLDER,
            [(one.folder, partial(purge, one.folder, one)) for one in body.folders],
        )


class TrashHandler(APIHandler):
    """One folder for the trash."""

    path = "api/folders/{reference}/trash"

    @operation(Action.TRASH_FOLDER)
    async def post(self, reference: str) -> Folder:
        """Throw a folder into the trash; refused while live sessions have it."""
        return await verbs.trash_folder(self.platform, self.principal, reference)


class RestoreHandler(APIHandler):
    """One folder of the trash."""

    path = "api/folders/{reference}/restore"

    @operation(Action.RESTORE_FOLDER)
    async def post(self, reference: str, body: RestoreRequest) -> Folder:
        """Take a folder out of the trash, by another name if its own is taken."""
        return await verbs.restore_folder(
            self.platform, self.principal, reference, body
        )


class PurgeHandler(APIHandler):
    """One folder that is to go for good."""

    path = "api/folders/{reference}/purge"

    @operation(Action.PURGE_FOLDER, status=202)
    async def post(self, reference: str, body: PurgeRequest) -> Folder | None:
        """Remove a folder for good, in the background; its name has to be typed."""
        left = await verbs.purge_folder(self.platform, self.principal, reference, body)
        if left is None:
            self.set_status(204)
            self.clear_header("Content-Type")
        return left


class CloneHandler(APIHandler):
    """A copy of a folder."""

    path = "api/folders/{reference}/clone"

    @operation(Action.CLONE_FOLDER, status=202)
    async def post(self, reference: str, body: CloneRequest) -> CloneAnswer:
        """Begin to copy a cloneable folder into a new one."""
        return await clone_folder(self.platform, self.principal, reference, body)


class TransferHandler(APIHandler):
    """The owner of a folder."""

    path = "api/folders/{reference}/transfer"

    @operation(Action.TRANSFER_FOLDER)
    async def post(self, reference: str, body: TransferRequest) -> Folder:
        """Give a folder to another user, or to a project."""
        return await transfer_folder(self.platform, self.principal, reference, body)


class ActivityHandler(APIHandler):
    """What was done to a folder."""

    path = "api/folders/{reference}/activity"

    @operation(Action.READ_FOLDER_ACTIVITY, query=ActivityQuery)
    async def get(self, reference: str) -> ActivityPage:
        """List what was done to a folder, the newest first."""
        query = self.decode_query(ActivityQuery)
        return await verbs.read_activity(
            self.platform, self.principal, reference, query
        )


class InviteHandler(APIHandler):
    """Invitations to a folder."""

    path = "api/folders/{reference}/invite"

    @operation(Action.INVITE_TO_FOLDER)
    async def post(self, reference: str, body: InviteRequest) -> list[InviteOutcome]:
        """Invite people to a folder by name or address; each ends for itself."""
        return await folder_invitations.invite_people(
            self.platform, self.principal, reference, body
        )


class ShareHandler(APIHandler):
    """What single people may do in a folder."""

    path = "api/folders/{reference}/share"

    @operation(Action.READ_GUESTS)
    async def get(self, reference: str) -> list[Guest]:
        """List whom the folder is shared with, and members it is something else for."""
        return await sharing.list_guests(self.platform, self.principal, reference)

    @operation(Action.SHARE_FOLDER)
    async def post(self, reference: str, body: ShareRequest) -> list[Guest]:
        """Say what guests, or single members of its project, may do from now on."""
        return await sharing.share_folder(
            self.platform, self.principal, reference, body
        )


class LeaveHandler(APIHandler):
    """The end of sharing a folder."""

    path = "api/folders/{reference}/leave"

    @operation(Action.LEAVE_FOLDER, status=204)
    async def post(self, reference: str, body: LeaveRequest) -> None:
        """Leave a folder that somebody else shares."""
        await sharing.leave_folder(self.platform, self.principal, reference, body)


class InvitationsHandler(APIHandler):
    """Invitations to and from the caller."""

    path = "api/invitations"

    @operation(Action.READ_INVITATIONS, query=InvitationQuery)
    async def get(self) -> list[Invitation]:
        """List invitations the caller has got or made."""
        query = self.decode_query(InvitationQuery)
        return await folder_invitations.list_invitations(
            self.platform, self.principal, query.state
        )


class InvitationHandler(APIHandler):
    """One invitation that is not answered yet."""

    path = "api/invitations/{invitation_id}"

    @operation(Action.ANSWER_INVITATION)
    async def patch(self, invitation_id: str, body: InvitationChange) -> Invitation:
        """Offer another permission, as who has made the invitation."""
        return await folder_invitations.change_invitation(
            self.platform, self.principal, invitation_id, body
        )

    @operation(Action.ANSWER_INVITATION)
    async def delete(self, invitation_id: str) -> Invitation:
        """Reject an invitation, or take back one's own."""
        return await folder_invitations.decline_invitation(
            self.platform, self.principal, invitation_id
        )


class AcceptHandler(APIHandler):
    """The acceptance of an invitation."""

    path = "api/invitations/{invitation_id}/accept"

    @operation(Action.ANSWER_INVITATION)
    async def post(self, invitation_id: str) -> Invitation:
        """Accept an invitation."""
        return await folder_invitations.accept_invitation(
            self.platform, self.principal, invitation_id
        )


class TasksHandler(APIHandler):
    """What is being done to folders."""

    path = "api/folder-tasks"

    @operation(Action.READ_FOLDER_TASKS, query=hosts.TaskQuery)
    async def get(self) -> TaskPage:
        """List what is or was done to folders in the background, the newest first."""
        query = self.decode_query(hosts.TaskQuery)
        return await hosts.list_tasks(self.platform, self.principal, query)


class TaskHandler(APIHandler):
    """One thing that is being done to a folder."""

    path = "api/folder-tasks/{task_id}"

    @operation(Action.READ_FOLDER_TASKS)
    async def get(self, task_id: str) -> FolderTask:
        """Say how far a task is."""
        return await hosts.read_task(self.platform, self.principal, task_id)

    @operation(Action.CANCEL_FOLDER_TASK)
    async def delete(self, task_id: str) -> FolderTask:
        """Cancel a task; what it has half done is undone."""
        return await hosts.cancel_task(self.platform, self.principal, task_id)


class StorageHostsHandler(APIHandler):
    """The storage hosts."""

    path = "api/storage-hosts"

    @operation(Action.READ_STORAGE_HOSTS)
    async def get(self) -> list[StorageHost]:
        """List storage hosts with how they are, and what the caller may do there."""
        return await hosts.list_hosts(self.platform, self.principal, self.user)


class QuotaScopesHandler(APIHandler):
    """Who holds how much on which host."""

    path = "api/quota-scopes"

    @operation(Action.READ_QUOTA_SCOPES, query=hosts.ScopeQuery)
    async def get(self) -> QuotaScopePage:
        """List quota scopes with their use and limits."""
        query = self.decode_query(hosts.ScopeQuery)
        return await hosts.list_quota_scopes(self.platform, self.principal, query)


class QuotaScopeHandler(APIHandler):
    """The limits of one user or project on one host."""

    path = "api/quota-scopes/{host}/{scope}"

    @operation(Action.CHANGE_QUOTA_SCOPE)
    async def patch(self, host: str, scope: str, body: QuotaScopeChange) -> QuotaScope:
        """Set limits of their own, or go back to what the policy says."""
        return await hosts.change_quota_scope(
            self.platform, self.principal, host, scope, body
        )


FOLDER_HANDLERS: tuple[type[APIHandler], ...] = (
    TrashManyHandler,
    RestoreManyHandler,
    PurgeManyHandler,
    TrashHandler,
    RestoreHandler,
    PurgeHandler,
    CloneHandler,
    TransferHandler,
    ActivityHandler,
    InviteHandler,
    ShareHandler,
    LeaveHandler,
    AcceptHandler,
    InvitationsHandler,
    InvitationHandler,
    TasksHandler,
    TaskHandler,
    StorageHostsHandler,
    QuotaScopesHandler,
    QuotaScopeHandler,
)
