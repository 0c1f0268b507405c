"""The spawn page asks the Hub what would become of a choice, and for folders."""

import tempfile

import pytest
import pytest_asyncio

from tests.admin import admin_api
from tests.integration.spawner_harness import standing_hub

REFUSED = (
    "monitors look at everything and start nothing; ask a superadmin for another role"
)
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hub():
    with tempfile.TemporaryDirectory(prefix="backendai-") as folders:
        flag = f"--HubService.local_folders={folders}"
        async with standing_hub(flag, agent=False) as hub:
            await hub.stack.start_agent(f"--BackendAIAgent.local_folders={folders}")
            yield hub


async def ask(hub, user, choice, asker="alice"):
    path = f"../backendai/users/{user}/dry-run"
    return await hub.api("POST", path, user=asker, json=choice)


async def test_a_choice_is_tried_out_and_begins_nothing(hub):
    hub.user("alice")
    status, told = await ask(hub, "alice", {"image": "jupyterlab", "cpu": "0.5"})
    assert (status, told["starts_now"], told["nodes"]) == (200, True, [])
    status, told = await ask(hub, "alice", {"image": "nothing", "cpu": "999"})
    assert status == 200
    assert "there is no environment 'nothing'" in told["refused"][0]["text"]
    crowd = {"image": "jupyterlab", "cpu": "0.5", "cluster_size": 501}
    status, told = await ask(hub, "alice", crowd)
    assert any("cluster_size" in each["text"] for each in told["refused"])
    async with hub.stack.client("alice") as alice:
        assert (await alice.get("api/sessions"))["items"] == []


async def test_what_cannot_be_read_is_refused(hub):
    hub.user("alice")
    status, told = await ask(hub, "alice", {"speed": "high"})
    assert status == 422
    assert "speed: there is no such option" in told["message"]
    status, told = await ask(hub, "alice", 5)
    assert (status, told["message"]) == (400, "send what is chosen as a JSON object")


async def test_nobody_asks_for_others(hub):
    hub.user("alice")
    hub.user("bob")
    status, _ = await ask(hub, "bob", {"image": "jupyterlab"})
    assert status in {403, 404}


async def test_jupyterhub_starts_nothing_for_those_who_only_look_on(hub):
    hub.user("mona")
    choice = {"image": "jupyterlab", "cpu": "0.5"}
    _, told = await ask(hub, "mona", choice, asker="mona")
    assert told["refused"] == []
    async with admin_api(hub.stack) as admin:
        await admin.change("users/mona", role="monitor")

    _, told = await ask(hub, "mona", choice, asker="mona")
    status, answer = await hub.start("mona", "one", choice)

    assert [each["text"] for each in told["refused"]] == [REFUSED]
    assert (status, answer["message"]) == (403, REFUSED)


async def find(hub, user, asker="alice", **query):
    path = f"../backendai/users/{user}/folders"
    return await hub.api("GET", path, user=asker, params=query)


async def keep_folders(hub, user, *names):
    """Have folders of these names, and return their ids."""
    hub.user(user)
    # The service knows whom the spawner has asked for.
    await ask(hub, user, {"image": "jupyterlab"}, asker=user)
    async with admin_api(hub.stack) as admin, admin.acting_for(user) as keeper:
        made = [await keeper.make("folders", name=name) for name in names]
    return {folder["name"]: folder["id"] for folder in made}


def names_of(told):
    return [folder["name"] for folder in told["items"]]


async def test_folders_are_found_by_name_and_those_of_others_are_not(hub):
    await keep_folders(hub, "carol", "secret")
    made = await keep_folders(hub, "dora", "data-1", "data-2", "sets")

    status, told = await find(hub, "dora", asker="dora")
    assert (status, names_of(told)) == (200, ["data-1", "data-2", "sets"])
    assert {folder["access"] for folder in told["items"]} == {"rw"}
    assert all(folder["is_owner"] for folder in told["items"])

    _, told = await find(hub, "dora", asker="dora", search="data")
    assert (names_of(told), told["next"]) == (["data-1", "data-2"], None)

    wanted = [("folder", made["sets"]), ("folder", "data-2")]
    wanted += [("folder", "gone"), ("folder", "secret"), ("folder", "data-2")]
    path = "../backendai/users/dora/folders"
    status, told = await hub.api("GET", path, user="dora", params=wanted)
    assert (status, names_of(told)) == (200, ["sets", "data-2"])


async def test_folders_in_the_trash_are_not_offered(hub):
    made = await keep_folders(hub, "fay", "kept", "gone")
    async with admin_api(hub.stack) as admin, admin.acting_for("fay") as keeper:
        status, body = await keeper.send("POST", f"api/folders/{made['gone']}/trash")
        assert status == 200, body
    _, told = await find(hub, "fay", asker="fay")
    assert names_of(told) == ["kept"]


async def test_long_lists_come_a_page_at_a_time(hub):
    await keep_folders(hub, "gus", *(f"f{i:02}" for i in range(21)))
    _, first = await find(hub, "gus", asker="gus")
    _, rest = await find(hub, "gus", asker="gus", after=first["next"])
    assert [len(page["items"]) for page in (first, rest)] == [20, 1]
    assert (names_of(rest), rest["next"]) == (["f20"], None)


async def test_nobody_lists_folders_of_others(hub):
    hub.user("alice")
    hub.user("bob")
    status, _ = await find(hub, "bob", asker="alice")
    assert status in {403, 404}


async def test_questions_that_make_no_sense_are_refused(hub):
    hub.user("alice")
    await ask(hub, "alice", {"image": "jupyterlab"})
    status, told = await find(hub, "alice", after="nowhere")
    assert status in {400, 422}, told
    many = [("folder", f"f{i}") for i in range(101)]
    path = "../backendai/users/alice/folders"
    status, told = await hub.api("GET", path, user="alice", params=many)
    assert (status, told["message"]) == (422, "folder: 101 are too many at once")


async def test_a_choice_with_folders_is_tried_out_with_them(hub):
    made = await keep_folders(hub, "erin", "data", ".cache")
    image = {"image": "jupyterlab", "cpu": "0.5"}

    chosen = {**image, "mounts": [{"folder": made["data"], "permission": "ro"}]}
    status, told = await ask(hub, "erin", chosen, asker="erin")
    assert (status, told["refused"]) == (200, [])
    mounts = {m["folder_name"]: m for m in told["mounts"]}
    assert mounts["data"]["target"] == "/home/work/data"
    assert mounts["data"]["permission"] == "ro"
    assert [mounts[n]["automatic"] for n in ("data", ".cache")] == [False, True]

    twice = {**image, "mounts": ["data:one", ".cache:one/two"]}
    _, told = await ask(hub, "erin", twice, asker="erin")
    assert "would lie inside one another" in told["refused"][0]["text"]
