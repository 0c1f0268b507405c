"""The rules of quotas, one by one, on both databases."""

from __future__ import annotations

import pytest

from backendai_hub.api.agents import ContainerState as State
from backendai_hub.core.access import Caller
from backendai_hub.core.errors import (
    ConflictError,
    InvalidRequestError,
    LimitReachedError,
    NeverFitsError,
)
from backendai_hub.core.images import Image
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db import containers, session_lists
from backendai_hub.db import sessions as rows
from backendai_hub.db.limits import load_scopes
from backendai_hub.operations import sessions as verbs
from backendai_hub.operations.deadlines import end_overdue
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.usage import verify_usage
from backendai_hub.operations.users import ensure_user
from tests.factories import (
    GIB,
    Node,
    add_node,
    make_device,
    make_gpu,
    prepare,
    principal_of,
    schedule,
    seen,
    start,
    submit,
)
from tests.tenants import (
    Office,
    ask_with_key,
    breaches,
    make_system,
    read,
    why,
)


@pytest.fixture
async def office(platform: Platform) -> Office:
    return Office(platform)


@pytest.fixture
async def node(platform: Platform) -> Node:
    host = make_device(slots={"cpu": 16_000, "mem": 64 * GIB})
    return await add_node(platform, devices=[host, make_gpu("g1"), make_gpu("g2")])


async def end(platform: Platform, node: Node, session: Session) -> None:
    """Let a session end as they do: its process exits, and the node says so."""
    async with platform.database.read() as connection:
        found = await containers.list_containers(connection, session_id=session.id)
    await node.report([seen(found[0].id, State.EXITED, exit_code=0)])


async def stop(platform: Platform, session: Session) -> None:
    principal = await principal_of(platform, session.owner, Caller.USER)
    await verbs.terminate_session(platform, principal, session.id)


# --- Q1 to Q8 ----------------------------------------------------------------------


async def test_q1_a_user_uses_at_most_what_their_default_keypairs_policy_allows(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "4", "mem": "8g"})
    await start(platform, slots={"cpu": 3})
    over = (await submit(platform, server="two", slots={"cpu": 2})).session
    fits = (await submit(platform, server="three", slots={"cpu": 1})).session

    assert await why(platform, over) == "user alice: cpu 3 of 4 in use, asks 2"
    assert (await read(platform, fits)).status is SessionStatus.SCHEDULED


async def test_q2_two_users_share_the_limit_of_their_project(
    platform: Platform, office: Office, node: Node
):
    await office.change("project", "default:default", total_resource_slots={"cpu": "4"})
    await start(platform, "alice", slots={"cpu": 3})
    over = (await submit(platform, "bob", slots={"cpu": 2})).session

    assert await why(platform, over) == "project default: cpu 3 of 4 in use, asks 2"


async def test_q3_two_projects_share_the_limit_of_their_domain(
    platform: Platform, office: Office, node: Node
):
    await office.make_domain("research", total_resource_slots={"cuda.device": "1"})
    for project in ("vision", "speech"):
        await office.make("project", name=project, domain="research")
    await office.make("user", name="vera", domain="research", project="research:vision")
    await office.make("user", name="sam", domain="research", project="research:speech")
    await start(platform, "vera", slots={"cuda.device": 1})
    over = (await submit(platform, "sam", slots={"cuda.device": 1})).session

    assert await why(platform, over) == (
        "domain research: cuda.device 1 of 1 in use, asks 1"
    )
    assert (await read(platform, over)).project == "speech"


async def test_q4_a_slot_that_a_limited_policy_does_not_list_can_never_be_had(
    platform: Platform, office: Office, node: Node
):
    limits = {"cpu": "4", "mem": "8g"}
    await office.limit_user(
        "alice", default_for_unspecified="LIMITED", total_resource_slots=limits
    )
    await office.limit_user(
        "bob", default_for_unspecified="UNLIMITED", total_resource_slots=limits
    )
    with pytest.raises(NeverFitsError, match=r"alice: cuda\.device 0 of 0 in use"):
        await submit(platform, "alice", slots={"cuda.device": 1})
    await start(platform, "alice", slots={"cpu": 1})
    await start(platform, "bob", slots={"cuda.device": 1})


