"""Aliases, forgetting, untagging and installing of a real registry's images."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from sqlalchemy import select, update

from backendai_hub.api.agents import ImageProgress, ImageState, ImageWish
from backendai_hub.api.images import AliasesRequest, InstallRequest, RescanRequest
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import (
    ConflictError,
    ForbiddenError,
    InUseError,
    InvalidRequestError,
    NotFoundError,
    RegistryUnsupportedError,
)
from backendai_hub.core.nouns import noun_of
from backendai_hub.db import agents, catalog, installs
from backendai_hub.db.signals import Signals
from backendai_hub.db.tables import DomainRow, EventRow
from backendai_hub.operations import images, rescans
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.nouns import create_noun, read_noun
from backendai_hub.operations.reports import accept_report
from backendai_hub.operations.users import ensure_user
from backendai_hub.reconcilers.images import RescansReconciler
from tests.factories import IMAGE, add_node, principal_of, submit
from tests.registry import running_registry

pytestmark = pytest.mark.registry

IMAGES = noun_of("image")
PRESENT, ABSENT = ImageWish.PRESENT, ImageWish.ABSENT


class Site:
    """A platform that offers a registry's images to everybody."""

    def __init__(self, platform, admin, registry):
        self.platform = platform
        self.admin = admin
        self.registry = registry

    async def push(self, repository="team/lab", tag="1", **more):
        pushed = self.registry.push_image(repository, tag, **more)
        await self.rescan()
        return pushed

    async def rescan(self):
        await rescans.request_rescan(self.platform, self.admin, "team", RescanRequest())
        reconciler = RescansReconciler(self.platform, Signals())
        await reconciler.reconcile()
        await asyncio.gather(*reconciler._tasks)

    def name(self, repository="team/lab", tag="1"):
        return f"{self.registry.host}/{repository}:{tag}"

    async def image(self, reference, who=None):
        who = who or self.admin
        return await read_noun(self.platform, who, IMAGES, reference)

    async def alias(self, reference, *add, remove=()):
        return await images.change_aliases(
            self.platform,
            self.admin,
            reference,
            AliasesRequest(add=list(add), remove=list(remove)),
        )

    async def forget(self, reference, who=None):
        return await images.forget_image(self.platform, who or self.admin, reference)

    async def untag(self, reference):
        return await images.untag_image(self.platform, self.admin, reference)

    async def install(self, reference, group="default", wanted=PRESENT):
        return await images.install_image(
            self.platform,
            self.admin,
            reference,
            InstallRequest(resource_group=group, wanted=wanted),
        )

    async def installs(self, reference):
        return await images.list_image_installs(self.platform, self.admin, reference)

    async def events(self):
        async with self.platform.database.read() as connection:
            query = select(EventRow.text).where(EventRow.kind == "image.install")
            return list(await connection.scalars(query.order_by(EventRow.seq)))

    async def add_node(self, name="node-1", runtime="docker", images=(), **changes):
        node = await add_node(self.platform, name)
        node.isolation = msgspec.structs.replace(node.isolation, runtime=runtime)
        await self.report(node, images=list(images), **changes)
        return node

    async def report(self, node, **changes):
        report = msgspec.structs.replace(node.make_report(), **changes)
        await accept_report(self.platform, node.id, report)


@pytest.fixture
async def site(platform, tmp_path):
    admin = await principal_of(platform, "root", Caller.SUPERADMIN)
    noun = noun_of("registry")
    with running_registry(tmp_path) as registry:
        body = noun.create_type(name="team", url=registry.url)
        await create_noun(platform, admin, noun, body)
        async with platform.database.transaction() as tx:
            await tx.execute(
                update(DomainRow).values(allowed_docker_registries=["local", "team"])
            )
        yield Site(platform, admin, registry)


# -- aliases ----------------------------------------------------------------------


async def test_an_alias_stands_for_the_image_everywhere(site):
    await site.push()
    before = await site.image(site.name())
    shown = await site.alias(site.name(), "lab:latest", "Team/Lab")
    assert shown.aliases == ["Team/Lab", "lab:latest"]
    assert shown.revision == before.revision + 1
    assert (await site.image("LAB:latest")).id == shown.id
    submission = await submit(
        site.platform, image="team/lab", slots={"cpu": "1", "mem": "2g"}
    )
    assert submission.session.image == site.name()
    assert submission.session.name.startswith("lab-1-")


async def test_an_alias_that_is_taken_away_is_free_again(site):
    await site.push()
    await site.push(tag="2")
    await site.alias(site.name(), "lab:latest")
    with pytest.raises(ConflictError, match=r"an alias of .*team/lab:1; take it away"):
        await site.alias(site.name(tag="2"), "LAB:LATEST")
    await site.alias(site.name(), remove=["lab:latest"])
    await site.alias(site.name(tag="2"), "lab:latest")
    assert (await site.image("lab:latest")).tag == "2"


