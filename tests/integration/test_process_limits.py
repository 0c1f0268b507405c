"""Sessions stay within their processors, memory and processes, and it is told."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process_harness import NOTHING, PREAMBLE, SLEEP, Node, open_node, traces, until

from backendai_agent.runtimes import process_tending

pytestmark = pytest.mark.bwrap

HOARD = (
    "kept = []\n"
    "for _ in range(512):\n"
    "    kept.append(bytearray(os.urandom(1 << 20)))\n"
    "print('survived')\n"
)
BURN = (
    "begun, end = time.process_time(), time.monotonic() + 1.0\n"
    "while time.monotonic() < end: pass\n"
    "results['used'] = time.process_time() - begun\n"
)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(tmp_path) as node:
        yield node


def needs_groups(node: Node) -> None:
    if not node.isolation.limits.startswith("cgroup"):
        pytest.skip(f"limits here are {node.isolation.limits}")


async def test_exceeding_memory_ends_with_the_reason(node: Node) -> None:
    needs_groups(node)
    neighbour = await node.launch()
    spec = await node.launch("import os\n" + HOARD, memory=64 << 20)
    seen = await node.until_ended(spec.id)
    assert (seen.reason, seen.exit_code) == ("out of memory", 137)
    assert "survived" not in node.log_of(spec.id)
    other = await node.see(neighbour.id)
    assert other is not None
    assert other.running


async def test_filling_tmp_counts_as_memory(node: Node) -> None:
    needs_groups(node)
    spec = await node.launch(
        "with open('/tmp/x', 'wb') as f:\n"
        "    for _ in range(200): f.write(bytes(1 << 20)); f.flush()\n" + SLEEP,
        memory=64 << 20,
    )
    seen = await node.until_ended(spec.id)
    assert seen.reason == "out of memory" or "exited with code 1" in seen.reason


async def test_running_out_of_memory_is_known_after_a_restart(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        needs_groups(node)
        waiting = "import os\nwhile not os.path.exists('/home/work/go'): pass\n"
        spec = await node.launch(waiting + HOARD, memory=64 << 20)
        await node.runtime.close()  # the agent is away
        (node.folder(spec.id).work / "go").touch()
        exit_file = node.folder(spec.id).path / "process" / "exit"
        await until(exit_file.exists)
        async with open_node(tmp_path) as again:
            seen = await again.until_ended(spec.id)
            assert seen.reason == "out of memory"


async def test_half_a_processor_is_half_a_processor(node: Node) -> None:
    needs_groups(node)
    spec = await node.launch(PREAMBLE + BURN + "tell()\n" + SLEEP, cpu=500)
    found = await node.result(spec)
    assert float(found["used"]) < 0.8  # type: ignore[arg-type]


async def test_groups_disappear_with_the_session(node: Node) -> None:
    needs_groups(node)
    spec = await node.launch()
    assert traces(spec.id).groups
    await node.runtime.stop(spec.id, 0)
    assert traces(spec.id) == NOTHING


async def test_a_group_whose_folder_is_lost_is_reported_and_can_be_stopped(
    node: Node,
) -> None:
    needs_groups(node)
    spec = await node.launch()
    node.folder(spec.id).path.joinpath("process", "record.json").unlink()
    seen = await node.see(spec.id)
    assert seen is not None
    assert (seen.running, seen.session_id) == (True, "")
    await node.runtime.stop(spec.id, 0)
    assert await node.see(spec.id) is None
    assert traces(spec.id) == NOTHING


async def test_without_groups_memory_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tending, "EVERY_SECONDS", 0.05)
    async with open_node(tmp_path, limits="watchdog") as node:
        assert node.isolation.limits == "watchdog"
        assert any("watched" in note for note in node.isolation.notes)
        spec = await node.launch("import os\n" + HOARD + SLEEP, memory=64 << 20)
        seen = await node.until_ended(spec.id)
        assert seen.reason == "out of memory"
        await node.runtime.stop(spec.id, 0)
        assert traces(spec.id) == NOTHING


async def test_without_groups_processes_are_counted_by_the_kernel(
    tmp_path: Path,
) -> None:
    async with open_node(tmp_path, limits="watchdog", pids_limit=40) as node:
        found = await node.ask(
            "def many():\n"
            "    for _ in range(200):\n"
            "        if os.fork() == 0: signal.pause()\n"
            "attempt('many', many)\n"
        )
        assert found["many"][0] == "refused"


async def test_without_groups_a_session_has_its_processors(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor only")
    async with open_node(tmp_path, limits="watchdog") as node:
        found = await node.ask(
            "results['cores'] = len(os.sched_getaffinity(0))\n", cpu=1000
        )
        assert found == {"cores": 1}