async def test_q5_what_is_being_ended_still_counts(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "4"})
    ending = await start(platform, slots={"cpu": 4})
    await stop(platform, ending)
    assert (await read(platform, ending)).status is SessionStatus.TERMINATING
    waiting = (await submit(platform, server="two", slots={"cpu": 1})).session

    assert await why(platform, waiting) == "user alice: cpu 4 of 4 in use, asks 1"
    await end(platform, node, ending)
    assert await schedule(platform) == 1


async def test_q6_what_waits_never_counts(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "4"})
    await office.change("domain", "default", total_resource_slots={"cpu": "4"})
    running = await start(platform, slots={"cpu": 3})
    for number in range(5):
        await submit(platform, server=f"w{number}", slots={"cpu": 4})
    small = (await submit(platform, server="small", slots={"cpu": 1})).session

    assert await schedule(platform) == 1
    assert (await read(platform, small)).status is SessionStatus.SCHEDULED
    assert (await read(platform, running)).status is SessionStatus.SCHEDULED


async def test_q7_a_system_session_counts_against_its_own_number_only(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user(
        "alice",
        max_concurrent_sessions=1,
        max_concurrent_sftp_sessions=1,
        total_resource_slots={"cpu": "1"},
        default_for_unspecified="LIMITED",
    )
    await office.change("domain", "default", total_resource_slots={"cpu": "1"})
    await office.change("keypair-policy", "of-alice",
                        total_resource_slots={"cpu": "1", "mem": "inf"})  # fmt: skip
    first = (await submit(platform, server="ftp", slots={"cpu": 1})).session
    await make_system(platform, first.id)
    assert await schedule(platform) == 1
    await start(platform, server="own", slots={"cpu": 1})
    second = (await submit(platform, server="ftp2", slots={"cpu": 1})).session
    await make_system(platform, second.id)

    assert await why(platform, second) == (
        "user alice: sftp-sessions 1 of 1 in use, asks 1"
    )
    await end(platform, node, first)
    assert await schedule(platform) == 1
    assert await breaches(platform) == []


async def test_q8_what_waits_for_a_limit_starts_in_the_pass_after_another_has_ended(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", max_concurrent_sessions=1)
    first = await start(platform)
    second = (await submit(platform, server="two")).session
    assert await why(platform, second) == "user alice: sessions 1 of 1 in use, asks 1"

    await end(platform, node, first)

    assert await schedule(platform) == 1
    assert (await read(platform, second)).status is SessionStatus.SCHEDULED
    assert await breaches(platform) == []


# --- more than one limit -----------------------------------------------------------


async def test_every_limit_in_the_way_is_told_at_once_the_widest_first(
    platform: Platform, office: Office, node: Node
):
    await office.make_domain("research", total_resource_slots={"cpu": "6"})
    await office.make("project", name="vision", domain="research",
                      total_resource_slots={"cpu": "5", "mem": "10g"})  # fmt: skip
    await office.make("user", name="vera", domain="research", project="research:vision")
    await office.limit_user(
        "vera", total_resource_slots={"cpu": "4"}, max_concurrent_sessions=1
    )
    await start(platform, "vera", slots={"cpu": 4, "mem": "8g"})
    over = (
        await submit(platform, "vera", server="two", slots={"cpu": 3, "mem": "4g"})
    ).session

    assert await why(platform, over) == (
        "domain research: cpu 4 of 6 in use, asks 3; "
        "project vision: cpu 4 of 5 in use, asks 3; "
        "project vision: mem 8 GiB of 10 GiB in use, asks 4 GiB; "
        "user vera: cpu 4 of 4 in use, asks 3; "
        "user vera: sessions 1 of 1 in use, asks 1"
    )


async def test_another_keypair_is_limited_by_its_own_policy_and_by_its_owners(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "4"})
    await office.make("keypair-policy", name="robot", total_resource_slots={"cpu": "2"})
    key = await office.make("keypair", user="alice", resource_policy="robot")
    first = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 2})).session
    assert await schedule(platform) == 1
    second = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 1})).session
    assert await why(platform, second) == (
        f"keypair {key.name}: cpu 2 of 2 in use, asks 1"
    )
    own = (await submit(platform, slots={"cpu": 3})).session
    assert await why(platform, own) == "user alice: cpu 2 of 4 in use, asks 3"
    assert (await read(platform, first)).status is SessionStatus.SCHEDULED


async def test_a_keypair_with_more_than_its_owner_does_not_lift_the_owners_limit(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "1"})
    await office.make("keypair-policy", name="wide")
    key = await office.make("keypair", user="alice", resource_policy="wide")
    with pytest.raises(NeverFitsError, match="user alice: cpu 0 of 1 in use, asks 2"):
        await ask_with_key(platform, "alice", key.id, slots={"cpu": 2})


