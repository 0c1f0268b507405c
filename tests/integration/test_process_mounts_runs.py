"""Folders through the whole platform: sessions on two nodes share their files."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from backendai_agent import mounts_kernel as kernel
from tests.admin import admin_api
from tests.harness import Stack, until
from tests.integration.mounts_harness import OWNER, own_folder
from tests.integration.test_batch_runs import Site, make_token

tmp_path = own_folder
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
NODES = [
    pytest.param("process", "sqlite", marks=pytest.mark.bwrap),
    pytest.param("docker", "sqlite", marks=pytest.mark.docker),
    pytest.param(
        "docker", "postgresql", marks=[pytest.mark.docker, pytest.mark.postgres]
    ),
]


@asynccontextmanager
async def two_nodes(place: Path, runtime: str, db_url: str) -> AsyncIterator[Site]:
    """A service and two nodes, all of which have the storage host ``local``."""
    folders = place / "folders"
    stack = Stack(place / "data", db_url)
    try:
        await stack.start_service(f"--HubService.local_folders={folders}")
        async with admin_api(stack) as api:
            site = Site(stack, api, runtime)
            for number, name in enumerate(("left", "right")):
                if number:  # the platform's own token was for the first
                    token = await make_token(stack)
                    stack.folder.key("enroll.token").write_text(token)
                await site.start_agent(
                    f"--BackendAIAgent.name={name}",
                    f"--BackendAIAgent.local_folders={folders}",
                    "--ProcessRuntime.network=none",
                    name=name,
                )

            async def both() -> bool:
                found = (await api.get("api/agents"))["items"]
                told = [node["labels"].get("storage/local") for node in found]
                return told == ["yes", "yes"]

            await until(both, "both nodes say that they have the storage host")
            yield site
    finally:
        stack.stop()


async def run(site: Site, node: str, command: str, **mount: Any) -> dict[str, Any]:
    """Run *command* on *node* with a folder; returns how it ended, with its log."""
    session = await site.ask(command, agents=[node], mounts=[mount])
    ended = await site.end(session)
    told = (await site.log(session)).get("text", "")
    return {**ended, "log": told}


@pytest.mark.parametrize(("runtime", "db_url"), NODES, indirect=["db_url"])
async def test_one_session_goes_on_elsewhere_with_what_another_has_written(
    tmp_path: Path, runtime: str, migrated_url: str
):
    async with two_nodes(tmp_path, runtime, migrated_url) as site:
        _, folder = await site.api.send("POST", "api/folders", json={"name": "data"})
        wrote = await run(
            site, "left", "mkdir data/sub && echo one > data/sub/x", folder="data"
        )
        assert wrote["result"] == "success", wrote
        read, refused = await asyncio.gather(
            run(
                site,
                "right",
                "cat data/x && echo two >> data/x",
                folder="data/sub",
                target="data",
            ),
            run(
                site,
                "left",
                "cat d/sub/x; touch d/y",
                folder="data",
                target="d",
                permission="ro",
            ),
        )
        assert read["result"] == "success", read
        assert read["log"].startswith("one\n"), read
        assert refused["result"] == "failure"
        assert refused["log"].startswith("one\n"), refused
        assert "Read-only file system" in refused["log"]

        digits = uuid.UUID(folder["id"]).hex
        [place] = (tmp_path / "folders").glob(f"*/{digits[:2]}/{digits[2:4]}/*")
        assert (place / "sub/x").read_text() == "one\ntwo\n"
        owners = {(p.stat().st_uid, p.stat().st_gid) for p in place.rglob("*")}
        assert owners == {OWNER}

        # Gone behind the platform's back.
        place.rename(place.with_name("elsewhere"))
        lost = await run(site, "right", "true", folder="data")
        assert lost["status"] == "ERROR", lost
        assert "is not on the storage host 'local' any more" in lost["reason"]
    assert kernel.list_below(tmp_path) == []


@pytest.mark.bwrap
async def test_where_no_node_has_the_host_the_refusal_names_it(tmp_path: Path):
    stack = Stack(tmp_path / "data")
    try:
        folders = tmp_path / "folders"
        await stack.start_service(f"--HubService.local_folders={folders}")
        await stack.start_agent(runtime="process")
        async with admin_api(stack) as api:
            await api.send("POST", "api/folders", json={"name": "data"})
            status, body = await api.create(
                type="batch",
                startup_command="true",
                slots={"cpu": "0.1"},
                mounts=[{"folder": "data"}],
            )
            assert status == 422, body
            assert "storage/local" in str(body) or "storage host" in str(body)
    finally:
        stack.stop()
