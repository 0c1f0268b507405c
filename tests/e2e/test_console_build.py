"""What the built console promises to the service and to browsers."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "backendai_hub" / "static" / "console"
PAGES = ROOT / "labextension"

built = pytest.mark.skipif(
    not (CONSOLE / "index.html").is_file(), reason="the pages are not built"
)


@pytest.fixture
def page() -> str:
    return (CONSOLE / "index.html").read_text("utf-8")


@built
def test_the_page_names_only_files_that_are_there(page: str):
    named = re.findall(r'(?:src|href)="([^"]+)"', page)

    assert named
    for address in named:
        assert address.startswith("__PREFIX__static/console/")
        assert (CONSOLE / address.removeprefix("__PREFIX__static/console/")).is_file()


@built
def test_the_page_needs_no_permission_for_inline_code(page: str):
    assert "<style" not in page
    assert not re.search(r"<script[^>]*>[^<]", page)
    assert not re.search(r'\s(on\w+|style)="', page)
    assert 'property="csp-nonce" nonce="__CSP_NONCE__"' in page


@built
def test_the_launch_form_has_a_name_that_never_changes():
    assert {"spawn.js", "spawn.css"} <= {file.name for file in CONSOLE.iterdir()}


@built
def test_every_file_lies_there_compressed_as_well():
    files = [f for f in CONSOLE.rglob("*") if f.suffix in {".js", ".css", ".svg"}]

    assert files
    for file in files:
        assert gzip.decompress(Path(f"{file}.gz").read_bytes()) == file.read_bytes()
        # A line or two may grow; whatever is worth it gets smaller.
        assert Path(f"{file}.br").stat().st_size < max(200, file.stat().st_size)


@built
def test_nothing_is_fetched_from_elsewhere():
    """Names of standards and links in messages are text; nothing loads them."""
    loads = re.compile(r"""(?:import\(|from|@import|url\()\s*["']?https?://""")
    for file in (*CONSOLE.rglob("*.js"), *CONSOLE.rglob("*.css")):
        assert not loads.search(file.read_text("utf-8")), file


def test_the_lock_says_what_but_not_from_where():
    lock = json.loads((PAGES / "package-lock.json").read_text("utf-8"))
    outside = [
        (path, package)
        for path, package in lock["packages"].items()
        if path.startswith("node_modules/") and not package.get("link")
    ]

    assert outside
    assert all("integrity" in package for _, package in outside)
    assert not [p for p, package in outside if "resolved" in package]
