"""The chain of acts in a database: complete, in order, and closed to changes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from backendai_hub.core.audit import Act, Asking, Break, Head
from backendai_hub.core.errors import ConflictError
from backendai_hub.core.events import Event, EventKind
from backendai_hub.db import chain
from backendai_hub.db.chain import ASKING, NoAuditKeyError
from backendai_hub.db.engine import Database
from backendai_hub.db.signals import Signals
from backendai_hub.operations.audit import check_chain
from backendai_hub.operations.audit_heads import HeadFile
from backendai_hub.operations.audit_notes import AND_MORE, note, note_refusal
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.refusals import MOST_OF_PERSON
from backendai_hub.reconcilers.audit import AuditReconciler
from tests.factories import AUDIT_KEY, START, Clock


def act(name: str, **changes: Any) -> Act:
    return Act(
        action="domain:update", object_kind="domain", object_name=name, **changes
    )


async def write(platform: Platform, count: int, start: int = 1) -> None:
    await note(
        platform, *(act(f"n{n}", after={"n": n}) for n in range(start, start + count))
    )


async def write_and_fail(platform: Platform) -> None:
    async with platform.database.transaction() as tx:
        tx.audit(act("lost"))
        raise ConflictError("no")


async def read(platform: Platform) -> list[chain.Entry]:
    async with platform.database.read() as connection:
        return [entry for entry, _ in await chain.read_rows(connection, 0, 10_000)]


async def newest(platform: Platform) -> int:
    async with platform.database.read() as connection:
        head = await chain.read_head(connection)
    return 0 if head is None else head.seq


async def find(platform: Platform) -> list[tuple[int, str]]:
    report = await check_chain(platform)
    assert report.ok == (not report.breaks and not report.unreadable)
    return [(b.seq, b.kind) for b in report.breaks]


async def tamper(platform: Platform, *statements: str) -> None:
    """Change rows as somebody would who owns the database."""
    database = platform.database
    async with database.transaction() as tx:
        if database.is_sqlite:
            for verb in ("update", "delete"):
                await tx.execute(text(f"DROP TRIGGER IF EXISTS audit_no_{verb}"))
        else:
            await tx.execute(text("ALTER TABLE audit DISABLE TRIGGER ALL"))
        for statement in statements:
            await tx.execute(text(statement))


@pytest.fixture
async def platform(platform: Platform, tmp_path: Path) -> Platform:
    """One whose heads are kept in a file."""
    settings = dataclasses.replace(
        platform.settings, audit_heads=str(tmp_path / "audit" / "heads.jsonl")
    )
    return dataclasses.replace(platform, settings=settings)


# --- writing ---------------------------------------------------------------------


async def test_a_change_and_its_row_are_written_together_or_not_at_all(
    platform: Platform,
):
    before = await newest(platform)
    with pytest.raises(ConflictError):
        await write_and_fail(platform)
    assert await newest(platform) == before
    async with platform.database.transaction() as tx:
        tx.audit(act("kept"))
        tx.audit(act("kept, too"))
    assert await newest(platform) == before + 2
    names = [entry.object_name for entry in await read(platform)]
    assert names[-2:] == ["kept", "kept, too"]
    assert await find(platform) == []


async def test_where_nothing_is_audited_no_statement_is_made(platform: Platform):
    await write(platform, 1)  # the very first makes the head
    said: list[str] = []
    engine = platform.database.engine.sync_engine
    event.listen(
        engine, "before_cursor_execute", lambda *given: said.append(str(given[2]))
    )
    async with platform.database.transaction() as tx:
        await tx.execute(text("SELECT 1"))
    assert not any("audit" in statement for statement in said)
    async with platform.database.transaction() as tx:
        tx.audit(act("one"))
        tx.audit(act("two"))
    assert len([s for s in said if "audit" in s]) == 3


async def test_the_request_is_written_with_the_act_and_counts_its_rows(
    platform: Platform,
):
    asking = Asking(
        request_id="0123456789abcdef",
        address="10.1.2.3",
        elapsed=lambda: 0.25,
        actor="ada",
        credential="hub",
    )
    token = ASKING.set(asking)
    try:
        await write(platform, 2)
        with pytest.raises(ConflictError):
            await write_and_fail(platform)
    finally:
        ASKING.reset(token)
    assert asking.written == 2
    last = (await read(platform))[-1]
    assert (last.request_id, last.address) == ("0123456789abcdef", "10.1.2.3")
    assert (last.actor, last.credential, last.duration_ms) == ("ada", "hub", 250.0)
    assert last.at == START


async def test_without_the_key_nothing_is_written(db_url: str, platform: Platform):
    database = Database(db_url, clock=Clock())
    try:
        with pytest.raises(NoAuditKeyError):
            await write(dataclasses.replace(platform, database=database), 1)
        async with database.transaction() as tx:
            await tx.execute(text("SELECT 1"))
    finally:
        await database.close()
    assert await find(platform) == []


async def test_values_come_back_from_the_database_as_they_were_hashed(
    platform: Platform,
):
    documents: Sequence[dict[str, Any]] = [
        {},
        {"z": 1, "a": {"é": [1, 2.5, None, True], "b": "x\u0000y\u2028"}},
        {"big": 1 << 62, "small": 1e-7, "round": 3.0, "minus": -0.0, "huge": 1e300},
        {"text": 'quote " backslash \\ tab \t', "emoji": "👩‍🔬", "empty": ""},
        {"nested": {"10": 1, "9": 2, "list": [[], {}, [{}]]}},
        {"float": 0.1 + 0.2, "tenth": 0.1, "third": 1 / 3, "e": 1.5e-300},
    ]
    await note(platform, *(act("n", before=d, after=d) for d in documents))
    await note(platform, act("x\u0000\n\ud800", message="a\r\nb"))
    assert await find(platform) == []


async def test_durations_come_back_as_they_were_hashed(platform: Platform):
    for seconds in (0.0, 1e-7, 0.0012345, 1 / 3, 12.3456789, 86_400.0004):
        asking = Asking(request_id="", address="", elapsed=lambda s=seconds: s)
        token = ASKING.set(asking)
        try:
            await write(platform, 1)
        finally:
            ASKING.reset(token)
    assert await find(platform) == []


async def test_fifty_writers_at_once_make_one_chain_without_a_gap(platform: Platform):
    first = await newest(platform)

    async def one(number: int) -> None:
        async with platform.database.transaction() as tx:
            if number % 5 == 4:
                tx.audit(act("given up"))
                raise ConflictError("no")
            for part in range(1 + number % 3):
                tx.audit(act(f"n{number}-{part}"))

    results = await asyncio.gather(*map(one, range(50)), return_exceptions=True)
    assert sum(isinstance(r, ConflictError) for r in results) == 10
    assert sum(r is None for r in results) == 40
    entries = [e for e in await read(platform) if e.seq > first]
    expected = sum(1 + n % 3 for n in range(50) if n % 5 != 4)
    assert [e.seq for e in entries] == list(range(first + 1, first + 1 + expected))
    assert "given up" not in {e.object_name for e in entries}
    assert await find(platform) == []


async def test_two_processes_write_one_chain(db_url: str, platform: Platform):
    other = Database(db_url, clock=Clock(), audit_key=AUDIT_KEY)
    others = dataclasses.replace(platform, database=other)
    try:
        await asyncio.gather(
            *(write(p, 1, n) for n in range(10) for p in (platform, others))
        )
    finally:
        await other.close()
    assert await find(platform) == []


async def test_events_and_acts_together_never_wait_for_each_other(platform: Platform):
    async def one(number: int) -> None:
        async with platform.database.transaction() as tx:
            if number % 3:
                tx.audit(act(f"n{number}"))
            if number % 2:
                tx.record(Event(kind=EventKind.USER_JOINED, text="x", actor="y"))

    async with asyncio.timeout(60):
        await asyncio.gather(*map(one, range(30)))
    assert await find(platform) == []


async def test_a_clock_that_goes_back_does_not_change_the_order(platform: Platform):
    clock = platform.database.clock
    assert isinstance(clock, Clock)
    await write(platform, 1)
    clock.pass_(-3600)
    await write(platform, 1, 2)
    entries = await read(platform)
    assert entries[-1].at < entries[-2].at
    assert await find(platform) == []


# --- append only -----------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET actor = 'nobody'",
        "UPDATE audit SET hash = hash",
        "DELETE FROM audit WHERE seq = 1",
        "DELETE FROM audit",
    ],
)
async def test_the_database_itself_refuses_to_change_rows(
    platform: Platform, statement: str
):
    await write(platform, 2)
    with pytest.raises(DBAPIError, match="append-only"):
        async with platform.database.transaction() as tx:
            await tx.execute(text(statement))
    assert await find(platform) == []


@pytest.mark.parametrize("db_url", ["postgresql"], indirect=True)
@pytest.mark.postgres
async def test_the_table_cannot_be_emptied_at_once(platform: Platform):
    await write(platform, 2)
    with pytest.raises(DBAPIError, match="append-only"):
        async with platform.database.transaction() as tx:
            await tx.execute(text("TRUNCATE audit"))


# --- tampering -------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "actor = 'mallory'",
        "actor_id = '00000000-0000-0000-0000-000000000000'",
        "result = 'refused'",
        "address = '::1'",
        "message = 'x'",
        "before = NULL, after = '{\"n\": 8}'",
        "duration_ms = duration_ms + 0.5",
        "request_id = 'x'",
        "domain_id = 'x'",
        "hash = '0'",
    ],
)
async def test_a_changed_row_is_found(platform: Platform, change: str):
    await write(platform, 6)
    last = await newest(platform)
    await tamper(platform, f"UPDATE audit SET {change} WHERE seq = {last - 2}")
    assert await find(platform) == [(last - 2, "altered")]


async def test_a_changed_time_is_found(platform: Platform):
    await write(platform, 3)
    last = await newest(platform)
    moment = (
        "'2026-01-01 00:00:00.000001'"
        if platform.database.is_sqlite
        else "at + interval '1 microsecond'"
    )
    await tamper(platform, f"UPDATE audit SET at = {moment} WHERE seq = {last - 1}")
    assert await find(platform) == [(last - 1, "altered")]


async def test_a_removed_row_is_found(platform: Platform):
    await write(platform, 6)
    last = await newest(platform)
    await tamper(platform, f"DELETE FROM audit WHERE seq = {last - 2}")
    assert await find(platform) == [(last - 2, "missing")]


async def test_rows_that_changed_places_are_found(platform: Platform):
    await write(platform, 6)
    last = await newest(platform)
    one, other = last - 3, last - 2
    await tamper(
        platform,
        f"UPDATE audit SET seq = -1 WHERE seq = {one}",
        f"UPDATE audit SET seq = {one} WHERE seq = {other}",
        f"UPDATE audit SET seq = {other} WHERE seq = -1",
    )
    assert {seq for seq, _ in await find(platform)} >= {one, other}


async def test_a_row_put_in_behind_the_last_is_found(platform: Platform):
    await write(platform, 2)
    last = await newest(platform)
    names = ", ".join(n for n in chain.Entry.__struct_fields__ if n != "seq")
    await tamper(
        platform,
        f"INSERT INTO audit (seq, hash, {names}) SELECT {last + 1}, hash, {names}"
        f" FROM audit WHERE seq = {last}",
        f"UPDATE audit_head SET seq = {last + 1}",
    )
    assert (last + 1, "altered") in await find(platform)


async def test_a_tail_that_was_taken_away_is_found(platform: Platform):
    await write(platform, 6)
    last = await newest(platform)
    await tamper(platform, f"DELETE FROM audit WHERE seq > {last - 3}")
    assert await find(platform) == [(last - 2, "missing")]


async def export(platform: Platform) -> int:
    return await AuditReconciler(platform, Signals()).reconcile()


async def test_a_tail_taken_away_with_the_head_set_back_is_found(platform: Platform):
    await write(platform, 6)
    last = await newest(platform)
    await export(platform)
    await tamper(
        platform,
        f"DELETE FROM audit WHERE seq > {last - 3}",
        f"UPDATE audit_head SET seq = {last - 3},"
        f" hash = (SELECT hash FROM audit WHERE seq = {last - 3})",
    )
    report = await check_chain(platform)
    assert [(b.seq, b.kind) for b in report.breaks] == [(last - 2, "truncated")]
    assert "2026-01-01" in report.breaks[0].detail


async def test_a_whole_table_that_was_taken_away_is_found(platform: Platform):
    await write(platform, 3)
    await export(platform)
    await tamper(platform, "DELETE FROM audit", "DELETE FROM audit_head")
    assert (1, "truncated") in await find(platform)
    await write(platform, 1)  # and whoever writes on does not heal it
    assert (await find(platform)) != []


async def test_a_head_that_was_replaced_is_found(platform: Platform):
    await write(platform, 4)
    last = await newest(platform)
    await tamper(platform, f"UPDATE audit_head SET seq = {last - 1}")
    assert await find(platform) == [(last, "head")]
    await tamper(platform, f"UPDATE audit_head SET seq = {last}, hash = 'x'")
    assert await find(platform) == [(last, "head")]
    await tamper(platform, "DELETE FROM audit_head")
    assert await find(platform) == [(last, "head")]


async def test_a_chain_that_was_lost_its_head_goes_on_where_it_ends(
    platform: Platform,
):
    await write(platform, 4)
    last = await newest(platform)
    await tamper(platform, "DELETE FROM audit_head")
    await asyncio.gather(*(write(platform, 1) for _ in range(5)))
    assert await newest(platform) == last + 5
    assert await find(platform) == []


async def test_another_key_finds_nothing_as_it_was(db_url: str, platform: Platform):
    await write(platform, 2)
    database = Database(db_url, clock=Clock(), audit_key=b"another")
    others = dataclasses.replace(platform, database=database)
    try:
        assert len(await find(others)) == await newest(platform)
    finally:
        await database.close()


async def test_spoilt_lines_of_heads_are_no_clean_bill(platform: Platform):
    await write(platform, 1)
    await export(platform)
    with Path(platform.settings.audit_heads).open("ab") as raw:
        raw.write(b"nonsense\n")
    report = await check_chain(platform)
    assert (report.ok, report.unreadable, report.breaks) == (False, 1, [])


# --- the head outside of the database ----------------------------------------------


async def test_the_head_is_exported_when_it_has_moved(platform: Platform):
    await write(platform, 2)
    reconciler = AuditReconciler(platform, Signals())
    assert [await reconciler.reconcile() for _ in range(3)] == [1, 0, 0]
    await write(platform, 1)
    assert await reconciler.reconcile() == 1
    again = AuditReconciler(platform, Signals())  # a service that starts
    assert await again.reconcile() == 0
    heads, _ = HeadFile(platform.settings.audit_heads).read()
    assert list(heads) == [await newest(platform) - 1, await newest(platform)]
    assert await find(platform) == []


async def test_the_head_is_exported_at_the_end_whatever_happens(platform: Platform):
    await write(platform, 1)
    await AuditReconciler(platform, Signals()).close()
    heads, _ = HeadFile(platform.settings.audit_heads).read()
    assert list(heads) == [await newest(platform)]
    await write(platform, 1)
    settings = dataclasses.replace(platform.settings, audit_heads="/dev/null/no")
    broken = dataclasses.replace(platform, settings=settings)
    await AuditReconciler(broken, Signals()).close()


async def test_an_empty_audit_is_in_order(database: Database, platform: Platform):
    report = await check_chain(platform)
    assert report.ok
    assert report.head is None or isinstance(report.head, Head)
    assert all(isinstance(b, Break) for b in report.breaks)


# --- refusals --------------------------------------------------------------------


async def test_a_loop_of_refusals_leaves_a_bounded_number_of_rows(platform: Platform):
    before = await newest(platform)
    asking = Asking(
        request_id="r", address="10.0.0.1", elapsed=lambda: 0.0, actor_id="u"
    )
    token = ASKING.set(asking)
    try:
        # Nearly there already, as after a long loop.
        for _ in range(MOST_OF_PERSON - 2):
            platform.refusals.judge("u", "10.0.0.1", START)
        for _ in range(10):
            await note_refusal(platform, act("n"), ConflictError("no"))
    finally:
        ASKING.reset(token)
    entries = [e for e in await read(platform) if e.seq > before]
    assert [e.code for e in entries] == ["conflict", "conflict", AND_MORE]
    assert "10.0.0.1" in entries[-1].message
    assert await find(platform) == []


async def test_a_refusal_that_cannot_be_written_is_still_a_refusal(
    db_url: str, platform: Platform, caplog: pytest.LogCaptureFixture
):
    database = Database(db_url, clock=Clock())  # without the key
    broken = dataclasses.replace(platform, database=database)
    try:
        await note_refusal(broken, act("n"), ConflictError("no"))
    finally:
        await database.close()
    assert "could not be written" in caplog.text
