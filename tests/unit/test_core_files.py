"""What headers about files mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.files import (
    ANY_TAG,
    BadRangeError,
    ByteRange,
    disposition,
    is_unchanged_since,
    names_tag,
    read_only_tag,
    read_range,
)

CHANGED = datetime(2026, 11, 21, 10, 0, 0, 500, tzinfo=UTC)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 10))
def test_a_range_is_the_part_of_the_file_that_it_names(first, last, size):
    wanted = list(range(size))[first : last + 1]
    asked = f"bytes={first}-{last}"
    if last < first:
        assert read_range(asked, size) is None
    elif not wanted:
        with pytest.raises(BadRangeError):
            read_range(asked, size)
    else:
        assert read_range(asked, size) == ByteRange(wanted[0], wanted[-1] + 1)


@given(st.integers(0, 12), st.integers(0, 10))
def test_a_range_from_the_end_is_as_long_as_there_is_something(count, size):
    wanted = list(range(size))[size - count if count < size else 0 :] if count else []
    if wanted:
        assert read_range(f"bytes=-{count}", size) == ByteRange(wanted[0], size)
    else:
        with pytest.raises(BadRangeError):
            read_range(f"bytes=-{count}", size)


@pytest.mark.parametrize(
    "asked",
    [None, "", "bytes=-", "bytes=a-b", "bytes=1-2,4-5", "items=0-1", "bytes=-٣"],
)
def test_what_is_no_range_we_know_asks_for_the_whole(asked):
    assert read_range(asked, 10) is None


def test_tags_are_compared_as_a_whole():
    assert names_tag('"a", "b"', "b")
    assert names_tag("*", "b")
    assert not names_tag('"ab"', "b")
    assert not names_tag('W/"b"', "b")
    assert names_tag('W/"b"', "b", weakly=True)
    assert not names_tag(None, "b")


def test_a_file_is_written_over_one_tag_only():
    assert read_only_tag('"a"') == "a"
    assert read_only_tag("*") == ANY_TAG != read_only_tag('"*"')
    assert read_only_tag(None) is None
    for given_ in ('"a", "b"', 'W/"a"', "a", ""):
        with pytest.raises(InvalidRequestError):
            read_only_tag(given_)


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ('"t"', True),
        ('W/"t"', False),
        ('"other"', False),
        ("Sat, 21 Nov 2026 10:00:00 GMT", True),
        ("Sat, 21 Nov 2026 10:00:01 GMT", False),
        ("yesterday", False),
        ("Sat, 21 Nov 99999999999999999999 10:00:00 GMT", False),
        ("Sat, 21 Nov 2026 10:00:00 +99999999999999999999", False),
    ],
)
def test_the_rest_follows_only_if_nothing_has_changed(asked, same):
    assert is_unchanged_since(asked, "t", CHANGED) is same


@given(st.text(min_size=1))
def test_no_name_gets_out_of_its_header(name):
    header = disposition(name)
    assert header.startswith('attachment; filename="')
    assert header.isascii()
    assert header.isprintable()
    quoted = header.removeprefix('attachment; filename="').partition('"')
    assert "\\" not in quoted[0]
    assert quoted[2] == "" or quoted[2].startswith("; filename*=UTF-8''")
    assert '"' not in quoted[2]


def test_a_name_arrives_as_it_is():
    assert disposition("a b.txt") == 'attachment; filename="a b.txt"'
    assert disposition("ü;x") == (
        "attachment; filename=\"__x\"; filename*=UTF-8''%C3%BC%3Bx"
    )
