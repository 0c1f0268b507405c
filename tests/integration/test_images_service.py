"""A registry's images on a real service: by its routes, and in a real engine."""

from __future__ import annotations

import os
import uuid
from contextlib import asynccontextmanager
from urllib.parse import quote

import docker
import docker.errors
import pytest

from tests.admin import admin_api, make_person
from tests.harness import running_stack, until
from tests.registry import PASSWORD, USERNAME, running_registry

pytestmark = pytest.mark.registry

PREFIX = "/user/alice/one/"
ENVIRON = {
    "JUPYTERHUB_API_TOKEN": "token-of-the-server",
    "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
    "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:0{PREFIX}",
    "JUPYTERHUB_BASE_URL": "/",
    "JUPYTERHUB_CLIENT_ID": "jupyterhub-user-alice",
    "JUPYTERHUB_USER": "alice",
    "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:servers!server=alice/one"]',
    "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{PREFIX}oauth_callback",
}
"""What a single-user server is started with."""
LABELS = {"ai.backend.resource.min.cpu": "0.5"}


@pytest.fixture
def registry(tmp_path):
    folder = tmp_path / "registry"
    folder.mkdir()
    with running_registry(folder, password=True) as running:
        yield running


async def add_registry(root, registry):
    return await root.make(
        "registries",
        name="team",
        url=registry.url,
        username=USERNAME,
        password=PASSWORD,
    )


async def rescan(root, **request):
    status, asked = await root.send("POST", "api/registries/team/rescan", json=request)
    assert status == 202, asked
    assert asked["state"] in {"waiting", "running"}

    async def ended():
        told = await root.get("api/registries/team/rescan")
        return told if told["state"] not in {"waiting", "running"} else None

    return await until(ended, "the registry has been read")


async def test_an_administrator_offers_a_registrys_images(stack, registry):
    registry.push_image("team/lab", "1", labels=LABELS)
    name = f"{registry.host}/team/lab:1"
    async with admin_api(stack) as root:
        made = await add_registry(root, registry)
        assert made["has_password"]
        assert (await rescan(root))["added"] == 1
        shown = await root.get(f"api/images/{quote(name, safe='')}")
        assert shown["name"] == name
        assert shown["minimum"] == {"cpu": "0.5", "mem": "1g"}
        path = f"api/images/{shown['id']}"
        status, shown = await root.send(
            "POST", f"{path}/aliases", json={"add": ["lab"]}
        )
        assert (status, shown["aliases"]) == (200, ["lab"])
        status, answer = await root.send(
            "POST", "api/images/lab/install", json={"resource_group": "default"}
        )
        assert (status, answer["asked"]) == (202, [])
        assert "the image is for docker" in answer["skipped"][0]["reason"]
        assert await root.get("api/images/lab/installs") == []
        async with await make_person(stack, root, "alice") as alice:
            status, text = await alice.refused("GET", "api/images/lab")
            assert (status, text) == (404, "there is no image 'lab'")
            for verb, body in (
                ("aliases", {}),
                ("install", {"resource_group": "default"}),
                ("untag", None),
            ):
                sent = {} if body is None else {"json": body}
                status, _ = await alice.refused("POST", f"{path}/{verb}", **sent)
                assert status == 403
            status, _ = await alice.refused(
                "POST", "api/registries/team/rescan", json={}
            )
            assert status == 403
            await root.change(
                "domains/default", allowed_docker_registries=["local", "team"]
            )
            assert (await alice.get("api/images/lab"))["id"] == shown["id"]
            status, text = await alice.refused("POST", "api/images/lab/forget")
            assert status == 403
        status, shown = await root.send("POST", "api/images/lab/untag")
        assert (status, shown["status"]) == (200, "DELETED")
        said = stack.programs["service"].said()
        answers = [made, shown, await root.get("api/registries/team")]
    assert PASSWORD not in f"{said} {answers}"
    if stack.db_url is None:
        for path in stack.folder.databases.iterdir():
            assert PASSWORD.encode() not in path.read_bytes()


# -- with an engine ---------------------------------------------------------------


@pytest.fixture
def engine():
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
def repository(engine):
    """A name of this test's own; what the engine has of it is removed again."""
    made = f"team/{uuid.uuid4().hex}"
    yield made
    for reference in references(engine, made):
        engine.remove_image(reference)


