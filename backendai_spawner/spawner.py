"""The spawner: JupyterHub's named servers as attachments to our sessions.

A session is the service's, with its own life: it waits in a queue, outlives the Hub,
and is seen by people who never open the Hub. The named server is how one gets at it.
So a server that is not running says nothing about the session, and starting a server
whose session is there already only attaches to it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from jupyterhub.spawner import Spawner
from jupyterhub.utils import url_path_join
from traitlets import Float, Unicode, default

from backendai_hub.api.explanations import DryRun
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.client.hub import HubClient
from backendai_hub.client.tenancy import PresetCheck
from backendai_hub.core.access import SESSION_SCOPES
from backendai_hub.core.errors import HubError, InvalidRequestError, NotFoundError
from backendai_hub.core.idleness import REPORT_SECONDS
from backendai_hub.core.sessions import Attachment, SessionStatus
from backendai_spawner import dry_runs, folder_lists, page_files
from backendai_spawner.clients import shared_client
from backendai_spawner.connection import ConnectionSettings
from backendai_spawner.form import render_form, render_outage
from backendai_spawner.launch import Launch
from backendai_spawner.options import (
    SESSION_KEY,
    SpawnOptions,
    options_from_form,
    options_of,
    read_key,
    read_options,
    request_of,
)
from backendai_spawner.progress import SpawnProgress
from backendai_spawner.refusals import SpawnRefusedError, refusal_from

# What runs in a notebook has its user's rights on sessions and data, and no others.
USER_SCOPES = ("access:services!service=backendai", *sorted(SESSION_SCOPES))
"""What a session's own token, and the tokens of people who open it, may do with us."""


