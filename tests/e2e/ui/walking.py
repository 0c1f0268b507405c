"""How a person goes from page to page without loading the console anew."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, Request, Response, expect

from tests.e2e.browser import Person
from tests.e2e.up import until

CONSOLE = "/services/backendai"


class Walk:
    """A person's way through the pages, and what was asked of the service on it."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.page: Page = person.page
        self._failed: list[str] = []
        self._open: set[Request] = set()
        self.page.on("request", self._begin)
        self.page.on("requestfinished", self._end)
        self.page.on("requestfailed", self._fail)
        self.page.on("response", self._answer)
        person.open("")
        self._settle()

    def _begin(self, request: Request) -> None:
        self._open.add(request)

    def _end(self, request: Request) -> None:
        self._open.discard(request)

    def _fail(self, request: Request) -> None:
        self._end(request)
        # Whoever leaves a page does not wait for its answers.
        if request.failure != "net::ERR_ABORTED":
            self._failed.append(f"{request.method} {request.url}: {request.failure}")

    def _answer(self, response: Response) -> None:
        if response.status >= 400:
            self._failed.append(f"{response.status} {response.url}")

    def _is_busy(self) -> bool:
        asked = [one.url for one in list(self._open) if "/api/events" not in one.url]
        return bool(asked) or self.page.locator("main .bai-skeleton").count() > 0

    def _settle(self) -> None:
        expect(self.page.locator("main h1")).to_be_visible()
        calm: list[bool] = []

        def calmed() -> bool:
            self.page.wait_for_timeout(20)  # what the browser tells is heard meanwhile
            calm.append(not self._is_busy())
            return calm[-3:] == [True] * 3

        until(calmed, lambda: f"{self.page.url} stands; {self._open}")

    def go(self, path: str) -> Page:
        """Let the console's own router show a page, and wait until it stands."""
        self.page.evaluate("to => history.pushState(null, '', to)", f"{CONSOLE}{path}")
        self._settle()
        return self.page

    def press(self, target: Locator) -> None:
        """Press something on the page, and wait until the page stands."""
        target.evaluate("one => one.click()")
        self._settle()

    def find_link(self, path: str) -> str | None:
        """Find the way from a list to one of what it lists."""
        links = self.page.locator(f'main a[href^="{CONSOLE}{path}/"]')
        for link in links.evaluate_all(
            "links => links.map(a => a.getAttribute('href'))"
        ):
            if not str(link).endswith("/new"):
                return str(link).removeprefix(CONSOLE).split("?", maxsplit=1)[0]
        return None

    def take_failed(self) -> list[str]:
        """Return what failed since this was asked for last."""
        failed, self._failed = self._failed, []
        return failed

    @property
    def heading(self) -> str:
        """What the page calls itself."""
        return self.page.locator("main h1").inner_text()


def ask(person: Person, method: str, path: str, body: Any = None) -> Any:
    """Ask the service as the pages of this person do, and return its answer."""
    return person.page.evaluate(
        """async ([method, path, body]) => {
            const token = /_xsrf=([^;]*)/.exec(document.cookie)[1];
            const answer = await fetch('/services/backendai/api/' + path, {
                method,
                headers: {'X-XSRFToken': token, 'Content-Type': 'application/json'},
                body: body === null ? undefined : JSON.stringify(body)
            });
            if (!answer.ok) { throw new Error(await answer.text()); }
            return answer.status === 204 ? null : answer.json();
        }""",
        [method, path, body],
    )