async def test_another_default_keypair_brings_its_policy_and_keeps_the_count(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "4"})
    await office.make("keypair-policy", name="small", total_resource_slots={"cpu": "2"})
    key = await office.make("keypair", user="alice", resource_policy="small")
    await start(platform, slots={"cpu": 2})
    await office.change("keypair", key.name, is_default=True)
    waiting = (await submit(platform, server="two", slots={"cpu": 1})).session

    assert await why(platform, waiting) == "user alice: cpu 2 of 2 in use, asks 1"
    assert await breaches(platform) == []


async def test_what_a_purged_keypair_started_goes_on_under_its_owners_limit(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "3"})
    key = await office.make("keypair", user="alice")
    orphan = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 2})).session
    queued = (await ask_with_key(platform, "alice", key.id, slots={"cpu": 2})).session
    assert await schedule(platform) == 1
    await office.purge("keypair", key.name)

    assert await breaches(platform) == []
    assert await why(platform, queued) == "user alice: cpu 2 of 3 in use, asks 2"
    await end(platform, node, orphan)
    assert await schedule(platform) == 1
    assert await breaches(platform) == []


async def test_the_default_keypair_cannot_be_purged(platform: Platform, office: Office):
    await ensure_user(platform, "alice")
    key = await office.default_key("alice")
    with pytest.raises(ConflictError, match="default keypair"):
        await office.purge("keypair", key.name)


# --- limits that change ------------------------------------------------------------


