"""Following a versioned document, and how long to wait between tries."""

import itertools

import msgspec
import pytest

from backendai_hub.client.backoff import Backoff
from backendai_hub.client.follow import follow
from backendai_hub.core.errors import ForbiddenError, UnavailableError


class Document(msgspec.Struct, frozen=True):
    version: int


async def take(count, answers):
    """Follow *answers* and return what came, what was asked, and the pauses."""
    asked, pauses, remaining = [], [], iter(answers)

    async def fetch(newer_than):
        asked.append(newer_than)
        answer = next(remaining)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds):
        pauses.append(seconds)

    documents = follow(fetch, sleep=sleep)
    came = [await anext(documents) for _ in range(count)]
    await documents.aclose()
    return came, asked, pauses


async def test_each_new_version_comes_once():
    came, asked, _ = await take(2, [Document(1), Document(1), Document(2)])

    assert came == [Document(1), Document(2)]
    assert asked == [None, 1, 1]


async def test_an_outage_only_delays_it():
    outage = [UnavailableError("down"), ConnectionResetError(), TimeoutError()]

    came, _, pauses = await take(1, [*outage, Document(5)])

    assert came == [Document(5)]
    assert len(pauses) == 3
    assert pauses == sorted(pauses)


async def test_a_version_that_goes_down_is_believed():
    came, _, _ = await take(2, [Document(9), Document(3)])

    assert came == [Document(9), Document(3)]


async def test_a_refusal_is_the_callers_to_handle():
    with pytest.raises(ForbiddenError):
        await take(1, [ForbiddenError("not yours")])


def test_delays_grow_to_a_bound_and_are_jittered():
    backoff = Backoff(first=1.0, factor=2.0, most=8.0)

    longest = list(itertools.islice(backoff.delays(lambda: 1.0), 6))
    shortest = list(itertools.islice(backoff.delays(lambda: 0.0), 6))

    assert longest == [1, 2, 4, 8, 8, 8]
    assert shortest == [0.5, 1, 2, 4, 4, 4]


def test_attempts_bound_the_delays():
    assert len(list(Backoff(attempts=3).delays())) == 3
