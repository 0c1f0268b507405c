"""Dotfiles and bootstrap script, from an agent's orders into real sessions."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import tempfile
import uuid
from pathlib import Path

import docker
import msgspec
import pytest

from backendai_agent.preparation import TOO_OLD
from backendai_agent.runtimes.fake import FakeContainer
from backendai_hub.api.agents import SessionFile
from tests.agent_hub import AgentHub, Authority
from tests.integration.agent_process import AgentProcess, make_spec

PREFIX = "/user/alice/train/"
SECRET = f"hunter2-{uuid.uuid4().hex}"
"""Stands in files and in the script, and may be seen nowhere else."""

FILES = [
    SessionFile(path=".netrc", permission="600", content=f"password {SECRET}\n"),
    SessionFile(path=".config/tool/rc", permission="754", content="grüß\n"),
    SessionFile(path="../outside", permission="644", content="never"),
]
WAITING = "running the bootstrap script; JupyterLab starts when it has ended"


@pytest.fixture
async def hub(tmp_path):
    hub = AgentHub(Authority(tmp_path / "ca"))
    await hub.open()
    yield hub
    await hub.close()


@pytest.fixture
def folder():
    # Not pytest's: the path of a socket may have no more than 107 letters.
    with tempfile.TemporaryDirectory(prefix="prep-") as path:
        yield Path(path)


@pytest.fixture(
    params=[
        pytest.param("process", marks=pytest.mark.bwrap),
        pytest.param("docker", marks=pytest.mark.docker),
    ]
)
async def agent(request, hub, folder):
    agent = AgentProcess(folder, hub)
    agent.options["BackendAIAgent.runtime"] = request.param
    remove = prepare_engine(agent) if request.param == "docker" else str
    if request.param == "process":
        agent.options["ProcessRuntime.network"] = "none"
    yield agent
    for spec in list(hub.wanted.values()):
        await hub.want_absent(spec.id)
    if agent.process is not None and agent.process.returncode is None:
        for container_id in hub.wanted:
            await hub.until_state(container_id, "gone")
    await agent.end(signal.SIGKILL)
    remove()


def prepare_engine(agent):
    """Give the agent a network of its own; returns what removes it again."""
    mark = uuid.uuid4().hex[:6]
    agent.options |= {
        "DockerRuntime.network": f"test-{mark}",
        "DockerRuntime.subnet": f"10.215.{int(mark[:2], 16)}.0/24",
        "DockerRuntime.firewall": "False",
    }

    def remove():
        api = docker.APIClient(version="auto")
        for network in api.networks(names=[f"test-{mark}"]):
            api.remove_network(network["Id"])
        api.close()

    return remove


def is_docker(agent):
    return agent.options["BackendAIAgent.runtime"] == "docker"


def order(agent, **changes):
    image = os.environ["BACKENDAI_TEST_SESSION_IMAGE"] if is_docker(agent) else ""
    return make_spec(
        **{
            "image": image or "jupyterlab",
            "cpu": 2000,
            "memory": 512 << 20,
            "prefix": PREFIX,
            "environ": {
                "JUPYTERHUB_API_TOKEN": "token-of-the-server",
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


def folders(agent, spec):
    own = agent.data_dir / "containers" / spec.id
    return own / "work", own / "run"


async def until(condition):
    """Poll what another process does."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def told(hub, spec):
    return hub.history[spec.id][-1]


def see_processes():
    """Read what every process of this machine was started with."""
    seen = b""
    for entry in Path("/proc").iterdir():
        for name in ("environ", "cmdline"):
            try:
                seen += (entry / name).read_bytes()
            except OSError:
                continue
    return seen


async def test_files_and_script_come_before_the_server_and_once(hub, agent):
    script = (
        f"# {SECRET}\n"
        "cat .netrc > seen; env > environ; echo started >> runs; mkfifo go\n"
        "read word < go; echo $word >> runs\n"
    )
    spec = order(agent, files=FILES, bootstrap=script)
    work, run = folders(agent, spec)
    await agent.start()
    await hub.want(spec)
    await until((work / "go").is_fifo)
    await hub.until(lambda _: told(hub, spec).reason == WAITING)
    assert told(hub, spec).state == "creating"
    assert told(hub, spec).bootstrap

    # An agent that dies meanwhile takes up where it was.
    await agent.end(signal.SIGKILL)
    await agent.start()
    await hub.after_reports(2)
    assert "running" not in hub.states(spec.id)
    look_for_secret(agent, spec)
    await asyncio.to_thread((work / "go").write_text, "gone on\n")
    await hub.until_state(spec.id, "running")

    assert (work / "runs").read_text() == "started\ngone on\n"
    assert (work / "seen").read_text() == f"password {SECRET}\n"
    assert SECRET not in (work / "environ").read_text()
    look_at_files(work)
    assert [p.name for p in run.iterdir() if "bootstrap" in p.name] == []
    look_for_secret(agent, spec)
    await agent.end(signal.SIGKILL)
    await agent.start()
    await hub.after_reports(2)
    await hub.until_state(spec.id, "running")
    assert (work / "runs").read_text() == "started\ngone on\n"


