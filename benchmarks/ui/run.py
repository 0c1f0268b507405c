"""What the console costs a browser: to load, to use with 10,000 sessions, and at rest.

    python -m benchmarks.ui.run [--slowdown 4] [--sessions 10000] [--json FILE]

A real platform on PostgreSQL, Chromium without a cache for the first load, its
processor slowed down by ``--slowdown``. "Interactive" is when the rows are there and
nothing has held the page up for longer than 50 ms. Sizes of what is loaded first are
checked
by every build (``npm run sizes``); here they are what came over the wire.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, expect

from benchmarks.api.fill import fill
from benchmarks.api.servers import database, postgres
from tests.e2e.browser import Person, chromium
from tests.e2e.up import Platform

CONSOLE = "services/backendai/"
REST_SECONDS = 30.0
LONGEST = """
window.baiLong = [];
new PerformanceObserver(list => {
    for (const task of list.getEntries()) {
        window.baiLong.push([task.startTime, task.duration]);
    }
}).observe({entryTypes: ['longtask']});
"""
FRAMES = """
async () => {
    const frames = [];
    let last = performance.now();
    for (let step = 0; step < 120; step += 1) {
        window.scrollBy(0, step < 60 ? 60 : -60);
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - last);
        last = now;
    }
    return frames;
}
"""


@contextmanager
def filled_platform(sessions: int) -> Iterator[tuple[Platform, str]]:
    """A platform whose administrator has so many sessions, most of them ended."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-ui-") as folder,
        postgres() as (server, _),
        database(server, "ui") as db_url,
    ):
        config = f"c.HubService.db_url = {db_url!r}\n"
        platform = Platform(Path(folder) / "data", "fake", config)
        password = str(platform.up()["password"])
        try:
            pattern = platform.create(slots={"cpu": "0.1"})
            platform.reach(pattern, "RUNNING")
            platform.down("--sessions")
            platform.down()
            fill(db_url, pattern["id"], ["admin"], sessions)
            platform.up()
            yield platform, password
        finally:
            platform.down()


class Meter:
    """One page, and what Chromium tells of it."""

    def __init__(self, person: Person) -> None:
        self.page: Page = person.page
        self.cdp: CDPSession = person.context.new_cdp_session(person.page)
        self.cdp.send("Performance.enable")
        self.received = 0
        self.requests = 0
        self.cdp.on("Network.loadingFinished", self._count)

    def _count(self, event: dict[str, Any]) -> None:
        self.received += int(event["encodedDataLength"])
        self.requests += 1

    def load(self, url: str, slowdown: float, *, cached: bool) -> dict[str, float]:
        """Load a list, and tell how many bytes and milliseconds that took."""
        self.cdp.send("Network.enable")
        self.cdp.send("Network.setCacheDisabled", {"cacheDisabled": not cached})
        self.cdp.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        self.received = self.requests = 0
        self.page.goto(url)
        rows = self.page.locator("table tbody tr")
        expect(rows.first).to_be_visible(timeout=60_000)
        shown = self.page.evaluate("performance.now()")
        self.page.wait_for_timeout(1500)
        long = self.page.evaluate("window.baiLong")
        interactive = max([shown, *(at + lasts for at, lasts in long if at < shown)])
        self.cdp.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        return {
            "kib": round(self.received / 1024, 1),
            "requests": self.requests,
            "interactive_ms": round(interactive),
            "longest_task_ms": round(max((lasts for _, lasts in long), default=0)),
        }

    def busy(self) -> float:
        """Seconds for which the page's main thread has worked."""
        metrics = self.cdp.send("Performance.getMetrics")["metrics"]
        return next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration")


def use_list(meter: Meter, url: str) -> dict[str, float]:
    """Scroll a long list and turn its pages."""
    page = meter.page
    page.goto(f"{url}sessions?status=all&limit=100")
    rows = page.locator("table tbody tr")
    expect(rows.first).to_be_visible()
    frames = sorted(page.evaluate(FRAMES))
    turns = []
    for _ in range(5):
        before = rows.first.inner_text()
        began = time.perf_counter()
        page.locator(".bai-pager button").last.click()
        expect(rows.first).not_to_have_text(before)
        turns.append(1000 * (time.perf_counter() - began))
    return {
        "rows": rows.count(),
        "frame_median_ms": round(frames[len(frames) // 2], 1),
        "frame_99_ms": round(frames[int(0.99 * (len(frames) - 1))], 1),
        "turn_median_ms": round(sorted(turns)[2]),
    }


def rest(meter: Meter, url: str) -> float:
    """Return the part of one core that the page takes while nothing happens."""
    meter.page.goto(f"{url}sessions")
    expect(meter.page.locator("table tbody tr").first).to_be_visible()
    meter.page.wait_for_timeout(3000)
    before, began = meter.busy(), time.perf_counter()
    meter.page.wait_for_timeout(1000 * REST_SECONDS)
    return (meter.busy() - before) / (time.perf_counter() - began)


def measure(slowdown: float, sessions: int) -> dict[str, Any]:
    """Bring everything up and measure it."""
    with filled_platform(sessions) as (platform, password), chromium() as browser:
        person = Person(browser, platform.url, "admin")
        person.log_in(password)
        person.page.add_init_script(LONGEST)
        person.page.goto(f"{platform.url}{CONSOLE}")
        meter = Meter(person)
        url = f"{platform.url}{CONSOLE}"
        found: dict[str, Any] = {
            "first": meter.load(f"{url}sessions?status=all", slowdown, cached=False),
            "again": meter.load(f"{url}sessions?status=all", slowdown, cached=True),
            "list": use_list(meter, url),
            "rest": round(rest(meter, url), 4),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slowdown", type=float, default=4.0)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = measure(given.slowdown, given.sessions)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))
    for name in ("first", "again"):
        row = found[name]
        print(
            f"{name} load: {row['kib']} KiB in {row['requests']} requests, interactive"
            f" after {row['interactive_ms']} ms, the longest task"
            f" {row['longest_task_ms']} ms"
        )
    row = found["list"]
    print(
        f"list of {given.sessions}: {row['rows']} rows, a frame takes"
        f" {row['frame_median_ms']} ms (99 %: {row['frame_99_ms']}), a page turned in"
        f" {row['turn_median_ms']} ms"
    )
    print(f"at rest: {100 * found['rest']:.2f} % of one core")


if __name__ == "__main__":
    main()
