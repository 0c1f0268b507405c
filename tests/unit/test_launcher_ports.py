"""Ports are chosen once and kept; the public one is never changed silently."""

import socket

import msgspec
import pytest

from backendai_hub.launcher.ports import (
    INNER_PORTS,
    PortTakenError,
    choose_ports,
    is_free,
)
from backendai_hub.launcher.state import State

CHOSEN = State(
    public=8000, proxy_api=10101, gateway=10102, hub=10103, service=10104, agents=10105
)


def choose(state=CHOSEN, *, taken=(), wanted=None, running=()):
    return choose_ports(
        state,
        host="127.0.0.1",
        wanted=wanted,
        running=running,
        free=lambda _host, port: port not in taken,
    )


def test_a_new_installation_gets_different_ports():
    state = choose(State())

    ports = [value for value in msgspec.structs.astuple(state) if type(value) is int]
    assert len(set(ports)) == 6
    assert state.public == 8000
    assert all(port in INNER_PORTS for port in set(ports) - {8000})


def test_inner_ports_are_not_what_outgoing_connections_get():
    assert INNER_PORTS.stop <= 32768


def test_the_first_free_public_port_is_taken():
    assert choose(State(), taken={8000, 8001}).public == 8002


def test_ports_stay_the_same():
    assert choose() == CHOSEN


def test_ports_of_running_processes_are_theirs_although_taken():
    taken = {8000, 10101, 10102, 10103, 10104, 10105}

    assert choose(taken=taken, running={"router", "hub", "service"}) == CHOSEN


def test_an_inner_port_that_somebody_took_is_replaced():
    state = choose(taken={10103})

    assert state.hub != 10103
    assert msgspec.structs.replace(state, hub=10103) == CHOSEN


def test_a_taken_public_port_is_refused_with_advice():
    with pytest.raises(PortTakenError, match=r"port 8000 .* --port"):
        choose(taken={8000})


def test_the_wanted_port_is_used_and_remembered():
    assert choose(wanted=9000).public == 9000


def test_a_wanted_port_that_is_taken_is_refused():
    with pytest.raises(PortTakenError, match="port 9000"):
        choose(wanted=9000, taken={9000})


def test_another_port_is_refused_when_taken_although_the_router_runs():
    with pytest.raises(PortTakenError, match="port 9000"):
        choose(wanted=9000, taken={9000}, running={"router"})


def test_a_listening_socket_makes_a_port_taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not is_free("127.0.0.1", port)
    assert is_free("127.0.0.1", port)