async def test_an_alias_of_what_was_forgotten_can_be_given_away(site):
    await site.push()
    await site.push(tag="2")
    await site.alias(site.name(), "lab:latest")
    await site.forget(site.name())
    await site.alias(site.name(tag="2"), "lab:latest")
    assert (await site.image("lab:latest")).tag == "2"


@pytest.mark.parametrize(
    ("alias", "why"),
    [
        (IMAGE.name.upper(), "is the name of an image already"),
        ("", "will not do"),
        ("has space", "will not do"),
        ("@x", "will not do"),
        ("x" * 257, "the most is 256"),
        ("all", "reserved"),
        ("00000000-0000-4000-8000-000000000000", "reserved"),
        ("nul\0", "control character"),
    ],
)
async def test_what_cannot_be_an_alias_is_refused_and_nothing_is_done(site, alias, why):
    await site.push()
    with pytest.raises((ConflictError, InvalidRequestError), match=why):
        await site.alias(site.name(), "fine", alias)
    assert (await site.image(site.name())).aliases == []


async def test_an_alias_that_is_not_there_cannot_be_taken_away(site):
    await site.push()
    with pytest.raises(InvalidRequestError, match="has no alias 'lab'"):
        await site.alias(site.name(), "fine", remove=["lab"])


async def test_an_image_has_only_so_many_aliases(site):
    await site.push()
    await site.alias(site.name(), *(f"a{n}" for n in range(60)))
    with pytest.raises(InvalidRequestError, match="at most 64"):
        await site.alias(site.name(), *(f"b{n}" for n in range(5)))


async def test_of_several_architectures_one_can_be_meant(site):
    site.registry.push_index("team/lab", "1", "amd64", "arm64")
    await site.rescan()
    with pytest.raises(InvalidRequestError, match="several images"):
        await site.alias(site.name(), "lab-arm")
    await site.alias(f"{site.name()}@aarch64", "lab-arm")
    assert (await site.image("lab-arm")).architecture == "aarch64"


# -- forgetting -------------------------------------------------------------------


async def test_a_forgotten_image_is_not_on_offer(site):
    await site.push()
    assert (await site.forget(site.name())).status == "DELETED"
    again = await site.forget(site.name())
    assert again.status == "DELETED"
    with pytest.raises(InvalidRequestError, match="there is no environment"):
        await submit(site.platform, image=site.name())


async def test_who_has_made_an_image_may_forget_it_and_no_other(site):
    alice = await ensure_user(site.platform, "alice")
    owned = {"ai.backend.customized-image.owner": f"user:{alice.id}"}
    await site.push("team/mine", labels=owned)
    await site.push()
    people = {
        name: await principal_of(site.platform, name, caller)
        for name, caller in (("alice", Caller.USER), ("dora", Caller.DOMAIN_ADMIN))
    }
    for who in people.values():
        with pytest.raises(ForbiddenError):
            await site.forget(site.name(), who)
    with pytest.raises(NotFoundError):
        await site.forget(site.name("team/mine"), people["dora"])
    mine = await site.forget(site.name("team/mine"), people["alice"])
    assert mine.status == "DELETED"
    assert (await site.image(site.name())).status == "ALIVE"


async def test_what_the_configuration_lists_is_not_forgotten(site):
    with pytest.raises(ConflictError, match=r"take it out of HubService\.images"):
        await site.forget(IMAGE.name)
    with pytest.raises(ConflictError, match=r"HubService\.images"):
        await site.untag(IMAGE.name)


# -- untagging --------------------------------------------------------------------


async def test_an_untagged_image_is_gone_from_the_registry_too(site):
    await site.push()
    await site.push(tag="2")
    assert (await site.untag(site.name())).status == "DELETED"
    tags = site.registry.send("GET", "/v2/team/lab/tags/list").json()["tags"]
    assert tags == ["2"]


async def test_a_tag_is_removed_for_every_architecture(site):
    site.registry.push_index("team/lab", "1", "amd64", "arm64")
    await site.rescan()
    await site.untag(f"{site.name()}@aarch64")
    assert (await site.image(f"{site.name()}@x86_64")).status == "DELETED"


async def test_a_tag_that_is_gone_already_is_forgotten(site):
    pushed = await site.push()
    site.registry.send("DELETE", f"/v2/team/lab/manifests/{pushed.digest}")
    assert (await site.untag(site.name())).status == "DELETED"


async def test_a_tag_that_others_need_stays_and_so_does_the_offer(site):
    pushed = await site.push()
    site.registry.tag_again("team/lab", pushed.digest, "same")
    with pytest.raises(RegistryUnsupportedError, match="is also same"):
        await site.untag(site.name())
    assert (await site.image(site.name())).status == "ALIVE"


