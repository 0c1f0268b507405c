"""Pages ask when they are told to, and by the clock only while nobody tells them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import SLOW
from tests.e2e.ui.conftest import MakePerson
from tests.e2e.up import Platform

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# Counts in the page itself what it asks for, and what it is told meanwhile, so that
# both are read at the same moment.
COUNT = """
const fetched = window.fetch;
window.asked = 0;
window.streams = 0;
window.told = 0;
window.fetch = async (...given) => {
    const {pathname} = new URL(given[0].url ?? given[0], location.href);
    window.asked += pathname.endsWith('/ASKED') ? 1 : 0;
    const answer = await fetched(...given);
    if (!pathname.endsWith('/api/events') || !answer.ok) { return answer; }
    window.streams += 1;
    const [copy, own] = answer.body.tee();
    (async () => {
        const reader = copy.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ''; ;) {
            const {done, value} = await reader.read();
            if (done) { return; }
            const blocks = (text + value).split('\\n\\n');
            text = blocks.pop();
            window.told += blocks.filter(block =>
                block.includes('event: changed') && block.includes('"TOLD"')).length;
        }
    })().catch(() => undefined);
    return new Response(own, answer);
};
"""
QUEUE = COUNT.replace("ASKED", "queue").replace("TOLD", "queue")
LOG = COUNT.replace("ASKED", "log").replace("TOLD", "logs")
LESS_THAN_SILENCE = 40_000
"""Many times what pages wait for between two looks; a stream that has said nothing for
a little longer than this counts as lost."""
LOG_LOOKS = 20_000
"""Ten times what a page waits between two looks at a log; half of the above."""


@pytest.fixture
def nobody_starts(site: Platform) -> Iterator[None]:
    """The only node takes no sessions: who comes waits."""
    node = f"{site.api}agents/{site.get('agents')['items'][0]['id']}"
    assert site.web.post(f"{node}/drain", json={"reason": "a story"}).ok
    yield
    assert site.web.post(f"{node}/undrain").ok


def untold(page: Page) -> int:
    """Return how often the page has asked for it without being told to."""
    return int(page.evaluate("asked - told"))


def expect_told(page: Page, before: int) -> None:
    """Expect that it has asked for nothing of which it was not told since *before*."""
    page.wait_for_function("before => asked - told <= before", arg=before)


def expect_queue(page: Page) -> None:
    """Expect that who waits is shown; other stories may have left somebody."""
    somebody = page.get_by_role("rowheader").first
    expect(page.get_by_text("Nobody waits").or_(somebody)).to_be_visible()


def pass_time(page: Page) -> None:
    """Have everything happen that is due in the next time, however far it is."""
    page.clock.run_for(LESS_THAN_SILENCE)


def test_a_page_follows_what_happens_and_asks_for_nothing_by_the_clock(
    site: Platform, make_person: MakePerson, nobody_starts: None
):
    root = make_person("root", role="superadmin")
    page = root.page
    page.add_init_script(QUEUE)
    page.clock.install()
    root.open("admin/scheduler")
    expect_queue(page)

    session = site.create(name="comes", slots={"cpu": "0.1"})
    row = page.get_by_role("row", name="comes")
    expect(row).to_be_visible()
    before = untold(page)
    pass_time(page)
    expect_told(page, before)

    site.terminate(session)
    expect(row).to_have_count(0)
    expect_told(page, before)


def test_a_page_looks_by_itself_while_its_stream_is_cut_and_no_longer(
    site: Platform, make_person: MakePerson, nobody_starts: None
):
    root = make_person("root", role="superadmin")
    page = root.page
    page.add_init_script(QUEUE)
    page.clock.install()
    page.route("**/api/events*", lambda route: route.abort())
    root.open("admin/scheduler")
    expect_queue(page)
    before = untold(page)
    pass_time(page)
    assert untold(page) > before, "it looks"

    # Nobody tells of it, and nobody reloads anything.
    session = site.create(name="unheard-of", slots={"cpu": "0.1"})
    row = page.get_by_role("row", name="unheard-of")
    expect(row).to_be_visible(timeout=SLOW)

    page.unroute("**/api/events*")
    page.wait_for_function("() => streams > 0", timeout=SLOW)
    site.terminate(session)
    page.wait_for_function("() => told > 0", timeout=SLOW)
    expect(row).to_have_count(0)
    before = untold(page)
    pass_time(page)
    expect_told(page, before)


def test_a_log_is_shown_as_it_is_printed_and_asked_for_by_nobody(
    site: Platform, make_person: MakePerson
):
    root = make_person("root", role="superadmin")
    page = root.page
    page.add_init_script(LOG)
    page.clock.install()
    wanted = {"name": "prints", "slots": {"cpu": "0.1"}, "type": "batch"}
    job = "echo early; sleep 15; echo late; sleep 15; echo last; sleep 600"
    session = site.create(**wanted, startup_command=job)
    site.reach(session, "RUNNING")
    root.open(f"sessions/{session['id']}?tab=log")
    log = page.get_by_role("region", name="Log")
    expect(log).to_contain_text("early")
    # The first may have been asked for before the stream was there.
    expect(log).to_contain_text("late", timeout=SLOW)
    before = untold(page)
    page.clock.run_for(LOG_LOOKS)
    expect(log).to_contain_text("last", timeout=SLOW)
    expect_told(page, before)

    site.terminate(session)
    expect(page.get_by_role("switch", name="Follow")).to_have_count(0, timeout=SLOW)
    expect(log).to_contain_text("last")


def test_administrators_see_what_the_others_do_without_asking(
    site: Platform, make_person: MakePerson
):
    page = make_person("root", role="superadmin").open("admin/presets")
    expect(page.get_by_role("table")).to_be_visible()

    preset = {"name": "of-another", "resource_slots": {"cpu": "1"}}
    assert site.web.post(f"{site.api}presets", json=preset).ok
    row = page.get_by_role("row", name="of-another")
    expect(row).to_be_visible()

    assert site.web.delete(f"{site.api}presets/of-another").ok
    expect(row).to_have_count(0)
