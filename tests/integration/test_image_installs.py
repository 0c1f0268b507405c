"""What nodes are asked to hold, what they are told of it, and what they say."""

from __future__ import annotations

import logging
from dataclasses import replace

import msgspec
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import insert, select, update

from backendai_hub.api.agents import (
    ContainerState,
    ImageProgress,
    ImageState,
    ImageWish,
)
from backendai_hub.db import installs
from backendai_hub.db.agents import get_agent
from backendai_hub.db.tables import ContainerRow, ImageRow, RegistryRow, SessionRow
from backendai_hub.operations.installs import make_new_install
from backendai_hub.operations.nodes import load_assignments
from backendai_hub.operations.platform import Vault
from backendai_hub.operations.reports import accept_report
from tests.factories import add_node, seen, start

SECRET = "canary-of-the-registry"
PRIVATE = "cr.example.org/team/lab:1"
OTHER = "elsewhere.example.org/team/lab:1"
PRESENT, ABSENT = ImageWish.PRESENT, ImageWish.ABSENT


class Site:
    """One node, and an image of a registry that wants a login."""

    def __init__(self, platform, node, image_id):
        self.platform = platform
        self.node = node
        self.image_id = image_id

    async def ask(self, *references, wanted=PRESENT):
        records = [
            make_new_install(
                self.platform,
                image_id=self.image_id,
                agent_id=self.node.id,
                reference=reference,
                wanted=wanted,
                requested_by="alice",
            )
            for reference in references
        ]
        async with self.platform.database.transaction() as tx:
            return await installs.put_installs(tx, records)

    async def rows(self, **chosen):
        async with self.platform.database.read() as connection:
            return await installs.list_installs(connection, **chosen)

    async def row(self):
        [row] = await self.rows()
        return row

    async def told(self):
        return (await load_assignments(self.platform, self.node.id)).images

    async def generation(self):
        async with self.platform.database.read() as connection:
            return (await get_agent(connection, self.node.id)).generation

    async def say(self, state, *, reference="lab:1", wanted=PRESENT, **changes):
        said = ImageProgress(
            reference=reference, wanted=wanted, state=ImageState(state), **changes
        )
        await self.report(image_progress=[said])

    async def report(self, **changes):
        report = msgspec.structs.replace(self.node.make_report(), **changes)
        await accept_report(self.platform, self.node.id, report)


@pytest.fixture
async def site(platform):
    node = await add_node(platform)
    registry_id, image_id = platform.new_id(), platform.new_id()
    async with platform.database.transaction() as tx:
        kept = {"created_at": tx.now, "modified_at": tx.now}
        await tx.execute(
            insert(RegistryRow).values(
                id=registry_id,
                name="example",
                name_key="example",
                type="docker",
                url="https://cr.example.org",
                username="robot",
                password=platform.vault.seal(SECRET),
                **kept,
            )
        )
        await tx.execute(
            insert(ImageRow).values(
                id=image_id,
                name=PRIVATE,
                name_key=PRIVATE,
                registry_id=registry_id,
                architecture="x86_64",
                references={"docker": PRIVATE},
                **kept,
            )
        )
    return Site(platform, node, image_id)


async def test_what_is_asked_reaches_the_node_as_a_new_version(site):
    before = await site.generation()
    assert await site.ask("lab:1") == 1
    assert await site.generation() == before + 1
    [told] = await site.told()
    assert (told.reference, told.wanted) == ("lab:1", PRESENT)
    row = await site.row()
    assert (row.state, row.requested_by) == (ImageState.WAITING, "alice")


async def test_asking_again_changes_nothing(site):
    await site.ask("lab:1")
    before = await site.generation()
    assert await site.ask("lab:1") == 0
    assert await site.generation() == before


async def test_many_images_are_one_new_version(site):
    before = await site.generation()
    assert await site.ask("lab:1", "lab:2", "lab:3") == 1
    assert await site.generation() == before + 1


async def test_progress_is_written_down_only_when_it_changes(site):
    await site.ask("lab:1")
    await site.say("pulling", progress=0.5)
    first = await site.row()
    assert (first.state, first.progress) == (ImageState.PULLING, 0.5)
    before = await site.generation()
    site.platform.database.clock.pass_(5)
    await site.say("pulling", progress=0.5)
    assert await site.row() == first
    await site.say("done")
    row = await site.row()
    assert (row.state, row.progress, row.reason) == (ImageState.DONE, 1.0, "")
    assert row.changed_at > first.changed_at
    assert await site.generation() == before


async def test_a_failure_is_explained_and_asking_again_begins_anew(site):
    await site.ask("lab:1")
    await site.say("failed", reason="no such\0 tag" + "!" * 5000)
    row = await site.row()
    assert row.state is ImageState.FAILED
    assert row.reason.startswith("no such tag!")
    assert len(row.reason) == 2000
    assert await site.ask("lab:1") == 1
    assert (await site.row()).state is ImageState.WAITING


