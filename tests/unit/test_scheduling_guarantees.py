"""Guarantees and maxima in a pass: who starts, who waits for what, and who gives back.

The cluster is small: one node or two, GPUs that are given whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.explain import Explainer
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    NodeState,
    PendingSession,
    Plan,
    ReservedWindow,
    RunningSession,
    ScopeQuota,
    Share,
)
from tests.unit.scheduling_snapshots import (
    ask,
    cluster_of,
    gpu,
    host,
    limit,
    node,
    pending,
    running,
    snapshot,
)

NOW, HOUR = 100_000, 3600
LONG_AGO = NOW - 2 * HOUR
GPU = "cuda.device"


def scopes(who: str) -> tuple[tuple[ScopeKind, str], ...]:
    """The scopes of a user: ``"a/p/u"`` is user u in project p of domain a."""
    domain, project, user = who.split("/")
    return (
        (ScopeKind.DOMAIN, domain),
        (ScopeKind.PROJECT, project),
        (ScopeKind.USER, user),
    )


def wants(name: str, who: str, **changes: Any) -> PendingSession:
    user = who.rsplit("/", 1)[1]
    return pending(name, user=user, **{"scopes": scopes(who), "gpus": 1, **changes})


def runs(name: str, who: str, place: NodeState, *gpus: int, **more: Any) -> Any:
    return running(
        name,
        place,
        *(Share(f"{place.id}/{i}", GPU, MILLI) for i in gpus),
        user=who.rsplit("/", 1)[1],
        **{"scopes": scopes(who), "preemptible": True, "started": LONG_AGO, **more},
    )


def place_of(*held: RunningSession, count: int = 4, name: str = "n") -> NodeState:
    """A node whose GPUs are free as far as nobody holds them."""
    used = {s.device for r in held for at, ss in r.holdings if at == name for s in ss}
    return node(
        name,
        host(64),
        *(gpu(f"{name}/{i}", used=float(f"{name}/{i}" in used)) for i in range(count)),
    )


def guaranteed(**gpus: int) -> dict[tuple[str, ...], ScopeQuota]:
    """Guarantees by path: ``a_p=2`` is 2 GPUs of project p in domain a."""
    return {
        tuple(path.split("_")): ScopeQuota(guaranteed={GPU: count * MILLI})
        for path, count in gpus.items()
    }


def at_most(**gpus: int) -> dict[tuple[str, ...], ScopeQuota]:
    return {
        tuple(path.split("_")): ScopeQuota(maximum={GPU: count * MILLI})
        for path, count in gpus.items()
    }


def decide(
    queue: Iterable[PendingSession],
    held: Iterable[RunningSession] = (),
    *,
    quotas: Any,
    rules: Preemption = Preemption(),  # noqa: B008 - it does not change
    count: int = 4,
    **changes: Any,
) -> Plan:
    held = tuple(held)
    policy = GroupPolicy(quotas=quotas, preemption=rules)
    return plan(
        snapshot(
            [place_of(*held, count=count)],
            queue,
            policy=policy,
            **{"running": held, "now": NOW, **changes},
        )
    )


def names(decided: Plan) -> list[str]:
    return [p.session for p in decided.placements]


PLACE = place_of()

# --- maxima --------------------------------------------------------------------------


def test_nobody_gets_more_than_the_maximum_of_a_scope():
    queue = [wants("one", "a/p/u"), wants("two", "a/q/v"), wants("three", "b/r/w")]

    decided = decide(queue, quotas=at_most(a=1))

    assert names(decided) == ["one", "three"]
    assert (
        "domain a: cuda.device 1 of at most 1 in use in this group, asks 1"
        in decided.waiting["two"]
    )


def test_what_runs_counts_against_the_maximum():
    held = [runs("r", "a/p/u", PLACE, 0, 1)]

    decided = decide([wants("more", "a/p/v")], held, quotas=at_most(a_p=2))

    assert decided.waiting["more"].startswith("project p: cuda.device 2 of at most 2")
    assert decided.preemptions == ()


def test_a_maximum_is_told_with_the_name_of_its_scope():
    named = replace(limit("u"), id="u", name="ursula")

    decided = decide(
        [wants("one", "a/p/u", gpus=2)], quotas=at_most(a_p_u=1), scopes=[named]
    )

    assert decided.waiting["one"].startswith("user ursula: cuda.device 0 of at most 1")


# --- claims --------------------------------------------------------------------------


def test_idle_guarantees_may_be_borrowed():
    queue = [wants(f"s{i}", "b/r/w") for i in range(4)]

    assert len(names(decide(queue, quotas=guaranteed(a=2)))) == 4


def test_who_borrows_leaves_what_others_wait_for_though_it_is_first_in_the_queue():
    queue = [wants(f"s{i}", "b/r/w") for i in range(4)]
    queue += [wants("due", "a/p/u", gpus=2)]

    decided = decide(queue, quotas=guaranteed(a=2))

    assert names(decided) == ["s0", "s1", "due"]
    assert decided.waiting["s2"] == (
        "cuda.device: asks 1; of 2 free, 2 is guaranteed to others who wait for it"
    )


def test_who_waits_for_something_else_than_room_claims_nothing():
    queue = [wants(f"s{i}", "b/r/w") for i in range(4)]
    for changes in (
        {"hold": "it is held"},
        {"gpus": 5},
        {"labels": {"fast": "yes"}},
        {"nodes": ("n",)},
        {"architecture": "aarch64"},
        {"cpu": 100},
    ):
        due = wants("due", "a/p/u", **{"gpus": 2, **changes})
        decided = decide([*queue, due], quotas=guaranteed(a=2))
        assert len(names(decided)) == 4, changes


def test_who_has_reached_a_limit_claims_nothing():
    queue = [wants(f"s{i}", "b/r/w") for i in range(4)]
    due = wants("due", "a/p/u", cpu=2, gpus=2)

    decided = decide([*queue, due], quotas=guaranteed(a=2), scopes=[limit("u", cpu=1)])

    assert len(names(decided)) == 4


def test_who_may_not_be_displaced_does_not_borrow_what_is_idle():
    queue = [wants(f"s{i}", "b/r/w", preemptible=False) for i in range(4)]

    decided = decide(queue, quotas=guaranteed(a=2))

    assert len(names(decided)) == 2
    assert decided.waiting["s3"] == (
        "cuda.device: asks 1; of 2 free, 2 is guaranteed to others, and who may not be"
        " displaced does not borrow it"
    )
    own = [wants("own", "a/p/u", preemptible=False, gpus=2)]
    assert names(decide(own, quotas=guaranteed(a=2, b=2))) == ["own"]


# --- reclaim -------------------------------------------------------------------------


def four_borrowed(**more: Any) -> list[RunningSession]:
    return [
        runs(f"r{i}", "b/r/w", PLACE, i, **{"started": LONG_AGO + i, **more})
        for i in range(4)
    ]


def test_who_is_due_gets_it_back_from_the_newest_borrower():
    decided = decide([wants("due", "a/p/u")], four_borrowed(), quotas=guaranteed(a=2))

    [found] = decided.preemptions
    assert (found.session, found.kind, found.mode) == ("due", "reclaim", "terminate")
    assert [v.session for v in found.victims] == ["r3"]
    assert "it borrows what others are guaranteed" in found.victims[0].reason
    assert "1 session that borrows on n would have to go" in decided.waiting["due"]


def test_no_more_is_got_back_than_is_guaranteed():
    queue = [wants(f"due{i}", "a/p/u") for i in range(4)]

    decided = decide(queue, four_borrowed(), quotas=guaranteed(a=2))

    assert [p.session for p in decided.preemptions] == ["due0", "due1"]
    assert [p.victims[0].session for p in decided.preemptions] == ["r3", "r2"]


def test_what_others_leave_for_it_counts_in_the_next_pass_too():
    queue = [wants(f"due{i}", "a/p/u") for i in range(4)]
    held = four_borrowed()
    first = decide(queue, held, quotas=guaranteed(a=2))
    kept = tuple(p.reserve("") for p in first.preemptions)
    assert kept[0].victims == ("r3",)

    again = decide(queue, held, quotas=guaranteed(a=2), reserved=kept)

    assert again.preemptions == ()
    assert "starts once the sessions have left" in again.waiting["due0"]
    leaving = [*held[:2], *(replace(r, leaving=True) for r in held[2:])]
    assert not decide(queue, leaving, quotas=guaranteed(a=2), reserved=kept).preemptions
    gone = decide(queue, held[:2], quotas=guaranteed(a=2), reserved=kept)
    assert names(gone) == ["due0", "due1"]


def test_who_is_to_leave_for_one_is_not_asked_to_leave_for_another():
    held, quotas = four_borrowed(), guaranteed(a=1, c=1)
    queue = [wants("ours", "a/p/u"), wants("theirs", "c/x/y")]
    first = decide(queue[:1], held, quotas=quotas)
    kept = tuple(p.reserve("") for p in first.preemptions)

    decided = decide(queue, held, quotas=quotas, reserved=kept)

    [found] = decided.preemptions
    assert (found.session, [v.session for v in found.victims]) == ("theirs", ["r2"])


def test_who_is_within_a_guarantee_keeps_what_it_has():
    held = four_borrowed()

    decided = decide([wants("due", "a/p/u")], held, quotas=guaranteed(a=2, b=4))

    assert decided.preemptions == ()


def test_the_oldest_are_within_the_guarantee():
    held = four_borrowed()

    decided = decide(
        [wants(f"due{i}", "a/p/u") for i in range(3)],
        held,
        quotas=guaranteed(a=3, b=2),
    )

    victims = [v.session for p in decided.preemptions for v in p.victims]
    assert victims == ["r3", "r2"]


def test_who_may_not_be_displaced_or_has_just_begun_or_leaves_is_left_alone():
    due = [wants("due", "a/p/u")]
    quotas = guaranteed(a=2)
    for change in ({"preemptible": False}, {"system": True}, {"started": NOW - 1}):
        held = four_borrowed(**change)
        rules = Preemption(min_runtime=60)
        assert not decide(due, held, quotas=quotas, rules=rules).preemptions, change


def test_nobody_goes_for_room_that_comes_by_itself():
    held = four_borrowed()
    held[0] = replace(held[0], leaving=True)
    queue = [wants("due0", "a/p/u"), wants("due1", "a/p/u")]

    decided = decide(queue, held, quotas=guaranteed(a=2))

    assert [p.session for p in decided.preemptions] == ["due1"]
    assert "there is room on n once those have left" in decided.waiting["due0"]


def test_who_is_not_due_reclaims_nothing_and_job_priority_does_not_matter():
    held = four_borrowed(job_priority=9)

    assert decide([wants("due", "a/p/u")], held, quotas=guaranteed(a=2)).preemptions
    for other in (wants("more", "a/p/u", gpus=3), wants("else", "c/x/y")):
        pushing = replace(other, job_priority=10)
        assert not decide([pushing], held, quotas=guaranteed(a=2)).preemptions


def test_what_is_lacking_and_not_due_is_not_reclaimed():
    """Only the GPUs are guaranteed; it is the processors that are missing."""
    held = [
        running(
            "r",
            PLACE,
            Share("n/0", GPU, MILLI),
            Share("n/host", "cpu", 64 * MILLI),
            user="w",
            scopes=scopes("b/r/w"),
            preemptible=True,
            started=LONG_AGO,
        )
    ]
    place = place_of(*held)
    full = replace(
        place, devices=(replace(place.devices[0], free={"cpu": 0}), *place.devices[1:])
    )
    policy = GroupPolicy(quotas=guaranteed(a=2))
    due = wants("due", "a/p/u", cpu=1)

    decided = plan(snapshot([full], [due], policy=policy, running=held, now=NOW))

    assert decided.preemptions == ()


def test_a_cluster_goes_as_a_whole_and_a_waiting_one_gets_room_on_several_nodes():
    places = [place_of(count=2, name="n"), place_of(count=2, name="m")]
    held = [
        replace(
            runs(f"r{i}", "b/r/w", places[0], i, started=LONG_AGO + i),
            holdings=(
                ("n", (Share(f"n/{i}", GPU, MILLI),)),
                ("m", (Share(f"m/{i}", GPU, MILLI),)),
            ),
        )
        for i in range(2)
    ]
    nodes = [place_of(*held, count=2, name=name) for name in ("n", "m")]
    policy = GroupPolicy(quotas=guaranteed(a=2))
    gang = cluster_of(
        "due", *[ask(gpus=1)] * 2, layout="spread", user="u", scopes=scopes("a/p/u")
    )

    decided = plan(snapshot(nodes, [gang], policy=policy, running=held, now=NOW))

    [found] = decided.preemptions
    assert [v.session for v in found.victims] == ["r1"]
    assert {part.node for part in found.members} == {"n", "m"}
    kept = found.reserve("")
    free = [place_of(held[0], count=2, name=name) for name in ("n", "m")]
    other = wants("other", "b/r/w")
    later = plan(
        snapshot(
            free,
            [other, gang],
            policy=policy,
            running=held[:1],
            reserved=[kept],
            now=NOW,
        )
    )
    assert names(later) == ["due"]


def test_the_example_of_the_documentation():
    quotas = guaranteed(research=4, library=2) | at_most(teaching=7)
    who = {"t": "teaching/c/tim", "r": "research/v/rae", "l": "library/o/lou"}

    def asks(name: str, gpus: int = 1) -> PendingSession:
        return wants(name, who[name[0]], gpus=gpus)

    def runs_(name: str, *gpus: int) -> RunningSession:
        started = LONG_AGO + int(name[1:])
        return runs(name, who[name[0]], PLACE, *gpus, started=started)

    def victims(decided: Plan) -> list[str]:
        return sorted(v.session for p in decided.preemptions for v in p.victims)

    teaching = [asks(f"t{i}") for i in range(8)]
    nine = decide(teaching, quotas=quotas, count=8)
    assert names(nine) == [f"t{i}" for i in range(7)]
    assert nine.waiting["t7"] == (
        "domain teaching: cuda.device 7 of at most 7 in use in this group, asks 1"
    )
    held = [runs_(f"t{i}", i) for i in range(7)]
    queue = [asks("t7"), asks("r20", 2)]
    assert victims(decide(queue, held, quotas=quotas, count=8)) == ["t6"]
    held = [*held[:6], runs_("r20", 6, 7)]
    queue = [asks("t7"), asks("t6"), asks("l21")]
    assert victims(decide(queue, held, quotas=quotas, count=8)) == ["t5"]
    held = [*held[:5], runs_("r20", 6, 7), runs_("l21", 5)]
    waiting = [asks("t7"), asks("t6"), asks("t5")]
    too_much = decide([*waiting, asks("r22", 3)], held, quotas=quotas, count=8)
    assert victims(too_much) == []
    enough = decide([*waiting, asks("r23", 2)], held, quotas=quotas, count=8)
    assert victims(enough) == ["t3", "t4"]
    held = [*held[:3], runs_("l21", 5), runs_("r23", 3, 4)]
    assert names(decide(waiting, held, quotas=quotas, count=8)) == ["t7", "t6"]


# --- with the other rules ------------------------------------------------------------

PUSHING = Preemption(enabled=True, victim_scope="resource-group")


def test_job_priority_displaces_nobody_who_is_within_a_guarantee():
    held = [runs("r", "a/p/u", PLACE, 0, 1), runs("x", "b/r/w", PLACE, 2, 3)]
    urgent = wants("urgent", "c/x/y", gpus=2, job_priority=5)

    decided = decide([urgent], held, quotas=guaranteed(a=2), rules=PUSHING)

    [found] = decided.preemptions
    assert found.kind == "priority"
    assert [v.session for v in found.victims] == ["x"]
    only = decide([urgent], held, quotas=guaranteed(a=2, b=2), rules=PUSHING)
    assert only.preemptions == ()


def test_job_priority_still_counts_within_the_scope_that_is_guaranteed():
    held = [runs("r", "a/p/u", PLACE, 0, 1, 2, 3)]
    urgent = wants("urgent", "a/p/v", job_priority=5)

    decided = decide([urgent], held, quotas=guaranteed(a=4), rules=PUSHING)

    assert [p.kind for p in decided.preemptions] == ["priority"]


def test_what_is_kept_for_a_patient_borrower_is_open_to_who_is_due():
    held = [runs("r", "b/r/w", PLACE, 0, 1, preemptible=False, ends=NOW + HOUR)]
    patient = wants("patient", "b/r/w", gpus=4, since=LONG_AGO)
    first = decide([patient], held, quotas=guaranteed(a=2))
    assert [r.session for r in first.reservations] == ["patient"]

    for nodes in ((), ("n",)):
        due = wants("due", "a/p/u", gpus=2, nodes=nodes)
        decided = decide(
            [patient, due], held, quotas=guaranteed(a=2), reserved=first.reservations
        )

        assert names(decided) == ["due"]


def test_a_window_keeps_its_devices_from_who_is_due():
    held = four_borrowed()[:2]
    window = ReservedWindow(
        name="the course", starts=NOW, ends=NOW + HOUR, nodes=("n",), devices=()
    )

    decided = decide(
        [wants("due", "a/p/u")], held, quotas=guaranteed(a=2), windows=[window]
    )

    assert names(decided) == []
    assert [v.session for p in decided.preemptions for v in p.victims] == ["r1"]


# --- why -----------------------------------------------------------------------------


def test_less_of_it_is_named_as_what_would_start_it_now():
    held = [runs("r", "a/p/u", PLACE, 0)]
    waits = wants("waits", "a/p/v", gpus=3)
    policy = GroupPolicy(quotas=at_most(a=2))
    seen = snapshot([place_of(*held)], [waits], policy=policy, running=held, now=NOW)

    found = Explainer(seen).explain("waits")

    assert found is not None
    assert found.reasons == (
        "domain a: cuda.device 1 of at most 2 in use in this group, asks 3",
    )
    assert [c.request for c in found.changes] == [ask(gpus=1)]
    started = plan(found.changes[0].apply(seen, "waits"))
    assert names(started) == ["waits"]
    assert found.starts is None


def test_who_has_asked_for_nothing_yet_is_told_of_maxima_and_claims_too():
    held = [runs("r", "a/p/u", PLACE, 0)]
    due = wants("due", "d/p/u", gpus=3, cpu=100)
    policy = GroupPolicy(quotas=at_most(a=1) | guaranteed(d=3))
    seen = snapshot([place_of(*held)], [due], policy=policy, running=held, now=NOW)
    asking = Explainer(seen)

    refused = asking.consider(wants("new", "a/p/v"))
    allowed = asking.consider(wants("other", "b/r/w"))

    assert refused.nodes == ()
    assert refused.explanation is not None
    assert refused.explanation.reasons == (
        "domain a: cuda.device 1 of at most 1 in use in this group, asks 1",
    )
    assert allowed.nodes == ("n",)
