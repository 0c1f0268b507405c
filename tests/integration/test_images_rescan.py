"""What a real registry has comes on offer, stays as it should, and goes again."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import msgspec
import pytest
from sqlalchemy import insert, select, update

from backendai_hub.api.images import RescanRequest, RescanState
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import InvalidRequestError, NotFoundError
from backendai_hub.core.nouns import noun_of
from backendai_hub.db import images
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import (
    DomainRow,
    EventRow,
    ImageAliasRow,
    ImageRow,
    RegistryRow,
)
from backendai_hub.operations import registry_reading, rescans
from backendai_hub.operations.bootstrap import offer_images
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.nouns import change_noun, create_noun, read_noun
from backendai_hub.operations.users import ensure_user
from backendai_hub.reconcilers.images import RescansReconciler
from tests.factories import IMAGE, add_node, principal_of, start, submit
from tests.registry import PASSWORD, USERNAME, running_registry

pytestmark = pytest.mark.registry

LABELS = {
    "ai.backend.kernelspec": "1",
    "ai.backend.role": "COMPUTE",
    "ai.backend.runtime-type": "python",
    "ai.backend.resource.min.cpu": "2",
    "ai.backend.resource.min.mem": "2g",
    "ai.backend.resource.preferred.shmem": "128m",
    "ai.backend.accelerators": "cuda",
}
REGISTRY, IMAGES = noun_of("registry"), noun_of("image")


class Site:
    """A registry that is known to a platform, and the administrator of both."""

    def __init__(self, platform, admin, registry):
        self.platform = platform
        self.admin = admin
        self.registry = registry

    async def ask(self, **request):
        return await rescans.request_rescan(
            self.platform, self.admin, "team", RescanRequest(**request)
        )

    async def status(self):
        return await rescans.read_rescan(self.platform, self.admin, "team")

    async def rescan(self, **request):
        await self.ask(**request)
        reconciler = RescansReconciler(self.platform, Signals())
        assert await reconciler.reconcile() == 1
        await asyncio.gather(*reconciler._tasks)
        await reconciler.close()
        return await self.status()

    def name(self, repository, tag):
        return f"{self.registry.host}/{repository}:{tag}"

    async def image(self, reference):
        return await read_noun(self.platform, self.admin, IMAGES, reference)

    async def change(self, reference, **fields):
        body = IMAGES.change_type(**fields)
        return await change_noun(self.platform, self.admin, IMAGES, reference, body)

    async def names(self, status="ALIVE"):
        async with self.platform.database.read() as connection:
            query = select(ImageRow.name).join(RegistryRow)
            query = query.where(RegistryRow.name == "team", ImageRow.status == status)
            return sorted(name for (name,) in await connection.execute(query))

    async def offered(self, user):
        actor = await ensure_user(self.platform, user)
        async with self.platform.database.read() as connection:
            found = await images.list_images(connection, actor.domain_id, actor.id)
        return [image.name for image in found]

    async def allow(self, *registries):
        async with self.platform.database.transaction() as tx:
            await tx.execute(
                update(DomainRow).values(allowed_docker_registries=list(registries))
            )
        self.platform.actors.clear()


async def add_registry(platform, admin, registry, **fields):
    fields = {"name": "team", "url": registry.url, **fields}
    await create_noun(platform, admin, REGISTRY, REGISTRY.create_type(**fields))
    return Site(platform, admin, registry)


@pytest.fixture
async def admin(platform):
    return await principal_of(platform, "root", Caller.SUPERADMIN)


@pytest.fixture
async def site(platform, admin, tmp_path):
    with running_registry(tmp_path) as registry:
        yield await add_registry(platform, admin, registry)


# -- what comes on offer ----------------------------------------------------------


async def test_an_image_is_offered_with_what_its_labels_say(site):
    pushed = site.registry.push_image("team/lab", "1.2", labels=LABELS)
    status = await site.rescan()
    assert (status.state, status.total, status.done) == (RescanState.DONE, 1, 1)
    assert (status.added, status.updated, status.removed) == (1, 0, 0)
    assert status.skipped == []
    image = await site.image(site.name("team/lab", "1.2"))
    assert image.architecture == "x86_64"
    assert (image.digest, image.config_digest) == (pushed.digest, pushed.config_digest)
    assert image.size_bytes == pushed.size_bytes
    reference = f"{site.registry.host}/team/lab@{pushed.digest}"
    assert image.references == {"docker": reference}
    assert (image.repository, image.tag, image.project) == ("team/lab", "1.2", "team")
    assert image.minimum == image.label_minimum == {"cpu": "2", "mem": "2g"}
    assert (image.shmem, image.runtime, image.type) == ("128m", "python", "compute")
    assert image.accelerators == ["cuda"]
    assert image.labels == LABELS
    assert (image.registry, image.owner, image.status) == ("team", None, "ALIVE")


async def test_an_image_that_says_nothing_gets_the_usual_amounts(site):
    site.registry.push_image("plain", "latest")
    await site.rescan()
    image = await site.image(site.name("plain", "latest"))
    assert image.minimum == {"cpu": "1", "mem": "1g"}
    assert (image.shmem, image.type, image.project) == ("64m", "compute", "")


async def test_there_is_an_image_for_each_architecture(site):
    pushed = site.registry.push_index("team/lab", "1", "amd64", "arm64", labels=LABELS)
    assert (await site.rescan()).added == 2
    name = site.name("team/lab", "1")
    with pytest.raises(InvalidRequestError, match="several images; say which") as told:
        await site.image(name)
    assert f"{name}@aarch64, {name}@x86_64" in told.value.message
    arm = await site.image(f"{name}@aarch64")
    assert (arm.architecture, arm.digest) == ("aarch64", pushed["arm64"].digest)
    assert (await site.image(arm.id)).architecture == "aarch64"


async def test_what_is_the_same_again_is_not_written(site):
    site.registry.push_image("team/lab", "1", labels=LABELS)
    await site.rescan()
    before = await site.image(site.name("team/lab", "1"))
    status = await site.rescan()
    assert (status.added, status.updated, status.removed) == (0, 0, 0)
    assert await site.image(site.name("team/lab", "1")) == before


# -- what changes -----------------------------------------------------------------


async def test_a_new_digest_keeps_what_an_administrator_has_set(site):
    name = site.name("team/lab", "1")
    site.registry.push_image("team/lab", "1", labels=LABELS)
    await site.rescan()
    before = await site.change(
        name,
        title="Lab",
        minimum={"cpu": "3", "mem": "2g", "cuda.device": "1"},
        maximum={"cpu": "64"},
        shmem="1g",
    )
    more = {"ai.backend.resource.min.mem": "4g", "ai.backend.resource.min.cpu": "1"}
    pushed = site.registry.push_image("team/lab", "1", labels=LABELS | more)
    assert (await site.rescan()).updated == 1
    after = await site.image(name)
    assert after.id == before.id
    assert after.revision == before.revision + 1
    assert after.digest == pushed.digest != before.digest
    # cpu and the device are the administrator's, mem follows the image.
    assert after.minimum == {"cpu": "3", "mem": "4g", "cuda.device": "1"}
    assert (after.title, after.maximum, after.shmem) == ("Lab", {"cpu": "64"}, "1g")


async def test_an_image_that_needs_more_cpu_gets_it_over_the_administrators_word(site):
    name = site.name("team/lab", "1")
    site.registry.push_image("team/lab", "1", labels=LABELS)
    await site.rescan()
    await site.change(name, minimum={"cpu": "3", "mem": "8g"})
    more = {"ai.backend.resource.min.cpu": "6"}
    site.registry.push_image("team/lab", "1", labels=LABELS | more)
    await site.rescan()
    assert (await site.image(name)).minimum == {"cpu": "6", "mem": "8g"}


async def test_what_the_registry_no_longer_has_is_forgotten_and_comes_back(site):
    site.registry.push_image("team/lab", "1")
    old = site.registry.push_image("team/lab", "2")
    await site.rescan()
    site.registry.send("DELETE", f"/v2/team/lab/manifests/{old.digest}")
    status = await site.rescan()
    assert (status.total, status.removed) == (1, 1)
    assert await site.names() == [site.name("team/lab", "1")]
    gone = await site.image(site.name("team/lab", "2"))
    assert gone.status == "DELETED"
    site.registry.push_image("team/lab", "2")
    assert (await site.rescan()).added == 1
    assert (await site.image(site.name("team/lab", "2"))).id == gone.id


async def test_an_architecture_that_is_gone_is_forgotten_alone(site):
    site.registry.push_index("team/lab", "1", "amd64", "arm64")
    await site.rescan()
    site.registry.push_index("team/lab", "1", "amd64")
    assert (await site.rescan()).removed == 1
    assert (await site.image(site.name("team/lab", "1"))).architecture == "x86_64"


async def test_only_what_is_asked_for_is_read_and_forgotten(site):
    pushed = {
        name: site.registry.push_image(name, "1") for name in ("a/lab", "b/lab", "b/x")
    }
    await site.rescan()
    for name, image in pushed.items():
        site.registry.send("DELETE", f"/v2/{name}/manifests/{image.digest}")
    status = await site.rescan(repository="b/x")
    assert (status.removed, status.repository) == (1, "b/x")
    assert (await site.rescan(project="b")).removed == 1
    assert await site.names() == [site.name("a/lab", "1")]


async def test_what_is_misspelt_is_told(site):
    site.registry.push_image("team/lab", "1")
    status = await site.rescan(repository="team/lap")
    [skipped] = status.skipped
    assert "team/lap" in skipped.reason
    with pytest.raises(InvalidRequestError, match="not the name of a repository"):
        await site.ask(repository="../x")


# -- what is not offered ----------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"ai.backend.resource.min.cuda.devices": "1"}, "did you mean 'cuda.device'"),
        ({"ai.backend.resource.min.mem": "lots"}, "ai.backend.resource.min.mem"),
        ({"ai.backend.role": "KING"}, "'KING' is none of COMPUTE"),
        ({"note": "a\0b"}, "character NUL"),
        ({"note": "x" * 70_000}, "the most is 65536"),
        ({"ai.backend.runtime-type": "r" * 65}, "longer than 64"),
        ({"ai.backend.customized-image.owner": "everybody"}, "not 'user:'"),
        (
            {
                "ai.backend.customized-image.owner": (
                    "user:00000000-0000-4000-8000-000000000000"
                )
            },
            "is no user here",
        ),
    ],
)
async def test_a_bad_image_is_skipped_and_keeps_no_other_away(site, labels, reason):
    site.registry.push_image("team/bad", "1", labels=labels)
    site.registry.push_image("team/good", "1")
    status = await site.rescan()
    assert (status.state, status.total, status.done) == (RescanState.DONE, 2, 2)
    [skipped] = status.skipped
    assert (skipped.repository, skipped.tag) == ("team/bad", "1")
    assert reason in skipped.reason
    assert await site.names() == [site.name("team/good", "1")]


async def test_a_zero_of_something_unknown_asks_for_nothing(site):
    labels = {"ai.backend.resource.min.rocm.device": "0"}
    site.registry.push_image("team/lab", "1", labels=labels)
    assert (await site.rescan()).skipped == []


async def test_a_name_that_no_table_can_hold_is_skipped(site):
    site.registry.push_image("team/lab" + "x" * 200, "t" * 100)
    [skipped] = (await site.rescan()).skipped
    assert "the most is 256" in skipped.reason


async def test_what_was_on_offer_stays_when_its_new_version_is_bad(site):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    site.registry.push_image("team/lab", "1", labels={"ai.backend.role": "KING"})
    status = await site.rescan()
    assert (len(status.skipped), status.removed) == (1, 0)
    assert await site.names() == [site.name("team/lab", "1")]


async def test_what_cannot_be_looked_at_stays_on_offer(site):
    site.registry.push_image("team/lab", "1")
    broken = site.registry.push_image("team/lab", "2").digest.partition(":")[2]
    await site.rescan()
    blobs = site.registry.storage / "docker/registry/v2/blobs/sha256"
    (blobs / broken[:2] / broken / "data").write_bytes(b"something else")
    status = await site.rescan()
    assert (status.state, status.done, status.removed) == (RescanState.DONE, 2, 0)
    assert [skipped.tag for skipped in status.skipped] == ["2"]
    assert len(await site.names()) == 2


async def test_tags_that_differ_in_case_alone_are_one_name(site):
    site.registry.push_image("team/lab", "gpu")
    site.registry.push_image("team/lab", "GPU", labels=LABELS)
    status = await site.rescan()
    assert (status.added, len(status.skipped)) == (1, 1)
    assert "only in case" in status.skipped[0].reason


async def test_a_name_that_is_an_alias_is_not_taken_over(site):
    async with site.platform.database.transaction() as tx:
        local = await tx.connection.scalar(select(ImageRow.id))
        name = site.name("team/lab", "1")
        await tx.execute(
            insert(ImageAliasRow).values(alias=name, alias_key=name, image_id=local)
        )
    site.registry.push_image("team/lab", "1")
    [skipped] = (await site.rescan()).skipped
    assert f"is an alias of {IMAGE.name}" in skipped.reason


async def test_another_registrys_image_stays_its_own(site, platform, admin):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    fields = {"name": "second", "url": site.registry.url}
    await create_noun(platform, admin, REGISTRY, REGISTRY.create_type(**fields))
    await rescans.request_rescan(platform, admin, "second", RescanRequest())
    reconciler = RescansReconciler(platform, Signals())
    await reconciler.reconcile()
    await asyncio.gather(*reconciler._tasks)
    status = await rescans.read_rescan(platform, admin, "second")
    assert "another registry here offers it" in status.skipped[0].reason
    assert (await site.image(site.name("team/lab", "1"))).registry == "team"


async def test_the_configuration_may_offer_what_a_registry_has(site):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    name = site.name("team/lab", "1")
    before = await site.change(name, minimum={"cpu": "2", "mem": "1g"})
    listed = msgspec.structs.replace(
        IMAGE, name=name, minimum={"cpu": "1", "mem": "1g"}
    )
    await offer_images(site.platform, [IMAGE, listed])
    after = await site.image(name)
    assert (after.id, after.registry) == (before.id, "local")
    assert after.minimum == {"cpu": "2", "mem": "1g"}


# -- who sees it ------------------------------------------------------------------


async def test_nothing_is_offered_that_the_domain_does_not_allow(site):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    name = site.name("team/lab", "1")
    assert await site.offered("alice") == [IMAGE.name]
    await site.allow("local", "team")
    assert await site.offered("alice") == [IMAGE.name, name]
    await site.allow()
    assert await site.offered("alice") == []
    with pytest.raises(InvalidRequestError, match=r"no environment 'lab'.*: none yet"):
        await submit(site.platform)
    alice = await principal_of(site.platform, "alice", Caller.USER)
    with pytest.raises(NotFoundError):
        await read_noun(site.platform, alice, IMAGES, name)


async def test_an_inactive_registry_offers_nothing(site, platform, admin):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    await site.allow("team")
    body = REGISTRY.change_type(is_active=False)
    await change_noun(platform, admin, REGISTRY, "team", body)
    assert await site.offered("alice") == []


async def test_who_has_made_an_image_alone_sees_it(site):
    await site.allow("team")
    alice = await ensure_user(site.platform, "alice")
    owned = {"ai.backend.customized-image.owner": f"user:{alice.id}"}
    site.registry.push_image("team/mine", "1", labels=owned)
    await site.rescan()
    name = site.name("team/mine", "1")
    assert await site.offered("alice") == [name]
    assert await site.offered("bob") == []
    assert (await site.image(name)).owner == "alice"
    bob = await principal_of(site.platform, "bob", Caller.USER)
    with pytest.raises(NotFoundError):
        await read_noun(site.platform, bob, IMAGES, name)


# -- sessions ---------------------------------------------------------------------


async def test_sessions_of_a_forgotten_image_go_on(site):
    node = await add_node(site.platform)
    node.isolation = msgspec.structs.replace(node.isolation, runtime="docker")
    await node.report()
    pushed = site.registry.push_image("team/lab", "1")
    await site.rescan()
    await site.allow("team")
    name = site.name("team/lab", "1")
    session = await start(site.platform, image=name, slots={"cpu": "1", "mem": "2g"})
    site.registry.send("DELETE", f"/v2/team/lab/manifests/{pushed.digest}")
    assert (await site.rescan()).removed == 1
    [container] = (await load_assignments(site.platform, node.id)).containers
    assert container.references == {
        "docker": f"{site.registry.host}/team/lab@{pushed.digest}"
    }
    assert session.image == name


# -- how it ends ------------------------------------------------------------------


async def test_one_registry_is_read_once_at_a_time(site):
    first = await site.ask()
    assert first.state is RescanState.WAITING
    second = await site.ask(repository="team/lab")
    assert second == first


async def test_before_the_first_time_nothing_is_under_way(site):
    assert (await site.status()).state is RescanState.IDLE


async def test_what_is_under_way_ends_with_the_service(site):
    site.registry.push_image("team/lab", "1")
    await site.ask()
    reconciler = RescansReconciler(site.platform, Signals())
    await reconciler.reconcile()
    await reconciler.close()
    assert (await site.status()).state is RescanState.INTERRUPTED
    assert (await site.rescan()).added == 1


async def test_too_many_tags_are_left_out_and_nothing_is_taken_away(site):
    for tag in ("1", "2", "3"):
        site.registry.push_image("team/lab", tag)
    await site.rescan()
    settings = replace(site.platform.settings, max_images_per_rescan=2)
    site.platform = replace(site.platform, settings=settings)
    status = await site.rescan()
    assert (status.state, status.total, status.removed) == (RescanState.DONE, 2, 0)
    assert "more than 2 tags" in status.reason
    assert "max_images_per_rescan" in status.reason


async def test_a_registry_that_is_down_loses_nothing(platform, admin, tmp_path):
    with running_registry(tmp_path) as registry:
        registry.push_image("team/lab", "1")
        site = await add_registry(platform, admin, registry)
        await site.rescan()
    status = await site.rescan()
    assert status.state is RescanState.FAILED
    assert "does not answer: Connection refused" in status.reason
    assert len(await site.names()) == 1


async def test_a_registry_that_goes_down_is_given_up(
    platform, admin, tmp_path, monkeypatch
):
    monkeypatch.setattr(registry_reading, "MOST_FAILURES", 2)
    with running_registry(tmp_path) as registry:
        for number in range(20):
            registry.push_image("team/lab", str(number))
        site = await add_registry(platform, admin, registry)
        await site.rescan()
        for blob in registry.storage.glob("docker/registry/v2/blobs/sha256/*/*/data"):
            blob.write_bytes(b"not what its digest names")
        status = await site.rescan()
    assert status.state is RescanState.FAILED
    assert "given up after 2 failures in a row" in status.reason
    assert len(await site.names()) == 20


async def test_a_wrong_password_is_told_and_no_password_is(
    platform, admin, tmp_path, caplog
):
    caplog.set_level(logging.DEBUG)
    canary = "canary-of-the-registry"
    with running_registry(tmp_path, password=True) as registry:
        site = await add_registry(
            platform, admin, registry, username=USERNAME, password=canary
        )
        status = await site.rescan()
        assert status.state is RescanState.FAILED
        assert "401" in status.reason
        body = REGISTRY.change_type(password=PASSWORD)
        shown = await change_noun(platform, admin, REGISTRY, "team", body)
        registry.push_image("team/lab", "1")
        assert (await site.rescan()).added == 1
    async with platform.database.read() as connection:
        events = [str(row) for row in await connection.execute(select(EventRow))]
    for secret in (canary, PASSWORD):
        seen = f"{status} {shown} {events} {caplog.text} {platform.rescans}"
        assert secret not in seen


async def test_the_end_is_an_event(site):
    site.registry.push_image("team/lab", "1")
    await site.rescan()
    async with site.platform.database.read() as connection:
        query = select(EventRow.text).where(EventRow.kind == "registry.rescan")
        [text] = await connection.scalars(query)
    assert text == "registry team: 1 added, 0 updated, 0 removed, 0 skipped"
    assert (await read_noun(site.platform, site.admin, REGISTRY, "team")).rescanned_at


async def test_the_registry_of_the_configuration_is_not_read(platform, admin):
    with pytest.raises(InvalidRequestError, match="images of the configuration"):
        await rescans.request_rescan(platform, admin, "local", RescanRequest())


# -- addresses --------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://[fe80::1]",
        "http://[::ffff:169.254.169.254]",
        "http://0.0.0.0:5000",
        "http://224.0.0.1",
        "https://registry.example/path",
        "https://user:secret@registry.example",
        "ftp://registry.example",
        "https://registry.example:99999",
    ],
)
async def test_what_is_no_registrys_address_is_refused(platform, admin, url):
    body = REGISTRY.create_type(name="other", url=url)
    with pytest.raises(InvalidRequestError, match="url: ") as told:
        await create_noun(platform, admin, REGISTRY, body)
    assert "secret" not in told.value.message


async def test_a_password_does_not_move_to_another_host(platform, admin):
    url = "https://registry.example"
    made = REGISTRY.create_type(name="team", url=url, username="r", password="p")
    await create_noun(platform, admin, REGISTRY, made)
    elsewhere = REGISTRY.change_type(url="https://elsewhere.example")
    with pytest.raises(InvalidRequestError, match="another host"):
        await change_noun(platform, admin, REGISTRY, "team", elsewhere)
    again = REGISTRY.change_type(url="https://elsewhere.example", password="q")
    assert (await change_noun(platform, admin, REGISTRY, "team", again)).has_password
