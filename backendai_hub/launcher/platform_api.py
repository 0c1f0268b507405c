"""What the launcher asks the running platform: tokens, nodes and sessions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from backendai_hub.api.accounts import NewAccount
from backendai_hub.api.folders import StorageHost
from backendai_hub.api.nodes import AgentPage
from backendai_hub.api.problems import Problem
from backendai_hub.api.sessions import SessionPage
from backendai_hub.core.agents import Agent, AgentStatus
from backendai_hub.core.errors import UnavailableError
from backendai_hub.core.sessions import QUEUED, Session
from backendai_hub.launcher.commands import Layout
from backendai_hub.launcher.local_http import Answer, ask

_PAGE = 100


async def make_token(layout: Layout, *, seconds: int, note: str) -> str | None:
    """Make a token that acts for the administrator; None while JupyterHub is down."""
    if layout.attached:
        return None
    own = layout.folder.key("launcher.token").read_text("ascii").strip()
    url = f"{layout.jupyterhub_api_url}/users/{layout.state.admin}/tokens"
    answer = await ask(
        "POST", url, token=own, body={"expires_in": seconds, "note": note}
    )
    return str(answer.json()["token"]) if answer.status == 201 else None


@dataclass(frozen=True)
class PlatformApi:
    """The hub service's API, asked as the administrator."""

    service_url: str
    token: str

    async def agents(self) -> list[Agent]:
        """Return the nodes; raises :class:`UnavailableError`."""
        found: list[Agent] = []
        after = ""
        while True:
            query = f"api/agents?limit={_PAGE}"
            answer = await self._ask(
                "GET", query + (f"&after={after}" if after else "")
            )
            page = msgspec.json.decode(answer.body, type=AgentPage)
            found += page.items
            if page.next is None:
                return found
            after = page.next

    async def live_sessions(self) -> list[Session]:
        """Return every session that has not ended, whoever owns it."""
        found: list[Session] = []
        after = ""
        while True:
            query = f"api/sessions?status=live&owner=*&limit={_PAGE}"
            answer = await self._ask(
                "GET", query + (f"&after={after}" if after else "")
            )
            page = msgspec.json.decode(answer.body, type=SessionPage)
            found += page.items
            if page.next is None:
                return found
            after = page.next

    async def closed_hosts(self) -> list[str]:
        """Return the storage hosts on which the administrator may do nothing.

        So it is where the platform is older than folders: nobody has permitted any.
        """
        answer = await self._ask("GET", "api/storage-hosts")
        hosts = msgspec.json.decode(answer.body, type=list[StorageHost])
        return [host.name for host in hosts if not host.permissions]

    async def create_account(self, name: str) -> NewAccount:
        """Create an account; returns its one-time password, shown only here."""
        answer = await self._ask("POST", "api/accounts", {"name": name})
        return msgspec.json.decode(answer.body, type=NewAccount)

    async def end_sessions(self, timeout: float) -> int:
        """End every session and wait for the last; returns how many there were.

        Raises :class:`UnavailableError` when some are still there at the end.
        """
        asked: set[str] = set()
        deadline = time.monotonic() + timeout
        while left := await self.live_sessions():
            # Those in the queue first: room that becomes free must not start them.
            for session in sorted(left, key=lambda s: s.status not in QUEUED):
                if session.id not in asked:
                    path = f"api/sessions/{session.id}/terminate"
                    await self._ask("POST", path, {"force": False})
                    asked.add(session.id)
            if time.monotonic() > deadline:
                names = ", ".join(session.name for session in left[:5])
                raise UnavailableError(
                    f"{len(left)} sessions have not ended after {timeout:g} s: {names}"
                )
            await asyncio.sleep(0.2)
        return len(asked)

    async def _ask(self, method: str, path: str, body: Any = None) -> Answer:
        answer = await ask(method, self.service_url + path, token=self.token, body=body)
        if not 200 <= answer.status < 300:
            raise UnavailableError(_describe_refusal(answer, f"{method} {path}"))
        return answer


def _describe_refusal(answer: Answer, asked: str) -> str:
    """Give the service's own words where it has some."""
    try:
        return msgspec.json.decode(answer.body, type=Problem).detail
    except msgspec.DecodeError:
        said = answer.body[:300].decode("utf-8", "replace")
        return (
            f"the hub service answered {answer.status or 'nothing'} to {asked}: {said}"
        )


async def is_answering(url: str) -> bool:
    """Tell whether *url* answers with success."""
    return (await ask("GET", url)).status == 200


def count_containers(layout: Layout) -> int:
    """Count the sessions on this node from the agent's folder, asking nobody."""
    folder = layout.folder.agent / "containers"
    try:
        return sum(1 for entry in folder.iterdir() if entry.is_dir())
    except FileNotFoundError:
        return 0


def find_local(agents: list[Agent], own_id: str) -> Agent | None:
    """Return this machine's agent if it is taken for alive."""
    for agent in agents:
        if agent.status is AgentStatus.ALIVE and own_id in {"", agent.id}:
            return agent
    return None


class Reports:
    """Tells whether a node has spoken since *since*, or ever, without one.

    A node that was stopped a moment ago is still taken for alive, so that only what it
    says from now on tells that it is back. The times are the database's, which may not
    be this machine's; a time that moves on is news whatever it is.
    """

    def __init__(self, since: datetime | None) -> None:
        self._since = since
        self._first: str | None = None

    def are_new(self, agent: Agent) -> bool:
        """Tell whether *agent*, as it is shown now, has spoken."""
        seen = agent.last_seen_at
        if seen is None:
            return False
        if self._since is None or datetime.fromisoformat(seen) >= self._since:
            return True
        if self._first is None:
            self._first = seen
        return seen != self._first
