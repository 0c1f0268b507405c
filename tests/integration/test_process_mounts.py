"""Folders in sandboxed sessions: whose they are, what is refused, what is left."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from backendai_agent import mounts_kernel as kernel
from backendai_agent.mounts import Mounts, MountSettings
from backendai_agent.runtimes.base import ContainerPatch, RuntimeFailure
from backendai_hub.api.agents import Identity
from tests.integration.mounts_harness import (
    OWNER,
    Host,
    hung,
    no_mount_left,
    own_folder,
)
from tests.integration.process_harness import (
    PREAMBLE,
    SLEEP,
    make_spec,
    open_node,
    write_program,
)
from tests.integration.test_process_packages import make_wheel

tmp_path = own_folder
pytestmark = [
    pytest.mark.bwrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount"),
]
READ = 'attempt("read", lambda: open("/home/work/data/x").read())\n'
WRITE = 'attempt("write", lambda: open("/home/work/data/x", "w").write("hello"))\n'


@pytest.fixture
async def node(tmp_path):
    async with no_mount_left(tmp_path), open_node(tmp_path / "agent") as opened:
        yield opened


@pytest.fixture
def host(tmp_path):
    (tmp_path / "host").mkdir()
    return Host(tmp_path / "host")


@pytest.fixture
async def keeper(host, tmp_path):
    keeper = host.mounts(tmp_path / "agent")
    await keeper.open()
    return keeper


async def launch(node, keeper, program, *mounts, **changes):
    spec = make_spec(mounts=list(mounts), **changes)
    write_program(node.folder(spec.id), PREAMBLE + program + f"\ntell()\n{SLEEP}")
    async with keeper.shown(spec, node.runtime) as folders:
        await node.runtime.start(spec, ContainerPatch(folders=folders))
    return spec


async def ask(node, keeper, program, *mounts, **changes):
    spec = await launch(node, keeper, program, *mounts, **changes)
    answer = await node.result(spec)
    await node.runtime.stop(spec.id, 0)
    return answer


def refused(answer, words):
    """Tell whether everything in *answer* was refused with *words*."""
    return bool(answer) and all(
        kind == "refused" and words in text for kind, text in answer.values()
    )


async def test_what_one_session_writes_another_elsewhere_changes(
    node, host, keeper, tmp_path
):
    folder = host.add()
    wrote = await ask(
        node,
        keeper,
        WRITE
        + 'attempt("own", lambda: os.stat("/home/work/data/x").st_uid == os.getuid())'
        '\nattempt("new", lambda: os.mkdir("/home/work/data/new"))',
        folder.at("/home/work/data"),
    )
    assert wrote["write"][0] == "done", wrote
    assert wrote["own"] == ["done", "True"]
    assert folder.owner_of("x") == folder.owner_of("new") == OWNER

    async with open_node(tmp_path / "other", first_uid=300000) as other:
        elsewhere = host.mounts(tmp_path / "other")
        await elsewhere.open()
        program = READ + (
            'attempt("append", lambda: open("/home/work/data/x", "a").write(" you"))\n'
            'attempt("inside", lambda: open("/home/work/data/new/y", "w").write("y"))\n'
            'attempt("who", lambda: os.getuid() >= 300000)'
        )
        changed = await ask(other, elsewhere, program, folder.at("/home/work/data"))
    assert changed["read"] == ["done", "'hello'"], changed
    assert changed["who"] == ["done", "True"]
    assert (folder.path / "x").read_text() == "hello you"
    assert folder.owner_of("x") == folder.owner_of("new/y") == OWNER


async def test_read_only_is_read_only_also_inside_another_folder(node, host, keeper):
    outer, inner = host.add("sub"), host.add()
    inner.write("x", "kept")
    program = """
