"""The agent's folder, its addresses and its patience."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_agent.addresses import Address, address_towards, find_port, parse_address
from backendai_agent.certs import read_machine_id
from backendai_agent.folders import container_folder, write_durably
from backendai_agent.link import Position, next_pause
from backendai_agent.reconcile import Phase, Record
from backendai_agent.records import Records

CONTAINER = "0190a0e0-0000-7000-8000-000000000001"


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