async def test_a_node_of_the_version_before_is_believed_by_what_it_holds(site):
    await site.ask("lab:1", "lab:2")
    await site.report(images=["lab:1"])
    rows = {row.reference: row.state for row in await site.rows()}
    assert rows == {"lab:1": ImageState.DONE, "lab:2": ImageState.WAITING}


async def test_a_removal_is_over_once_it_is_done(site):
    await site.ask("lab:1")
    await site.say("done")
    assert await site.ask("lab:1", wanted=ABSENT) == 1
    assert [told.wanted for told in await site.told()] == [ABSENT]
    before = await site.generation()
    await site.say("done", wanted=ABSENT)
    assert (await site.row()).state is ImageState.DONE
    assert await site.generation() == before + 1  # so that the node hears of it
    assert await site.told() == []

    await site.report(images=["lab:1"])  # a session has brought it back
    assert (await site.row()).wanted is ABSENT
    assert await site.ask("lab:1", wanted=ABSENT) == 1
    assert len(await site.told()) == 1


async def test_the_answer_to_an_older_wish_is_no_answer(site):
    await site.ask("lab:1")
    await site.ask("lab:1", wanted=ABSENT)
    await site.say("done", wanted=PRESENT)
    assert (await site.row()).state is ImageState.WAITING
    await site.report(images=["lab:1"])
    assert (await site.row()).state is ImageState.WAITING


async def test_an_answer_that_was_overtaken_changes_nothing(site):
    await site.ask("lab:1")
    before = await site.row()
    await site.ask("lab:1", wanted=ABSENT)
    async with site.platform.database.transaction() as tx:
        assert not await installs.change_install(tx, before, state="done")
    assert (await site.row()).state is ImageState.WAITING


async def test_reports_that_come_late_or_name_strangers_change_nothing(site):
    await site.ask("lab:1")
    await site.say("done", reference="lab:2")
    await site.say("pulling", progress=7.0)
    assert (await site.row()).progress == 1.0
    late = msgspec.structs.replace(site.node.make_report(sequence=1))
    await site.report(sequence=late.sequence, images=["lab:1"])
    assert (await site.row()).state is ImageState.PULLING


async def test_what_is_forgotten_is_not_asked_any_more(site):
    await site.ask("lab:1", "lab:2")
    before = await site.generation()
    async with site.platform.database.transaction() as tx:
        gone = [row.id for row in await installs.list_installs(tx.connection)]
        assert await installs.forget_installs(tx, gone) == 2
    assert await site.generation() == before + 1
    assert await site.told() == []


async def test_a_login_goes_with_the_images_of_its_own_registry_alone(site):
    await site.ask(PRIVATE, OTHER, "lab:1", "cr.example.org:8443/lab:1")
    told = {each.reference: each.credential for each in await site.told()}
    login = told.pop(PRIVATE)
    assert (login.registry, login.username) == ("cr.example.org", "robot")
    assert login.password == SECRET
    assert set(told.values()) == {None}
    await site.ask(PRIVATE, wanted=ABSENT)
    assert all(each.credential is None for each in await site.told())


async def test_a_login_is_neither_written_down_nor_logged(site, caplog):
    caplog.set_level(logging.DEBUG)
    await site.ask(PRIVATE)
    assert (await site.told())[0].credential is not None
    await site.say("failed", reference=PRIVATE, reason="it refuses the login")
    assert SECRET not in caplog.text
    async with site.platform.database.read() as connection:
        stored = await connection.scalars(select(RegistryRow.password))
        assert all(SECRET.encode() not in (sealed or b"") for sealed in stored)
    assert SECRET not in repr(await site.rows())
    assert SECRET not in repr(await load_assignments(site.platform, site.node.id))


async def test_without_its_key_a_password_is_left_out_and_nothing_stops(
    site, platform, caplog
):
    await site.ask(PRIVATE)
    site.platform = replace(platform, vault=Vault(Fernet.generate_key()))
    [told] = await site.told()
    assert told.credential is None
    assert "cannot be read" in caplog.text


async def test_a_session_gets_the_login_for_as_long_as_it_is_starting(site, platform):
    await start(platform)
    async with platform.database.transaction() as tx:
        await tx.execute(update(SessionRow).values(image_id=site.image_id))
        await tx.execute(update(ContainerRow).values(image=PRIVATE))

    async def told():
        [spec] = (await load_assignments(platform, site.node.id)).containers
        return spec

    spec = await told()
    assert spec.credential.password == SECRET
    assert SECRET not in repr(spec)
    await site.node.report([seen(spec.id, ContainerState.RUNNING)])
    assert (await told()).credential is None
