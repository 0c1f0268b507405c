"""What was read is true until something it was read from has changed."""

from __future__ import annotations

from sqlalchemy import text, update

from backendai_hub.db.kept import LONGEST, Kept
from backendai_hub.db.tables import AgentRow, DomainRow, ImageRow
from backendai_hub.db.versions import Changes, Versions


class Source:
    """Something that is read, and counts how often."""

    def __init__(self) -> None:
        self.versions = Versions()
        self.now = 0.0
        self.kept = Kept(self.versions, lambda: self.now)
        self.read = 0

    async def __call__(self) -> int:
        self.read += 1
        return self.read

    async def ask(self, key: str = "key") -> int:
        return await self.kept.recall(key, self, ("images",))

    def change(self, statement: object, ids: list[str] | None = None) -> None:
        changes = Changes()
        changes.note(statement, None, ids)
        self.versions.advance(changes)


async def test_nothing_is_read_twice_while_nothing_has_changed():
    source = Source()
    assert [await source.ask() for _ in range(3)] == [1, 1, 1]
    source.change(update(AgentRow))
    source.change(update(ImageRow), [])  # the image looks as it did
    assert await source.ask() == 1
    assert await source.ask("another") == 2


async def test_changes_of_tenancy_and_of_the_tables_named_are_seen():
    source = Source()
    assert await source.ask() == 1
    source.change(update(DomainRow))
    assert await source.ask() == 2
    source.change(update(ImageRow), ["one"])
    assert await source.ask() == 3
    source.change(text("anything"))
    assert await source.ask() == 4


async def test_what_changes_while_it_is_read_is_read_again():
    source = Source()

    async def read() -> str:
        source.change(update(DomainRow))
        return "old"

    assert await source.kept.recall("key", read) == "old"
    assert await source.ask() == 1


async def test_what_is_changed_by_hand_shows_after_a_while():
    source = Source()
    assert await source.ask() == 1
    source.now = LONGEST - 0.01
    assert await source.ask() == 1
    source.now = LONGEST
    assert await source.ask() == 2
