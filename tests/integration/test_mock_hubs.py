"""A JupyterHub of a test leaves nothing open, however it ends."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from jupyterhub.httpclient import JupyterHubHTTPClient, fetch
from jupyterhub.orm import User, utcnow

from tests.integration.spawner_harness import MemoryProxy
from tests.mock_hubs import StartedHubs


@pytest.fixture
async def page():
    """Something to ask for."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text="here")

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


@pytest.fixture
async def app(hub_app, tmp_path, monkeypatch):
    """A JupyterHub with neither proxy program nor services."""
    monkeypatch.chdir(tmp_path)
    return await hub_app(config={"JupyterHub": {"proxy_class": MemoryProxy}})


async def ask(page: str) -> Any:
    """Let JupyterHub ask for *page*; return what it holds open for that."""
    answer = await fetch(page)
    answer.release()
    return JupyterHubHTTPClient.loop_instance()._session


async def test_what_a_hub_opened_is_closed_when_its_cleanup_fails(
    app, started_hubs: StartedHubs, page
):
    held = await ask(page)
    app.db_file.close()  # so that what is still to be written cannot be
    app.db.query(User).first().last_activity = utcnow()
    with pytest.raises(Exception, match="readonly database"):
        await app.cleanup()
    assert not held.closed

    await started_hubs.close()

    assert held.closed


async def test_what_is_opened_after_the_cleanup_is_closed_too(
    app, started_hubs: StartedHubs, page
):
    before = await ask(page)
    await app.cleanup()
    after = await ask(page)
    assert (before.closed, after.closed) == (True, False)

    await started_hubs.close()

    assert after.closed
    assert app.db_file.closed