place = "/home/work/data/sub/"
attempt("write", lambda: open(place + "x", "w"))
attempt("make", lambda: open(place + "y", "w"))
attempt("folder", lambda: os.mkdir(place + "z"))
attempt("remove", lambda: os.unlink(place + "x"))
attempt("rename", lambda: os.rename(place + "x", place + "y"))
attempt("mode", lambda: os.chmod(place + "x", 0o777))
attempt("time", lambda: os.utime(place + "x"))
"""
    for outside in ("rw", "ro"):
        answer = await ask(
            node,
            keeper,
            program,
            outer.at("/home/work/data", outside),
            inner.at("/home/work/data/sub", "ro"),
        )
        assert refused(answer, "Read-only file system"), answer
    alone = program.replace("/data/sub/", "/data/")
    answer = await ask(node, keeper, alone, inner.at("/home/work/data", "ro"))
    assert refused(answer, "Read-only file system"), answer
    assert (inner.path / "x").read_text() == "kept"


async def test_a_writable_folder_inside_a_read_only_one_is_writable(node, host, keeper):
    outer, inner = host.add("sub"), host.add()
    answer = await ask(
        node,
        keeper,
        'attempt("in", lambda: open("/home/work/data/sub/x", "w").write("in"))\n'
        'attempt("out", lambda: open("/home/work/data/x", "w"))',
        outer.at("/home/work/data", "ro"),
        inner.at("/home/work/data/sub"),
    )
    assert answer["in"][0] == "done", answer
    assert answer["out"][0] == "refused"
    assert inner.owner_of("x") == OWNER


async def test_places_inside_a_folder_are_made_where_they_are_missing(
    node, host, keeper
):
    outer, inner = host.add(), host.add()
    inner.write("x", "inner")
    mounts = [outer.at("/home/work/a"), inner.at("/home/work/a/b/c", "ro")]
    answer = await ask(
        node,
        keeper,
        'attempt("read", lambda: open("/home/work/a/b/c/x").read())',
        *mounts,
    )
    assert answer["read"] == ["done", "'inner'"], answer
    assert outer.owner_of("b") == outer.owner_of("b/c") == OWNER
    assert list((outer.path / "b/c").iterdir()) == []

    closed = host.add()
    with pytest.raises(RuntimeFailure, match="'b/c' in the folder for /home/work/a"):
        await ask(node, keeper, "", closed.at("/home/work/a", "ro"), mounts[1])


async def test_inner_folders_stay_where_the_nodes_mounts_are_shared(
    node, host, tmp_path
):
    """On most nodes taking a mount away takes it from everywhere it was copied to."""
    data_dir = tmp_path / "shared"
    data_dir.mkdir()
    subprocess.run(["mount", "--bind", data_dir, data_dir], check=True)
    try:
        subprocess.run(["mount", "--make-shared", data_dir], check=True)
        outer, inner = host.add("sub"), host.add()
        inner.write("x", "inner")
        keeper = host.mounts(data_dir)
        await keeper.open()
        answer = await ask(
            node,
            keeper,
            'time.sleep(0.2)\nattempt("x", lambda: open("/home/work/a/sub/x").read())',
            outer.at("/home/work/a"),
            inner.at("/home/work/a/sub"),
        )
    finally:
        kernel.detach(str(data_dir))
    assert answer["x"] == ["done", "'inner'"]


async def test_deleting_is_writing(node, host, keeper):
    """Nothing in a session tells "rw" from "wd": what may write may remove."""
    for permission in ("rw", "wd"):
        folder = host.add()
        folder.write("x", "old")
        answer = await ask(
            node,
            keeper,
            'attempt("remove", lambda: os.unlink("/home/work/data/x"))',
            folder.at("/home/work/data", permission),
        )
        assert answer["remove"][0] == "done"
        assert list(folder.path.iterdir()) == []


async def test_a_part_of_a_folder_is_all_there_is(node, host, keeper):
    folder = host.add("a/b")
    folder.write("secret", "not for you")
    folder.write("a/b/x", "hello")
    program = READ + (
        'attempt("up", lambda: open("/home/work/data/../../secret").read())\n'
        'attempt("list", lambda: sorted(os.listdir("/home/work/data")))'
    )
    answer = await ask(
        node, keeper, program, folder.at("/home/work/data", subpath=["a", "b"])
    )
    assert answer["read"] == ["done", "'hello'"]
    assert answer["list"] == ["done", "['x']"]
    assert answer["up"][0] == "refused"


async def test_links_of_users_lead_nowhere(node, host, keeper, tmp_path):
    (tmp_path / "secret").mkdir()
    folder, inner = host.add("real"), host.add()
    (folder.path / "link").symlink_to(tmp_path / "secret")
    (folder.path / "chain").symlink_to("link")
    (folder.path / "near").symlink_to("real")
    for subpath in (["link"], ["chain"], ["near"], ["link", "x"]):
        for make in (False, True):
            with pytest.raises(RuntimeFailure, match="links are not followed"):
                await ask(
                    node,
                    keeper,
                    "",
                    folder.at("/home/work/data", subpath=subpath, make=make),
                )
    with pytest.raises(RuntimeFailure, match="links are not followed"):
        await ask(
            node,
            keeper,
            "",
            folder.at("/home/work/data"),
            inner.at("/home/work/data/link"),
        )
    assert list((tmp_path / "secret").iterdir()) == []


@pytest.mark.parametrize("subpath", [[".."], ["a", "..", ".."], ["a/b"], [""]])
async def test_no_part_of_a_folder_is_above_it(node, host, keeper, subpath):
    folder = host.add("a/b")
    with pytest.raises(RuntimeFailure, match="not the name of a file"):
        await ask(node, keeper, "", folder.at("/home/work/data", subpath=subpath))


async def test_a_link_put_there_meanwhile_is_never_followed(
    node, host, keeper, tmp_path
):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x").write_text("of the node")
    folder = host.add("a")
    folder.write("a/x", "mine")
    done = threading.Event()

    def swap():
        inside, away, link = (folder.path / n for n in ("a", "away", "link"))
        link.symlink_to(secret)
        while not done.is_set():
            inside.rename(away)
            link.rename(inside)
            inside.rename(link)
            away.rename(inside)

    attacker = threading.Thread(target=swap)
    attacker.start()
    seen = set()
    spec = make_spec(mounts=[folder.at("/home/work/data", subpath=["a"])])
    try:
        for _ in range(15):
            try:
                async with keeper.shown(spec, node.runtime) as [shown]:
                    seen.add(Path(shown.source, "x").read_text())
            except RuntimeFailure:
                seen.add("refused")
    finally:
        done.set()
        attacker.join()
    assert seen <= {"mine", "refused"}


async def test_what_is_not_there_is_said(node, host, keeper, tmp_path):
    folder = host.add("a")
    (folder.path / "file").write_text("")
    for changes, words in (
        ({"subpath": ["b"]}, "'b' in the folder for /home/work/data.*no such folder"),
        ({"subpath": ["file"]}, "'file' in the folder.*it is no folder"),
        ({"parts": ["user-x", "a"]}, "is not on the storage host 'local' any more"),
    ):
        with pytest.raises(RuntimeFailure, match=words):
            await ask(node, keeper, "", folder.at("/home/work/data", **changes))
    assert await keeper.look()
    host.root.rename(tmp_path / "gone")
    with pytest.raises(RuntimeFailure, match="'local' is not there on this node"):
        await ask(node, keeper, "", folder.at("/home/work/data"))
    assert await keeper.look()
    assert keeper.labels == {}
    (tmp_path / "gone").rename(host.root)
    assert await keeper.look()
    assert keeper.labels == {"storage/local": "yes"}


async def test_a_host_that_hangs_holds_up_only_who_needs_it(node, host, tmp_path):
    stuck = Host(tmp_path / "stuck", name="stuck")
    stuck.root.mkdir()
    folder, hanging = host.add(), stuck.add()
    hosts = {"local": str(host.root), "stuck": str(stuck.root)}
    patient, hasty = (
        Mounts(tmp_path / "agent", MountSettings(hosts=hosts, seconds=seconds))
        for seconds in (60.0, 1.0)
    )
    await patient.open()
    await hasty.open()
    with hung(stuck.root):
        waiting = asyncio.create_task(
            ask(node, patient, "", hanging.at("/home/work/data"))
        )
        answer = await ask(node, patient, WRITE, folder.at("/home/work/data"))
        assert answer["write"][0] == "done"
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        held = folder.at("/home/work/a"), hanging.at("/home/work/b")
        with pytest.raises(RuntimeFailure, match="'stuck' did not answer within 1 s"):
            await ask(node, hasty, "", *held)
        assert kernel.list_below(tmp_path / "agent") == []


async def test_hosts_are_looked_at_one_beside_the_other(host, tmp_path):
    stuck = tmp_path / "stuck"
    stuck.mkdir()
    hosts = {"local": str(host.root), "stuck": str(stuck), "gone": "/no/such/place"}
    settings = MountSettings(hosts=hosts, seconds=10.0)
    keeper = Mounts(tmp_path / "agent", settings)
    with hung(stuck):
        assert await keeper.look()
        assert keeper.present == ["local"]
    assert await keeper.look()
    assert keeper.labels == {"storage/local": "yes", "storage/stuck": "yes"}
    assert not await keeper.look()


async def test_what_is_installed_into_a_local_folder_of_ones_own_stays(
    node, host, keeper
):
    folder = host.add()
    mount = folder.at("/home/work/.local", subpath=["user-1"], make=True)
    use = """