async def test_lowering_limits_of_every_scope_below_use_stops_nothing(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", total_resource_slots={"cpu": "8"})
    running = [
        await start(platform, server=f"s{n}", slots={"cpu": 2}) for n in range(3)
    ]
    none = {"cpu": "0", "mem": "0"}
    await office.change("domain", "default", total_resource_slots=none)
    await office.change("project", "default:default", total_resource_slots=none)
    await office.change(
        "keypair-policy",
        "of-alice",
        total_resource_slots={"cpu": "1"},
        max_concurrent_sessions=1,
        default_for_unspecified="LIMITED",
    )

    assert await breaches(platform) == []
    for session in running:
        assert (await read(platform, session)).status is SessionStatus.SCHEDULED
    await end(platform, node, running[0])
    assert await breaches(platform) == []
    with pytest.raises(NeverFitsError):
        await submit(platform, server="more", slots={"cpu": 1})


async def test_what_waited_when_a_limit_was_lowered_goes_on_waiting_and_says_so(
    platform: Platform, office: Office, node: Node
):
    waiting = (await submit(platform, slots={"cpu": 2})).session
    await office.change("domain", "default", total_resource_slots={"cpu": "1"})
    assert await why(platform, waiting) == "domain default: cpu 0 of 1 in use, asks 2"

    await office.change("domain", "default", total_resource_slots={"cpu": "2"})
    assert await schedule(platform) == 1


async def test_a_limit_of_inf_is_no_limit_and_a_limit_taken_away_neither(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user(
        "alice",
        default_for_unspecified="LIMITED",
        total_resource_slots={"cpu": "inf", "mem": "inf", "cuda.device": "1"},
    )
    await start(platform, slots={"cpu": 8, "cuda.device": 1})
    waiting = (await submit(platform, server="two", slots={"cuda.device": 1})).session
    assert "cuda.device 1 of 1" in await why(platform, waiting)
    await office.change("keypair-policy", "of-alice", total_resource_slots={},
                        default_for_unspecified="UNLIMITED")  # fmt: skip
    assert await schedule(platform) == 1


async def test_one_pass_counts_what_it_has_just_placed(
    platform: Platform, office: Office, node: Node
):
    await office.change("project", "default:default", total_resource_slots={"cpu": "3"})
    for user in ("alice", "bob", "carol", "dave"):
        await submit(platform, user, slots={"cpu": 1})
    assert await schedule(platform) == 3
    assert await breaches(platform) == []


async def test_a_session_counts_where_it_was_asked_for_though_its_owner_has_moved(
    platform: Platform, office: Office, node: Node
):
    await office.make_domain("research", total_resource_slots={"cpu": "2"})
    await office.make("project", name="vision", domain="research")
    await office.change("domain", "default", total_resource_slots={"cpu": "4"})
    moved = await start(platform, slots={"cpu": 4})
    await office.change("user", "alice", domain="research", project="research:vision")
    await start(platform, server="new", slots={"cpu": 2})

    assert await breaches(platform) == []
    full = (await submit(platform, "bob", slots={"cpu": 1})).session
    assert await why(platform, full) == "domain default: cpu 4 of 4 in use, asks 1"
    await end(platform, node, moved)
    assert await schedule(platform) == 1
    assert await breaches(platform) == []


async def test_a_session_that_fails_to_start_gives_everything_back_at_once(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", max_concurrent_sessions=1)
    failed = await start(platform)
    platform.database.clock.pass_(61)  # type: ignore[attr-defined]
    assert await end_overdue(platform) == 1
    assert (await read(platform, failed)).status is SessionStatus.ERROR
    assert await breaches(platform) == []
    await start(platform, server="two")


async def test_recalculating_only_compares_and_finds_nothing(
    platform: Platform, office: Office, node: Node
):
    await office.make("keypair", user=(await ensure_user(platform, "alice")).name)
    first = await start(platform, slots={"cpu": 2, "cuda.device": 1})
    await start(platform, "bob", slots={"cpu": 1})
    await end(platform, node, first)
    report = await verify_usage(platform)
    assert (report.drift, report.breaches) == (0, [])
    assert report.compared >= 10

    async with platform.database.transaction() as tx:
        await tx.connection.exec_driver_sql(
            "UPDATE ledger SET used = used + 1 WHERE kind = 'project' AND slot = 'cpu'"
        )
    found = await verify_usage(platform)
    assert found.drift == 1
    assert "the ledger says 1001, live allocations are 1000" in found.breaches[0]
    assert (await verify_usage(platform)).drift == 1, "it repairs nothing"


# --- what may wait -----------------------------------------------------------------


async def test_more_than_the_pending_cap_is_refused_and_nothing_is_stored(
    platform: Platform, office: Office
):
    await office.limit_user("alice", max_pending_session_count=2)
    for server in ("a", "b"):
        await submit(platform, server=server)
    with pytest.raises(LimitReachedError, match="2 of 2 sessions wait already"):
        await submit(platform, server="c")
    async with platform.database.read() as connection:
        user = await ensure_user(platform, "alice")
        assert await session_lists.count_live(connection, user.id) == 2
    await submit(platform, "bob")


async def test_what_runs_does_not_fill_the_pending_cap(
    platform: Platform, office: Office, node: Node
):
    await office.limit_user("alice", max_pending_session_count=1)
    for number in range(3):
        await start(platform, server=f"s{number}")


async def test_all_keypairs_of_a_user_share_the_users_pending_cap(
    platform: Platform, office: Office
):
    await office.limit_user("alice", max_pending_session_count=2)
    await office.make("keypair-policy", name="wide")
    await office.make("keypair-policy", name="one", max_pending_session_count=1)
    wide = await office.make("keypair", user="alice", resource_policy="wide")
    one = await office.make("keypair", user="alice", resource_policy="one")
    await ask_with_key(platform, "alice", one.id)
    with pytest.raises(LimitReachedError, match="keypair policy one limits"):
        await ask_with_key(platform, "alice", one.id)
    await ask_with_key(platform, "alice", wide.id)
    with pytest.raises(LimitReachedError, match="keypair policy of-alice limits"):
        await ask_with_key(platform, "alice", wide.id)


async def test_a_retry_of_a_request_that_was_accepted_is_not_counted_again(
    platform: Platform, office: Office
):
    await office.limit_user("alice", max_pending_session_count=1)
    first = await submit(platform, key="same")
    again = await submit(platform, key="same")
    assert (again.created, again.session.id) == (False, first.session.id)


async def test_waiting_sessions_together_ask_for_no_more_than_the_pending_slots(
    platform: Platform, office: Office
):
    await office.limit_user("alice", max_pending_session_resource_slots={"cpu": "3"})
    await submit(platform, server="a", slots={"cpu": 2})
    with pytest.raises(LimitReachedError, match="cpu 2 of 3 waits already, asks 2"):
        await submit(platform, server="b", slots={"cpu": 2})
    await submit(platform, server="c", slots={"cpu": 1, "mem": "64g"})


# --- images, shared memory, amounts -------------------------------------------------


BIG = Image(
    name="big",
    references={"fake": "fake"},
    minimum={"cpu": "2", "mem": "1g"},
    shmem="256m",
)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"slots": {"cpu": "1"}}, "cpu: 1 is less than big needs; ask for at least 2"),
        (
            {"slots": {"cpu": "5"}},
            "cpu: 5 is more than big may have; ask for at most 4",
        ),
        ({"slots": {"cuda.device": "2"}}, "cuda.device: 2 is more than big may have"),
        ({"slots": {"mem": "1g"}}, "ask for at least 1280m"),
        ({"slots": {"mem": "2g"}, "shmem": "2g"}, "ask for at least 3g"),
    ],
    ids=lambda v: None if isinstance(v, str) else str(v),
)
async def test_an_image_has_a_minimum_and_a_maximum_and_shared_memory_comes_on_top(
    platform: Platform, office: Office, request_: dict[str, object], words: str
):
    await prepare(platform, [BIG])
    await office.change("image", "big", maximum={"cpu": "4", "cuda.device": "1"})
    with pytest.raises(InvalidRequestError) as refused:
        await submit(platform, image="big", **request_)
    assert words in refused.value.message