def push_session_image(engine, registry, repository):
    """Put the image of real sessions into the registry."""
    name = f"{registry.host}/{repository}"
    engine.tag(os.environ["BACKENDAI_TEST_SESSION_IMAGE"], name, "1")
    login = {"username": USERNAME, "password": PASSWORD}
    for step in engine.push(name, "1", auth_config=login, stream=True, decode=True):
        assert "error" not in step, step
    engine.remove_image(f"{name}:1")


def references(engine, repository):
    names = [
        name
        for image in engine.images()
        for name in (*(image["RepoTags"] or ()), *(image["RepoDigests"] or ()))
    ]
    return [name for name in names if repository in name]


@asynccontextmanager
async def docker_stack(folder, engine):
    mark = uuid.uuid4().hex[:6]
    try:
        async with running_stack(folder, agent=False) as stack:
            await stack.start_agent(
                f"--DockerRuntime.network=test-{mark}",
                f"--DockerRuntime.subnet=10.215.{int(mark[:2], 16)}.0/24",
                "--DockerRuntime.firewall=False",
                runtime="docker",
            )
            yield stack
    finally:
        for network in engine.networks(names=[f"test-{mark}"]):
            engine.remove_network(network["Id"])


@pytest.mark.docker
async def test_a_session_runs_an_image_that_its_node_fetches_with_the_registrys_login(
    tmp_path, registry, repository, engine
):
    push_session_image(engine, registry, repository)
    async with (
        docker_stack(tmp_path / "data", engine) as stack,
        admin_api(stack) as root,
        stack.client("alice") as alice,
    ):
        await add_registry(root, registry)
        assert (await rescan(root))["added"] == 1
        name = f"{registry.host}/{repository}:1"
        image = await root.get(f"api/images/{quote(name, safe='')}")
        await root.send(
            "POST", f"api/images/{image['id']}/aliases", json={"add": ["ours"]}
        )
        # Nothing runs that the domain does not allow, and nothing at all if
        # it allows nothing.
        status, told = await alice.create(image="ours")
        assert status == 422
        assert "on offer: jupyterlab" in told["detail"]
        await root.change("domains/default", allowed_docker_registries=[])
        status, told = await alice.create(image="ours")
        assert "on offer: none yet" in told["detail"]
        await root.change("domains/default", allowed_docker_registries=["team"])

        assert not references(engine, repository)
        status, session = await alice.create(
            image="ours",
            slots={"cpu": "1", "mem": "2g"},
            attachment={"user": "alice", "server": "one", "prefix": PREFIX},
            environ=ENVIRON,
        )
        assert status == 201, session
        fetched = image["references"]["docker"]

        async def is_fetched():
            shown = await alice.get(f"api/sessions/{session['id']}")
            assert shown["status"] != "ERROR", shown
            return fetched in references(engine, repository)

        await until(is_fetched, "the node has fetched the image", 60)
        await alice.reach(session["id"], "RUNNING", seconds=60)
        await alice.send("POST", f"api/sessions/{session['id']}/terminate", json={})
        await alice.reach(session["id"], "TERMINATED", "CANCELLED", "ERROR")
        assert PASSWORD not in "".join(p.said() for p in stack.programs.values())


@pytest.mark.docker
async def test_nodes_hold_an_image_ahead_of_sessions_and_remove_it_again(
    tmp_path, registry, repository, engine
):
    registry.push_image(repository, "1")
    async with (
        docker_stack(tmp_path / "data", engine) as stack,
        admin_api(stack) as root,
    ):
        await add_registry(root, registry)
        await rescan(root)
        name = f"{registry.host}/{repository}:1"
        path = f"api/images/{quote(name, safe='')}"

        async def install(wanted):
            body = {"resource_group": "default", "wanted": wanted}
            status, answer = await root.send("POST", f"{path}/install", json=body)
            assert (status, len(answer["asked"])) == (202, 1), answer

            async def done():
                [row] = await root.get(f"{path}/installs")
                assert row["state"] != "failed", row
                return row["state"] == "done"

            await until(done, f"the image is {wanted}", 60)

        await install("present")
        image = await root.get(path)
        assert image["references"]["docker"] in references(engine, repository)

        async def is_counted():
            return (await root.get(path))["installed"] == 1

        await until(is_counted, "the image counts as installed")
        await install("absent")
        assert not references(engine, repository)
