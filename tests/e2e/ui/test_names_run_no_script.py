"""Names and contents that would like to be programs are shown as what they are."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import make_folder, row

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

RUN = "document.documentElement.dataset.ran=1"
IMAGE = f"<img src=x onerror={RUN}>"
SCRIPT = f"<script>{RUN}</script>"
SVG = (
    f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}">{SCRIPT}'
    f'<image href="x" onerror="{RUN}"/></svg>'
)
NAMES = (
    f"{IMAGE}.txt",
    f'"onmouseover="{RUN}" x=".txt',
    f"'-{RUN}-'.txt",
    "{{constructor.constructor('" + RUN + "')()}}.txt",
    "$" + "{" + RUN + "}.txt",
    "javascript:" + RUN.replace("=", "%3D") + ".txt",
    "\u202egnp.exe.txt",
    "%3Cscript%3E.txt",
    " leading and trailing .txt",
)
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": [IMAGE, SCRIPT, f"[x](javascript:{RUN})"]},
        {
            "cell_type": "code",
            "source": SCRIPT,
            "outputs": [
                {"output_type": "display_data", "data": {"text/html": IMAGE}},
                {"output_type": "display_data", "data": {"image/svg+xml": SVG}},
                {"output_type": "display_data", "data": {"image/png": f'">{IMAGE}'}},
                {"output_type": "stream", "text": SCRIPT},
                {
                    "output_type": "display_data",
                    "data": {"application/javascript": RUN, "text/plain": IMAGE},
                },
            ],
        },
    ]
}
CONTENTS = {
    "page.html": f"<!doctype html>{IMAGE}{SCRIPT}",
    "drawing.svg": SVG,
    "fake.png": SVG,
    "notes.md": f"{IMAGE}\n\n{SCRIPT}\n\n[x](javascript:{RUN})\n",
    "values.csv": f'name,value\n"{IMAGE}","{SCRIPT}"\n=cmd|x!A1,2\n',
    "run.ipynb": json.dumps(NOTEBOOK),
}


def files() -> Iterator[tuple[str, bytes]]:
    for name in NAMES:
        yield name, IMAGE.encode()
    for name, text in CONTENTS.items():
        yield name, text.encode()


def send(page: Page, folder: str, name: str, content: bytes) -> None:
    """Send a file as the page itself would, whatever it is called."""
    encoded = base64.b64encode(name.encode()).decode()
    status = page.evaluate(
        """async ([folder, name, content]) => {
            const token = /_xsrf=([^;]*)/.exec(document.cookie)[1];
            const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));
            const api = '/services/backendai/api';
            const answer = await fetch(`${api}/folders/${folder}/uploads`, {
                method: 'POST',
                headers: {
                    'Tus-Resumable': '1.0.0', 'Upload-Length': `${bytes.length}`,
                    'Upload-Metadata': `path ${name}`, 'X-XSRFToken': token,
                    'Content-Type': 'application/offset+octet-stream'
                },
                body: bytes
            });
            return answer.status;
        }""",
        [folder, encoded, base64.b64encode(content).decode()],
    )
    assert status == 201, name


def ran(page: Page) -> str | None:
    return page.locator("html").get_attribute("data-ran")


def test_nothing_in_a_folder_is_run_by_looking_at_it(make_person: MakePerson):
    eve = make_person("eve")
    folder = make_folder(eve, "eve (x) [a], b.c+d@e")
    page = eve.page
    for name, content in files():
        send(page, folder, name, content)
    expect(page.get_by_text(f"Entries: {len(list(files()))}")).to_be_visible()
    assert ran(page) is None

    for name, _ in files():
        eve.open(f"data/{folder}?show={quote(name)}")
        side = page.get_by_role("region", name="Preview of")
        expect(side.get_by_role("heading")).to_have_text(name)
        shown = side.get_by_role("region", name="Content")
        if name == "fake.png":
            expect(side).to_contain_text("This picture cannot be shown")
        else:
            expect(shown).to_be_visible()
        # Pages and pictures of others are nowhere in ours.
        assert side.locator("iframe, object, embed, script").count() == 0
        assert shown.locator("img, svg, a").count() == 0
        assert ran(page) is None, name
    eve.check_looks("names")

    # What the service answers is saved, not shown, also when it is asked directly.
    asked = page.request.get(
        f"{eve.url}services/backendai/api/folders/{folder}/content?path=page.html"
    )
    assert asked.headers["content-type"] == "application/octet-stream"
    assert "sandbox" in asked.headers["content-security-policy"]
    assert asked.headers["content-disposition"].startswith("attachment")

    # Dialogs and notices tell names, too.
    eve.open(f"data/{folder}")
    for name in NAMES[:2]:
        entry = row(page, name)
        entry.get_by_role("checkbox").check()
    chosen = page.get_by_role("region", name="With what is selected")
    chosen.get_by_role("button", name="Move to the trash").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    eve.open(f"data/{folder}?side=trash")
    expect(page.get_by_role("button", name=f"Put {NAMES[0]} back")).to_be_visible()
    eve.open(f"data/{folder}?side=activity")
    expect(page.get_by_text(NAMES[1]).first).to_be_visible()
    assert ran(page) is None
