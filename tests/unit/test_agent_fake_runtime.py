"""The fake runtime fails as it is told to, and the same way every time."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from backendai_agent.folders import container_folder
from backendai_agent.images import Images
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_agent.runtimes.fake import FakeRuntime
from backendai_hub.api.agents import ContainerSpec, DesiredState

IDS = [str(uuid.UUID(int=n, version=4)) for n in range(40)]


def make_spec(container_id):
    return ContainerSpec(
        id=container_id, session_id="s", desired=DesiredState.RUNNING, image="fake"
    )


@pytest.fixture
async def make_runtime(tmp_path):
    made = []

    async def make(**settings):
        runtime = FakeRuntime(data_dir=str(tmp_path), start_seconds=0, **settings)
        await runtime.open()
        made.append(runtime)
        return runtime

    yield make
    for runtime in made:
        await runtime.close()


async def start(runtime, container_id):
    container_folder(runtime.data_dir, container_id).make()
    try:
        await runtime.start(make_spec(container_id), ContainerPatch())
    except RuntimeFailure:
        return False
    return True


async def test_the_same_seed_lets_the_same_starts_fail(make_runtime):
    runs = [
        [
            await start(await make_runtime(persist=False, **chosen), container_id)
            for container_id in IDS
        ]
        for chosen in (
            {"fail_start": 0.5, "seed": 1},
            {"fail_start": 0.5, "seed": 1},
            {"fail_start": 0.5, "seed": 2},
        )
    ]
    assert runs[0] == runs[1] != runs[2]
    assert 5 < sum(runs[0]) < 35


async def test_every_nth_start_fails(make_runtime):
    runtime = await make_runtime(persist=False, fail_every=3)
    assert [await start(runtime, i) for i in IDS[:6]] == [True, True, False] * 2


async def test_what_was_started_begins_though_its_agent_was_killed(make_runtime):
    first = await make_runtime()
    for container_id in IDS[:2]:
        assert await start(first, container_id)
    log = Path(first.data_dir) / "fake-starts.log"
    for kept in ("", f"{IDS[0]}\n"):
        log.write_text(kept)
        folder = container_folder(first.data_dir, IDS[0])
        folder.preparation.unlink()
        folder.activation.write_text("{}")
        await make_runtime()
        assert sorted(log.read_text().split()) == sorted(IDS[:2])
        assert folder.preparation.exists()
        assert not folder.activation.exists()


async def test_containers_outlive_the_runtime_and_are_started_once(make_runtime):
    first = await make_runtime()
    assert await start(first, IDS[0])
    again = await make_runtime()
    [seen] = await again.list()
    assert (seen.id, seen.running) == (IDS[0], True)
    assert await start(again, IDS[0])
    log = container_folder(first.data_dir, IDS[0]).path.parents[1] / "fake-starts.log"
    assert log.read_text().split() == [IDS[0]]
    assert await again.endpoint(IDS[0], "lab") is not None
    assert await again.endpoint(IDS[0], "other") is None


async def test_an_end_is_kept_until_it_is_removed(make_runtime):
    runtime = await make_runtime()
    await start(runtime, IDS[0])
    await runtime.end(IDS[0], 3, "exited with code 3")
    [seen] = await (await make_runtime()).list()
    assert (seen.running, seen.exit_code, seen.reason) == (
        False,
        3,
        "exited with code 3",
    )
    assert await runtime.endpoint(IDS[0], "lab") is None
    await runtime.stop(IDS[0], 0)
    await runtime.stop(IDS[0], 0)
    assert await runtime.list() == []


async def test_what_vanishes_is_heard(make_runtime):
    runtime = await make_runtime()
    await start(runtime, IDS[0])
    changes = runtime.changes()
    hearing = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    await runtime.lose(IDS[0])
    assert await asyncio.wait_for(hearing, 60) == IDS[0]
    await changes.aclose()


async def test_an_environment_that_is_missing_cannot_be_fetched(make_runtime):
    runtime = await make_runtime(fetch_seconds=0, missing=["nowhere"])
    heard = []
    await runtime.fetch("somewhere", heard.append)
    assert heard == sorted(heard)
    assert await runtime.images() == ["fake", "somewhere"]
    with pytest.raises(RuntimeFailure, match="there is no environment nowhere"):
        await runtime.fetch("nowhere", heard.append)


class CountingRuntime(FakeRuntime):
    """Counts what is fetched, and waits to be told to finish."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.fetches = 0
        self.go_on = asyncio.Event()
        self.given_up = asyncio.Event()

    async def fetch(self, image, progress, credential=None):
        self.fetches += 1
        progress(0.5)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        await super().fetch(image, progress)


async def test_an_environment_is_fetched_once_for_all_who_wait(tmp_path):
    runtime = CountingRuntime(data_dir=str(tmp_path), fetch_seconds=0)
    images = Images(runtime)
    heard = [[], []]
    waiting = [
        asyncio.create_task(images.ensure("big", amounts.append)) for amounts in heard
    ]
    while not all(0.5 in amounts for amounts in heard):
        await asyncio.sleep(0)
    waiting[0].cancel()  # one of them gives up; the other still gets it
    runtime.go_on.set()
    await waiting[1]
    assert waiting[0].cancelled()
    assert runtime.fetches == 1
    assert "big" in images.present


async def test_a_fetch_nobody_waits_for_is_given_up(tmp_path):
    runtime = CountingRuntime(data_dir=str(tmp_path), fetch_seconds=0)
    images = Images(runtime)
    heard = []
    waiting = asyncio.create_task(images.ensure("big", heard.append))
    while 0.5 not in heard:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait_for(runtime.given_up.wait(), 60)