def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip()
attempt("import", lambda: run("python", "-c", "import tool; print(tool.version)"))
attempt("program", lambda: run("say-tool"))
attempt("prefix", lambda: sys.prefix)
"""
    first = make_spec(mounts=[mount])
    own = node.folder(first.id)
    write_program(
        own,
        PREAMBLE
        + 'words = "pip install -q --no-index ./tool-1-py3-none-any.whl".split()\n'
        + 'attempt("pip", lambda: subprocess.run(words).returncode)\n'
        + f"{use}\ntell()\n{SLEEP}",
    )
    make_wheel(own.work, "tool", "1")
    async with keeper.shown(first, node.runtime) as folders:
        await node.runtime.start(first, ContainerPatch(folders=folders))
    answer = await node.result(first)
    await node.runtime.stop(first.id, 0)
    expected = {
        "import": ["done", "'1'"],
        "program": ["done", "'1'"],
        "prefix": ["done", "'/home/work/.session'"],
    }
    assert answer == {"pip": ["done", "0"], **expected}, answer
    assert folder.owner_of("user-1") == folder.owner_of("user-1/lib") == OWNER
    assert stat.S_IMODE((folder.path / "user-1").stat().st_mode) == 0o755

    assert await ask(node, keeper, use, mount) == expected


async def test_no_program_in_a_folder_makes_anybody_somebody_else(node, host, keeper):
    folder = host.add()
    program = """
