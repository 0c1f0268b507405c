"""A session of the process runtime from its start to the last trace of it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import venv
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from process_harness import (
    NOTHING,
    PREAMBLE,
    SLEEP,
    Node,
    make_spec,
    open_node,
    traces,
    until,
    write_program,
)

from backendai_agent.runtimes.base import ContainerPatch, LogNews, RuntimeFailure

pytestmark = pytest.mark.bwrap


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(tmp_path) as node:
        yield node


async def test_a_session_runs_is_seen_and_leaves_nothing(node: Node) -> None:
    assert node.isolation.tier == "namespaces"
    assert node.isolation.multi_user
    spec = await node.launch("print('hello')\n" + SLEEP)

    seen = await node.see(spec.id)
    assert seen is not None
    assert (seen.running, seen.session_id) == (True, spec.session_id)
    await until(lambda: "hello" in node.log_of(spec.id))
    assert await node.runtime.logs(spec.id, 10) == "hello\n"
    assert traces(spec.id) != NOTHING

    await node.runtime.stop(spec.id, 5)

    assert await node.see(spec.id) is None
    assert not node.folder(spec.id).path.exists()
    await until(lambda: traces(spec.id) == NOTHING, what=lambda: str(traces(spec.id)))


async def test_starting_twice_makes_one_container(node: Node) -> None:
    spec = make_spec()
    mark = "open('/home/work/starts', 'a').write('x')\n"
    write_program(node.folder(spec.id), mark + SLEEP)
    starts = [node.runtime.start(spec, ContainerPatch()) for _ in range(3)]
    await asyncio.gather(*starts)
    await node.runtime.start(spec, ContainerPatch())

    written = node.folder(spec.id).work / "starts"
    await until(lambda: written.exists() and written.read_text() != "")
    assert written.read_text() == "x"
    assert len(await node.runtime.list()) == 1


async def test_what_has_ended_is_not_started_again(node: Node) -> None:
    spec = await node.launch("raise SystemExit(3)")
    seen = await node.until_ended(spec.id)
    assert (seen.exit_code, seen.reason) == (3, "exited with code 3")

    await node.runtime.start(spec, ContainerPatch())
    seen = await node.see(spec.id)
    assert seen is not None
    assert not seen.running


async def test_an_end_is_told_at_once(node: Node) -> None:
    spec = await node.launch("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    async with asyncio.timeout(60):
        assert await anext(node.runtime.changes()) == spec.id
    seen = await node.until_ended(spec.id)
    assert seen.reason == "killed by SIGSEGV"
    assert seen.exit_code == 139


async def test_the_main_program_is_asked_before_it_is_killed(node: Node) -> None:
    spec = await node.launch(
        "import os, signal, time\n"
        "def end(*_):\n"
        "    os.write(1, b'asked\\n'); time.sleep(0.2); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('ready')\n" + SLEEP
    )
    await until(lambda: "ready" in node.log_of(spec.id))
    log = node.folder(spec.id).path / "process" / "log"
    with log.open() as kept:
        await node.runtime.stop(spec.id, 10)
        assert kept.read() == "ready\nasked\n"


async def test_what_is_printed_after_being_asked_to_end_can_be_read_until_removal(
    node: Node,
) -> None:
    spec = await node.launch(
        "import os, signal, time\n"
        "def end(*_):\n"
        "    os.write(1, b'last words\\n'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('ready')\n" + SLEEP
    )
    await until(lambda: "ready" in node.log_of(spec.id))
    await node.runtime.wind_down(spec.id, 30)
    await node.until_ended(spec.id)
    assert await node.runtime.logs(spec.id, 10) == "ready\nlast words\n"
    await node.runtime.stop(spec.id, 0)
    assert await node.see(spec.id) is None
    await node.runtime.wind_down(spec.id, 0)
    with pytest.raises(RuntimeFailure, match="not a container id"):
        await node.runtime.wind_down("../../etc", 1)


async def test_a_program_that_will_not_end_is_killed_with_its_children(
    node: Node,
) -> None:
    spec = await node.launch(
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0: os.setsid(); break\n"
        "print('ready')\n" + SLEEP
    )
    await until(lambda: node.log_of(spec.id).count("ready") == 6)
    await node.runtime.stop(spec.id, 0.1)
    await until(lambda: traces(spec.id) == NOTHING)


async def test_the_activation_is_the_sessions_and_nobody_elses(node: Node) -> None:
    spec = make_spec()
    folder = node.folder(spec.id)
    program = (
        "path = '/run/backendai/activation.json'\n"
        "results['mode'] = oct(os.stat(path).st_mode & 0o777)\n"
        "results['own'] = os.stat(path).st_uid == os.getuid()\n"
        "results['read'] = open(path).read()\n"
        "os.unlink(path); results['root'] = os.getuid() == 0\n"
    )
    write_program(folder, PREAMBLE + program + "tell()\n" + SLEEP)
    folder.activation.write_text("secret")
    folder.activation.chmod(0o600)
    await node.runtime.start(spec, ContainerPatch())

    found = await node.result(spec)
    assert found == {"mode": "0o600", "own": True, "read": "secret", "root": False}
    assert not folder.activation.exists()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    if os.geteuid() == 0:
        assert folder.work.stat().st_uid >= 200000


async def test_an_activation_may_come_later(node: Node) -> None:
    waiting = (
        "path = '/run/backendai/activation.json'\n"
        "while not os.access(path, os.R_OK): time.sleep(0.01)\n"
        "results['read'] = open(path).read()\n"
    )
    spec = await node.launch(PREAMBLE + waiting + "tell()\n" + SLEEP)
    activation = node.folder(spec.id).activation
    activation.touch(0o600)  # it is not read half written
    activation.write_text("secret")
    await node.runtime.hand_over(spec.id)
    assert await node.result(spec) == {"read": "secret"}


async def test_jupyterlabs_place_is_a_socket_in_the_run_folder(node: Node) -> None:
    spec = await node.launch(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n"
        "s.bind('/run/backendai/lab.sock'); s.listen(); print('listens')\n"
        "c, _ = s.accept(); c.sendall(b'hello'); c.close()\n" + SLEEP
    )
    endpoint = await node.runtime.endpoint(spec.id, "lab")
    assert endpoint is not None
    assert endpoint.socket is not None
    await until(lambda: "listens" in node.log_of(spec.id))
    held = os.open(endpoint.socket, os.O_PATH | os.O_NOFOLLOW)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"/proc/self/fd/{held}")
        assert client.recv(5) == b"hello"
    os.close(held)
    assert await node.runtime.endpoint(spec.id, "ssh") is None
    await node.runtime.stop(spec.id, 0)
    assert await node.runtime.endpoint(spec.id, "lab") is None


async def test_an_unknown_environment_is_refused_by_name(node: Node) -> None:
    assert await node.runtime.images() == ["jupyterlab"]
    await node.runtime.fetch("jupyterlab", lambda _: None)
    with pytest.raises(RuntimeFailure, match=r"pytorch.*jupyterlab"):
        await node.runtime.fetch("pytorch", lambda _: None)
    with pytest.raises(RuntimeFailure, match="pytorch"):
        await node.launch(image="pytorch")


async def test_an_environment_prepared_later_is_taken_up(tmp_path: Path) -> None:
    later = tmp_path / "later"
    known = {"later": str(later)}
    async with open_node(tmp_path / "node", environments=known) as node:
        assert any("later" in note for note in node.isolation.notes)
        with pytest.raises(RuntimeFailure, match="environment later"):
            await node.runtime.fetch("later", lambda _: None)
        assert await node.runtime.images() == ["jupyterlab"]

        venv.create(later, system_site_packages=True, symlinks=True)
        await node.runtime.fetch("later", lambda _: None)
        assert await node.runtime.images() == ["jupyterlab", "later"]
        now = node.runtime.isolation_now
        assert not any("later" in note for note in now.notes)
        await node.launch(image="later")


async def test_what_the_operator_prepared_is_not_removed(node: Node) -> None:
    with pytest.raises(RuntimeFailure, match="operator, who alone can remove it"):
        await node.runtime.discard("jupyterlab")
    assert await node.runtime.images() == ["jupyterlab"]
    await node.runtime.discard("never-here")


async def test_stopping_what_is_not_here_is_success(node: Node) -> None:
    await node.runtime.stop(make_spec().id, 1)
    with pytest.raises(RuntimeFailure, match="not a container id"):
        await node.runtime.stop("../../etc", 1)


async def test_a_device_that_is_not_here_is_refused(node: Node) -> None:
    spec = make_spec()
    write_program(node.folder(spec.id), SLEEP)
    with pytest.raises(RuntimeFailure, match="/dev/nvidia99"):
        await node.runtime.start(spec, ContainerPatch(devices=("/dev/nvidia99",)))
    await node.runtime.stop(spec.id, 0)


async def test_devices_and_folders_of_accelerators_are_shown(
    node: Node, tmp_path: Path
) -> None:
    shown = tmp_path / "driver"
    shown.mkdir(mode=0o755)
    (shown / "version").write_text("7")
    spec = make_spec()
    program = (
        "attempt('read', lambda: open('/opt/driver/version').read())\n"
        "attempt('write', lambda: open('/opt/driver/new', 'w'))\n"
        "attempt('device', lambda: os.stat('/dev/fuse').st_rdev)\n"
    )
    write_program(node.folder(spec.id), PREAMBLE + program + "tell()\n" + SLEEP)
    patch = ContainerPatch(
        devices=("/dev/fuse",), mounts=((str(shown), "/opt/driver", True),)
    )
    await node.runtime.start(spec, patch)
    found = await node.result(spec)
    assert found["read"] == ["done", "'7'"]
    assert found["write"][0] == "refused"
    assert found["device"] == ["done", str(Path("/dev/fuse").stat().st_rdev)]


@pytest.fixture
def gpu_nodes() -> Iterator[tuple[str, str]]:
    """Two nodes that look like GPUs and behave like /dev/zero."""
    if os.geteuid() != 0:
        pytest.skip("only root can make device nodes")
    names = [f"/dev/nvidia-test-{os.getpid()}-{index}" for index in range(2)]
    try:
        for name in names:
            os.mknod(name, stat.S_IFCHR, os.makedev(1, 5))
            Path(name).chmod(0o666)
        yield names[0], names[1]
    finally:
        for name in names:
            Path(name).unlink(missing_ok=True)


async def test_a_session_can_use_the_nodes_of_its_gpus_and_no_others(
    node: Node, gpu_nodes: tuple[str, str]
) -> None:
    own, other = gpu_nodes
    spec = make_spec()
    program = (
        f"attempt('own', lambda: open({own!r}, 'r+b', 0).read(2))\n"
        f"attempt('other', lambda: os.stat({other!r}))\n"
        f"number = os.stat({own!r}).st_rdev\n"
        "attempt('make', lambda: os.mknod('/tmp/x', 0o20666, number))\n"
        "attempt('devices', lambda: sorted(os.listdir('/sys')))\n"
    )
    write_program(node.folder(spec.id), PREAMBLE + program + "tell()\n" + SLEEP)
    patch = ContainerPatch(devices=("nvidia.com/gpu=GPU-1",), nodes=(own,))
    await node.runtime.start(spec, patch)
    found = await node.result(spec)
    assert found["own"] == ["done", repr(bytes(2))]
    assert found["other"][0] == "refused"
    assert found["make"][0] == "refused"
    assert found["devices"] == [
        "done",
        "['bus', 'class', 'dev', 'devices', 'module']",
    ]


async def test_a_node_that_sessions_cannot_open_is_refused_in_words(
    node: Node, gpu_nodes: tuple[str, str]
) -> None:
    own, _ = gpu_nodes
    Path(own).chmod(0o600)
    spec = make_spec()
    write_program(node.folder(spec.id), SLEEP)
    patch = ContainerPatch(devices=("nvidia.com/gpu=GPU-1",), nodes=(own,))
    with pytest.raises(RuntimeFailure, match=r"closed to sessions.*0600"):
        await node.runtime.start(spec, patch)
    await node.runtime.stop(spec.id, 0)


async def test_folders_that_are_hard_to_remove_are_removed(node: Node) -> None:
    spec = await node.launch(
        PREAMBLE + "os.mkdir('closed'); open('closed/in', 'w'); os.chmod('closed', 0)\n"
        "for _ in range(3000): os.mkdir('d'); os.chdir('d')\n"
        "tell()\n" + SLEEP
    )
    await node.result(spec)
    await node.runtime.stop(spec.id, 0)
    assert not node.folder(spec.id).path.exists()


async def test_the_agents_own_record_outlives_the_container(node: Node) -> None:
    spec = await node.launch()
    record = node.folder(spec.id).record
    record.write_text("{}")
    await node.runtime.stop(spec.id, 0)
    assert [path.name for path in node.folder(spec.id).path.iterdir()] == [record.name]
    record.unlink()


async def test_what_was_begun_and_never_started_is_swept_up(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        folder = node.folder(make_spec().id)
        folder.make()
        folder.activation.write_text("secret")
    async with open_node(tmp_path):
        assert not folder.path.exists()


async def test_the_log_is_bounded_and_keeps_its_end(tmp_path: Path) -> None:
    async with open_node(tmp_path, log_bytes=100_000) as node:
        spec = await node.launch(
            "import os, time\n"
            "for i in range(20000): print(f'line {i}')\n"
            "os.mkdir('printed')\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
            "print('last')\n" + SLEEP
        )
        work = node.folder(spec.id).work
        log = node.folder(spec.id).path / "process" / "log"
        await until((work / "printed").exists)
        await until(lambda: log.stat().st_size <= 100_000)
        (work / "go").touch()
        await until(lambda: "last" in node.log_of(spec.id))
        assert (await node.runtime.logs(spec.id, 1)) == "last\n"
        assert len((await node.runtime.logs(spec.id, 50)).splitlines()) == 50


async def test_who_waits_for_more_of_a_log_hears_of_it_and_of_its_end(
    node: Node,
) -> None:
    spec = await node.launch(
        "import os, sys, time\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "print('more', flush=True)\n"
        "while not os.path.exists('end'): time.sleep(0.01)\n"
        "sys.exit(3)\n"
    )
    work = node.folder(spec.id).work
    waiting = asyncio.ensure_future(node.runtime.hear_log(spec.id, 0.0))
    await asyncio.to_thread(lambda: None)
    assert not waiting.done()
    (work / "go").touch()

    assert await asyncio.wait_for(waiting, 60) is LogNews.PRINTED
    again = asyncio.ensure_future(node.runtime.hear_log(spec.id, -3600.0))
    (work / "end").touch()
    assert await asyncio.wait_for(again, 60) is LogNews.ENDED
    assert await node.runtime.hear_log(spec.id, 3600.0) is LogNews.PRINTED
    await node.runtime.stop(spec.id, 1)
    assert await node.runtime.hear_log(spec.id, 3600.0) is LogNews.ABSENT