def look_at_files(work):
    owner = work.stat().st_uid
    for path, mode in ((".netrc", 0o600), (".config/tool/rc", 0o754)):
        found = (work / path).stat()
        assert stat.S_IMODE(found.st_mode) == mode
        assert found.st_uid == owner
    assert (work / ".config/tool/rc").read_text() == "grüß\n"
    assert not (work.parent / "outside").exists()


def look_for_secret(agent, spec):
    assert SECRET.encode() not in see_processes()
    assert SECRET not in agent.log.read_text()
    own = agent.data_dir / "containers" / spec.id
    found = subprocess.run(
        ["grep", "-rlI", "-D", "skip", SECRET, str(agent.data_dir)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    script = own / "run/bootstrap.sh"  # only while it runs
    allowed = {str(own / "work/.netrc"), str(own / "work/seen"), str(script)}
    assert set(found) <= allowed
    if is_docker(agent):
        inspected = subprocess.run(
            ["docker", "inspect", f"backendai-{spec.id}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert SECRET not in inspected


async def test_a_script_that_fails_is_the_reason_the_owner_reads(hub, agent):
    spec = order(agent, bootstrap="echo working; echo 'no such package' >&2; exit 3")
    await agent.start()
    await hub.want(spec)
    ended = await hub.until_state(spec.id, "exited")

    assert ended.reason == (
        "the bootstrap script ended with exit code 3: no such package"
    )
    assert ended.exit_code == 1
    assert "running" not in hub.states(spec.id)


async def test_the_fake_runtime_takes_them_like_a_real_one(hub, folder):
    agent = AgentProcess(folder, hub)
    good = make_spec(files=FILES, bootstrap="echo hi")
    bad = make_spec(bootstrap="echo hi\nexit 3\n")
    await agent.start()
    try:
        await hub.want(good, bad)
        await hub.until_state(good.id, "running")
        ended = await hub.until_state(bad.id, "exited")
    finally:
        await agent.end(signal.SIGKILL)
    assert ended.reason == "the bootstrap script ended with exit code 3"
    path = agent.data_dir / "fake-containers" / f"{good.id}.json"
    made = msgspec.json.decode(path.read_bytes(), type=FakeContainer)
    assert (made.files, made.bootstrap) == (FILES, "echo hi")


async def test_a_session_that_ended_later_does_not_speak_of_its_start(hub, agent):
    spec = order(agent, bootstrap="true")
    work, run = folders(agent, spec)
    await agent.start()
    await hub.want(spec)
    await hub.until_state(spec.id, "running")
    (run / "preparation.json").write_text('{"failure": "a lie"}')
    for entry in Path("/proc").iterdir():
        if is_boot_of(entry, work):
            os.kill(int(entry.name), signal.SIGTERM)
    ended = await hub.until_state(spec.id, "exited")
    assert "lie" not in ended.reason


def is_boot_of(entry, work):
    """Tell whether a process is the server whose home is the folder *work*."""
    try:
        home = (entry / "cwd").stat()
        words = (entry / "cmdline").read_bytes()
    except OSError:
        return False
    same = (home.st_dev, home.st_ino) == (work.stat().st_dev, work.stat().st_ino)
    return same and b"backendai_lab.boot" in words and b"bwrap" not in words


FORGETFUL = """
import json, os, socket, http.server as http
path = "/run/backendai/activation.json"
json.load(open(path)); os.unlink(path)
class Server(http.HTTPServer):
    address_family = socket.AF_UNIX
    def server_bind(self): self.socket.bind(self.server_address)
class Page(http.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
Server("/run/backendai/lab.sock", Page).serve_forever()
"""
"""A main program that answers, and knows nothing of files and scripts."""


@pytest.mark.parametrize(
    "agent", [pytest.param("process", marks=pytest.mark.bwrap)], indirect=True
)
async def test_an_environment_that_forgets_the_script_does_not_pass(hub, agent, folder):
    config = folder / "config.py"
    command = ["{python}", "-c", FORGETFUL]
    config.write_text(f"c.ProcessRuntime.command = {command!r}")
    agent.options["BackendAIAgent.config_file"] = str(config)
    await agent.start()
    plain, prepared = order(agent), order(agent, bootstrap="true")
    await hub.want(plain, prepared)
    await hub.until_state(plain.id, "running")
    ended = await hub.until_state(prepared.id, "exited")
    assert ended.reason == TOO_OLD
