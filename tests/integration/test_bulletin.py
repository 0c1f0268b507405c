"""Pages are told what has changed: by its kind, seldom, and only who may read it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from backendai_hub.core.access import USER_SCOPES, Caller, Principal
from backendai_hub.core.live_usage import UsageTotals
from backendai_hub.core.measures import Sample
from backendai_hub.core.nouns import NOUNS, noun_of
from backendai_hub.core.usage_keeper import Subject
from backendai_hub.operations.bulletin import (
    KINDS,
    LOOK_SECONDS,
    USAGE_SECONDS,
    Bulletin,
    BulletinReader,
    tell_states,
)
from backendai_hub.operations.log_desk import LogReader
from backendai_hub.operations.nouns import change_noun, create_noun, purge_noun
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.simulations import SimulationDesk
from backendai_hub.storage.keeper import HostHealth
from tests.factories import GIB, add_node, make_device, principal_of, schedule, submit

LONG = 1000.0
"""Longer than anybody is left untold."""


class Board:
    """A bulletin that is looked at, with a clock of its own."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._bulletin = Bulletin()
        self._simulations = SimulationDesk()
        self.now = 1.0
        self._look()

    def _look(self) -> None:
        self._bulletin.look(self._platform, self._simulations, self.now)

    def reader(self) -> BulletinReader:
        # As the stream does: what was before is no news.
        self.now += LOOK_SECONDS
        self._look()
        return BulletinReader(self._platform, self._bulletin, LogReader(""))

    def told(self, reader: BulletinReader, who: Principal, after: float) -> set[str]:
        self.now += after
        self._look()
        announced = reader.take(who, self.now)
        return set() if announced is None else set(announced.kinds)


@pytest.fixture
async def board(platform: Platform) -> Board:
    await add_node(platform, devices=[make_device()])
    await submit(platform, "bob", server="before")
    return Board(platform)


async def test_who_looks_at_a_queue_hears_of_it_when_somebody_comes(
    platform: Platform, board: Board
):
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    alice = await principal_of(platform, "alice", Caller.USER)
    roots, hers = board.reader(), board.reader()
    assert board.told(roots, root, LONG) == set()

    await submit(platform, "bob")
    assert "queue" in board.told(roots, root, LONG)
    assert "queue" in board.told(hers, alice, 0)
    assert board.told(roots, root, LONG) == set()

    assert await schedule(platform) > 0
    heard = board.told(roots, root, LONG)
    assert {"queue", "resources", "nodes", "attempts"} <= heard


async def test_a_node_that_reports_what_it_always_does_is_no_news(
    platform: Platform,
):
    node = await add_node(platform, devices=[make_device()])
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    board = Board(platform)
    reader = board.reader()

    await node.report()
    assert board.told(reader, root, LONG) == set()

    node.devices = [make_device(slots={"cpu": 2000, "mem": GIB})]
    await node.report()
    assert {"nodes", "resources"} <= board.told(reader, root, LONG)


async def test_however_much_happens_a_kind_is_told_once_in_a_while(
    platform: Platform, board: Board
):
    alice = await principal_of(platform, "alice", Caller.USER)
    reader = board.reader()
    pause = next(kind.seconds for kind in KINDS if kind.name == "queue")

    heard = []
    for number in range(4):
        await submit(platform, "alice", server=f"s{number}")
        heard.append("queue" in board.told(reader, alice, LOOK_SECONDS))
    assert heard == [True, False, False, False]
    assert "queue" in board.told(reader, alice, pause), "what came meanwhile is told"
    assert "queue" not in board.told(reader, alice, pause)


async def test_all_readers_share_one_look(platform: Platform, board: Board):
    alice = await principal_of(platform, "alice", Caller.USER)
    reader = board.reader()
    board.told(reader, alice, LOOK_SECONDS)

    await submit(platform, "alice", server="soon")

    assert board.told(reader, alice, LOOK_SECONDS / 2) == set()
    assert "queue" in board.told(reader, alice, LOOK_SECONDS / 2)


@pytest.mark.parametrize(
    ("caller", "sees_all_of"),
    [
        (Caller.USER, set()),
        (
            Caller.DOMAIN_ADMIN,
            {"user-policies", "keypair-policies", "project-policies"},
        ),
    ],
)
async def test_who_does_not_see_all_of_a_kind_hears_of_what_is_everybodys_only(
    platform: Platform, caller: Caller, sees_all_of: set[str]
):
    alice = await principal_of(platform, "alice", caller)
    allowed = {kind.name for kind in KINDS if kind.is_for(alice)}

    everybodys = {"attempts", "queue", "resources", "hosts", "slot-types"}
    assert allowed == everybodys | sees_all_of


def test_everybody_hears_when_a_storage_host_answers_again_and_not_of_every_byte():
    starting = HostHealth(state="starting", since=datetime(2026, 1, 1, tzinfo=UTC))
    up = replace(starting, state="ok", total_bytes=10, free_bytes=5)

    assert tell_states({"local": starting}) != tell_states({"local": up})
    fuller = replace(up, free_bytes=4)
    assert tell_states({"local": up}) == tell_states({"local": fuller})


