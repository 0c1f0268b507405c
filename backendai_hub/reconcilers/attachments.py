"""Keeps sessions and JupyterHub's named servers together, both ways."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from backendai_hub.client.jupyterhub import (
    HubServer,
    JupyterHubClient,
    JupyterHubError,
    JupyterHubUnreachableError,
)
from backendai_hub.db.signals import Signals
from backendai_hub.operations.attachments import (
    Attached,
    list_attached,
    list_ended_servers,
    refuse_attachment,
)
from backendai_hub.operations.platform import Platform
from backendai_hub.reconcilers.base import Reconciler

log = logging.getLogger("backendai_hub.reconcilers.attachments")


PASSES_TO_REST = 4
PASSES_AT_REST = 12


class AttachmentsReconciler(Reconciler):
    """Starts Hub servers for sessions that lack one, ends those without a session.

    JupyterHub forgets what was starting when it is killed, and a session asked for
    by API has no server yet. A server that still starts is left to its spawner.
    """

    name = "attachments"
    resync_seconds = 5.0
    settle_seconds = 0.1
    rest = 3.0

    def __init__(
        self, platform: Platform, signals: Signals, hub: JupyterHubClient
    ) -> None:
        super().__init__(platform, signals)
        self._hub = hub
        self._missing: set[str] = set()
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._quiet_passes = 0

    async def close(self) -> None:
        """Stop asking."""
        for task in self._starting.values():
            task.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await self._hub.close()

    async def reconcile(self) -> int:
        """Run one pass; a Hub that does not answer is asked again later."""
        wanted = await list_attached(self.platform)
        if self._may_rest(wanted):
            return 0
        try:
            active = {(s.user, s.name): s async for s in self._hub.list_active()}
        except JupyterHubUnreachableError as error:
            log.info("JupyterHub does not answer: %s", error)
            self.platform.activity.lose_sight()
            return 0
        ready = [server for server in active.values() if server.ready]
        self._note_activity(wanted, ready)
        missing = [a for a in wanted if (a.user, a.server) not in active]
        # A spawn that is just being asked for shows up a moment later: only what is
        # missing twice in a row has really lost its server.
        again = [
            a
            for a in missing
            if not a.ready or (a.session_id in self._missing and not a.young)
        ]
        self._missing = {a.session_id for a in missing}
        for attached in again:
            self._start(attached)
        started = {(s.user, s.name): _read_time(s.started) for s in ready}
        ended = await list_ended_servers(self.platform, started)
        for user, server in ended:
            log.info("the session of %s/%s has ended: detaching it", user, server)
            try:
                await self._hub.stop_server(user, server)
            except (JupyterHubError, JupyterHubUnreachableError) as error:
                log.warning("JupyterHub kept %s/%s: %s", user, server, error)
        return len(again) + len(ended)

    def _note_activity(self, wanted: list[Attached], ready: list[HubServer]) -> None:
        """Note what JupyterHub says of sessions that can tell it of their use."""
        heard = {(a.user, a.server) for a in wanted if a.is_heard}
        said = {(s.user, s.name): _read_time(s.last_activity) for s in ready}
        self.platform.activity.note(
            {server: said[server] for server in said.keys() & heard},
            now=self.platform.database.clock(),
        )

    def _may_rest(self, wanted: list[Attached]) -> bool:
        """Tell whether JupyterHub need not be asked: nothing lives, and for a while.

        It is asked now and then all the same, for servers whose session ended while
        it was down.
        """
        self._quiet_passes = 0 if wanted else self._quiet_passes + 1
        return self._quiet_passes > PASSES_TO_REST and (
            self._quiet_passes % PASSES_AT_REST != 0
        )

    def _start(self, attached: Attached) -> None:
        """Ask in the background: JupyterHub answers only after a while."""
        if attached.session_id in self._starting:
            return
        task = asyncio.create_task(self._ask(attached))
        self._starting[attached.session_id] = task
        task.add_done_callback(lambda _: self._starting.pop(attached.session_id, None))

    async def _ask(self, attached: Attached) -> None:
        log.info("attaching session %s to %s", attached.session_id, attached.server)
        try:
            await self._hub.start_server(
                attached.user, attached.server, attached.options
            )
        except JupyterHubUnreachableError as error:
            log.info("JupyterHub does not answer: %s", error)
        except JupyterHubError as error:
            log.warning("JupyterHub refused %s: %s", attached.session_id, error)
            if not attached.ready and error.status != 429:
                await refuse_attachment(self.platform, attached.session_id, str(error))


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
