"""What sessions without an engine use is read of their groups, or their processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from process_harness import SLEEP, open_node, until

pytestmark = pytest.mark.bwrap
BUSY = (
    "import os\n"
    "with open('/home/work/file', 'wb') as f:\n"
    "    f.write(os.urandom(4 << 20)); f.flush(); os.fsync(f.fileno())\n"
    "kept = bytearray(os.urandom(32 << 20))\n"
    "open('/home/work/ready', 'w').close()\n"
    "while True: pass\n"
)


@pytest.mark.parametrize("limits", ["auto", "watchdog"])
async def test_a_session_that_keeps_a_core_busy_is_seen_to(
    tmp_path: Path, limits: str
) -> None:
    async with open_node(tmp_path, limits=limits) as node:
        spec = await node.launch(BUSY)
        calm = await node.launch(SLEEP)
        ready = node.folder(spec.id).work / "ready"
        await until(ready.exists, what=lambda: node.log_of(spec.id))

        def has_computed() -> bool:
            seconds = node.runtime.measure([spec])[spec.id].cpu_seconds
            return seconds is not None and seconds > 1.0

        await until(has_computed)

        found = node.runtime.measure([spec, calm])
        busy, idle = found[spec.id], found[calm.id]
        assert busy.memory is not None
        assert idle.memory is not None
        assert busy.memory - idle.memory > 24 << 20
        assert idle.cpu_seconds is not None
        assert busy.written_bytes is not None
        assert busy.written_bytes >= 4 << 20
        await node.runtime.stop(spec.id, 0)
        assert spec.id not in node.runtime.measure([spec])
