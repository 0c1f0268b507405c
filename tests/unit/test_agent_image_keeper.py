"""Fetching ahead of need, with a runtime that fails as it is told to."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from backendai_agent.image_keeper import ImageKeeper, KeeperTiming
from backendai_agent.images import Images
from backendai_agent.runtimes.base import RuntimeFailure
from backendai_agent.runtimes.docker_images import Layers, Pull
from backendai_agent.runtimes.fake import FakeContainer, FakeRuntime
from backendai_hub.api.agents import (
    AssignmentSet,
    ContainerSpec,
    DesiredState,
    ImageState,
    ImageWanted,
    ImageWish,
    RegistryCredential,
)

SECRET = "canary-4711"
LOGIN = RegistryCredential(registry="docker.io", username="anybody", password=SECRET)
WRONG = msgspec.structs.replace(LOGIN, password="wrong")


class SlowRuntime(FakeRuntime):
    """Fetches and discards when it is told to go on, and notes what it does."""

    def __init__(self, **settings):
        super().__init__(fetch_seconds=0, persist=False, **settings)
        self.go_on = asyncio.Event()
        self.asked = []
        self.most = self.running = 0

    async def fetch(self, image, progress, credential=None):
        self.asked.append((image, credential))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go_on.wait()
            await super().fetch(image, progress, credential)
        finally:
            self.running -= 1

    async def discard(self, image):
        self.asked.append((image, "discard"))
        await self.go_on.wait()
        await super().discard(image)


def present(reference="tiny", credential=None):
    return ImageWanted(
        reference=reference, wanted=ImageWish.PRESENT, credential=credential
    )


def absent(reference="tiny"):
    return ImageWanted(reference=reference, wanted=ImageWish.ABSENT)


class Site:
    """A keeper at work, and a way to wait for what it says."""

    def __init__(self, runtime, **timing):
        self.runtime = runtime
        self.images = Images(runtime)
        self.needed = set()
        self.told = []
        self.news = asyncio.Event()
        self.keeper = ImageKeeper(
            self.images,
            needed=lambda: self.needed,
            on_change=self.hear,
            log=logging.getLogger("keeper"),
            timing=KeeperTiming(**{"resync": 5.0, "retry": 0.01, **timing}),
        )

    def hear(self):
        self.told.append(self.keeper.account())
        self.news.set()

    async def until(self, **states):
        """Wait until every image named is told to be in that state."""
        wanted = {name: ImageState(state) for name, state in states.items()}
        async with asyncio.timeout(60):
            while wanted.items() - self.now().items():
                self.news.clear()
                await self.news.wait()

    def now(self):
        return {each.reference: each.state for each in self.keeper.account()}


@pytest.fixture
async def site():
    site = Site(SlowRuntime(missing=["gone"], private={"private": SECRET}))
    working = asyncio.create_task(site.keeper.run())
    yield site
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await site.runtime.close()


async def test_what_is_wanted_is_fetched_and_told_to_be_here(site):
    site.keeper.assign([present()])
    await site.until(tiny="pulling")
    site.runtime.go_on.set()
    await site.until(tiny="done")
    assert "tiny" in await site.runtime.images()


async def test_two_are_fetched_at_once_and_the_others_wait(site):
    site.keeper.assign([present(name) for name in "abcde"])
    await site.until(a="pulling", b="pulling", c="waiting")
    site.runtime.go_on.set()
    await site.until(**dict.fromkeys("abcde", "done"))
    assert site.runtime.most == 2


async def test_an_agent_that_restarts_knows_what_is_here(tmp_path):
    for asked in ([("tiny", None)], []):
        runtime = SlowRuntime(data_dir=str(tmp_path))
        runtime.persist = True
        runtime.go_on.set()
        await runtime.open()
        site = Site(runtime)
        site.keeper.assign([present()])
        assert site.keeper.account() == []  # nothing is said before looking
        working = asyncio.create_task(site.keeper.run())
        await site.until(tiny="done")
        assert runtime.asked == asked
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await runtime.close()


async def test_what_cannot_be_fetched_is_explained_and_tried_again(site):
    site.runtime.go_on.set()
    site.keeper.assign([present("gone")])
    await site.until(gone="failed")
    [described] = site.keeper.account()
    assert described.reason == "there is no environment gone"
    site.runtime.missing = []
    await site.until(gone="done")
    assert len(site.runtime.asked) >= 2


async def test_a_new_login_is_tried_without_delay():
    site = Site(SlowRuntime(private={"private": SECRET}), retry=1000.0, resync=1000.0)
    site.runtime.go_on.set()
    working = asyncio.create_task(site.keeper.run())
    site.keeper.assign([present("private", WRONG)])
    await site.until(private="failed")
    site.keeper.assign([present("private", WRONG)])
    await asyncio.sleep(0)
    assert len(site.runtime.asked) == 1
    site.keeper.assign([present("private", LOGIN)])
    await site.until(private="done")
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await site.runtime.close()


async def test_what_is_not_wanted_any_more_is_given_up(site):
    site.keeper.assign([present()])
    await site.until(tiny="pulling")
    site.keeper.assign([present("other")])
    await site.until(other="pulling")
    while site.runtime.running != 1:
        await asyncio.sleep(0)
    site.runtime.go_on.set()
    await site.until(other="done")
    assert "tiny" not in await site.runtime.images()


async def test_mere_progress_is_told_seldom():
    site = Site(SlowRuntime(), tell=1000.0)
    site.runtime.go_on.set()
    working = asyncio.create_task(site.keeper.run())
    site.keeper.assign([present()])
    await site.until(tiny="done")
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await site.runtime.close()
    states = [each.state for [each] in site.told]
    assert states == ["pulling", "done"]  # of ten steps none


async def test_what_is_to_go_is_removed(site):
    site.runtime.go_on.set()
    site.keeper.assign([absent("fake"), absent("never-here")])
    await site.until(fake="done", **{"never-here": "done"})
    assert await site.runtime.images() == []
    assert site.runtime.asked == [("fake", "discard")]


async def test_what_a_container_uses_stays_and_says_so(site):
    site.runtime.go_on.set()
    site.runtime._containers["c"] = FakeContainer(id="c", session_id="s", image="fake")
    site.keeper.assign([absent("fake")])
    await site.until(fake="failed")
    [described] = site.keeper.account()
    assert described.reason == "a container runs in fake"
    site.runtime._containers.clear()
    await site.until(fake="done")


async def test_what_a_session_is_about_to_need_stays(site):
    site.needed.add("fake")
    site.keeper.assign([absent("fake")])
    await site.until(fake="waiting")
    assert site.runtime.asked == []
    site.needed.clear()
    site.keeper.wake()
    site.runtime.go_on.set()
    await site.until(fake="done")


# -- one fetch for all -----------------------------------------------------------


async def test_a_session_and_an_install_share_one_fetch(site):
    site.keeper.assign([present()])
    await site.until(tiny="pulling")
    heard = []
    session = asyncio.create_task(site.images.ensure("tiny", heard.append))
    while not heard:
        await asyncio.sleep(0)
    site.keeper.assign([])  # the session still gets it
    while site.now():
        await asyncio.sleep(0)
    site.runtime.go_on.set()
    await session
    assert site.runtime.asked == [("tiny", None)]


async def test_a_session_with_the_right_login_is_not_failed_by_another():
    runtime = SlowRuntime(private={"private": SECRET})
    images = Images(runtime)
    heard = []
    wrong = asyncio.create_task(images.ensure("private", heard.append, WRONG))
    right = asyncio.create_task(images.ensure("private", heard.append, LOGIN))
    again = asyncio.create_task(images.ensure("private", heard.append, LOGIN))
    while len(heard) < 3 or not runtime.asked:
        await asyncio.sleep(0)
    assert runtime.asked == [("private", WRONG)]
    runtime.go_on.set()
    with pytest.raises(RuntimeFailure, match="another login"):
        await wrong
    await right
    await again
    assert runtime.asked == [("private", WRONG), ("private", LOGIN)]
    await runtime.close()


async def test_a_session_that_comes_while_its_image_goes_gets_it_again():
    runtime = SlowRuntime()
    images = Images(runtime)
    going = asyncio.create_task(images.discard("fake"))
    while not runtime.asked:
        await asyncio.sleep(0)
    session = asyncio.create_task(images.ensure("fake", lambda _: None))
    await asyncio.sleep(0)
    runtime.go_on.set()
    await going
    await session
    assert runtime.asked == [("fake", "discard"), ("fake", None)]
    assert images.present == ["fake"]
    await runtime.close()


async def test_what_is_being_fetched_is_not_removed():
    runtime = SlowRuntime()
    images = Images(runtime)
    session = asyncio.create_task(images.ensure("tiny", lambda _: None))
    while not runtime.asked:
        await asyncio.sleep(0)
    with pytest.raises(RuntimeFailure, match="is being fetched"):
        await images.discard("tiny")
    runtime.go_on.set()
    await session
    await runtime.close()


# -- progress of layers ----------------------------------------------------------


def step(layer, status, current=0, total=0):
    return {
        "id": layer,
        "status": status,
        "progressDetail": {"current": current, "total": total},
    }


def test_half_of_the_way_is_getting_the_bytes_and_half_unpacking_them():
    layers = Layers()
    seen = []
    for told in (
        step("a", "Pulling fs layer"),
        step("a", "Downloading", 50, 100),
        step("a", "Download complete"),
        step("a", "Extracting", 50, 100),
        step("a", "Pull complete"),
    ):
        layers.note(told)
        seen.append(layers.fraction())
    assert seen == [None, 0.25, 0.5, 0.75, 1.0]


def test_layers_that_have_not_begun_count_like_the_others():
    layers = Layers()
    for name in "abcd":
        layers.note(step(name, "Pulling fs layer"))
    layers.note(step("a", "Downloading", 100, 100))
    assert layers.fraction() == 0.125


def test_progress_never_goes_back():
    layers = Layers()
    layers.note(step("a", "Downloading", 90, 100))
    before = layers.fraction()
    layers.note(step("b", "Downloading", 1, 10_000))
    assert layers.fraction() == before


def test_steps_of_other_kinds_say_nothing():
    layers = Layers()
    for told in ({}, {"status": "Digest: sha256:…"}, step("a", "Already exists")):
        layers.note(told)
    assert layers.fraction() is None


# -- what is refused, and what is kept secret --------------------------------------


@pytest.mark.parametrize("image", ["--all", "a?fromSrc=-", "../x", "a" * 600])
def test_what_is_no_reference_is_never_pulled(image):
    with pytest.raises(RuntimeFailure, match="is not a reference"):
        Pull(image, lambda _: None)


@pytest.mark.parametrize("image", ["tiny", "evil.example.org/tiny", "docker.io.x/tiny"])
def test_a_login_is_shown_to_its_own_registry_alone(image):
    login = msgspec.structs.replace(LOGIN, registry="cr.example.org")
    with pytest.raises(RuntimeFailure, match=r"login for cr\.example\.org is none"):
        Pull(image, lambda _: None, login)
    Pull("cr.example.org/tiny", lambda _: None, login)


def test_a_login_is_never_printed():
    wanted = present(credential=LOGIN)
    spec = ContainerSpec(
        id="i", session_id="s", desired=DesiredState.RUNNING, credential=LOGIN
    )
    document = AssignmentSet(
        agent_id="a", generation=1, epoch=1, containers=[spec], images=[wanted]
    )
    for shown in (LOGIN, wanted, spec, document, {"login": LOGIN}):
        assert SECRET not in repr(shown)
        assert SECRET not in str(shown)
    assert SECRET not in repr(list(LOGIN.__rich_repr__()))
    assert SECRET.encode() in msgspec.json.encode(document)  # it does travel


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("manifest for x:1 not found: manifest unknown", "no such tag"),
        ("Get https://x/v2/: unauthorized: authentication", "refuses the login"),
        ("Get https://x/v2/: no basic auth credentials", "refuses the login"),
        ("pull access denied for x, repository does not exist", "wants another login"),
        ("dial tcp: lookup x: no such host", "cannot be reached"),
        ("dial tcp 127.0.0.1:1: connect: connection refused", "cannot be reached"),
        ("net/http: TLS handshake timeout", "cannot be reached"),
        ("write /var/x: no space left on device", "no space left"),
        ("x509: certificate signed by unknown authority", "does not trust"),
        ("something else", "something else"),
    ],
)
def test_the_reason_is_put_in_words_that_help(said, meaning):
    failure = Pull("tiny", lambda _: None)._failure(said)
    assert str(failure).startswith("cannot fetch the image tiny: ")
    assert meaning in str(failure)


def test_a_registry_that_repeats_the_login_does_not_make_us_show_it():
    pull = Pull("tiny", lambda _: None, LOGIN)
    said = f"denied: {SECRET} and YW55Ym9keTpjYW5hcnktNDcxMQ== of anybody"
    shown = str(pull._failure(said))
    assert SECRET not in shown
    assert "YW55" not in shown