async def test_who_may_read_nothing_hears_of_nothing(platform: Platform):
    alice = await principal_of(platform, "alice", Caller.USER)
    scopeless = Principal(caller=Caller.USER, name="alice", id=alice.id)
    router = Principal(caller=Caller.ROUTER, name="router")
    # An administrator in a notebook, whose token has no administrator's scopes.
    plain = Principal(
        caller=Caller.SUPERADMIN, name="root", id="root", scopes=USER_SCOPES
    )

    assert not [kind.name for kind in KINDS if kind.is_for(scopeless)]
    assert not [kind.name for kind in KINDS if kind.is_for(router)]
    assert {kind.name for kind in KINDS if kind.is_for(plain)} == {
        "attempts",
        "hosts",
        "queue",
        "resources",
        "slot-types",
    }


async def test_a_list_of_nouns_is_told_of_when_somebody_makes_changes_or_removes_one(
    platform: Platform, board: Board
):
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    presets = noun_of("preset")
    reader = board.reader()
    small = presets.create_type(name="small", resource_slots={"cpu": "1"})

    await create_noun(platform, root, presets, small)
    assert board.told(reader, root, LONG) == {"presets"}
    assert board.told(reader, root, LONG) == set()

    larger = presets.change_type(resource_slots={"cpu": "2"})
    await change_noun(platform, root, presets, "small", larger)
    assert board.told(reader, root, LONG) == {"presets"}

    await purge_noun(platform, root, presets, "small")
    assert board.told(reader, root, LONG) == {"presets"}


async def test_what_a_list_names_is_told_of_with_it(platform: Platform, board: Board):
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    policies = noun_of("user-policy")
    reader = board.reader()

    few = policies.create_type(name="few")
    await create_noun(platform, root, policies, few)

    assert board.told(reader, root, LONG) == {"user-policies", "users"}


async def test_many_changes_of_nouns_are_told_once_in_a_while(
    platform: Platform, board: Board
):
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    presets = noun_of("preset")
    reader = board.reader()
    heard = []
    for number in range(4):
        one = presets.create_type(name=f"p{number}", resource_slots={"cpu": "1"})
        await create_noun(platform, root, presets, one)
        heard.append("presets" in board.told(reader, root, LOOK_SECONDS))

    assert heard == [True, False, False, False]
    assert board.told(reader, root, LONG) == {"presets"}


async def test_who_may_not_read_a_noun_hears_of_none_of_its_changes(
    platform: Platform, board: Board
):
    root = await principal_of(platform, "root", Caller.SUPERADMIN)
    alice = await principal_of(platform, "alice", Caller.USER)
    registries = noun_of("registry")
    hers, roots = board.reader(), board.reader()
    one = registries.create_type(name="quay", url="https://quay.example.org")

    await create_noun(platform, root, registries, one)

    assert board.told(hers, alice, LONG) == set()
    assert "registries" in board.told(roots, root, 0)


def test_every_noun_with_a_list_is_told_of():
    told = {kind.name for kind in KINDS}

    assert {noun.plural for noun in NOUNS} - told == {"folders"}, "facts tell of them"


async def test_of_logs_nobody_hears_with_a_token_that_may_not_read_them(
    platform: Platform, board: Board
):
    ada = await principal_of(platform, "ada", Caller.USER)
    reader = board.reader()

    reader.logs.note("a session")
    assert reader.take(replace(ada, scopes=frozenset()), board.now) is None
    reader.logs.note("a session")
    told = reader.take(ada, board.now + LONG)
    assert told is not None
    assert told.logs == ["a session"]


async def test_use_is_told_of_to_who_sees_whose_it_is_once_per_measuring(
    platform: Platform,
):
    people = {
        "bob": await principal_of(platform, "bob", Caller.USER),
        "alice": await principal_of(platform, "alice", Caller.USER),
        "root": await principal_of(platform, "root", Caller.SUPERADMIN),
    }
    chief = await principal_of(platform, "chief", Caller.DOMAIN_ADMIN)
    people["chief"] = chief
    stranger = Principal(
        caller=Caller.DOMAIN_ADMIN,
        name="stranger",
        id="stranger",
        domain_id="elsewhere",
        scopes=chief.scopes,
    )
    people["stranger"] = stranger
    board = Board(platform)
    readers = {name: board.reader() for name in people}
    learn(platform, owner=people["bob"])

    def hear(after: float) -> set[str]:
        measure(platform)
        board.now += after
        return {
            name
            for name, reader in readers.items()
            if "usage" in board.told(reader, people[name], 0)
        }

    assert hear(LONG) == {"bob", "chief", "root"}
    assert hear(USAGE_SECONDS / 2) == set()
    assert hear(USAGE_SECONDS / 2) == {"bob", "chief", "root"}


def learn(platform: Platform, owner: Principal) -> None:
    subject = Subject(
        id="c",
        session_id="s",
        agent_id="node",
        owner_id=owner.id,
        domain_id=owner.domain_id,
    )
    platform.usage.keeper.learn(subject, UsageTotals())


def measure(platform: Platform) -> None:
    now = platform.database.clock().timestamp()
    platform.usage.keeper.note(now, Sample(id="c", cpu=0.5))
