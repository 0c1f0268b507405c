"""Somebody who has a keyboard and no mouse, and watches where the focus is."""

from __future__ import annotations

from playwright.sync_api import FileChooser, Locator, expect

from tests.e2e.browser import Person
from tests.e2e.up import until

FURTHEST = 150
COUNT_POINTERS = """window.pointed = 0;
for (const kind of ['pointerdown', 'mousedown', 'touchstart']) {
    addEventListener(kind, () => { window.pointed += 1; }, true);
}"""
# Where the focus is, and what is wrong about how it shows.
FOCUS = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) { return ['body', 'nothing has the focus']; }
    const name = `${one.tagName} ${one.getAttribute('aria-label') || one.textContent}`;
    const drawn = element => {
        const style = element && getComputedStyle(element);
        return style && (style.boxShadow !== 'none'
            || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1));
    };
    const near = [one, one.nextElementSibling, one.parentElement, one.closest('label')];
    if (!near.some(drawn)) { return [name, 'its focus cannot be seen']; }
    const bare = element => {
        const box = element.getBoundingClientRect();
        const x = box.left + Math.min(box.width / 2, 20), y = box.top + box.height / 2;
        if (box.width < 2 || y < 0 || y > innerHeight || x < 0 || x > innerWidth) {
            return false;
        }
        const top = document.elementFromPoint(x, y);
        // A notice lies over the page for a moment, until it is read.
        return top !== null && (element.contains(top) || top.contains(element)
            || near.includes(top) || top.closest('.bai-toast') !== null);
    };
    const seen = near.filter(Boolean).some(bare);
    return [name, seen ? '' : 'something lies over it, or it is out of sight'];
}"""


class Keys:
    """A person's keyboard."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.page = person.page
        self.page.add_init_script(COUNT_POINTERS)
        # Heard from the start: what is asked for before is asked of the desktop.
        self._choosers: list[FileChooser] = []
        self.page.on("filechooser", self._keep_chooser)

    def _keep_chooser(self, chooser: FileChooser) -> None:
        self._choosers.append(chooser)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def look(self) -> str:
        """See that the focus is somewhere and shows; returns where."""
        where, wrong = self.page.evaluate(FOCUS)
        assert wrong == "", f"{where}: {wrong}"
        return str(where)

    def go_to(self, target: Locator, *, back: bool = False) -> None:
        """Press the Tab key until something has the focus."""
        expect(target).to_be_visible()
        passed: list[str] = []
        for _ in range(FURTHEST):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.press("Shift+Tab" if back else "Tab")
            if self.page.evaluate("document.activeElement === document.body"):
                # The end of the page, where the browser's own buttons would follow.
                assert "(end)" not in passed, f"not on the way: {passed}"
                passed.append("(end)")
                continue
            passed.append(self.look()[:40])
        raise AssertionError(f"not on the way: {passed}")

    def use(self, target: Locator, key: str = "Enter") -> None:
        """Go to a button, a link or an entry, and use it."""
        self.go_to(target)
        self.press(key)

    def fill(self, target: Locator, text: str) -> None:
        """Go to a field, and write into it instead of what is there."""
        self.go_to(target)
        self.press("Control+a")
        self.page.keyboard.type(text)

    def choose_files(self, menu: Locator, entry: str) -> FileChooser:
        """Open a menu and choose what asks the browser for files."""
        self.use(menu)
        item = self.page.get_by_role("menuitem", name=entry)
        expect(self.page.locator("[role=menuitem]:focus")).to_have_count(1)
        while not item.evaluate("element => element === document.activeElement"):
            self.press("ArrowDown")
        self.press("Enter")

        def asked() -> bool:
            self.page.wait_for_timeout(20)  # what the browser tells is heard meanwhile
            return bool(self._choosers)

        until(asked, "the browser is asked for files")
        return self._choosers.pop()

    def has_focus(self, target: Locator) -> None:
        """The focus is there, or comes there by itself."""
        expect(target).to_be_focused()

    def is_not_lost(self) -> None:
        """The focus is somewhere, or comes there by itself."""
        lost = "document.activeElement === document.body"
        until(lambda: not self.page.evaluate(lost), "the focus is somewhere")

    def used_alone(self) -> None:
        """No mouse or finger has touched the page since it was loaded."""
        assert self.page.evaluate("window.pointed") == 0
