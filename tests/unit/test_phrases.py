"""Every sentence that people get to read is in the phrase book that translates it."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from backendai_hub.core.batch import check_command, check_limits, describe_timeout
from backendai_hub.core.durations import describe_duration
from backendai_hub.core.errors import HubError
from backendai_hub.core.mounts import read_mount
from backendai_hub.core.names import read_slug
from backendai_hub.core.slots import parse_slots

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "labextension" / "scripts"))

import phrases  # noqa: E402 - a script of the pages
from templates import PLACE, read_templates  # noqa: E402


def read(source: str) -> list[str]:
    return read_templates(dedent(source))


@functools.cache
def book() -> list[re.Pattern[str]]:
    templates = (t for texts in phrases.read_book().values() for t in texts)
    pieces = (map(re.escape, PLACE.split(t)[::2]) for t in templates)
    return [re.compile("(?s:.*)".join(piece)) for piece in pieces]


def knows(sentence: str) -> bool:
    return any(pattern.fullmatch(sentence) for pattern in book())


def test_the_phrase_book_is_what_the_code_says():
    assert phrases.main(["--check"]) == 0


def test_a_sentence_that_is_missing_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(phrases, "BOOK", tmp_path / "phrases")
    monkeypatch.setattr(phrases, "ROOT", tmp_path)
    monkeypatch.setattr(phrases, "read_book", lambda: {"a.py": ["it ended"]})

    assert phrases.main([]) == 0
    assert phrases.main(["--check"]) == 0
    (tmp_path / "phrases" / "en.json").write_text("{}")
    assert phrases.main(["--check"]) == 1
    assert "phrases.py" in capsys.readouterr().err


def test_what_a_language_lacks_is_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(phrases, "BOOK", tmp_path)
    monkeypatch.setattr(phrases, "read_book", lambda: {"a.py": ["it ended", "it runs"]})
    (tmp_path / "ko.json").write_text(json.dumps({"it runs": "실행 중"}))

    assert phrases.main(["--missing", "ko"]) == 0
    assert capsys.readouterr().out == "it ended\n"


@pytest.mark.parametrize(
    ("source", "templates"),
    [
        ('words = f"{slot}: asks {describe(amount)}"', ["{slot}: asks {amount}"]),
        ('x = f"{a.name} is not {b.name}"', ["{name} is not {name2}"]),
        (
            'x = f"{len(rows)} rows; send {join(MOST)}"',
            ["{rows} rows; send {most}"],
        ),
        ('x = "one node" if n == 1 else f"{n} nodes"', ["one node", "{n} nodes"]),
        ('x = f\'it {"ran" if a else "runs"} now\'', ["it ran now", "it runs now"]),
        ('x = "it is" + (" full" if a else " empty")', ["it is full", "it is empty"]),
        ('x = f"no {key}{suggest(key, KEYS)} here"', ["no {key}{hint} here"]),
        ('move(session, reason="stopping")', ["stopping"]),
        ('raise HubError("it is gone", code="gone")', ["it is gone"]),
        ('WORDS = {"a key": "it is full"}', ["it is full"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_sentence_is_read_as_what_it_says_and_what_stands_in_it(source, templates):
    assert read(source) == templates


def test_what_is_added_by_a_function_of_the_file_is_part_of_the_sentence():
    found = read(
        """
        HINT = "; use another"

        def tell(name):
            return f"{name} is taken" + tail(name) + f"{HINT}"

        def tail(name):
            if name:
                return " already"
            return ""
        """
    )

    assert set(found) == {
        "use another",
        "{name} is taken already; use another",
        "{name} is taken; use another",
    }


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is for."""',
        'def f():\n    "What it does."',
        'log.warning("node %s is gone", name)',
        'raise RuntimeError("this cannot be so")',
        'if words.startswith("it is"):\n    pass',
        'if words == "it is so":\n    pass',
        'path = "/api/two words"',
        'key = "one-word"',
        'Unicode(help="What a setting is for.")',
        'CAUSES = (("no such host", "connection refused"),)',
    ],
)
def test_what_nobody_reads_is_left_out(source):
    assert read(source) == []


def refuse(call: Callable[[], object]) -> str:
    with pytest.raises(HubError) as refused:
        call()
    return refused.value.message


@pytest.mark.parametrize(
    "sentence",
    [
        lambda: refuse(lambda: check_command(None)),
        lambda: refuse(lambda: check_limits(0, 1)),
        lambda: refuse(lambda: read_slug("name", "a b c", 64)),
        lambda: refuse(lambda: parse_slots({"cpu": "much"})),
        lambda: refuse(lambda: read_mount("a:b:c:d")),
        lambda: describe_timeout(90),
    ],
)
def test_what_is_refused_and_told_is_in_the_book(sentence):
    assert knows(sentence())


def test_amounts_are_no_sentences():
    assert not knows(describe_duration(90))


def test_what_is_left_out_or_taken_by_name_is_there():
    assert [n for n in phrases.list_named() if not (ROOT / n).exists()] == []
