"""A large file is on its way while the service is killed, and the page loaded again."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.e2e.browser import Person
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.ui.explorer import make_folder, row, tray
from tests.e2e.up import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

MIB = 1 << 20
LONG = 24 * MIB
SPEED = 4 * MIB


def write_noise(path: Path) -> str:
    """Write a file that nothing can guess, and return its digest."""
    content = random.Random(path.name).randbytes(LONG)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def slow_down(page: Page, speed: int) -> CDPSession:
    """Let the page send so many bytes a second; -1 is all it can."""
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": 0,
            "downloadThroughput": -1,
            "uploadThroughput": speed,
        },
    )
    return network


def pick(page: Page, path: Path) -> None:
    page.locator("input[data-picks=files]").set_input_files(path)


def digest_of(person: Person, folder: str, name: str) -> str:
    """Read a file as the service gives it back."""
    url = f"{person.url}services/backendai/api/folders/{folder}/content?path={name}"
    answer = person.page.request.get(url)
    assert answer.ok, answer.text()
    return hashlib.sha256(answer.body()).hexdigest()


def test_a_large_file_arrives_whatever_happens_on_its_way(
    site: Platform, make_person: MakePerson, tmp_path: Path
):
    mina = make_person("mina")
    folder = make_folder(mina, "weights")
    page = mina.page
    network = slow_down(page, SPEED)

    # The service is killed half-way, and comes back.
    digest = write_noise(tmp_path / "killed.bin")
    pick(page, tmp_path / "killed.bin")
    expect(tray(page)).to_contain_text("0 of 1 files")
    bar = tray(page).get_by_role("progressbar")
    until(
        lambda: int(bar.get_attribute("aria-valuenow") or 0) > 15,
        "some of it is on its way",
    )
    killed = site.kill("service")
    site.returned("service", killed)
    expect(tray(page)).to_contain_text("Uploaded: 1", timeout=120_000)
    assert digest_of(mina, folder, "killed.bin") == digest

    # Paused by hand, it stays where it is; then the page is loaded again.
    digest = write_noise(tmp_path / "reloaded.bin")
    sent: list[int] = []
    page.on(
        "request",
        lambda request: (
            request.method == "PATCH"
            and sent.append(int(request.headers.get("upload-offset", "-1")))
        ),
    )
    pick(page, tmp_path / "reloaded.bin")
    page.get_by_role("button", name="Pause the upload").click()
    expect(tray(page)).to_contain_text("Paused")
    page.get_by_role("button", name="Go on with the upload").click()
    bar = tray(page).get_by_role("progressbar")
    until(
        lambda: int(bar.get_attribute("aria-valuenow") or 0) > 30,
        "some of it is on its way",
    )
    page.once("dialog", lambda dialog: dialog.accept())  # it warns: this breaks it off
    page.reload()
    expect(page.get_by_role("heading", name="weights", level=1)).to_be_visible()
    network.detach()
    before = len(sent)

    # The same file, chosen again, goes on where it was.
    pick(page, tmp_path / "reloaded.bin")
    expect(row(page, "reloaded.bin")).to_be_visible()
    assert digest_of(mina, folder, "reloaded.bin") == digest
    assert sent[before] > 0, sent
