"""The agent's folder, its addresses and its patience."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_agent.actions import Actions, Node, Timing
from backendai_agent.addresses import Address, address_towards, find_port, parse_address
from backendai_agent.apps import Apps
from backendai_agent.certs import read_machine_id
from backendai_agent.folders import container_folder, remove_trees, write_durably
from backendai_agent.images import Images
from backendai_agent.link import Position, next_pause
from backendai_agent.numbering import Numbering
from backendai_agent.reconcile import Phase, Record
from backendai_agent.records import Records
from backendai_agent.relay import Relays
from backendai_agent.runtimes.fake import FakeRuntime
from backendai_hub.api.agents import ContainerSpec, DesiredState

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"
LOG = logging.getLogger("test")


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", CONTAINER.upper()])
def test_only_ids_name_folders(tmp_path, name):
    with pytest.raises(ValueError, match="not a container id"):
        container_folder(tmp_path, name)


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_durably(path, b"old")
    with pytest.raises(TypeError):
        write_durably(path, None)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def make_deep(path, depth):
    """Nest folders in *path*, deeper than any name may be long."""
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(depth):
            os.mkdir("d", dir_fd=held)
            inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=held)
            os.close(held)
            held = inner
    finally:
        os.close(held)


def test_what_a_session_left_is_removed_however_deep_closed_or_oddly_named(tmp_path):
    folder = container_folder(tmp_path, CONTAINER)
    folder.make()
    (folder.work / "-rf").touch()
    (folder.work / "closed/inside").mkdir(parents=True)
    (folder.work / "closed").chmod(0)
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder.work / "link").symlink_to(outside)
    (folder.run / "gone").symlink_to(tmp_path / "nowhere")
    make_deep(folder.work, 3000)
    folder.remove()
    folder.remove()
    assert not folder.path.exists()
    assert outside.is_dir()


def test_what_cannot_be_removed_is_said_without_names_of_others():
    with pytest.raises(OSError, match=r"cannot remove all .* /proc/self/fdinfo$"):
        remove_trees([Path("/proc/self/fdinfo")])


class Spoilt(FakeRuntime):
    """Fails to stop in a way nobody thought of."""

    broken = True

    async def stop(self, container_id, grace):
        if self.broken:
            raise RecursionError("canary")
        await super().stop(container_id, grace)


async def test_an_unforeseen_failure_to_stop_is_one_line_and_tried_again(
    tmp_path, caplog
):
    runtime = Spoilt(data_dir=str(tmp_path))
    await runtime.open()
    relays, apps = Relays("http://127.0.0.1:1/", log=LOG), Apps(runtime)
    shown = []
    node = Node(
        runtime=runtime,
        data_dir=tmp_path,
        relays=relays,
        apps=apps,
        attach=None,
        timing=Timing(retry_longest=0.01),
        log=LOG,
    )
    records = Records(tmp_path)
    actions = Actions(
        node,
        records=records,
        images=Images(runtime),
        show=lambda _, showing: shown.append(showing.reason),
    )
    spec = ContainerSpec(id=CONTAINER, session_id="s", desired=DesiredState.ABSENT)
    async with contextlib.AsyncExitStack() as closing:
        for part in (relays, apps, runtime):
            closing.push_async_callback(part.close)
        with caplog.at_level(logging.INFO):
            await actions.stop(spec, keep=False)
            assert "stopping fails: the node's agent made an error" in shown[-1]
            runtime.broken = False
            await actions.stop(spec, keep=False)
    assert records.past[CONTAINER].phase is Phase.REMOVED
    [record] = caplog.records
    assert "RecursionError" in record.message
    assert record.exc_info is None


async def test_records_survive_and_a_damaged_one_counts_as_begun(tmp_path):
    for number in (1, 2):
        container_folder(tmp_path, f"{CONTAINER[:-1]}{number}").make()
    records = Records(tmp_path)
    kept = Record(session_id="s", phase=Phase.READY, began=True)
    await records.save(CONTAINER, kept)
    container_folder(tmp_path, f"{CONTAINER[:-1]}2").record.write_text("{")

    again = Records(tmp_path)
    assert await again.load() == [f"{CONTAINER[:-1]}2"]
    assert again.past[CONTAINER] == kept
    assert again.past[f"{CONTAINER[:-1]}2"].began


async def test_an_activation_that_was_taken_shows_that_the_program_began(tmp_path):
    folder = container_folder(tmp_path, CONTAINER)
    folder.make()
    folder.activation.write_text("{}")
    records = Records(tmp_path)
    await records.save(CONTAINER, Record(session_id="s", phase=Phase.STARTING))

    await records.learn_beginnings()
    assert not records.past[CONTAINER].began
    folder.activation.unlink()
    await records.learn_beginnings()
    assert records.past[CONTAINER].began


def test_addresses_are_read_strictly():
    assert parse_address("127.0.0.1:0") == Address("127.0.0.1", 0)
    assert parse_address("[::1]:80") == Address("::1", 80)
    assert str(parse_address("[::1]:80")) == "[::1]:80"
    assert parse_address("::1", port=7) == Address("::1", 7)
    assert parse_address("[::1]", port=7) == Address("::1", 7)
    assert parse_address("node-1", port=0) == Address("node-1", 0)
    for wrong in ("", "node", ":80", "node:", "node:x", "node:70000", "node:-1"):
        with pytest.raises(ValueError, match=r"ports end|not an address"):
            parse_address(wrong)


def test_an_open_address_becomes_the_one_that_faces_the_hub():
    loopback = Address("127.0.0.1", 5)
    assert address_towards(loopback, "192.0.2.1", 1) == loopback
    assert address_towards(Address("0.0.0.0", 5), "127.0.0.1", 1) == loopback
    assert address_towards(Address("node", 5), "127.0.0.1", 1).host == "node"


def test_a_port_that_cannot_be_had_again_is_given_up(tmp_path):
    file = tmp_path / "agent.port"
    assert find_port("127.0.0.1", file) == 0
    file.write_text("999999")
    assert find_port("127.0.0.1", file) == 0


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_pauses_grow_to_a_limit_and_are_spread(failures, chance):
    pause = next_pause(failures, 5.0, chance)
    assert 0.1 <= pause <= 5.0
    assert next_pause(failures, 5.0, 0) <= pause <= next_pause(failures + 1, 5.0, 1)


def test_epochs_come_before_generations():
    assert Position(1, 50) < Position(2, 3) < Position(2, 4)


async def test_reports_numbers_grow_though_the_clock_is_set_back(tmp_path, caplog):
    def restart(now):
        return Numbering(tmp_path / "sequence", now=now, log=LOG)

    async def count(sequence, times):
        return [await sequence.next() for _ in range(times)]

    told = await count(restart(5_000_000), 2500)
    told += await count(restart(1000), 3)
    told += await count(restart(1000), 3)
    told += await count(restart(9_000_000), 3)
    assert told == sorted(set(told))
    assert told[-1] == 9_000_003
    (tmp_path / "sequence").write_text("9" * 30)
    assert await restart(7).next() == 8
    lost = Numbering(tmp_path / "gone/sequence", now=7, log=LOG)
    assert await count(lost, 2) == [8, 9]
    assert len(caplog.records) == 1


def test_the_machine_keeps_its_id(tmp_path):
    given = tmp_path / "machine-id"
    given.write_text("0123456789abcdef\n")
    other = tmp_path / "agent"
    other.mkdir()
    told = read_machine_id(other, source=given)
    assert told == read_machine_id(other, source=given)
    assert "0123456789abcdef" not in told
    made = read_machine_id(other, source=tmp_path / "absent")
    assert made == read_machine_id(other, source=tmp_path / "absent") != told
