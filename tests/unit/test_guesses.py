"""Slowing down whoever guesses passwords."""

from __future__ import annotations

import pytest

from backendai_hub.core.errors import TooManyRequestsError
from backendai_hub.operations.guesses import (
    ADDRESS_WINDOW,
    MOST_FOR_NAME,
    MOST_FROM_ADDRESS,
    NAME_WINDOW,
    GuessLimiter,
)
from tests.factories import Clock

HOME, AWAY = "192.0.2.1", "198.51.100.7"


class Guesser:
    """Tries passwords, which are all wrong."""

    def __init__(self) -> None:
        self.limiter = GuessLimiter(most_keys=200)
        self.clock = Clock()

    def tries(self, name: str, address: str = HOME, times: int = 1) -> None:
        for _ in range(times):
            self.limiter.count(name, address, self.clock())

    def is_refused(self, name: str, address: str = HOME) -> int:
        """Return after how many seconds to come again; 0 if let through."""
        try:
            self.tries(name, address)
        except TooManyRequestsError as error:
            return int(error.fields["retry_after"])
        return 0


@pytest.fixture
def guesser() -> Guesser:
    return Guesser()


def test_who_guesses_one_password_is_refused_after_ten(guesser: Guesser):
    guesser.tries("ada", times=MOST_FOR_NAME)

    assert guesser.is_refused("ada") == NAME_WINDOW.total_seconds() + 1


def test_nobody_else_is_refused_for_it(guesser: Guesser):
    guesser.tries("ada", times=MOST_FOR_NAME)

    assert not guesser.is_refused("ada", AWAY)
    assert not guesser.is_refused("bob", HOME)


def test_who_waits_may_try_again(guesser: Guesser):
    guesser.tries("ada", times=MOST_FOR_NAME - 1)
    guesser.clock.pass_(60)
    guesser.tries("ada")
    seconds = guesser.is_refused("ada")
    guesser.clock.pass_(seconds)

    guesser.tries("ada", times=MOST_FOR_NAME - 1)
    assert guesser.is_refused("ada")


def test_being_refused_does_not_count(guesser: Guesser):
    guesser.tries("ada", times=MOST_FOR_NAME)
    for _ in range(100):
        assert guesser.is_refused("ada")
    guesser.clock.pass_(NAME_WINDOW.total_seconds())

    assert not guesser.is_refused("ada")


def test_who_tries_many_names_is_refused_as_well(guesser: Guesser):
    for number in range(MOST_FROM_ADDRESS):
        guesser.tries(f"user{number}")

    assert guesser.is_refused("another") == ADDRESS_WINDOW.total_seconds() + 1
    assert not guesser.is_refused("another", AWAY)


def test_a_right_password_is_no_guess(guesser: Guesser):
    for _ in range(MOST_FROM_ADDRESS * 2):
        guesser.tries("ada")
        guesser.limiter.forgive("ada", HOME)

    assert not guesser.is_refused("ada")


def test_a_right_password_does_not_pay_for_other_names(guesser: Guesser):
    """Who has an account here cannot reset the count of their guesses."""
    for number in range(MOST_FROM_ADDRESS):
        guesser.tries(f"user{number}")
        if number % 5 == 0 and number:
            guesser.limiter.count("mallory", HOME, guesser.clock())
            guesser.limiter.forgive("mallory", HOME)

    assert guesser.is_refused("another")


def test_a_customer_of_ipv6_is_one_address(guesser: Guesser):
    for number in range(MOST_FOR_NAME):
        guesser.tries("ada", f"2001:db8:1:2::{number:x}")

    assert guesser.is_refused("ada", "2001:db8:1:2:ffff::1")
    assert not guesser.is_refused("ada", "2001:db8:1:3::1")


def test_an_address_written_in_two_ways_is_one(guesser: Guesser):
    guesser.tries("ada", f"::ffff:{HOME}", times=MOST_FOR_NAME)

    assert guesser.is_refused("ada", HOME)


def test_a_new_password_may_be_tried_at_once(guesser: Guesser):
    guesser.tries("ada", times=MOST_FOR_NAME)
    guesser.limiter.forget("ada")

    assert not guesser.is_refused("ada")


def test_what_is_remembered_has_an_end(guesser: Guesser):
    for number in range(1000):
        guesser.tries("ada", f"10.0.{number // 250}.{number % 250}")

    assert len(guesser.limiter._attempts) <= 202
