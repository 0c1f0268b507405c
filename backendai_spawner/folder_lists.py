"""What the spawn page asks while somebody chooses: which folders there are.

It is asked at the Hub, whose page it is, as :mod:`backendai_spawner.dry_runs` is.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import quote

import msgspec
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.utils import url_path_join
from tornado import web

from backendai_hub.client.collection import Collection, Page
from backendai_hub.core.errors import HubError, InvalidRequestError, NotFoundError
from backendai_hub.core.mounts import MOST_MOUNTS
from backendai_hub.core.vfolders import MOUNTABLE, Folder
from backendai_spawner.clients import shared_client
from backendai_spawner.connection import ConnectionSettings

PATTERN: Final = r"/backendai/users/([^/]+)/folders"
_PER_PAGE: Final = 20


class FolderListHandler(APIHandler):
    """The folders that somebody can have in a session."""

    @needs_scope("start:servers")
    async def get(self, user_name: str) -> None:
        """List them by name, a page at a time, or those that are named."""
        user = self.find_user(user_name)
        spawner = None if user is None else user.spawners[""]
        if user is None or not isinstance(spawner, ConnectionSettings):
            raise web.HTTPError(404, "nobody here starts sessions for this user")
        try:
            client = shared_client(spawner).acting_for(user.name)
            page = await self._find(client.folders)
        except HubError as error:
            raise web.HTTPError(error.status, error.message) from error
        self.set_header("Content-Type", "application/json")
        self.finish(msgspec.json.encode(page))

    async def _find(self, folders: Collection[Folder]) -> Page[Folder]:
        named = self.get_arguments("folder")
        if len(named) > MOST_MOUNTS:
            raise InvalidRequestError(f"folder: {len(named)} are too many at once")
        if named:
            return await _look_up(folders, named)
        return await folders.page(
            search=self.get_argument("search", ""),
            after=self.get_argument("after", None),
            limit=_PER_PAGE,
            status=",".join(sorted(MOUNTABLE)),
        )


async def _look_up(folders: Collection[Folder], named: list[str]) -> Page[Folder]:
    """Return those that are there, and that a name alone tells from others."""
    found: list[Folder] = []
    for reference in dict.fromkeys(named):
        with suppress(NotFoundError, InvalidRequestError):
            found.append(await folders.get(reference))
    return Page(items=found)


HANDLER: Final = (PATTERN, FolderListHandler)
"""What JupyterHub's ``extra_handlers`` takes."""


def address_of(hub_base: str, user: str) -> str:
    """Return where the page of *user* asks."""
    return str(url_path_join(hub_base, "backendai/users", quote(user, ""), "folders"))
