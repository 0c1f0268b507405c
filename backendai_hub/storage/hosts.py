"""The storage hosts of the platform, as the service uses them.

Nothing here touches a filesystem. Each host has a worker process; a host that hangs
fails its own requests within their deadlines, and nobody else's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from backendai_hub.core.errors import InvalidRequestError, UnavailableError
from backendai_hub.storage import wire
from backendai_hub.storage.configuration import HostConfig, check_default, read_hosts
from backendai_hub.storage.connection import BodyReader, BodyWriter, Connection
from backendai_hub.storage.drivers import make_driver
from backendai_hub.storage.keeper import HostHealth, Keeper
from backendai_hub.storage.ops import Operation, Progress
from backendai_hub.storage.places import UNMARKED
from backendai_hub.storage.turns import Turns
from backendai_hub.storage.worker import Setup

log = logging.getLogger("backendai_hub.storage")

T = TypeVar("T")
DEADLINE: Final = 30.0


class StorageHosts:
    """All storage hosts, by name. Without any, everything is refused in words."""

    def __init__(
        self,
        described: Mapping[str, Any] | None = None,
        default: str = "",
        *,
        mark: str = UNMARKED,
        on_change: Callable[[str, HostHealth], None] | None = None,
    ) -> None:
        """Read ``c.HubService.storage_hosts`` strictly; start nothing yet.

        *mark* tells what is this platform's where others keep things as well.
        """
        self._mark = mark
        self._configs: dict[str, HostConfig] = read_hosts(described or {})
        self.default = check_default(self._configs, default)
        """The host that is taken where nobody names one; may be empty."""
        for name, config in self._configs.items():
            make_driver(config.driver, name, config.path, config.options)
        self._on_change = on_change
        self._turns = {name: Turns(name, one) for name, one in self._configs.items()}
        self._keepers = {name: self._make_keeper(name) for name in self._configs}

    def start(self) -> None:
        """Start the workers; what is wrong with a host is told by its health."""
        for keeper in self._keepers.values():
            keeper.start()

    async def close(self) -> None:
        """End the workers."""
        await asyncio.gather(*(keeper.close() for keeper in self._keepers.values()))

    def names(self) -> tuple[str, ...]:
        """List the hosts."""
        return tuple(self._configs)

    def config(self, host: str) -> HostConfig:
        """Return what the site says of a host."""
        self._keeper(host)
        return self._configs[host]

    def unmanaged_roots(self, host: str) -> tuple[str, ...]:
        """List the folders below which a host's machine may have unmanaged ones."""
        return tuple(self.config(host).unmanaged_roots)

    def health(self) -> dict[str, HostHealth]:
        """Tell how each host is."""
        return {name: keeper.health for name, keeper in self._keepers.items()}

    async def call(
        self,
        host: str,
        operation: Operation[T],
        *,
        deadline: float = DEADLINE,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> T:
        """Have *operation* done and return its answer.

        *deadline* is how long the host may be silent: an operation that tells its
        progress may take longer in all. When it has passed nobody knows whether the
        operation was, or will be, done; all of them can be asked for again.
        """
        connection = await self._connect(host, operation, deadline)
        try:
            await connection.ask(operation)
            while True:
                reply = await connection.hear()
                if isinstance(reply, wire.Answer):
                    answer: T = wire.read_answer(operation, reply)
                    return answer
                if isinstance(reply, Progress) and on_progress is not None:
                    on_progress(reply)
        finally:
            connection.close()

    async def upload(
        self, host: str, operation: Operation[T], *, deadline: float = DEADLINE
    ) -> BodyWriter[T]:
        """Begin a stream to the host, once it is ready to take it."""
        connection = await self._connect(host, operation, deadline)
        try:
            pipe = connection.open_pipe()
            try:
                await connection.ask(operation, pipe)
                reply = await connection.hear()
            except BaseException:
                pipe.end()
                raise
        except BaseException:
            connection.close()
            raise
        assert isinstance(reply, wire.Go)
        return BodyWriter(connection, operation, pipe)

    async def download(
        self, host: str, operation: Operation[T], *, deadline: float = DEADLINE
    ) -> BodyReader[T]:
        """Begin a stream from the host; its head has come already."""
        connection = await self._connect(host, operation, deadline)
        try:
            await connection.ask(operation)
            reply = await connection.hear()
        except BaseException:
            connection.close()
            raise
        assert isinstance(reply, wire.Answer)
        return BodyReader(connection, wire.read_answer(operation, reply))

    async def _connect(
        self, host: str, operation: Operation[Any], deadline: float
    ) -> Connection:
        """Connect when it is the asker's turn, which ends with the connection."""
        keeper = self._keeper(host)
        end_turn = await self._turns[host].take(operation)
        try:
            return await keeper.connect(deadline, end_turn)
        except BaseException:
            end_turn()
            raise

    def _keeper(self, host: str) -> Keeper:
        found = self._keepers.get(host)
        if found is None:
            raise self._unknown(host)
        return found

    def _unknown(self, host: str) -> Exception:
        if not self._configs:
            return UnavailableError(
                "no storage host is configured; an administrator has to name one in"
                " c.HubService.storage_hosts"
            )
        return InvalidRequestError(
            f"host: there is no storage host {host[:64]!r}; 'backendai folder hosts'"
            " lists those that you may use"
        )

    def _make_keeper(self, name: str) -> Keeper:
        others = {n: c for n, c in self._configs.items() if n != name}
        return Keeper(Setup(name, self._configs[name], others, self._mark), self._tell)

    def _tell(self, name: str, health: HostHealth) -> None:
        level = logging.INFO if health.state == "ok" else logging.WARNING
        said = f" ({health.reason})" if health.reason else ""
        log.log(level, "storage host %s: %s%s", name, health.state, said)
        if self._on_change is not None:
            self._on_change(name, health)
