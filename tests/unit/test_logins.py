"""Logins of command lines: who waits, who decides, and for how long."""

from __future__ import annotations

import re

import pytest

from backendai_hub.core.errors import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    TooManyRequestsError,
)
from backendai_hub.core.tenancy import Keypair
from backendai_hub.operations.logins import (
    EXPIRES_SECONDS,
    INTERVAL_SECONDS,
    MOST_PER_ADDRESS,
    MOST_WAITING,
    LoginDesk,
)

KEY = Keypair(id="k", name="AKIA", user="grace", secret="told once")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def desk(clock):
    return LoginDesk(clock)


def begin(desk, machine="laptop", address="192.0.2.1"):
    return desk.open(machine, agent="backendai/1", address=address)


def test_the_keypair_is_told_once_to_who_has_the_device_code(desk, clock):
    device, code = begin(desk)
    assert desk.collect(device).status == "waiting"
    waiting = desk.claim(code)
    assert (waiting.machine, waiting.address) == ("laptop", "192.0.2.1")
    desk.grant(code, KEY)

    clock.now += INTERVAL_SECONDS
    answer = desk.collect(device)

    assert (answer.user, answer.access_key, answer.secret_key) == (
        "grace",
        "AKIA",
        "told once",
    )
    with pytest.raises(NotFoundError):
        desk.collect(device)


def test_the_code_alone_collects_nothing(desk):
    _, code = begin(desk)
    desk.grant(code, KEY)

    with pytest.raises(NotFoundError):
        desk.collect(code)


def test_a_code_is_read_as_people_type_it_and_looks_like_no_word(desk):
    _, code = begin(desk)

    assert re.fullmatch(r"[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", code)
    assert desk.find(f" {code.lower().replace('-', ' ')} ").user_code == code
    for wrong in ("", "AEIO", code[:-1], code + "B", "\0" * 10_000):
        with pytest.raises(NotFoundError):
            desk.find(wrong)


def test_one_decision_is_made_on_a_login(desk):
    device, code = begin(desk)
    desk.claim(code)

    with pytest.raises(NotFoundError):
        desk.claim(code)
    with pytest.raises(NotFoundError):
        desk.find(code)
    desk.release(code)
    desk.deny(desk.claim(code).user_code)
    with pytest.raises(ForbiddenError, match="refused in the browser"):
        desk.collect(device)


def test_a_login_expires_whether_decided_or_not(desk, clock):
    first, code = begin(desk)
    second, other = begin(desk)
    desk.grant(other, KEY)

    clock.now += EXPIRES_SECONDS

    with pytest.raises(NotFoundError):
        desk.find(code)
    for device in (first, second):
        with pytest.raises(NotFoundError, match="start it again"):
            desk.collect(device)


def test_who_asks_too_often_is_told_to_slow_down(desk, clock):
    device, _ = begin(desk)
    desk.collect(device)
    with pytest.raises(TooManyRequestsError) as refused:
        desk.collect(device)
    assert refused.value.fields["retry_after"] == INTERVAL_SECONDS
    clock.now += INTERVAL_SECONDS
    assert desk.collect(device).status == "waiting"


def test_one_address_does_not_keep_the_others_out(desk, clock):
    for _ in range(MOST_PER_ADDRESS):
        begin(desk)

    with pytest.raises(TooManyRequestsError):
        begin(desk)
    begin(desk, address="192.0.2.2")
    clock.now += EXPIRES_SECONDS
    begin(desk)


def test_memory_is_bounded(desk):
    for number in range(MOST_WAITING):
        begin(desk, address=f"192.0.2.{number // MOST_PER_ADDRESS}")
    with pytest.raises(TooManyRequestsError):
        begin(desk, address="198.51.100.1")


def test_a_machine_cannot_call_itself_what_misleads(desk):
    for name in ("a\nb", "a\u202eb", "x" * 65):
        with pytest.raises(InvalidRequestError):
            begin(desk, machine=name)
    _, code = desk.open("", agent="x\x1b[2Jy" + "z" * 1000, address="a")
    assert desk.find(code).agent.startswith("x[2Jyzz")
    assert len(desk.find(code).agent) == 128
