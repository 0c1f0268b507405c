"""A GlusterFS of our own and a walk over it: ``python -m tests.gluster FOLDER``.

It has to run in namespaces of its own (network, mounts, processes), which end with it
whatever happens: GlusterFS wants fixed ports and folders of the system.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from backendai_hub.core.errors import InsufficientStorageError
from backendai_hub.storage import ops
from tests.harness import until
from tests.storage import SCOPE, Desk, running_hosts

NAMESPACES = (
    *("unshare", "--net", "--mount", "--pid", "--fork"),
    *("--kill-child", "--mount-proc", "--"),
)
PATIENCE = 60.0
MIB = 1 << 20
NAME = "brick.internal"


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
    return done.stdout


def gluster(*words: str) -> str:
    return run("gluster", "--mode=script", *words)


def answers(*words: str) -> bool:
    try:
        gluster(*words)
    except RuntimeError:
        return False
    return True


def wait(holds: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.2)


def bring_up(folder: Path) -> Path:
    """Start a volume with one brick and mount it."""
    run("mount", "--make-rprivate", "/")
    for path in ("/run", "/var/lib/glusterd", "/var/log/glusterfs"):
        Path(path).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", path)
    Path("/run/gluster").mkdir()
    run("ip", "link", "set", "lo", "up")
    names = folder / "hosts"
    names.write_text(f"127.0.0.1 localhost {NAME}\n", "ascii")
    run("mount", "--bind", str(names), "/etc/hosts")
    daemon = shutil.which("glusterd")
    assert daemon is not None
    subprocess.Popen([daemon, "--no-daemon"], stdout=sys.stderr)
    wait(lambda: answers("volume", "list"), "glusterd answers")
    brick = folder / "brick"
    brick.mkdir()
    gluster("volume", "create", "v", f"{NAME}:{brick}", "force")
    gluster("volume", "start", "v")
    where = folder / "volume"
    where.mkdir()
    mount = ("mount", "-t", "glusterfs", f"{NAME}:/v", str(where))

    def mounted() -> bool:
        return subprocess.run(mount, capture_output=True, check=False).returncode == 0

    wait(mounted, "the volume can be mounted")
    return where


async def walk(where: Path) -> dict[str, Any]:
    """Do what a site would, and tell what came of it."""
    content = os.urandom(4 * MIB)
    described = {
        "local": {
            "driver": "gluster",
            "path": str(where),
            "volume": "v",
            "require_mount": True,
            "hang_seconds": PATIENCE,
        }
    }
    told: dict[str, Any] = {}
    async with running_hosts(described) as hosts:
        told["capabilities"] = sorted(hosts.health()["local"].capabilities)
        desk = await Desk(hosts).make(limit_bytes=16 * MIB)
        await desk.upload("kept", content)

        async def usage() -> ops.ScopeUse:
            return await hosts.call("local", ops.ScopeUsage(scope=SCOPE))

        async def counted() -> bool:
            return (await usage()).bytes >= len(content)

        await until(counted, "the bricks have counted", PATIENCE)
        told["usage"] = [(await usage()).bytes, (await usage()).limit_bytes]
        sent = 0
        try:
            for number in range(64):
                await desk.upload(f"more{number}", content[:MIB])
                sent += 1
        except InsufficientStorageError as error:
            told["refused"] = [sent, error.message]
        told["kept"] = await desk.read("kept") == content
        told["names"] = len(await desk.names())
        for upload_id in (
            await hosts.call("local", ops.ListUploads(scope=SCOPE))
        ).names:
            await desk.do(ops.AbandonUpload, upload_id=upload_id)
        await hosts.call("local", ops.SetLimit(scope=SCOPE, bytes=64 * MIB))
        await desk.upload("fits", content)
        await desk.do(ops.RemoveFolder)
        await hosts.call("local", ops.RemoveScope(scope=SCOPE))
        left = await hosts.call("local", ops.ListScopes())
        told["left"] = left.names
    return told


if __name__ == "__main__":
    mounted_at = bring_up(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(asyncio.run(walk(mounted_at))))