@pytest.mark.parametrize("slots", [{}, {"cpu": 0}, {"cpu": "0", "mem": "0"}], ids=str)
async def test_what_is_left_out_or_none_is_the_images_minimum_with_its_shared_memory(
    platform: Platform, slots: dict[str, object]
):
    await prepare(platform, [BIG])
    session = (await submit(platform, image="big", slots=slots)).session
    assert session.slots == {"cpu": "2", "mem": "1280m"}
    assert session.shmem == "256m"


async def test_shared_memory_has_to_leave_memory_for_the_rest(platform: Platform):
    await prepare(platform, [Image(name="bare", references={"fake": "fake"})])
    with pytest.raises(InvalidRequestError, match="leaves nothing of 1 GiB"):
        await submit(platform, image="bare", slots={"mem": "1g"}, shmem="1g")


@pytest.mark.parametrize(
    ("slots", "words"),
    [
        ({"cuda.devices": 1}, "no such resource here; did you mean 'cuda.device'"),
        ({"cpu": "-1"}, "cpu: '-1' is not an amount"),
        ({"cpu": "NaN"}, "cpu: 'nan' is not an amount"),
        ({"cpu": 1e309}, "cpu: 'inf' is not an amount"),
        ({"cpu": "1e309"}, "not an amount"),
        ({"mem": 1 << 63}, "no integer this long"),
        ({"mem": "1 GiB"}, "not a size"),
        ({"cuda.device": "0.5"}, "devices are given whole"),
        ({"shmem": "1g"}, "field 'shmem'"),
        ({"sessions": 1}, "not a slot"),
        ({"cuda.device": 1, "cuda.shares": 1}, "not for both"),
        ({"cpu": None}, "not NoneType"),
        ({"cpu": True}, "not bool"),
    ],
    ids=str,
)
async def test_amounts_that_make_no_sense_are_refused_in_words(
    platform: Platform, slots: dict[str, object], words: str
):
    with pytest.raises(InvalidRequestError) as refused:
        await submit(platform, slots=slots)
    assert words in refused.value.message


async def test_what_every_session_needs_has_to_be_asked_for(
    platform: Platform, office: Office, node: Node
):
    await office.change("slot-type", "cuda.device", required=True)
    with pytest.raises(InvalidRequestError, match=r"cuda\.device: every session needs"):
        await submit(platform)
    await start(platform, slots={"cuda.device": 1})


async def test_limits_can_name_known_resources_only(platform: Platform, office: Office):
    for noun, more in (
        ("domain", {}),
        ("keypair-policy", {}),
        ("project", {"domain": "default"}),
    ):
        with pytest.raises(InvalidRequestError, match=r"did you mean 'cuda\.device'"):
            await office.make(
                noun, name="x", total_resource_slots={"cuda.devices": "1"}, **more
            )
    with pytest.raises(InvalidRequestError, match="max_pending_session_resource"):
        await office.make(
            "keypair-policy", name="x", max_pending_session_resource_slots={"gpu": "1"}
        )


async def test_the_scopes_of_a_session_are_what_is_locked_and_counted(
    platform: Platform, office: Office
):
    session = (await submit(platform)).session
    async with platform.database.read() as connection:
        record = await rows.get_record(connection, session.id)
        scopes = await load_scopes(connection, [record])
    assert [str(kind) for kind, _ in record.scopes] == [
        "domain", "project", "user", "keypair"]  # fmt: skip
    assert set(record.scopes) == set(scopes)
