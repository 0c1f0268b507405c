"""Sessions in real containers: their life, their end, and what they cannot do."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import logging
import os
import socket
import subprocess
import threading
import time
import uuid
import warnings
from dataclasses import replace
from pathlib import Path

import docker
import docker.errors
import pytest
from traitlets.config import Config

from backendai_agent.activation import (
    Surroundings,
    build_activation,
    write_activation,
)
from backendai_agent.folders import container_folder
from backendai_agent.runtimes.base import ContainerPatch, LogNews, RuntimeFailure
from backendai_agent.runtimes.docker import DockerRuntime
from backendai_agent.runtimes.docker_config import container_name
from backendai_hub.api.agents import ContainerSpec, DesiredState

pytestmark = pytest.mark.docker

PREFIX = "/user/alice/"
SECRET = "hunter2-of-alice"
NO_PATCH = ContainerPatch()
SLEEP = ["/bin/sleep", "1000"]
ENGINE = "/var/run/docker.sock"
PYTHON = ["/opt/backendai/bin/python", "-c"]


@pytest.fixture(scope="module")
def image():
    return os.environ["BACKENDAI_TEST_SESSION_IMAGE"]


@pytest.fixture
def api():
    """The engine itself, to look behind the runtime's back."""
    client = docker.APIClient(version="auto")
    yield client
    client.close()


@pytest.fixture
def site(api):
    """A network of this test's own, and an agent's name; all is removed again."""
    mark = uuid.uuid4().hex[:6]
    agent = f"agent-{mark}"
    block = int(mark[:2], 16)
    config = Config()
    config.DockerRuntime.network = f"test-{mark}"
    config.DockerRuntime.subnet = f"10.214.{block}.0/24"
    yield agent, config
    for row in api.containers(all=True, filters={"label": f"ai.backend.agent={agent}"}):
        api.remove_container(row["Id"], force=True, v=True)
    for network in api.networks(names=[f"test-{mark}"]):
        api.remove_network(network["Id"])


