"""What somebody with code in a session must not get (A53, A55)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from process_harness import PREAMBLE, SLEEP, Node, open_node, until

pytestmark = pytest.mark.bwrap


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(tmp_path) as node:
        yield node


def refused(found: dict[str, list[str]]) -> None:
    done = {name: what for name, (outcome, what) in found.items() if outcome == "done"}
    assert not done
    assert found


async def test_the_kernel_is_not_asked_for_power(node: Node) -> None:
    refused(
        await node.ask(
            """
machine = os.uname().machine
n = dict(mount=165, umount2=166, unshare=272, setns=308, keyctl=250, bpf=321,
         userfaultfd=323, io_uring=425, perf=298, chroot=161, pivot=155, syslog=103,
         add_key=248, fsopen=430, open_tree=428, clone3=435, by_handle=304,
         clone=56) if machine == "x86_64" else dict(
         mount=40, umount2=39, unshare=97, setns=268, keyctl=219, bpf=280,
         userfaultfd=282, io_uring=425, perf=241, chroot=51, pivot=41, syslog=116,
         add_key=217, fsopen=430, open_tree=428, clone3=435, by_handle=265,
         clone=220)
SIGCHLD, NEWUSER, NEWNS, NEWNET = 17, 0x10000000, 0x20000, 0x40000000
attempt("mount", lambda: call(n["mount"], b"none", b"/tmp", b"tmpfs", 0, None))
attempt("umount", lambda: call(n["umount2"], b"/proc", 2))
attempt("unshare user", lambda: call(n["unshare"], NEWUSER))
attempt("unshare mounts", lambda: call(n["unshare"], NEWNS))
attempt("clone user", lambda: call(n["clone"], NEWUSER | SIGCHLD, 0, 0, 0, 0))
attempt("clone network", lambda: call(n["clone"], NEWNET | SIGCHLD, 0, 0, 0, 0))
attempt("clone3", lambda: call(n["clone3"], None, 0))
attempt("setns", lambda: call(n["setns"], os.open("/proc/1/ns/net", 0), 0))
attempt("keyctl", lambda: call(n["keyctl"], 0, -4, 1))
attempt("add_key", lambda: call(n["add_key"], b"user", b"k", b"v", 1, -4))
attempt("bpf", lambda: call(n["bpf"], 0, None, 0))
attempt("userfaultfd", lambda: call(n["userfaultfd"], 1))
attempt("io_uring", lambda: call(n["io_uring"], 8, ctypes.create_string_buffer(120)))
attempt("perf", lambda: call(n["perf"], ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("chroot", lambda: call(n["chroot"], b"/tmp"))
attempt("pivot_root", lambda: call(n["pivot"], b"/tmp", b"/tmp"))
attempt("syslog", lambda: call(n["syslog"], 3, ctypes.create_string_buffer(99), 99))
attempt("fsopen", lambda: call(n["fsopen"], b"tmpfs", 0))
attempt("open_tree", lambda: call(n["open_tree"], -100, b"/", 1))
attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("crypto socket", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
attempt("setuid", lambda: os.setuid(0))
attempt("setgroups", lambda: os.setgroups([0]))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
attempt("hostname", lambda: socket.sethostname("mine"))
attempt("mknod", lambda: os.mknod("/tmp/sda", 0o60666, os.makedev(8, 0)))
"""
        )
    )


async def test_tools_that_would_raise_power_do_not(node: Node) -> None:
    found = await node.ask(
        """
def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode: raise OSError(done.stderr)
    return done.stdout
attempt("unshare", lambda: run("unshare", "-Ur", "id"))
attempt("mount", lambda: run("mount", "-t", "tmpfs", "x", "/tmp"))
attempt("nsenter", lambda: run("nsenter", "-t", "1", "-m", "id"))
attempt("su", lambda: run("su", "-c", "id"))
attempt("bwrap", lambda: run("bwrap", "--unshare-all", "--ro-bind", "/", "/", "id"))
"""
    )
    refused(found)


async def test_the_nodes_files_are_not_there(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    found = await node.ask(
        f"""
def read(path): return open(path, "rb").read(64)
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/pip.conf",
             "/etc/npmrc", "/etc/machine-id", "/root/.bashrc", "/var/log",
             "/run/docker.sock", "/var/run/docker.sock", "/sys/kernel", "/boot",
             "/dev/kmsg", "/dev/mem", "/dev/vda", "/dev/net/tun", "/proc/kcore",
             "/home/ubuntu", {str(secret)!r}, {str(tmp_path)!r}):
    attempt(path, lambda: os.stat(path) and (os.listdir(path) if os.path.isdir(path)
                                             else read(path)))
for path in ("/usr/x", "/etc/x", "/x", "/bin/x", "/lib/x", "/dev/x", "/root/x",
             "/home/x", "/run/x", {sys.prefix + "/x"!r}, sys.base_prefix + "/x"):
    attempt("write " + path, lambda: open(path, "w"))
for path in ("/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/core_pattern",
             "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/1/mem"):
    attempt("write " + path, lambda: os.write(os.open(path, os.O_WRONLY), b"1"))
attempt("oom", lambda: os.write(
    os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-900"))
attempt("root of 1", lambda: os.listdir("/proc/1/root") if os.readlink("/proc/1/root")
        and os.path.exists("/proc/1/root/etc/shadow") else 1 / 0)
attempt("environment of 1", lambda: read("/proc/1/environ") or 1 / 0)
"""
    )
    if os.geteuid() != 0:  # the same user outside: it shows the sandbox, not secrets
        found.pop("environment of 1", None)
        found.pop("write /proc/1/oom_score_adj", None)
        found.pop("write /proc/1/mem", None)
    refused(found)


async def test_the_sandbox_is_a_home_to_work_in(node: Node) -> None:
    found = await node.ask(
        """
import getpass, pathlib, pwd, ssl, tempfile, multiprocessing.synchronize
results["accounts"] = sorted(p.pw_name for p in pwd.getpwall())
results["me"] = [getpass.getuser(), os.getcwd(), os.path.expanduser("~")]
attempt("tmp", lambda: tempfile.mkstemp())
attempt("home", lambda: pathlib.Path.home().joinpath("x").write_text("x"))
attempt("shared memory", lambda: open("/dev/shm/x", "w").write("x"))
attempt("terminal", lambda: os.openpty())
attempt("certificates", lambda: ssl.create_default_context())
attempt("threads", lambda: __import__("threading").Thread(target=int).start())
attempt("semaphore", lambda: multiprocessing.Lock())
attempt("children", lambda: subprocess.check_output(["/bin/sh", "-c", "id -un"]))
attempt("own trace", lambda: open("/proc/self/mem", "rb"))
attempt("loopback", lambda: socket.create_server(("127.0.0.1", 80)))
"""
    )
    assert found.pop("accounts") == ["nobody", "root", "work"]
    assert found.pop("me") == ["work", "/home/work", "/home/work"]
    found.pop("loopback")  # ports below 1024 depend on the node
    assert {outcome for outcome, _ in found.values()} == {"done"}, found
    assert "work" in found["children"][1]


async def test_sessions_do_not_see_one_another(node: Node) -> None:
    victim = await node.launch(
        PREAMBLE + "open('/tmp/mine', 'w').write('secret')\n"
        "open('/dev/shm/mine', 'w').write('secret')\n"
        "open('/home/work/mine', 'w').write('secret')\n"
        "server = socket.create_server(('127.0.0.1', 8123))\n"
        "hidden = socket.socket(socket.AF_UNIX); hidden.bind('\\0hidden')\n"
        "hidden.listen(); libc.shmget(4711, 4096, 0o1666)\n"
        "tell()\n" + SLEEP,
        owner="bob",
    )
    await node.result(victim)
    here = str(node.folder(victim.id).path)
    found = await node.ask(
        f"""
def strange():
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    known = {{1, os.getpid(), *range(1, 10)}}
    if len(pids) > 4 or set(pids) - known: return pids
    raise OSError("nobody else")
def ipc():
    if libc.shmget(4711, 4096, 0) == -1: raise OSError("none")
def hidden():
    with socket.socket(socket.AF_UNIX) as s: s.connect("\\0hidden")
attempt("processes", strange)
attempt("kill all", lambda: os.kill(-1, 0) if False else os.kill(99999, 0))
attempt("tmp", lambda: os.stat("/tmp/mine"))
attempt("shm", lambda: os.stat("/dev/shm/mine"))
attempt("home", lambda: os.stat("/home/work/mine"))
attempt("folder", lambda: os.listdir({here!r}))
attempt("containers", lambda: os.listdir(os.path.dirname({here!r})))
attempt("port", lambda: socket.create_connection(("127.0.0.1", 8123), 2))
attempt("abstract socket", hidden)
attempt("shared memory", ipc)
attempt("outside", lambda: socket.create_connection(("192.0.2.1", 80), 2))
""",
        owner="ann",
    )
    refused(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give users")
async def test_every_session_is_a_user_of_its_own(node: Node) -> None:
    specs = [await node.launch(PREAMBLE + "tell()\n" + SLEEP) for _ in range(3)]
    owners = set()
    for spec in specs:
        await node.result(spec)
        owners.add((node.folder(spec.id).work / "result.json").stat().st_uid)
    assert len(owners) == 3
    assert min(owners) >= 200000


async def test_a_fork_bomb_stays_inside(tmp_path: Path) -> None:
    async with open_node(tmp_path, pids_limit=64) as node:
        bomb = await node.launch(
            PREAMBLE + "def bomb():\n"
            "    made = 0\n"
            "    try:\n"
            "        while made < 2000:\n"
            "            if os.fork() == 0: signal.pause()\n"
            "            made += 1\n"
            "    except BlockingIOError as error: return made\n"
            "    return made\n"
            "results['made'] = bomb()\ntell()\n" + SLEEP
        )
        found: dict[str, Any] = await node.result(bomb)
        assert 10 < found["made"] < 64
        neighbour = await node.ask("attempt('fork', lambda: os.fork() or os._exit(0))")
        assert neighbour["fork"][0] == "done"


async def test_private_file_systems_have_a_size(tmp_path: Path) -> None:
    async with open_node(tmp_path, tmp_bytes=1 << 20) as node:
        found = await node.ask(
            """
def fill(path, size):
    with open(path, "wb") as file: file.write(bytes(size))
attempt("/tmp", lambda: fill("/tmp/x", 2 << 20))
attempt("/dev/shm", lambda: fill("/dev/shm/x", 2 << 20))
""",
            shmem=1 << 20,
        )
        refused(found)
        assert all("No space left" in what for _, what in found.values())


async def test_no_secret_is_in_what_the_runtime_writes_down(node: Node) -> None:
    spec = await node.launch(
        environ={"JUPYTERHUB_API_TOKEN": "c4n4ry"}, argv=["--token=c4n4ry"]
    )
    written = [p for p in node.folder(spec.id).path.rglob("*") if p.is_file()]
    assert not [p for p in written if b"c4n4ry" in p.read_bytes()]
    record = json.loads((node.folder(spec.id).path / "process/record.json").read_text())
    assert record["session_id"] == spec.session_id
    commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if _ok(p)]
    assert not [words for words in commands if b"c4n4ry" in words and b"bwrap" in words]


def _ok(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


async def test_a_link_in_the_run_folder_leads_nowhere(
    node: Node, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    spec = await node.launch(
        PREAMBLE + f"os.symlink({str(secret)!r}, '/run/backendai/activation.json')\n"
        f"os.symlink({str(secret)!r}, '/home/work/link')\n"
        "tell()\n" + SLEEP
    )
    await node.result(spec)
    before = secret.stat()
    await node.runtime.hand_over(spec.id)
    await node.runtime.stop(spec.id, 0)
    after = secret.stat()
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)
    assert secret.read_text() == "secret"
    await until(lambda: not node.folder(spec.id).path.exists())
