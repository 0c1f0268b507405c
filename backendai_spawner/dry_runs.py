"""What the spawn page asks while somebody chooses: what would become of it.

It is asked at the Hub, whose page it is, and answered by the service as it answers
the spawner: the page needs no login of its own there.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

import msgspec
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.utils import url_path_join
from tornado import web

from backendai_hub.api.explanations import DryRun
from backendai_hub.core.errors import HubError

PATTERN: Final = r"/backendai/users/([^/]+)/dry-run"


@runtime_checkable
class AsksFirst(Protocol):
    """A spawner that can tell before."""

    async def try_out(self, given: dict[str, Any]) -> DryRun:
        """Say what would become of these options."""


class DryRunHandler(APIHandler):
    """A choice that has not been sent."""

    @needs_scope("start:servers")
    async def post(self, user_name: str) -> None:
        """Say whether it would be refused, start now, or wait for what."""
        user = self.find_user(user_name)
        spawner = None if user is None else user.spawners[""]
        if not isinstance(spawner, AsksFirst):
            raise web.HTTPError(404, "nobody here starts sessions for this user")
        chosen = self.get_json_body() or {}
        if not isinstance(chosen, dict):
            raise web.HTTPError(400, "send what is chosen as a JSON object")
        try:
            outcome = await spawner.try_out(chosen)
        except HubError as error:
            raise web.HTTPError(error.status, error.message) from error
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(outcome))


HANDLER: Final = (PATTERN, DryRunHandler)
"""What JupyterHub's ``extra_handlers`` takes."""


def address_of(hub_base: str, user: str) -> str:
    """Return where the page of *user* asks."""
    return str(url_path_join(hub_base, "backendai/users", quote(user, ""), "dry-run"))
