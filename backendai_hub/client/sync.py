"""The client without ``await``, for notebooks and scripts.

One background thread runs the asynchronous client's event loop, so it works inside
a notebook, where a loop is running already.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

import msgspec

from backendai_hub.api.sessions import EventMessage, Resources
from backendai_hub.client.accounts import Accounts
from backendai_hub.client.audit import Audit
from backendai_hub.client.collection import Collection
from backendai_hub.client.files import Files
from backendai_hub.client.folders import FolderVerbs, Storage
from backendai_hub.client.hub import Caller, HubClient
from backendai_hub.client.images import ImageVerbs
from backendai_hub.client.nodes import Nodes
from backendai_hub.client.schedule import Schedule
from backendai_hub.client.sessions import Sessions
from backendai_hub.client.shares import Shares
from backendai_hub.client.ssh_keys import SSHKeys
from backendai_hub.client.tenancy import (
    DotfileStore,
    GroupAccesses,
    Keys,
    Limits,
    Members,
)
from backendai_hub.core.sessions import TERMINAL

A = TypeVar("A")
N = TypeVar("N", bound=msgspec.Struct)
P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread; coroutines are handed to it and awaited."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="backendai-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* to its end and return what it returns."""
        future = self.start(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Let *work* run; what it returns or raises is in the future."""
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("this client is closed; make a new one")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop what still runs, the loop, and wait for the thread."""
        if self._thread.is_alive():
            self.run(_cancel_others())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class Twin(Generic[A]):
    """A part of the client, used without ``await``."""

    def __init__(self, part: A, thread: LoopThread) -> None:
        self._part = part
        self._run = thread.run


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Twin[A], P], T]:
    """Make the method that waits for *method*'s result."""

    @wraps(method)
    def call(twin: Twin[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return twin._run(method(twin._part, *args, **kwargs))  # noqa: SLF001 - it is one

    return call


def gathering(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[Twin[A], P], list[T]]:
    """Make the method that returns all that *method* yields."""

    @wraps(method)
    def call(twin: Twin[A], /, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        async def gather() -> list[T]:
            return [item async for item in method(twin._part, *args, **kwargs)]  # noqa: SLF001

        return twin._run(gather())  # noqa: SLF001 - it is one

    return call


class SyncCollection(Twin[Collection[N]], Generic[N]):
    """:class:`~backendai_hub.client.collection.Collection`, without ``await``."""

    page = blocking(Collection[N].page)
    list = gathering(Collection[N].list)
    get = blocking(Collection[N].get)
    create = blocking(Collection[N].create)
    update = blocking(Collection[N].update)
    purge = blocking(Collection[N].purge)
    bulk = blocking(Collection[N].bulk)


class SyncMembers(Twin[Members]):
    """Who is in which project."""

    list = blocking(Members.list)
    change = blocking(Members.change)


class SyncDotfiles(Twin[DotfileStore]):
    """The files that sessions get."""

    read = blocking(DotfileStore.read)
    write = blocking(DotfileStore.write)


class SyncGroupAccess(Twin[GroupAccesses]):
    """To whom resource groups are open."""

    list = blocking(GroupAccesses.list)
    change = blocking(GroupAccesses.change)


class SyncShares(Twin[Shares]):
    """Whose turn it is in a resource group, and why."""

    show = blocking(Shares.show)
    change = blocking(Shares.change)
    usage = blocking(Shares.usage)


class SyncKeys(Twin[Keys]):
    """What keypairs can do beyond the common verbs."""

    issue = blocking(Keys.issue)


class SyncLimits(Twin[Limits]):
    """What could start now, and what is counted."""

    check_presets = blocking(Limits.check_presets)
    verify_usage = blocking(Limits.verify_usage)


class SyncImageVerbs(Twin[ImageVerbs]):
    """Read registries, name images, and have nodes hold them."""

    rescan = blocking(ImageVerbs.rescan)
    rescan_status = blocking(ImageVerbs.rescan_status)
    change_aliases = blocking(ImageVerbs.change_aliases)
    forget = blocking(ImageVerbs.forget)
    untag = blocking(ImageVerbs.untag)
    install = blocking(ImageVerbs.install)
    installs = blocking(ImageVerbs.installs)


class SyncFolderVerbs(Twin[FolderVerbs]):
    """What is done with whole folders."""

    trash = blocking(FolderVerbs.trash)
    restore = blocking(FolderVerbs.restore)
    purge = blocking(FolderVerbs.purge)
    trash_many = blocking(FolderVerbs.trash_many)
    restore_many = blocking(FolderVerbs.restore_many)
    clone = blocking(FolderVerbs.clone)
    transfer = blocking(FolderVerbs.transfer)
    activity = blocking(FolderVerbs.activity)
    invite = blocking(FolderVerbs.invite)
    guests = blocking(FolderVerbs.guests)
    share = blocking(FolderVerbs.share)
    leave = blocking(FolderVerbs.leave)
    invitations = blocking(FolderVerbs.invitations)
    accept = blocking(FolderVerbs.accept)
    decline = blocking(FolderVerbs.decline)
    tasks = blocking(FolderVerbs.tasks)
    task = blocking(FolderVerbs.task)
    cancel = blocking(FolderVerbs.cancel)


class SyncFiles(Twin[Files]):
    """The files in one folder."""

    list = gathering(Files.list)
    stat = blocking(Files.stat)
    mkdir = blocking(Files.mkdir)
    move = blocking(Files.move)
    copy = blocking(Files.copy)
    extract = blocking(Files.extract)
    trash = blocking(Files.trash)
    trashed = gathering(Files.trashed)
    restore = blocking(Files.restore)
    empty_trash = blocking(Files.empty_trash)
    read_text = blocking(Files.read_text)
    write_text = blocking(Files.write_text)
    upload = blocking(Files.upload)
    upload_many = blocking(Files.upload_many)
    uploads = gathering(Files.uploads)
    end_upload = blocking(Files.end_upload)
    download = blocking(Files.download)
    download_many = blocking(Files.download_many)
    archive = blocking(Files.archive)


class SyncStorage(Twin[Storage]):
    """Storage hosts, and who holds how much on them."""

    hosts = blocking(Storage.hosts)
    scopes = gathering(Storage.scopes)
    check = blocking(Storage.check)
    remains = blocking(Storage.remains)
    limit = blocking(Storage.limit)


class SyncSSHKeys(Twin[SSHKeys]):
    """See and change the SSH key that sessions of a keypair get."""

    read = blocking(SSHKeys.read)
    make = blocking(SSHKeys.make)
    bring = blocking(SSHKeys.bring)
    remove = blocking(SSHKeys.remove)


class SyncNodes(Twin[Nodes]):
    """See nodes, and say what they take."""

    list = gathering(Nodes.list)
    get = blocking(Nodes.get)
    summaries = gathering(Nodes.summaries)
    update = blocking(Nodes.update)
    drain = blocking(Nodes.drain)
    undrain = blocking(Nodes.undrain)


class SyncSchedule(Twin[Schedule]):
    """Say what may start, and in which order."""

    set_priority = blocking(Schedule.set_priority)
    terminate = blocking(Schedule.terminate)
    hold = blocking(Schedule.hold)
    release = blocking(Schedule.release)
    freeze = blocking(Schedule.freeze)
    unfreeze = blocking(Schedule.unfreeze)
    read_queue = blocking(Schedule.read_queue)
    queue = gathering(Schedule.queue)
    export = blocking(Schedule.export)
    simulate = blocking(Schedule.simulate)
    simulation_progress = blocking(Schedule.simulation_progress)


class SyncAudit(Twin[Audit]):
    """Who did what."""

    list = gathering(Audit.list)
    export = gathering(Audit.export)
    verify = blocking(Audit.verify)


class SyncAccounts(Twin[Accounts]):
    """Password accounts."""

    create = blocking(Accounts.create)
    create_series = blocking(Accounts.create_series)
    create_from_table = blocking(Accounts.create_from_table)
    reset = blocking(Accounts.reset)
    require_change = blocking(Accounts.require_change)
    unlock = blocking(Accounts.unlock)
    change_password = blocking(Accounts.change_password)


class SyncSessions(Twin[Sessions]):
    """Ask for sessions, look at them and end them, without ``await``."""

    create = blocking(Sessions.create)
    get = blocking(Sessions.get)
    list = gathering(Sessions.list)
    rename = blocking(Sessions.rename)
    terminate = blocking(Sessions.terminate)
    why = blocking(Sessions.why)
    events = blocking(Sessions.events)
    history = gathering(Sessions.history)
    wait = blocking(Sessions.wait)
    log = blocking(Sessions.log)
    usage = blocking(Sessions.usage)
    live_usage = blocking(Sessions.live_usage)

    def watch(self, session_id: str) -> Iterator[EventMessage]:
        """Yield what happens to a session until it has ended."""
        after = 0
        while True:
            for event in self.events(session_id, after=after, wait=20.0):
                after = event.seq
                yield event
                if event.status in TERMINAL:
                    return


class Client:
    """Talk to the hub service, synchronously.

    Inside a session ``Client()`` needs no arguments; elsewhere it takes a keypair, or
    reads one from the environment (``BACKENDAI_ENDPOINT``, ``BACKENDAI_ACCESS_KEY``,
    ``BACKENDAI_SECRET_KEY``).
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if url is None:
            self._client = HubClient.from_environment(environ)
        else:
            self._client = HubClient(
                url,
                token=token,
                token_file=token_file,
                access_key=access_key,
                secret_key=secret_key,
            )
        self._thread = LoopThread()
        client, thread = self._client, self._thread
        self.sessions = SyncSessions(client.sessions, thread)
        self.image_verbs = SyncImageVerbs(client.image_verbs, thread)
        self.folder_verbs = SyncFolderVerbs(client.folder_verbs, thread)
        self.storage = SyncStorage(client.storage, thread)
        self.nodes = SyncNodes(client.nodes, thread)
        self.schedule = SyncSchedule(client.schedule, thread)
        self.audit = SyncAudit(client.audit, thread)
        self.accounts = SyncAccounts(client.accounts, thread)
        self.members = SyncMembers(client.members, thread)
        self.dotfiles = SyncDotfiles(client.dotfiles, thread)
        self.ssh_keys = SyncSSHKeys(client.ssh_keys, thread)
        self.group_access = SyncGroupAccess(client.group_access, thread)
        self.shares = SyncShares(client.shares, thread)
        self.keys = SyncKeys(client.keys, thread)
        self.limits = SyncLimits(client.limits, thread)
        self.domains = SyncCollection(client.domains, thread)
        self.projects = SyncCollection(client.projects, thread)
        self.users = SyncCollection(client.users, thread)
        self.keypairs = SyncCollection(client.keypairs, thread)
        self.keypair_policies = SyncCollection(client.keypair_policies, thread)
        self.user_policies = SyncCollection(client.user_policies, thread)
        self.project_policies = SyncCollection(client.project_policies, thread)
        self.resource_groups = SyncCollection(client.resource_groups, thread)
        self.presets = SyncCollection(client.presets, thread)
        self.reservations = SyncCollection(client.reservations, thread)
        self.slot_types = SyncCollection(client.slot_types, thread)
        self.registries = SyncCollection(client.registries, thread)
        self.images = SyncCollection(client.images, thread)
        self.folders = SyncCollection(client.folders, thread)

    def files(self, folder: str) -> SyncFiles:
        """Return the part about the files in a folder, which has this name or id."""
        return SyncFiles(self._client.files(folder), self._thread)

    def me(self) -> Caller:
        """Return who the service takes the caller for."""
        return self._thread.run(self._client.me())

    def resources(self) -> Resources:
        """Return the environments to choose from, and the room there is now."""
        return self._thread.run(self._client.resources())

    def version(self) -> str:
        """Return the service's version."""
        return self._thread.run(self._client.version())

    def close(self) -> None:
        """Close the connections and end the background thread."""
        with suppress(RuntimeError):
            self._thread.run(self._client.close())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
