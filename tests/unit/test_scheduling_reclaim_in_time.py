"""Guarantees over time: passes are carried out, and those who have gone wait again.

Two nodes of three GPUs and five users: small enough that every edge is hit.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace

from backendai_hub.core.groups import Preemption
from backendai_hub.core.quotas import ScopeKind
from backendai_hub.core.slots import MILLI
from backendai_hub.scheduling.plan import plan
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    Plan,
    Reservation,
    RunningSession,
    ScopeQuota,
    Share,
    Snapshot,
)
from tests.unit.scheduling_snapshots import ask, cluster_of, gpu, host, node, pending

GPU = "cuda.device"
USERS = ("a/x/1", "a/x/2", "a/y/3", "b/z/4", "c/w/5")
NODES = ("n", "m")
EACH = 3


def gpus_of(holdings: Any) -> int:
    return sum(s.amount for _, shares in holdings for s in shares) // MILLI


class Site(RuleBasedStateMachine):
    """Sessions are asked for, placed, displaced, ended in any order."""

    @initialize(
        a=st.integers(0, 4),
        b=st.integers(0, 3),
        y=st.integers(0, 2),
        most=st.integers(0, 5),
        pushing=st.booleans(),
    )
    def begin(self, a: int, b: int, y: int, most: int, pushing: bool) -> None:
        due = {("a",): a, ("b",): b, ("a", "y"): y}
        self.quotas = {
            path: ScopeQuota(guaranteed={GPU: count * MILLI})
            for path, count in due.items()
            if count
        }
        self.quotas[("c",)] = ScopeQuota(maximum={GPU: most * MILLI})
        self.due = {path[0]: n for path, n in due.items() if len(path) == 1}
        self.most = most
        self.rules = Preemption(
            enabled=pushing, victim_scope="resource-group", mode="reschedule"
        )
        self.now = 1000
        self.waiting: dict[str, PendingSession] = {}
        self.running: dict[str, RunningSession] = {}
        self.asked: dict[str, PendingSession] = {}
        self.reserved: tuple[Reservation, ...] = ()
        self.settled = False

    # --- what happens --------------------------------------------------------------

    @precondition(lambda self: len(self.waiting) < 6)
    @rule(
        who=st.sampled_from(USERS),
        gpus=st.sampled_from([1, 1, 2, 3]),
        parts=st.sampled_from([1, 1, 1, 2]),
        job_priority=st.sampled_from([0, 0, 5]),
        may_go=st.sampled_from([True, True, True, False]),
    )
    def submit(
        self, who: str, gpus: int, parts: int, job_priority: int, may_go: bool
    ) -> None:
        self.now += 1
        name, (domain, project, user) = f"s{self.now}", who.split("/")
        more: dict[str, Any] = {
            "user": user,
            "scopes": (
                (ScopeKind.DOMAIN, domain),
                (ScopeKind.PROJECT, project),
                (ScopeKind.USER, user),
            ),
            "job_priority": job_priority,
            "preemptible": may_go,
        }
        if parts == 1:
            made = pending(name, gpus=gpus, **more)
        else:
            made = cluster_of(name, *[ask(gpus=1)] * 2, layout="pack", **more)
        self.waiting[name] = self.asked[name] = made
        self.settled = False

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        del self.running[data.draw(st.sampled_from(sorted(self.running)))]
        self.settled = False

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[name]
        self.reserved = tuple(r for r in self.reserved if r.session != name)
        self.settled = False

    @rule()
    def look_once(self) -> None:
        self.carry_out(self.decide())
        self.settled = False

    @rule()
    def work_off(self) -> None:
        """Pass after pass until nothing moves."""
        for _ in range(80):
            if not self.carry_out(self.decide()):
                self.settled = True
                return
        raise AssertionError("sessions displace each other for ever")

    # --- one pass --------------------------------------------------------------------

    def free(self) -> dict[str, list[str]]:
        held = {s.device for r in self.running.values() for s in self.shares_of(r)}
        return {
            n: [f"{n}/{i}" for i in range(EACH) if f"{n}/{i}" not in held]
            for n in NODES
        }

    def shares_of(self, session: RunningSession) -> list[Share]:
        return [share for _, shares in session.holdings for share in shares]

    def decide(self) -> Plan:
        free = self.free()
        seen = Snapshot(
            nodes=tuple(
                node(
                    n,
                    host(64),
                    *(
                        gpu(f"{n}/{i}", used=float(f"{n}/{i}" not in free[n]))
                        for i in range(EACH)
                    ),
                )
                for n in NODES
            ),
            queue=tuple(self.waiting.values()),
            scopes={},
            groups={
                "": GroupPolicy(
                    quotas=self.quotas, preemption=self.rules, reserve_after=None
                )
            },
            running=tuple(self.running.values()),
            reserved=self.reserved,
            now=self.now,
        )
        decided = plan(seen)
        assert plan(seen) == decided, "the same snapshot gives the same plan"
        return decided

    def carry_out(self, decided: Plan) -> bool:
        """Place, and let those go who should; tell whether anything has moved."""
        self.now += 1
        leaving = [r.id for r in self.running.values() if r.leaving]
        for name in leaving:
            del self.running[name]
            self.waiting[name] = self.asked[name]
        gone = [v.session for p in decided.preemptions for v in p.victims]
        assert len(gone) == len(set(gone)), "nobody is displaced twice"
        for found in decided.preemptions:
            if found.kind == "reclaim":
                self.check_reclaim(found.session, [v.session for v in found.victims])
        for name in gone:
            assert not self.running[name].leaving
            self.running[name] = replace(self.running[name], leaving=True)
        for placed in decided.placements:
            self.start(self.waiting.pop(placed.session), placed)
        kept = (*decided.reservations, *(p.reserve("") for p in decided.preemptions))
        self.reserved = tuple(r for r in kept if r.session in self.waiting)
        return bool(leaving or gone or decided.placements)

    def start(self, session: PendingSession, placed: Any) -> None:
        parts = placed.members or (placed,)
        self.running[session.id] = RunningSession(
            id=session.id,
            owner_id=session.owner_id,
            scopes=session.scopes,
            holdings=tuple((part.node, part.shares) for part in parts),
            started=self.now,
            job_priority=session.job_priority,
            preemptible=session.preemptible,
        )

    # --- what must be so -------------------------------------------------------------

    def domain_of(self, session: PendingSession | RunningSession) -> str:
        return dict(session.scopes)[ScopeKind.DOMAIN]

    def held(self, domain: str) -> int:
        return sum(
            gpus_of(r.holdings)
            for r in self.running.values()
            if self.domain_of(r) == domain
        )

    def within(self, domain: str) -> set[str]:
        """By definition: the oldest that fit into the guarantee."""
        left, found = self.due.get(domain, 0), set()
        for r in sorted(self.running.values(), key=lambda r: (r.started, r.id)):
            if self.domain_of(r) == domain and gpus_of(r.holdings) <= left:
                left -= gpus_of(r.holdings)
                found.add(r.id)
        return found

    def check_reclaim(self, session: str, victims: list[str]) -> None:
        ours = self.domain_of(self.asked[session])
        for name in victims:
            theirs = self.domain_of(self.running[name])
            if theirs != ours:
                assert name not in self.within(theirs), "it kept to its guarantee"
            assert self.running[name].preemptible

    @invariant()
    def no_device_is_given_twice(self) -> None:
        devices = [
            s.device
            for r in getattr(self, "running", {}).values()
            for s in self.shares_of(r)
        ]
        assert len(devices) == len(set(devices))

    @invariant()
    def no_maximum_is_passed(self) -> None:
        if hasattr(self, "running"):
            assert self.held("c") <= self.most

    @invariant()
    def nobody_who_is_due_waits_while_a_borrower_could_make_room(self) -> None:
        if not getattr(self, "settled", False):
            return
        borrowers = {
            r.id: r
            for domain in "abc"
            for r in self.running.values()
            if self.domain_of(r) == domain
            and r.preemptible
            and r.id not in self.within(domain)
        }
        for session in self.waiting.values():
            domain, count = self.domain_of(session), gpus_of_request(session)
            if self.held(domain) + count > self.due.get(domain, 0):
                continue
            assert (
                not session.members
                or sum(len(f) for f in self.free().values())
                + sum(
                    gpus_of(r.holdings)
                    for r in borrowers.values()
                    if self.domain_of(r) != domain
                )
                < 2
            )
            for n in () if session.members else NODES:
                comes = sum(
                    len(shares)
                    for r in borrowers.values()
                    if self.domain_of(r) != domain
                    for at, shares in r.holdings
                    if at == n
                )
                assert len(self.free()[n]) + comes < count, (session.id, n)


def gpus_of_request(session: PendingSession) -> int:
    return session.request[GPU] // MILLI


TestSite = Site.TestCase
TestSite.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