import shutil
shutil.copy("/usr/bin/id", "/home/work/data/id")
os.chmod("/home/work/data/id", 0o6755)
attempt("options", lambda: [l.split()[5] for l in open("/proc/self/mountinfo")
    if " /home/work/data " in l])
attempt("give", lambda: os.chown("/home/work/data/id", 0, 0))
attempt("device", lambda: os.mknod("/home/work/data/null", 0o20666, os.makedev(1, 3)))
"""
    answer = await ask(node, keeper, program, folder.at("/home/work/data"))
    assert "nosuid,nodev" in answer["options"][1]
    assert answer["give"][0] == answer["device"][0] == "refused"


async def test_places_of_all_kinds(node, host, keeper):
    names = ["/home/work/a b", "/home/work/deep/er/ä", "/data/set", "/mnt/x"]
    folders = {name: host.add() for name in names}
    mounts = [folder.at(name) for name, folder in folders.items()]
    program = "".join(
        f'attempt({n!r}, lambda: open({n + "/x"!r}, "w").write("x"))\n' for n in names
    )
    program += 'attempt("beside", lambda: open("/home/work/deep/y", "w").write("y"))'
    answer = await ask(node, keeper, program, *mounts)
    assert {kind for kind, _ in answer.values()} == {"done"}, answer
    assert all(f.owner_of("x") == OWNER for f in folders.values())


async def test_sessions_programs_are_not_hidden(node, host, keeper):
    folder = host.add()
    prefix = node.runtime.environment
    # An environment below /tmp is refused already because of where it is.
    words = "where sessions' own programs are|what the session itself needs"
    with pytest.raises(RuntimeFailure, match=words):
        await ask(node, keeper, "", folder.at(f"{prefix}/lib"))


async def test_an_administrators_numbers_are_the_sessions_own(node, host, keeper):
    folder = host.add()
    identity = Identity(uid=4711, gid=4712)
    program = WRITE + (
        'attempt("own", lambda: (os.stat("/home/work/data/x").st_uid,'
        ' os.stat("/home/work/data/x").st_gid))'
    )
    answer = await ask(
        node,
        keeper,
        program,
        folder.at("/home/work/data"),
        identity=identity,
    )
    assert answer["own"] == ["done", "(4711, 4712)"], answer
    assert folder.owner_of("x") == OWNER


async def test_unmanaged_folders_are_as_they_are(node, host, tmp_path):
    path = tmp_path / "sets" / "a"
    path.mkdir(parents=True)
    (path / "x").write_text("set")
    (path / "x").chmod(0o644)
    settings = MountSettings(
        hosts={"local": str(host.root)}, unmanaged_roots=[str(tmp_path / "sets")]
    )
    keeper = Mounts(tmp_path / "agent", settings)
    await keeper.open()
    mount = host.add().at(
        "/home/work/data",
        "ro",
        unmanaged=str(path),
    )
    program = READ + 'attempt("whose", lambda: os.stat("/home/work/data/x").st_uid)'
    answer = await ask(node, keeper, program, mount)
    assert answer == {"read": ["done", "'set'"], "whose": ["done", "0"]}


@pytest.fixture
def unmapped(tmp_path):
    """A host on a file system whose owners the kernel cannot map: an overlay."""
    for name in ("lower", "upper", "work", "overlay"):
        (tmp_path / name).mkdir()
    options = ",".join(f"{n}dir={tmp_path / n}" for n in ("lower", "upper", "work"))
    place = tmp_path / "overlay"
    words = ["mount", "-t", "overlay", "overlay", "-o", options, str(place)]
    subprocess.run(words, check=True)
    yield Host(place)
    kernel.detach(str(place))


async def test_where_owners_cannot_be_mapped_they_have_to_agree(
    node, unmapped, tmp_path
):
    keeper = unmapped.mounts(tmp_path / "agent")
    await keeper.open()
    folder = unmapped.add("part")
    mount = folder.at("/home/work/data")
    words = "files of storage host 'local' belong to 1000:1000, the session runs as"
    with pytest.raises(RuntimeFailure, match=words):
        await ask(node, keeper, WRITE, mount)
    program = WRITE + (
        'attempt("options", lambda: [l for l in open("/proc/self/mountinfo")'
        ' if " /home/work/data " in l][0].split()[5])'
    )
    identity = Identity(uid=OWNER[0], gid=OWNER[1])
    for wanted in (mount, folder.at("/home/work/data", subpath=["part"])):
        answer = await ask(node, keeper, program, wanted, identity=identity)
        assert answer["write"][0] == "done", answer
        assert "nosuid,nodev" in answer["options"][1]
        assert "idmapped" not in answer["options"][1]
    assert folder.owner_of("x") == folder.owner_of("part/x") == OWNER
    only = folder.at("/home/work/data", "ro")
    answer = await ask(node, keeper, WRITE, only, identity=identity)
    assert refused(answer, "Read-only file system")
