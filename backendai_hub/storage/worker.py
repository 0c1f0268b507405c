"""The process that does a storage host's work (``python -m`` this module).

It is started with one end of a socket as its standard input. Over it come what it is
to be (once) and then connections, one for each operation, as descriptors. Nobody else
can reach it; when the service ends, so does it. It may hang where its filesystem does:
the service notices that it has no answer, and starts another.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, Final

import msgspec

from backendai_hub.core.errors import HubError, UnavailableError
from backendai_hub.safefs.errors import in_words
from backendai_hub.storage import (
    cloning,
    contents,
    files,
    folders,
    moving,
    once,
    ops,
    remains,
    scopes,
    trash,
    uploads,
)
from backendai_hub.storage.channel import Channel, ServiceLeftError
from backendai_hub.storage.configuration import HostConfig
from backendai_hub.storage.drivers import make_driver
from backendai_hub.storage.places import UNMARKED
from backendai_hub.storage.privileges import (
    FILES,
    SYS_ADMIN,
    die_with_parent,
    keep_capabilities,
)
from backendai_hub.storage.work import Host, Work, tag_of

log = logging.getLogger("backendai_hub.storage.worker")

LARGEST_SETUP: Final = 1 << 20
WORKED_SECONDS: Final = 0.005
"""Whoever computes so little between two looks only waits for the storage."""
_GLANCE: Final = 0.2

WORK: Final[Mapping[type[Any], Work]] = MappingProxyType(
    {
        ops.Health: scopes.look,
        ops.MakeScope: scopes.make_scope,
        ops.RemoveScope: scopes.remove_scope,
        ops.SetLimit: scopes.set_limit,
        ops.ScopeUsage: scopes.tell_usage,
        ops.ListScopes: scopes.list_scopes,
        ops.ListFolders: scopes.list_folders,
        ops.ListRemains: remains.list_remains,
        ops.RemoveRemain: remains.remove_remain,
        ops.MakeFolder: folders.make,
        ops.RemoveFolder: folders.remove,
        ops.CloneFolder: cloning.clone,
        ops.MoveFolder: moving.move,
        ops.ScanUsage: trash.count,
        ops.ListEntries: files.list_entries,
        ops.StatEntry: files.stat_entry,
        ops.MakeDirectory: files.make_directory,
        ops.MoveEntry: files.move_entry,
        ops.CopyEntry: files.copy_entry,
        ops.RemoveEntry: files.remove_entry,
        ops.TrashEntry: trash.throw_away,
        ops.RestoreEntry: trash.restore,
        ops.ListTrash: trash.list_trash,
        ops.EmptyTrash: trash.empty,
        ops.ReadFile: contents.read,
        ops.WriteText: contents.write_text,
        ops.Archive: contents.send_archive,
        ops.ExtractArchive: contents.unpack,
        ops.ForgetTask: once.forget,
        ops.BeginUpload: uploads.begin,
        ops.UploadOffset: uploads.tell_offset,
        ops.AppendUpload: uploads.append,
        ops.FinishUpload: uploads.finish,
        ops.AbandonUpload: uploads.abandon,
        ops.ListUploads: uploads.list_uploads,
    }
)


class Setup(msgspec.Struct, frozen=True):
    """What a worker is to be."""

    name: str
    config: HostConfig
    others: dict[str, HostConfig] = {}
    mark: str = UNMARKED


class Worker:
    """Takes connections and gives each a thread."""

    def __init__(self, host: Host, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._lock = threading.Lock()
        most = host.config.most_scans
        self._slots: dict[type[Any], Slots] = {
            scan: Slots(most) for scan in (ops.ListEntries, ops.ScanUsage)
        }
        self._running: dict[Channel, _Request] = {}

    def take(self, sock: socket.socket) -> None:
        """Serve a connection in a thread of its own."""
        thread = threading.Thread(target=self.serve, args=(sock,), daemon=True)
        thread.start()

    def serve(self, sock: socket.socket) -> None:
        """Do what one connection asks for."""
        channel = Channel(sock)
        with self._lock:
            self._running[channel] = _Request(self._clock())
            busy = len(self._running)
        try:
            self._answer(channel, busy)
        except ServiceLeftError:
            pass  # whoever asked will look at what became of it
        finally:
            with self._lock:
                del self._running[channel]
            channel.close()

    def _answer(self, channel: Channel, busy: int) -> None:
        operation = channel.request()
        try:
            if isinstance(operation, ops.Health):
                channel.answer(self._report(operation, channel))
            else:
                self._check_room(busy)
                with self._slot(operation, channel):
                    answer = self._do(operation, channel)
                channel.answer(answer)
        except HubError as error:
            channel.refuse(error)
        except ServiceLeftError:
            raise
        except Exception as error:
            log.exception("host %s: %s failed", self._host.name, tag_of(operation))
            channel.refuse(
                HubError(f"storage host {self._host.name}: {type(error).__name__}")
            )

    def _do(self, operation: ops.Operation[Any], channel: Channel) -> Any:
        with in_words([]):
            self._host.driver.before(operation)
            self._host.ready()
            return WORK[type(operation)](self._host, operation, channel)

    def _report(self, operation: ops.Health, channel: Channel) -> ops.HostReport:
        report: ops.HostReport = self._do(operation, channel)
        now = self._clock()
        patience = self._host.config.stuck_seconds
        with self._lock:
            running = dict(self._running)
        stuck = sum(
            not request.has_worked()
            and now - request.since > patience
            and channel.is_left()
            for channel, request in running.items()
        )
        return msgspec.structs.replace(report, busy=len(running) - 1, stuck=stuck)

    def _slot(
        self, operation: ops.Operation[Any], channel: Channel
    ) -> AbstractContextManager[None]:
        """Wait for a slot where one operation can keep the whole processor busy."""
        slots = self._slots.get(type(operation))
        return nullcontext() if slots is None else slots.turn(channel)

    def _check_room(self, busy: int) -> None:
        if busy > self._host.config.most_requests:
            raise UnavailableError(
                f"storage host {self._host.name} has {busy - 1} requests under way;"
                " try again in a moment",
                retry_after=5,
            )


class _Request:
    """One that is under way, by the thread that makes this."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._worked = 0.0

    def has_worked(self) -> bool:
        """Tell whether its thread has computed since this was asked last."""
        try:
            now = time.clock_gettime(self._clock)
        except OSError:  # it has just ended
            return True
        before, self._worked = self._worked, now
        return now - before > WORKED_SECONDS


class Slots:
    """So many of a kind go on at once, and others answer in the meantime."""

    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)

    @contextmanager
    def turn(self, channel: Channel) -> Iterator[None]:
        """Wait for a slot, unless nobody waits for the answer any more."""
        while not self._free.acquire(timeout=_GLANCE):
            if channel.is_left():
                raise ServiceLeftError
        try:
            yield
        finally:
            self._free.release()


def main() -> None:
    """Be the worker of the service that started this process."""
    die_with_parent(int(sys.argv[1]))
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname).1s %(name)s: %(message)s"
    )
    # Signals to the whole group are for the service: we end when it has.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o022)
    control = socket.socket(fileno=0)
    setup = msgspec.msgpack.decode(control.recv(LARGEST_SETUP), type=Setup)
    config = setup.config
    driver = make_driver(config.driver, setup.name, config.path, config.options)
    keep_capabilities((*FILES, SYS_ADMIN) if driver.needs_admin else FILES)
    host = Host(setup.name, config, driver, setup.others, setup.mark)
    worker = Worker(host)
    while True:
        message, descriptors, *_ = socket.recv_fds(control, 1, 16)
        if not message:
            os._exit(0)
        for descriptor in descriptors:
            worker.take(socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main()
