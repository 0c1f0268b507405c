"""GlusterFS over FUSE, with quotas that its bricks keep."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.gluster import MIB, NAMESPACES
from tests.harness import ROOT


@pytest.mark.gluster
async def test_glusterfs_keeps_everybody_within_their_quota(tmp_path):
    walked = await asyncio.to_thread(
        subprocess.run,
        [*NAMESPACES, sys.executable, "-m", "tests.gluster", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert walked.returncode == 0, walked.stderr[-4000:]
    told = json.loads(walked.stdout.splitlines()[-1])

    assert told["capabilities"] == ["fast-usage", "inode-quota", "quota"]
    used, limit = told["usage"]
    assert limit == 16 * MIB
    assert 4 * MIB <= used <= 8 * MIB
    sent, words = told["refused"]
    assert "quota" in words
    # About 12 fit; the bricks count what was renamed a moment late, or twice.
    assert 1 <= sent < 64
    assert told["names"] == sent + 1
    assert told["kept"]
    assert told["left"] == []
