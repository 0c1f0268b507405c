"""What a real session tells JupyterHub of its use while it works and nobody looks."""

from __future__ import annotations

import json
import uuid
from datetime import datetime

import pytest

from tests.harness import until
from tests.integration.test_lab_session import (
    BASE,
    ORIGIN,
    Platform,
    as_user,
    running_session,
)

SILENT = """
import pathlib, time
while not pathlib.Path("enough").exists():
    time.sleep(0.05)
"""
PRINTING = "while [ ! -e enough ]; do echo still here; sleep 0.1; done\r"


class Listening(Platform):
    """A JupyterHub that keeps what it is told of the use of a server."""

    def __init__(self):
        super().__init__()
        self.told = []

    async def _other(self, request):
        if request.path.endswith("/activity"):
            (server,) = (await request.json())["servers"].values()
            self.told.append(datetime.fromisoformat(server["last_activity"]))
        return await super()._other(request)

    async def until_told(self, *, differing, what):
        """Wait for four reports in a row that all differ, or are all the same."""
        begin = len(self.told)
        wanted = 4 if differing else 1

        def heard():
            latest = self.told[begin:][-4:]
            return len(latest) == 4 and len(set(latest)) == wanted

        await until(heard, what)


@pytest.fixture
async def hub():
    return Listening()


@pytest.fixture
async def session(hub):
    environ = {"JUPYTERHUB_ACTIVITY_INTERVAL": "1"}
    async with running_session(hub, **environ) as (client, run):
        yield client, run.parent / "work"


async def post(client, path):
    url = f"{BASE}api/{path}"
    async with client.post(url, headers=as_user("alice"), json={}) as response:
        assert response.status in {200, 201}, await response.text()
        return await response.json()


def connect(client, path):
    headers = as_user("alice", Origin=ORIGIN)
    return client.ws_connect(f"{BASE}{path}", headers=headers)


async def execute(client, code):
    """Have a new kernel compute *code*, and go away as soon as it is busy."""
    kernel = await post(client, "kernels")
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "session": uuid.uuid4().hex,
        "username": "",
        "version": "5.3",
    }
    content = {"code": code, "silent": False, "store_history": False}
    request = {"header": header, "parent_header": {}, "metadata": {}}
    async with connect(client, f"api/kernels/{kernel['id']}/channels") as socket:
        await socket.send_json({**request, "content": content, "channel": "shell"})
        async for message in socket:
            heard = json.loads(message.data)
            if heard["msg_type"] == "execute_input":
                return


async def test_a_cell_that_computes_and_prints_nothing_is_a_use_until_it_ends(
    session, hub
):
    client, home = session
    await hub.until_told(differing=False, what="nobody uses it")
    await execute(client, SILENT)
    await hub.until_told(differing=True, what="a cell computes")
    (home / "enough").touch()
    await hub.until_told(differing=False, what="the cell has ended")


async def test_a_terminal_that_prints_is_a_use_though_its_page_is_closed(session, hub):
    client, home = session
    terminal = await post(client, "terminals")
    path = f"terminals/websocket/{terminal['name']}"
    async with connect(client, path) as socket:
        await socket.send_json(["stdin", PRINTING])
        async for message in socket:
            if "still here" in str(json.loads(message.data)[1:]):
                break
    await hub.until_told(differing=True, what="a terminal prints")
    (home / "enough").touch()
    await hub.until_told(differing=False, what="the terminal is quiet")