async def test_a_tag_that_sessions_wait_for_stays(site):
    await site.push()
    await submit(site.platform, image=site.name(), slots={"cpu": "1", "mem": "2g"})
    with pytest.raises(InUseError, match="1 sessions wait for"):
        await site.untag(site.name())


# -- installing -------------------------------------------------------------------


async def test_every_node_that_can_hold_it_is_asked_and_the_others_are_told(site):
    await site.push()
    node = await site.add_node()
    await site.add_node("arm", architecture="aarch64")
    await site.add_node("plain", runtime="process")
    lost = await site.add_node("lost")
    async with site.platform.database.transaction() as tx:
        record = await agents.get_agent(tx.connection, lost.id, lock=True)
        await agents.change_agent(tx, record, status="LOST")
    answer = await site.install(site.name())
    [asked] = answer.asked
    assert (asked.node, asked.state) == ("node-1", ImageState.WAITING)
    assert {s.node: s.reason for s in answer.skipped} == {
        "arm": "it is aarch64; the image is for x86_64",
        "lost": "it does not answer: LOST",
        "plain": "its runtime is process; the image is for docker",
    }
    [told] = (await load_assignments(site.platform, node.id)).images
    image = await site.image(site.name())
    assert told.reference == image.references["docker"]


async def test_progress_can_be_followed_by_page_and_by_event(site):
    await site.push()
    node = await site.add_node()
    await site.install(site.name())
    reference = (await site.image(site.name())).references["docker"]

    async def say(state, progress=None, reason=""):
        said = ImageProgress(
            reference=reference,
            wanted=PRESENT,
            state=ImageState(state),
            progress=progress,
            reason=reason,
        )
        await site.report(node, image_progress=[said])
        [row] = await site.installs(site.name())
        return row

    assert (await say("pulling", 0.25)).progress == 0.25
    await say("pulling", 0.26)
    await say("pulling", 0.5)
    assert (await say("failed", reason="no room")).reason == "no room"
    assert (await say("done")).state is ImageState.DONE
    name = site.name()
    assert await site.events() == [
        f"root asks 1 nodes of default to hold {name}",
        f"node node-1: fetches {name}, 25%",
        f"node node-1: fetches {name}, 50%",
        f"node node-1: cannot fetch {name}: no room",
        f"node node-1: has {name}",
    ]


async def test_what_is_to_be_removed_is_asked_too(site):
    await site.push()
    node = await site.add_node()
    await site.install(site.name())
    await site.forget(site.name())
    with pytest.raises(ConflictError, match="was forgotten"):
        await site.install(site.name())
    answer = await site.install(site.name(), wanted=ABSENT)
    assert answer.asked[0].wanted is ABSENT
    [told] = (await load_assignments(site.platform, node.id)).images
    assert told.wanted is ABSENT


async def test_a_forgotten_image_is_no_longer_asked_for(site):
    await site.push()
    node = await site.add_node()
    await site.install(site.name())
    await site.forget(site.name())
    assert (await load_assignments(site.platform, node.id)).images == []


async def test_a_new_version_ends_the_wish_for_the_old_one(site):
    await site.push()
    node = await site.add_node()
    await site.install(site.name())
    await site.push(labels={"note": "newer"})
    assert (await load_assignments(site.platform, node.id)).images == []
    async with site.platform.database.read() as connection:
        assert await installs.list_installs(connection) == []


async def test_a_group_that_is_not_there_is_told(site):
    await site.push()
    with pytest.raises(InvalidRequestError, match="resource_group: there is no"):
        await site.install(site.name(), group="nowhere")


@pytest.mark.parametrize("by", ["reference", "config", "manifest"])
async def test_what_a_node_holds_already_is_installed(site, by):
    pushed = await site.push()
    image = await site.image(site.name())
    held = {
        "reference": image.references["docker"],
        "config": pushed.config_digest,
        "manifest": pushed.digest,
    }
    await site.add_node(images=[held[by]])
    await site.add_node("other", images=[site.name()])  # the tag may be an older one
    assert (await site.image(site.name())).installed == 1
    [row] = await site.installs(site.name())
    assert (row.node, row.state, row.requested_by) == ("node-1", ImageState.DONE, "")


async def test_the_registry_that_engines_do_not_name_is_known(site):
    async with site.platform.database.transaction() as tx:
        row = await catalog.lock_image(tx, IMAGE.name, "x86_64")
        held = {"references": {"docker": "docker.io/library/python:3"}}
        await catalog.change_image(tx, row["id"], held)
    await site.add_node(images=["python:3"])
    assert (await site.image(IMAGE.name)).installed == 1