@pytest.fixture
async def runtime(site, tmp_path):
    agent, config = site
    made = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def unreachable():
    """Let docker-py forget to close sockets that could not connect."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


def make_spec(image, **changes):
    return ContainerSpec(
        **{
            "id": str(uuid.uuid4()),
            "session_id": str(uuid.uuid4()),
            "desired": DesiredState.RUNNING,
            "owner": "alice",
            "image": image,
            "cpu": 2000,
            "memory": 512 << 20,
            "prefix": PREFIX,
            "environ": {
                "JUPYTERHUB_API_TOKEN": SECRET,
                "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
                "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:0{PREFIX}",
                "JUPYTERHUB_BASE_URL": "/",
                "JUPYTERHUB_CLIENT_ID": "jupyterhub-user-alice",
                "JUPYTERHUB_USER": "alice",
                "JUPYTERHUB_OAUTH_ACCESS_SCOPES": '["access:servers!server=alice/"]',
                "JUPYTERHUB_OAUTH_CALLBACK_URL": f"{PREFIX}oauth_callback",
            },
            **changes,
        }
    )


def activate(runtime, spec, patch=NO_PATCH):
    folder = container_folder(runtime.data_dir, spec.id)
    folder.make()
    around = Surroundings(listen=runtime.listen)
    write_activation(folder, build_activation(spec, patch, around))
    return folder


async def start(runtime, spec, patch=NO_PATCH):
    folder = activate(runtime, spec, patch)
    await runtime.start(spec, patch)
    return folder


async def until(condition, seconds=60.0):
    """Poll the outside world until *condition* holds, and return what it found."""
    deadline = time.monotonic() + seconds
    while not (found := await condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)
    return found


def get(endpoint, path):
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


async def until_answers(runtime, spec):
    endpoint = await runtime.endpoint(spec.id, "lab")

    async def answers():
        try:
            return await asyncio.to_thread(get, endpoint, f"{PREFIX}api")
        except OSError:
            return None

    return await until(answers)


async def ended(runtime, spec):
    async def look():
        seen = {each.id: each for each in await runtime.list()}
        return seen[spec.id] if not seen[spec.id].running else None

    return await until(look)


def run_inside(api, spec, *argv, user=""):
    made = api.exec_create(container_name(spec.id), list(argv), user=user)
    printed = api.exec_start(made["Id"])
    return api.exec_inspect(made["Id"])["ExitCode"], printed.decode()


def reaches(api, spec, host, port):
    """Tell whether a connection from inside gets through."""
    code, printed = run_inside(
        api,
        spec,
        *PYTHON,
        "import socket, sys; socket.create_connection"
        f"(({host!r}, {port}), timeout=1.5).close()",
    )
    assert code == 0 or "Error" in printed, printed
    return code == 0


# -- life ------------------------------------------------------------------------


async def test_a_session_starts_answers_and_leaves_nothing_behind(runtime, image, api):
    spec = make_spec(image)
    folder = await start(runtime, spec)

    assert await until_answers(runtime, spec) == 200
    assert not folder.activation.exists()
    (seen,) = await runtime.list()
    assert (seen.id, seen.session_id, seen.running) == (spec.id, spec.session_id, True)
    assert "Jupyter Server" in await runtime.logs(spec.id, 200)

    await runtime.stop(spec.id, 5.0)
    assert await runtime.list() == []
    assert await runtime.endpoint(spec.id, "lab") is None
    assert not folder.run.exists()
    assert not folder.work.exists()
    assert not [n for n in api.networks() if spec.session_id in n["Name"]]


async def test_secrets_reach_the_session_and_no_record_of_the_engine(
    runtime, image, api
):
    spec = make_spec(image)
    await start(runtime, spec)
    await until_answers(runtime, spec)
    inspected = json.dumps(api.inspect_container(container_name(spec.id)))

    assert SECRET not in inspected
    assert SECRET not in await runtime.logs(spec.id, 1000)
    _, printed = run_inside(api, spec, "/bin/sh", "-c", "cat /proc/*/cmdline")
    assert SECRET not in printed


async def test_starting_twice_makes_one_container(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    first = api.inspect_container(container_name(spec.id))
    await runtime.start(spec, NO_PATCH)
    second = api.inspect_container(container_name(spec.id))

    assert len(await runtime.list()) == 1
    assert first["Id"] == second["Id"]
    assert first["State"]["StartedAt"] == second["State"]["StartedAt"]


async def test_starting_finishes_what_a_crash_left_half_done(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    activate(runtime, spec)
    original = docker.APIClient.start

    def crash(*_args, **_kwargs):
        raise OSError("the agent died here")

    docker.APIClient.start = crash
    try:
        with pytest.raises(RuntimeFailure):
            await runtime.start(spec, NO_PATCH)
    finally:
        docker.APIClient.start = original
    (seen,) = await runtime.list()
    assert (seen.running, seen.reason) == (False, "never started")

    await runtime.start(spec, NO_PATCH)
    assert [each.running for each in await runtime.list()] == [True]


async def test_an_agent_that_restarts_finds_its_containers_again(
    runtime, image, site, tmp_path
):
    spec = make_spec(image)
    await start(runtime, spec)
    await until_answers(runtime, spec)
    agent, config = site
    (tmp_path / "agent.id").write_text(agent)
    again = DockerRuntime(config=config, data_dir=str(tmp_path))
    await again.open()
    try:
        assert [seen.id for seen in await again.list()] == [spec.id]
        assert await until_answers(again, spec) == 200
    finally:
        await again.close()


async def test_other_agents_containers_are_neither_seen_nor_touched(
    runtime, image, site, tmp_path, api
):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    other = DockerRuntime(
        config=site[1], data_dir=str(tmp_path / "other"), agent_id="somebody-else"
    )
    await other.open()
    try:
        assert await other.list() == []
        with pytest.raises(RuntimeFailure, match="another agent's"):
            await other.stop(spec.id, 0)
        with pytest.raises(RuntimeFailure, match="another agent on this engine"):
            await start(other, spec)
    finally:
        await other.close()
    assert api.inspect_container(container_name(spec.id))["State"]["Running"]


async def test_a_container_nobody_here_knows_is_reported_by_its_id(
    runtime, image, site, api
):
    made = api.create_container(
        image, entrypoint=SLEEP, labels={"ai.backend.agent": site[0]}
    )
    api.start(made["Id"])

    assert [seen.id for seen in await runtime.list()] == [made["Id"]]


# -- logs ------------------------------------------------------------------------


async def test_who_waits_for_more_of_a_log_hears_of_it_and_of_its_end(
    runtime, image, api
):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    waiting = asyncio.ensure_future(runtime.hear_log(spec.id, 0.0))
    given_up = asyncio.ensure_future(runtime.hear_log(spec.id, 3600.0))
    assert await runtime.logs(spec.id, 10) == ""
    assert not waiting.done()
    assert not given_up.done(), "nothing was ever printed"
    given_up.cancel()
    say = "echo more > /proc/1/fd/1"
    assert run_inside(api, spec, "/bin/sh", "-c", say, user="root")[0] == 0

    assert await asyncio.wait_for(waiting, 60) is LogNews.PRINTED
    assert await runtime.hear_log(spec.id, 3600.0) is LogNews.PRINTED, "it came before"
    again = asyncio.ensure_future(runtime.hear_log(spec.id, -3600.0))
    api.kill(container_name(spec.id))
    assert await asyncio.wait_for(again, 60) is LogNews.ENDED
    await runtime.stop(spec.id, 1)
    assert await runtime.hear_log(spec.id, 0.0) is LogNews.ABSENT


# -- ends ------------------------------------------------------------------------


async def test_running_out_of_memory_is_told_as_such(runtime, image):
    spec = make_spec(image, memory=48 << 20)
    runtime.command = [*PYTHON, "x = bytearray(400 << 20)"]
    await start(runtime, spec)

    seen = await ended(runtime, spec)
    assert (seen.reason, seen.exit_code) == ("out of memory", 137)


async def test_a_main_process_that_is_killed_is_told_and_heard_of(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    changes = runtime.changes()
    hearing = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    api.kill(container_name(spec.id))

    assert await asyncio.wait_for(hearing, 60) == spec.id
    assert (await ended(runtime, spec)).reason == "killed (signal 9)"
    await changes.aclose()


async def test_an_exit_code_is_kept_until_it_is_told_to_go(runtime, image):
    spec = make_spec(image)
    runtime.command = [*PYTHON, "print('bye'); raise SystemExit(3)"]
    await start(runtime, spec)

    seen = await ended(runtime, spec)
    assert (seen.exit_code, seen.reason) == (3, "exited with code 3")
    assert await runtime.logs(spec.id, 10) == "bye\n"
    await runtime.stop(spec.id, 1)
    assert await runtime.list() == []


async def test_a_container_removed_behind_our_back_is_simply_gone(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    assert await runtime.endpoint(spec.id, "lab") is not None
    api.remove_container(container_name(spec.id), force=True)

    async def gone():
        return await runtime.endpoint(spec.id, "lab") is None

    await until(gone)
    assert await runtime.list() == []
    await runtime.stop(spec.id, 1)


async def test_what_a_session_nested_deep_is_removed_with_it(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    folder = await start(runtime, spec)
    nest = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
    code, printed = run_inside(api, spec, *PYTHON, nest)
    assert code == 0, printed
    await runtime.stop(spec.id, 0)
    assert not folder.work.exists()


async def test_an_address_read_just_before_the_end_is_not_handed_out(
    runtime, image, api
):
    spec = make_spec(image)
    runtime.command = SLEEP
    original = docker.APIClient.inspect_container
    heard = threading.Semaphore(0)

    async def listen():
        async for name in runtime.changes():
            if name == spec.id:
                heard.release()

    def hear(times):
        assert all(heard.acquire(timeout=60) for _ in range(times))

    def inspect_then_end(client, name):
        found = original(client, name)
        if found["State"]["Running"]:
            api.kill(name)
            hear(2)  # kill, die
        return found

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    await start(runtime, spec)
    await asyncio.to_thread(hear, 2)  # create, start
    docker.APIClient.inspect_container = inspect_then_end
    try:
        assert await runtime.endpoint(spec.id, "lab") is None
        assert await runtime.endpoint(spec.id, "lab") is None
    finally:
        docker.APIClient.inspect_container = original
        listening.cancel()


async def test_stopping_what_is_not_there_is_success(runtime):
    await runtime.stop(str(uuid.uuid4()), 1)


async def test_a_session_that_will_not_listen_is_killed_after_its_grace(runtime, image):
    spec = make_spec(image)
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(99)"
    runtime.command = [*PYTHON, deaf]
    await start(runtime, spec)
    began = time.monotonic()
    await runtime.stop(spec.id, 1.0)

    assert await runtime.list() == []
    assert time.monotonic() - began < 60  # by itself it would take longer


# -- what is not there -----------------------------------------------------------


async def test_a_missing_image_is_named(runtime):
    spec = make_spec("nowhere.invalid/no/such:image")
    with pytest.raises(RuntimeFailure, match=r"does not have the image nowhere\.inv"):
        await start(runtime, spec)
    with pytest.raises(RuntimeFailure, match=r"cannot fetch the image nowhere\.inval"):
        await runtime.fetch(spec.image, lambda _: None)


async def test_the_session_image_is_listed(runtime, image):
    assert image in await runtime.images()


@pytest.mark.usefixtures("unreachable")
async def test_an_engine_that_does_not_answer_is_said_so(tmp_path):
    absent = DockerRuntime(data_dir=str(tmp_path), agent_id="a")
    absent.url = f"unix://{tmp_path}/nothing.sock"
    with pytest.raises(RuntimeFailure, match=r"nothing\.sock does not answer"):
        await absent.open()


class Wire:
    """A way to the engine that can be cut and mended."""

    def __init__(self, path: Path):
        self.path = path
        self.carrying = set()

    async def mend(self):
        def begin(reader, writer):
            self.carrying.add(asyncio.create_task(self._carry(reader, writer)))

        self.server = await asyncio.start_unix_server(begin, self.path)

    async def cut(self):
        self.server.close()
        self.path.unlink()
        for task in self.carrying:
            task.cancel()
        await asyncio.gather(*self.carrying, return_exceptions=True)
        self.carrying.clear()

    async def _carry(self, reader, writer):
        far_reader, far_writer = await asyncio.open_unix_connection(ENGINE)
        try:
            await asyncio.gather(
                self._copy(reader, far_writer), self._copy(far_reader, writer)
            )
        finally:
            for each in (writer, far_writer):
                each.transport.abort()

    async def _copy(self, reader, writer):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
        writer.close()


@pytest.mark.usefixtures("unreachable")
async def test_an_outage_of_the_engine_is_bridged(site, tmp_path, image):
    wire = Wire(tmp_path / "engine.sock")
    await wire.mend()
    agent, config = site
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    runtime.url = f"unix://{wire.path}"
    await runtime.open()
    changes = runtime.changes()
    try:
        runtime.command = SLEEP
        spec = make_spec(image)
        await start(runtime, spec)
        hearing = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await wire.cut()
        with pytest.raises(RuntimeFailure, match="does not answer"):
            await runtime.list()
        await wire.mend()

        heard = await asyncio.wait_for(hearing, 60)
        while heard:
            heard = await asyncio.wait_for(anext(changes), 60)
        assert heard == ""  # anything may have happened: look at everything
        assert [seen.id for seen in await runtime.list()] == [spec.id]
        await runtime.stop(spec.id, 0)
    finally:
        await changes.aclose()
        await runtime.close()
        await wire.cut()


# -- what a session cannot do ----------------------------------------------------


async def test_sessions_reach_neither_each_other_nor_the_node(runtime, image, api):
    one, two = make_spec(image), make_spec(image)
    runtime.command = [
        *("/opt/backendai/bin/python", "-m", "http.server", "8888"),
    ]
    await start(runtime, one)
    await start(runtime, two)
    near = await runtime.endpoint(two.id, "lab")
    gateway = str(near.host.rpartition(".")[0]) + ".1"
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]

        async def serving():
            try:
                return await asyncio.to_thread(get, near, "/")
            except OSError:
                return None

        assert await until(serving) == 200
        itself = await asyncio.to_thread(reaches, api, two, "127.0.0.1", 8888)
        other = await asyncio.to_thread(reaches, api, one, near.host, 8888)
        node = await asyncio.to_thread(reaches, api, one, gateway, port)
    assert (itself, other, node) == (True, False, False)


async def test_a_full_session_is_root_in_its_container_and_nowhere_else(
    runtime, image, api
):
    spec = make_spec(image)
    runtime.command = SLEEP
    await start(runtime, spec)
    allowed = [
        ["useradd", "bob"],
        ["chown", "bob", "/home/work"],
        ["su", "bob", "-c", "true"],
        ["touch", "/usr/bin/mine"],
    ]
    refused = [
        ["mount", "-t", "tmpfs", "none", "/mnt"],
        ["unshare", "--mount", "true"],
        ["unshare", "-Ur", "true"],
        ["dmesg"],
        ["mknod", "/root/sda", "b", "8", "0"],
        ["chroot", "/proc/1/root/../..", "ls", "/host"],
    ]
    for argv in allowed:
        code, printed = await asyncio.to_thread(run_inside, api, spec, *argv)
        assert code == 0, (argv, printed)
    for argv in refused:
        code, printed = await asyncio.to_thread(run_inside, api, spec, *argv)
        assert code != 0, (argv, printed)


@pytest.mark.parametrize("profile", ["sudo", "locked"])
async def test_other_profiles_run_as_a_user(runtime, image, api, profile):
    spec = make_spec(image, profile=profile)
    await start(runtime, spec)

    assert await until_answers(runtime, spec) == 200
    assert run_inside(api, spec, "id", "-u") == (0, "1000\n")
    code, _ = run_inside(api, spec, "sudo", "-n", "true")
    assert (code == 0) == (profile == "sudo")
    code, _ = run_inside(api, spec, "touch", "/home/work/mine")
    assert code == 0
    code, _ = run_inside(api, spec, "touch", "/opt/mine")
    assert code != 0


async def test_limits_hold_inside(runtime, image, api):
    spec = make_spec(image, cpu=500, memory=128 << 20, shmem=32 << 20)
    runtime.command = SLEEP
    await start(runtime, spec)
    host = api.inspect_container(container_name(spec.id))["HostConfig"]
    _, printed = run_inside(api, spec, "df", "-k", "/dev/shm")
    _, files = run_inside(api, spec, "sh", "-c", "ulimit -n; ulimit -c")

    assert (host["CpuQuota"], host["Memory"]) == (50_000, 128 << 20)
    assert host["MemorySwap"] == 128 << 20
    assert str((32 << 20) >> 10) in printed
    assert int(files.split()[0]) <= 65536
    assert files.split()[1] == "0"


async def test_a_network_that_is_not_fenced_is_refused(site, tmp_path, api):
    agent, config = site
    name = config.DockerRuntime.network
    api.create_network(name, driver="bridge")
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    with pytest.raises(RuntimeFailure, match="was not made for sessions"):
        await runtime.open()


async def test_what_separates_sessions_is_reported(site, tmp_path):
    agent, config = site
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    isolation = await runtime.open()
    await runtime.close()

    assert isolation.runtime == "docker"
    assert isolation.multi_user
    assert isolation.network == "fenced bridge"
    assert any("runc" in note for note in isolation.notes)


TRY_NET = "198.51.100.0/24"
RULE = ["DOCKER-USER", "-i", "bai-+", "-d", TRY_NET, "-j", "REJECT"]


def iptables(verb):
    words = ["/usr/sbin/iptables", "-w", "5", verb, *RULE]
    return subprocess.run(words, capture_output=True, check=False).returncode


async def test_a_firewall_that_was_emptied_is_set_again(site, tmp_path):
    agent, config = site
    config.DockerRuntime.blocked_networks = [TRY_NET]
    config.DockerRuntime.firewall_seconds = 0.0
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    await runtime.open()
    try:
        assert iptables("-D") == 0
        await runtime.list()
        assert iptables("-C") == 0
        assert runtime.isolation_now.multi_user
        runtime.blocked_networks = ["no network"]
        await runtime.list()
        assert not runtime.isolation_now.multi_user
        runtime.blocked_networks = [TRY_NET]
        await runtime.list()
        assert runtime.isolation_now.multi_user
    finally:
        await runtime.close()
        assert iptables("-D") == 0


BLOCKED, OWN = "203.0.113.0/24", "203.0.113.128/25"


def ask_iptables(verb, *words):
    rule = ["DOCKER-USER", "-i", "bai-+", *words, "-j", "REJECT"]
    program = ["/usr/sbin/iptables", "-w", "5", verb, *rule]
    return subprocess.run(program, capture_output=True, check=False).returncode


async def test_what_is_blocked_leaves_sessions_own_networks_open(site, tmp_path):
    agent, config = site
    config.DockerRuntime.blocked_networks = [BLOCKED]
    config.DockerRuntime.cluster_subnets = OWN
    others = ["!", "-s", OWN, "-d", OWN]
    rest = ["-d", "203.0.113.0/25"]
    # As an older agent has left it.
    assert ask_iptables("-I", "-d", BLOCKED) == 0
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    try:
        isolation = await runtime.open()
        assert isolation.network == "fenced bridge"
        assert ask_iptables("-C", "-d", BLOCKED) != 0
        assert ask_iptables("-C", *others) == 0
        assert ask_iptables("-C", *rest) == 0
    finally:
        await runtime.close()
        ask_iptables("-D", "-d", BLOCKED)
        ask_iptables("-D", *others)
        ask_iptables("-D", *rest)


@pytest.mark.parametrize("tolerated", [False, True])
async def test_a_firewall_that_cannot_be_set_is_said_loudly(
    site, tmp_path, tolerated, caplog
):
    agent, config = site
    config.DockerRuntime.blocked_networks = ["no network"]
    config.DockerRuntime.allow_reaching_host = tolerated
    config.DockerRuntime.firewall_seconds = 0.0
    runtime = DockerRuntime(config=config, data_dir=str(tmp_path), agent_id=agent)
    runtime.log = logging.getLogger("test")
    isolation = await runtime.open()
    await runtime.list()
    await runtime.close()
    assert isolation.multi_user == tolerated
    assert "SESSIONS CAN REACH" in isolation.notes[0]
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1


async def test_allocated_devices_are_inside_and_others_are_not(runtime, image, api):
    spec = make_spec(image)
    runtime.command = SLEEP
    patch = replace(NO_PATCH, devices=("/dev/full",), environ={"N_GPUS": "1"})
    await start(runtime, spec, patch)
    code, printed = run_inside(api, spec, "sh", "-c", "ls /dev; echo N=$N_GPUS")

    assert code == 0
    assert "full" in printed.split()
    assert "N=1" in printed
    assert not {"sda", "kmsg", "vda"} & set(printed.split())
