"""Identifiers sort by birth."""

from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from backendai_hub.core.ids import is_id, make_id

MILLISECONDS = st.integers(0, 3) | st.integers(0, (1 << 48) - 1)
ENTROPY = st.binary(min_size=10, max_size=12)


@given(MILLISECONDS, ENTROPY, MILLISECONDS, ENTROPY)
def test_ids_of_different_milliseconds_sort_by_time_as_text(early, a, late, b):
    if early != late:
        assert (make_id(early, a) < make_id(late, b)) is (early < late)


@given(MILLISECONDS, ENTROPY)
def test_an_id_is_a_uuid_of_version_7_that_tells_when_it_was_made(milliseconds, noise):
    made = make_id(milliseconds, noise)
    value = UUID(made)
    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert value.int >> 80 == milliseconds
    assert is_id(made)


@given(st.sets(st.binary(min_size=10, max_size=10), min_size=2, max_size=5))
def test_other_entropy_makes_another_id_but_for_six_bits(entropies):
    """74 of the 80 given bits are kept: the first six make room for the version."""
    kept = {int.from_bytes(e, "big") & ((1 << 74) - 1) for e in entropies}
    assert len({make_id(1, e) for e in entropies}) == len(kept)


def test_too_little_entropy_is_refused():
    with pytest.raises(ValueError, match="10 bytes"):
        make_id(1, b"123456789")


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "0" * 32, "../../etc/passwd", "é" * 36),
        "{00000000-0000-7000-8000-000000000000}",
        "00000000-0000-7000-8000-00000000000A",
        "urn:uuid:00000000-0000-7000-8000-000000000000",
    ],
)
def test_only_the_canonical_spelling_is_an_id(text):
    assert not is_id(text)
