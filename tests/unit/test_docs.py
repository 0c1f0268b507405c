"""What the documentation says is so."""

from __future__ import annotations

import itertools
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from backendai_hub.cli import main as command_line
from backendai_hub.launcher.configuration import read_checked_config
from docs import tables

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "docs" / "source"
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [
    *FRONT,
    *(page for page in sorted(SOURCE.rglob("*.md")) if page.parent.name != "generated"),
]
DECISIONS = sorted((SOURCE / "decisions").glob("0*.md"))
PARTS = ["Context", "Decision", "Consequences", "Revisit when"]
ROOMS = [ROOT / room for room in ("", "backendai_hub", "agent/backendai_agent")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def find_links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            yield target.partition("#")[0]


def find_commands(page: Path) -> Iterator[list[str]]:
    """Find every ``backendai …`` line in code, with its words."""
    text = re.sub(r"\\\n\s*", "", page.read_text("utf-8"))
    blocks = re.findall(r"```(?:sh|text)?\n(.*?)```", text, re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line for block in blocks for line in block.splitlines()]
    for line in (*lines, *spans):
        for part in line.split("&&"):
            found = re.match(r"\s*(?:\.venv/bin/)?backendai (.*)", part)
            if found:
                yield shlex.split(found[1], comments=True)


def find_configurations() -> Iterator[object]:
    pattern = re.compile(
        r"^( *)```\{code-block\} python\n *:caption: backendai_config\.py\n(.*?)```",
        re.DOTALL | re.MULTILINE,
    )
    for page in PAGES:
        for number, found in enumerate(pattern.finditer(page.read_text("utf-8")), 1):
            indent = len(found[1])
            lines = [line[indent:] for line in found[2].splitlines()]
            yield pytest.param("\n".join(lines), id=f"{page.stem}-{number}")


def test_the_generated_tables_are_what_the_code_says():
    assert tables.find_stale() == []


def test_a_table_that_has_drifted_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "GENERATED", tmp_path)
    monkeypatch.setattr("sys.argv", ["tables.py"])
    tables.main()
    (tmp_path / "session-states.md").write_text("something older")

    assert tables.find_stale() == ["session-states.md"]


def test_the_configuration_of_the_build_can_be_read():
    pytest.importorskip("sphinx", reason="the documentation's tools are not installed")

    settings = runpy.run_path(str(SOURCE / "conf.py"))

    assert settings["project"] == "backendai-hub"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_inside_the_project_lead_somewhere(page):
    missing = [
        link
        for link in find_links(page)
        if not (page.parent / link).exists()
        and not (page.parent / f"{link}.md").exists()
    ]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_exist_with_their_options(page):
    context = click.Context(command_line, info_name="backendai")
    for words in find_commands(page):
        rest = list(words)
        command: click.Command | None = command_line
        while isinstance(command, click.Group) and not rest[0].startswith("--"):
            command = command.get_command(context, rest.pop(0))
        assert command is not None, words
        known = {
            o
            for parameter in command.get_params(context)
            for o in (*parameter.opts, *parameter.secondary_opts)
        }
        # What comes after "--" is another program's.
        own = itertools.takewhile(lambda word: word != "--", words)
        given = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert given <= known, words


def test_the_readme_names_every_command():
    named = {words[0] for words in find_commands(ROOT / "README.md")}

    context = click.Context(command_line)
    assert set(command_line.list_commands(context)) <= named


@pytest.mark.parametrize("text", list(find_configurations()))
def test_configurations_shown_are_accepted(text, tmp_path):
    file = tmp_path / "backendai_config.py"
    file.write_text(text)

    assert read_checked_config(file)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_source_files_named_on_a_page_exist(page):
    named = re.findall(r"`([\w/.-]+/[\w-]+\.(?:py|json|tsx?|md))`", page.read_text())
    missing = [
        path
        for path in named
        if "things" not in path and not any((room / path).exists() for room in ROOMS)
    ]

    ours = ("backendai_", "agent/", "labextension/", "core/", "db/", "docs/")
    assert [path for path in missing if path.startswith(ours)] == []


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_decisions_say_why_and_until_when_on_one_page(page):
    text = page.read_text("utf-8")

    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert text.startswith(f"# {page.name[:4]}. ")
    assert len(text.split()) <= 400