class BackendAISpawner(ConnectionSettings, Spawner):
    """Runs each server as a Backend.AI session, queued until there is room for it."""

    gateway_url = Unicode(
        help="""Address at which this Hub reaches every session: the router's gateway.
        Default: from the connection file.
        """,
    ).tag(config=True)

    stop_timeout = Float(
        120.0,
        help="""Seconds to wait for a session to end before stopping its server fails.
        The session goes on ending by itself.
        """,
    ).tag(config=True)

    @default("gateway_url")
    def _default_gateway_url(self) -> str:
        return self._from_file("gateway_url")

    @default("start_timeout")
    def _default_start_timeout(self) -> int:
        return 30 * 24 * 3600  # a queue may be long; the service has its own limits

    @default("options_form")
    def _default_options_form(self) -> Callable[..., Awaitable[str]]:
        return _render_options_form

    @default("options_from_form")
    def _default_options_from_form(self) -> Callable[..., dict[str, Any]]:
        return _options_from_form

    @default("apply_user_options")
    def _default_apply_user_options(self) -> Callable[..., None]:
        return _leave_to_start

    @default("progress_ready_hook")
    def _default_progress_ready_hook(self) -> Callable[..., dict[str, Any]]:
        return _correct_ready_event

    @default("server_token_scopes")
    def _default_server_token_scopes(self) -> list[str]:
        return ["users:activity!user", "access:servers!server", *USER_SCOPES]

    @default("oauth_client_allowed_scopes")
    def _default_oauth_client_allowed_scopes(self) -> list[str]:
        return list(USER_SCOPES)

    def __init__(self, **kwargs: Any) -> None:
        self._session_id = ""
        self._key = ""
        self._last_answer: int | None = None
        self._interrupted = False
        self._found_running = False
        self._checking = False
        self._story: SpawnProgress | None = None
        super().__init__(**kwargs)

    # -- state ---------------------------------------------------------------

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Take up the session that this server was attached to."""
        super().load_state(state)
        self._session_id = str(state.get("session_id", ""))
        # Kept only once the session had been seen running: that is the last answer
        # until the service gives a newer one.
        self._last_answer = None if self._session_id else 0

    def get_state(self) -> dict[str, Any]:
        """Return the session's id; everything else is the service's to know."""
        state: dict[str, Any] = super().get_state()
        if self._session_id:
            state["session_id"] = self._session_id
        return state

    def clear_state(self) -> None:
        """Forget the session."""
        super().clear_state()
        self._session_id = ""
        self._key = ""
        self._last_answer = 0
        self._interrupted = False
        self._found_running = False
        self._checking = False

    # -- start ---------------------------------------------------------------

    def start(self) -> Awaitable[str]:
        """Bring the session to RUNNING and return where it is reached.

        Not a coroutine itself: what it writes to ``user_options`` before returning
        is committed by the Hub before anything is awaited, so that a Hub that dies
        meanwhile finds its request again.
        """
        self._story = SpawnProgress()
        try:
            options = read_options(self.user_options)
        except InvalidRequestError as error:
            raise _not_valid(error) from error
        stored = read_key(self.user_options)
        self._remember_key(stored or str(uuid.uuid4()))
        return self._start(options, stored)

    async def _start(self, options: SpawnOptions, stored_key: str | None) -> str:
        assert self._story is not None
        try:
            await self._tell_groups()
            await self._reach_running(self._launch(), options, stored_key)
        except asyncio.CancelledError:
            # The user's stop, the timeout, or the Hub's own end. Only the first two
            # are followed by a call of stop(), and poll() lets it through.
            self._interrupted = True
            self._story.tell("Cancelled")
            raise
        except SpawnRefusedError as refusal:
            self._story.tell(refusal.message, reason=refusal.message)
            raise
        except HubError as error:
            self._story.tell(error.message, reason=error.message)
            raise refusal_from(error) from error
        finally:
            self._story.finish()
        return self.gateway_url

    async def _reach_running(
        self, launch: Launch, options: SpawnOptions, stored_key: str | None
    ) -> None:
        found = await launch.find(stored_key)
        if found is not None:
            self._session_id = found.session.id
            self._found_running = found.session.status is SessionStatus.RUNNING
            self.log.info("%s: attaching to %s", self._log_name, found.session.id)
        elif stored_key is not None and await launch.is_spent(stored_key):
            self._remember_key(str(uuid.uuid4()))
        if found is not None and found.token:
            # The container is born with this token and knows no other; the Hub drops
            # the one it made for this start.
            self.api_token = found.token
            session = found.session
        else:
            # New, or asked for elsewhere and still without what only the Hub can give.
            key = self._key
            if found is not None:
                # Not by its own key: what is asked for may be spelt differently now.
                key, options = str(uuid.uuid4()), options_of(found.session)
            image = options.image or await launch.first_image()
            session = await launch.request(self._request(options, image), key)
            self.log.info("%s: requested %s", self._log_name, session.id)
        self._session_id = session.id
        await launch.until_running(session)
        self._last_answer = None

    def get_env(self) -> dict[str, Any]:
        """Return the server's environment; it tells of its use as often as we need."""
        environ: dict[str, Any] = super().get_env()
        environ["JUPYTERHUB_ACTIVITY_INTERVAL"] = str(REPORT_SECONDS)
        return environ

    def _request(self, options: SpawnOptions, image: str) -> SessionRequest:
        return request_of(
            options,
            image,
            attachment=self._attachment(),
            environ=_as_text(self.get_env()),
            argv=[str(word) for word in self.get_args()],
        )

    def _remember_key(self, key: str) -> None:
        self._key = key
        options = {**(self.orm_spawner.user_options or {}), SESSION_KEY: key}
        self.user_options = self.orm_spawner.user_options = options

    # -- poll, stop ----------------------------------------------------------

    async def poll(self) -> int | None:
        """Return None only for a running session, its exit code or 0 otherwise.

        A session that waits is not running: a restarted Hub then forgets the server
        and leaves the session alone. While the service does not answer, the last
        answer stands: an outage stops nothing.
        """
        if self._stop_pending and self._interrupted:
            return None  # so that the Hub calls stop(), which ends what start() began
        if not self._session_id:
            return 0
        try:
            session = await self._client().sessions.get(self._session_id)
        except NotFoundError:
            self._last_answer = 0
        except HubError as error:
            self.log.warning("%s: cannot ask: %s", self._log_name, error.message)
        else:
            # One that makes room still answers: people can save until it is gone.
            running = session.status in {SessionStatus.RUNNING, SessionStatus.PREEMPTED}
            self._last_answer = None if running else session.exit_code or 0
        return self._last_answer

    async def stop(self, now: bool = False) -> None:  # noqa: FBT001, FBT002 - upstream's
        """End the session and return when it has ended.

        Called also to clean up after a start that failed. If the Hub merely could
        not reach a session that ran before, that session is left running: it can be
        attached again, and its work is not lost to a router that was restarting.
        """
        if self._is_only_unreached():
            self.log.error(
                "%s: session %s runs but was not reached through %s; it is left"
                " running, start this server again to attach to it",
                self._log_name,
                self._session_id,
                self.gateway_url,
            )
            return
        launch = self._launch()
        async with asyncio.timeout(self.stop_timeout):
            session_id = self._session_id
            if not session_id and self._key:
                found = await launch.find(self._key)
                session_id = found.session.id if found else ""
            if session_id:
                await launch.end(session_id, force=now)
        self._interrupted = False
        self._last_answer = 0

    def _is_only_unreached(self) -> bool:
        unanswered = self._waiting_for_response or self._proxy_pending
        return self._checking or (self._found_running and bool(unanswered))

    async def get_url(self) -> str:
        """Return where the session is reached; the gateway finds it by its path.

        The Hub asks this only when it starts and finds the session running.
        """
        self._checking = True
        return str(url_path_join(self.gateway_url, self.server.base_url))

    def start_polling(self) -> None:
        """Begin to poll; the Hub does so when it has reached the session."""
        self._checking = False
        super().start_polling()

    # -- what users see ------------------------------------------------------

    @property
    def is_interrupted(self) -> bool:
        """Whether the start was cancelled and nothing has cleaned up after it yet."""
        return self._interrupted

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Yield where the session is, for one of the tabs that watch."""
        if self._story is not None:
            async for step in self._story.steps():
                yield step

    async def render_options_form(self) -> str:
        """Return the launch form with what there is to choose now."""
        await self._tell_groups()
        client = self._client()
        try:
            resources = await client.resources()
        except HubError as error:
            self.log.warning("No launch form for %s: %s", self._log_name, error.message)
            return render_outage(error.message, prefix=self.service_prefix)
        chosen = dict(self.orm_spawner.user_options or {}) if self.orm_spawner else {}
        chosen.pop(SESSION_KEY, None)
        return render_form(
            resources,
            prefix=self.service_prefix,
            chosen=chosen,
            server=self.name,
            checked=await self._check_presets(client),
            asks_at=dry_runs.address_of(self.hub.base_url, self.user.name),
            folders_at=folder_lists.address_of(self.hub.base_url, self.user.name),
            files_at=page_files.address_of(self.hub.base_url),
        )

    async def try_out(self, given: Mapping[str, Any]) -> DryRun:
        """Say what would become of a session with these options; nothing is begun."""
        options = read_options(given)
        await self._tell_groups()
        request = request_of(options, options.image or "")
        return await self._client().sessions.dry_run(request)

    async def _check_presets(self, client: HubClient) -> PresetCheck | None:
        try:
            return await client.limits.check_presets()
        except HubError as error:  # the form does without them
            self.log.warning("No presets for %s: %s", self._log_name, error.message)
            return None

    # -- parts ---------------------------------------------------------------

    async def _tell_groups(self) -> None:
        """Have what JupyterHub's groups give be there before it is chosen from.

        Whether the user may start anything is said when they do, not here.
        """
        groups = [group.name for group in self.user.groups]
        try:
            await shared_client(self).accounts.check(
                self.user.name, groups=groups, admin=bool(self.user.admin)
            )
        except HubError as error:
            self.log.warning("%s: groups not told: %s", self._log_name, error.message)

    def _client(self) -> HubClient:
        return shared_client(self).acting_for(self.user.name)

    def _launch(self) -> Launch:
        return Launch(
            self._client(),
            self._attachment(),
            progress=self._story or SpawnProgress(),
            log=self.log,
        )

    def _attachment(self) -> Attachment:
        prefix = self.server.base_url if self.server else ""
        return Attachment(user=self.user.name, server=self.name, prefix=prefix)


async def _render_options_form(spawner: BackendAISpawner) -> str:
    return await spawner.render_options_form()


def _options_from_form(form: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return options_from_form(form)
    except InvalidRequestError as error:
        raise _not_valid(error) from error


def _leave_to_start(_spawner: BackendAISpawner, _options: Mapping[str, Any]) -> None:
    """Do nothing: start() checks the options, whoever sets this hook."""


def _correct_ready_event(
    spawner: BackendAISpawner, event: dict[str, Any]
) -> dict[str, Any]:
    # For a second after a pending start is cancelled the Hub takes the server for
    # ready, and would send the page there.
    if spawner.is_interrupted:
        return {"progress": 100, "failed": True, "message": "Cancelled"}
    return event


def _not_valid(error: InvalidRequestError) -> SpawnRefusedError:
    return SpawnRefusedError(error.message, reason=error.code, status_code=400)


def _as_text(environ: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(v) for name, v in environ.items() if v is not None}
