"""Names: any script, one spelling, nothing that has a meaning of its own."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.ids import make_id
from backendai_hub.core.names import RESERVED, fold, read_line, read_slug, suggest


def refusal(given_name: str, most: int = 64) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        read_slug("name", given_name, most)
    return refused.value.message


@pytest.mark.parametrize(
    "name",
    ["a", "vision-2", "a.b_c-d", "Ｖision", "연구소", "é", "naïve", "数据", "9", "_x_"],
)
def test_a_name_may_be_in_any_script(name):
    assert read_slug("name", name, 64) == unicodedata.normalize("NFKC", name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Vision", "vision"),
        ("VISION", "vision"),
        ("ｖｉｓｉｏｎ", "vision"),
        ("e\u0301", "é"),
        ("ﬁle", "file"),
        ("straße", "STRASSE"),
        (" vision ", "vision"),
        ("²", "2"),
        ("ſ", "s"),
        ("K", "k"),
        ("Å", "å"),
    ],
)
def test_spellings_that_look_alike_are_one_name(one, other):
    assert fold(one) == fold(other)


def test_different_names_stay_different():
    names = ["vision", "vision2", "vi-sion", "vi.sion", "vi_sion", "é", "e"]
    assert len({fold(name) for name in names}) == len(names)


@given(st.text(max_size=64))
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=64))
def test_a_name_that_is_taken_is_kept_as_it_is_then_on(text):
    try:
        name = read_slug("name", text, 64)
    except InvalidRequestError:
        return
    assert read_slug("name", name, 64) == name
    assert fold(name) == fold(text)
    assert 1 <= len(name) <= 64
    assert name.isprintable()
    assert not set(name) & set("/\\:,?#%&*\"'<>\0 ")


@pytest.mark.parametrize("word", sorted(RESERVED))
@pytest.mark.parametrize("spell", [str, str.upper, str.title, lambda w: f" {w} "])
def test_reserved_words_are_nobodys_in_any_spelling(word, spell):
    assert "reserved" in refusal(spell(word))


def test_an_id_is_no_name():
    some_id = make_id(1, b"0123456789")
    assert "reserved" in refusal(some_id)
    assert "reserved" in refusal(some_id.upper())


@pytest.mark.parametrize(
    "name",
    [
        "-a",
        "a-",
        ".a",
        "a.",
        "..",
        "a b",
        "a/b",
        "a\\b",
        "a:b",
        "a,b",
        "a\0b",
        "a\nb",
        "a\u202eb",
        "a\u200bb",
        "a\ufeffb",
        "\u00ada",
        "a%b",
        "a'b",
        "😀",
        "a\ud800",
    ],
)
def test_what_has_a_meaning_elsewhere_or_cannot_be_seen_is_no_part_of_a_name(name):
    assert "will not do" in refusal(name)


@pytest.mark.parametrize("name", ["", " ", "\u3000", "x" * 65])
def test_a_name_has_a_length(name):
    assert "1 to 64 characters" in refusal(name)
    assert read_slug("name", "x" * 64, 64) == "x" * 64


def test_characters_that_grow_when_normalised_are_counted_as_they_are_kept():
    assert "1 to 64" in refusal("ﬃ" * 22)
    assert len(read_slug("name", "ﬃ" * 21, 64)) == 63


@pytest.mark.parametrize("name", ["раypal", "vіsion", "αlpha", "Αdmin"])
def test_letters_that_look_alike_are_not_mixed(name):
    assert "look alike" in refusal(name)


def test_a_name_wholly_in_one_of_those_scripts_is_fine():
    for name in ("исследование", "έρευνα", "research", "연구-lab", "研究lab"):
        assert read_slug("name", name, 64)


@pytest.mark.parametrize("character", ["\0", "\n", "\t", "\x7f", "\u202e", "\u2028"])
def test_a_line_holds_no_control_characters(character):
    with pytest.raises(InvalidRequestError, match="control character U\\+"):
        read_line("description", f"a{character}b", 512)


def test_a_line_is_trimmed_and_has_a_length():
    assert read_line("description", "  two words  ", 512) == "two words"
    assert read_line("description", "e\u0301", 1) == "é"
    with pytest.raises(InvalidRequestError, match="513 characters; the most is 512"):
        read_line("description", "x" * 513, 512)


def test_a_hint_names_what_was_probably_meant():
    assert suggest("cuda.share", ["cpu", "mem", "cuda.shares"]) == (
        "; did you mean 'cuda.shares'?"
    )
    assert suggest("nothing", ["cpu"]) == ""
