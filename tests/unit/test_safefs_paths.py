"""Paths mean one place, or they are refused."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.safefs.paths import (
    check_name,
    quote,
    read_name,
    read_path,
    show_name,
    show_path,
)

native_names = (
    st.binary(min_size=1, max_size=40)
    .map(lambda raw: os.fsdecode(raw.replace(b"/", b"_").replace(b"\0", b"_")))
    .filter(lambda name: name not in {".", ".."})
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("/", ()),
        ("///", ()),
        ("a", ("a",)),
        ("/a/b/", ("a", "b")),
        ("a//b", ("a", "b")),
        ("a/...", ("a", "...")),
        ("~/$HOME/*", ("~", "$HOME", "*")),
        ("a\\..\\b", ("a\\..\\b",)),
        (" a / b ", (" a ", " b ")),
        ("-rf", ("-rf",)),
        ("a\nb", ("a\nb",)),
        ("%2e%2e/x", ("%2e%2e", "x")),
    ],
)
def test_a_path_is_its_names_and_nothing_in_them_is_special(text, parts):
    assert read_path(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "..",
        ".",
        "a/..",
        "../a",
        "a/../b",
        "a/./b",
        "/..",
        "a/..//",
        "a\0b",
        "\0",
        "x" * 256,
        "é" * 128,
        "/".join("a" * 257),
        "/".join(["n" * 200] * 21),
        "\ud800",
        os.fsdecode(b"\xff"),
    ],
)
def test_what_could_mean_another_place_is_refused(text):
    with pytest.raises(InvalidRequestError):
        read_path(text)


def test_the_longest_and_the_deepest_are_allowed():
    assert read_path("x" * 255) == ("x" * 255,)
    assert read_path("é" * 127)
    assert len(read_path("/".join("a" * 256))) == 256
    assert len(read_path("/".join(["n" * 255] * 16))) == 16


def test_a_refusal_says_which_path_and_not_all_of_it():
    with pytest.raises(InvalidRequestError, match=r"'a/\.\./b' contains '\.\.'"):
        read_path("a/../b")
    with pytest.raises(InvalidRequestError) as refused:
        read_path("y" * 100_000)
    assert len(str(refused.value)) < 200


def test_twins_of_unicode_stay_two_names():
    composed, decomposed = unicodedata.normalize("NFC", "é"), "e\u0301"
    assert read_path(composed) == (composed,)
    assert read_path(decomposed) == (decomposed,)
    assert composed != decomposed


@given(native_names)
def test_every_name_of_the_machine_can_be_shown_and_read_back(name):
    shown = show_name(name)
    assert json.loads(json.dumps(shown).encode().decode()) == shown
    assert shown.encode()
    assert read_name(shown) == name


def test_names_of_text_are_shown_as_they_are():
    for name in ("a", "Größe.txt", "日本語", "🙂", "\U0010ff00", "a\tb"):
        assert show_name(name) == name


def test_bytes_that_are_no_text_and_what_stands_for_them_are_kept_apart():
    no_text = os.fsdecode(b"a\xff")
    stands_for_it = "a\U0010ffff"
    assert show_name(no_text) == stands_for_it
    assert show_name(stands_for_it) != stands_for_it
    assert read_name(show_name(stands_for_it)) == stands_for_it


@given(st.text(min_size=1, max_size=8, alphabet="a\U0010ffc3\U0010ffa9é\U0010ff80"))
def test_there_is_one_spelling_of_each_name(text):
    try:
        name = read_name(text)
    except InvalidRequestError:
        return
    assert show_name(name) == text


def test_a_second_spelling_is_refused():
    # The two bytes of "é", as if they were no text.
    with pytest.raises(InvalidRequestError, match="another way"):
        read_path("\U0010ffc3\U0010ffa9")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0", "x" * 256])
def test_no_part_is_anything_but_a_name(name):
    with pytest.raises(InvalidRequestError):
        check_name(name)


def test_a_name_is_needed():
    with pytest.raises(InvalidRequestError):
        read_name("")


def test_messages_have_paths_that_are_short_and_escaped():
    assert quote(()) == "the folder itself"
    assert quote(("a", "b")) == "'a/b'"
    assert quote(("\x1b[31m\n",)) == r"'\x1b[31m\n'"
    assert len(quote(("x" * 255,) * 16)) < 130
    assert show_path(("a", os.fsdecode(b"\xff"))) == "a/\U0010ffff"
