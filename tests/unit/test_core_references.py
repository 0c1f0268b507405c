"""What may stand where somebody names an image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.references import (
    LONGEST,
    check_reference,
    find_registry,
    is_reference,
    shorten,
)

DIGEST = f"sha256:{'0a' * 32}"


@pytest.mark.parametrize(
    "text",
    [
        "jupyterlab",
        "python:3.13-slim",
        "library/python",
        "cr.example.org/stable/python:3.9-ubuntu20.04",
        "cr.example.org:5000/a/b/c__d.e--f:V1_2",
        "localhost:5000/tiny",
        "127.0.0.1:5000/tiny:1",
        "[::1]:5000/tiny:1",
        f"tiny@{DIGEST}",
        f"cr.example.org/tiny:1@{DIGEST}",
    ],
)
def test_what_registries_know_is_a_reference(text):
    assert check_reference(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--all",
        "-f",
        "tiny --all",
        "tiny;rm",
        "tiny\n",
        "tiny\x00",
        "../images",
        "a/../b",
        "/opt/environment",
        "a//b",
        "a/",
        "tiny:",
        "tiny:-1",
        "tiny?fromSrc=-",
        "tiny#1",
        "tiny%2f",
        "UPPER",
        "tiny@sha256:12",
        "user:secret@cr.example.org/tiny",
        "https://cr.example.org/tiny",
        "tinÿ",
        "tiny:１",
        "a" * (LONGEST + 1),
    ],
)
def test_anything_else_is_none(text):
    with pytest.raises(InvalidRequestError, match="is not a reference"):
        check_reference(text)


def test_a_long_text_is_refused_at_once_and_not_repeated():
    with pytest.raises(InvalidRequestError) as refused:
        check_reference("a-" * 100_000)
    assert len(str(refused.value)) < 300


@given(st.text(alphabet="aB0./:@-_ %?[]", max_size=30))
def test_a_reference_is_one_word_that_no_option_and_no_path_can_be(text):
    if is_reference(text):
        assert not text.startswith(("-", "/", "."))
        assert ".." not in text
        assert not set(" %?\\").intersection(text)


@pytest.mark.parametrize(
    ("reference", "registry"),
    [
        ("tiny", "docker.io"),
        ("index.x", "docker.io"),
        ("somebody/tiny:1", "docker.io"),
        ("docker.io/somebody/tiny", "docker.io"),
        ("index.docker.io/library/tiny", "docker.io"),
        ("cr.example.org/tiny", "cr.example.org"),
        ("localhost/tiny", "localhost"),
        ("node:5000/tiny", "node:5000"),
        ("[::1]:5000/tiny", "[::1]:5000"),
    ],
)
def test_the_registry_is_read_off_the_first_part(reference, registry):
    assert find_registry(reference) == registry


@pytest.mark.parametrize(
    ("reference", "short"),
    [
        ("docker.io/library/tiny:1", "tiny:1"),
        ("index.docker.io/somebody/tiny", "somebody/tiny"),
        ("library/tiny", "tiny"),
        ("index.x:1", "index.x:1"),
        ("cr.example.org/library/tiny:1", "cr.example.org/library/tiny:1"),
        (f"node:5000/a/tiny:1@{DIGEST}", f"node:5000/a/tiny@{DIGEST}"),
        (f"tiny@{DIGEST}", f"tiny@{DIGEST}"),
    ],
)
def test_engines_list_images_by_their_short_names(reference, short):
    assert shorten(reference) == short
