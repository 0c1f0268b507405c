"""Where no registry is, and nobody is asked."""

from __future__ import annotations

import time

import pytest

from backendai_hub.core.errors import InvalidRequestError, RegistryError
from backendai_hub.registries.address import find_origin, is_off_limits
from backendai_hub.registries.client import RegistryClient
from backendai_hub.registries.connection import Ask, Connection, _Resolver
from backendai_hub.registries.identity import Identity


@pytest.mark.parametrize(
    ("host", "is_refused"),
    [
        ("169.254.169.254", True),
        ("fe80::1", True),
        ("fe80::1%eth0", True),
        ("::ffff:169.254.1.1", True),
        ("224.0.0.1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("192.168.1.1", False),
        ("fd00::1", False),
        ("registry.example", False),
    ],
)
def test_link_local_addresses_are_off_limits_and_internal_ones_are_not(
    host, is_refused
):
    assert is_off_limits(host) is is_refused


def test_no_client_is_made_for_one():
    with pytest.raises(InvalidRequestError, match="link-local"):
        RegistryClient("http://169.254.169.254")


async def test_a_name_that_leads_there_leads_nowhere():
    resolver = _Resolver()
    with pytest.raises(OSError, match="link-local"):
        await resolver.resolve("169.254.169.254", 80)
    [found] = await resolver.resolve("127.0.0.1", 80)
    assert found["host"] == "127.0.0.1"


async def test_what_a_registry_sends_there_is_not_followed():
    origin = find_origin("http://169.254.169.254")
    connection = Connection(origin, Identity(None, clock=time.monotonic))
    with pytest.raises(RegistryError, match="where no registry is"):
        await connection.ask(Ask(path="/v2/", scope="registry"))
    await connection.close()
