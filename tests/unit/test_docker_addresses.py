"""No request reaches a container that was given the address of another."""

from __future__ import annotations

import pytest

from backendai_agent.runtimes.docker_addresses import Addresses


@pytest.fixture
def addresses():
    return Addresses(longest=3)


def test_an_address_is_known_until_something_happens_to_its_container(addresses):
    assert addresses.learn("a", "10.0.0.2", read_at=addresses.now())
    addresses.forget("b")
    assert addresses.get("a") == "10.0.0.2"
    addresses.forget("a")
    assert addresses.get("a") == ""


def test_an_address_read_before_the_end_is_not_taken_up_after_it(addresses):
    before = addresses.now()
    addresses.forget("a")
    assert not addresses.learn("a", "10.0.0.2", read_at=before)
    assert addresses.learn("b", "10.0.0.2", read_at=before)
    assert addresses.get("a") == ""
    assert addresses.learn("a", "10.0.0.3", read_at=addresses.now())


def test_after_an_outage_nothing_read_before_counts(addresses):
    before = addresses.now()
    assert addresses.learn("a", "10.0.0.2", read_at=before)
    addresses.forget_all()
    assert addresses.get("a") == ""
    assert not addresses.learn("a", "10.0.0.2", read_at=before)


def test_what_is_dropped_for_room_is_refused_rather_than_believed(addresses):
    before = addresses.now()
    for name in ("a", "b", "c", "d"):
        addresses.forget(name)
    assert not addresses.learn("a", "10.0.0.2", read_at=before)
    assert addresses.learn("a", "10.0.0.2", read_at=addresses.now())


def test_no_address_is_not_an_address(addresses):
    assert not addresses.learn("a", "", read_at=addresses.now())
