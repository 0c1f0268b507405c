"""What is done in one line for who finds no room: others leave, or devices are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.backfill import Holding
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.displacing import Displacer
from backendai_hub.scheduling.guarantees import Guarantees
from backendai_hub.scheduling.keeping import Keeper
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    Placement,
    Reservation,
    RunningSession,
    Snapshot,
)


class Helper:
    """Looks after those who wait, with all that is known of who runs."""

    def __init__(
        self,
        cluster: Cluster,
        policy: GroupPolicy,
        snapshot: Snapshot,
        guarantees: Guarantees | None,
        *,
        reserves: bool = True,
    ) -> None:
        self._cluster, self._policy, self._now = cluster, policy, snapshot.now
        self._guarantees, self._reserves = guarantees, reserves
        self.running = running_on(cluster, snapshot)
        self.keeper = Keeper(cluster, policy, snapshot.now)
        self.keeper.keep_windows(snapshot.windows)
        self.displacer = Displacer(
            cluster,
            policy,
            self.keeper,
            self.running,
            snapshot.now,
            waiting=len(snapshot.queue),
        )
        self._started: list[Placement] = []
        self._ends: list[int | None] = []
        """When those who have just started end at the latest."""
        self._hopeless: set[object] = set()
        """Those for whom nothing can be reserved."""
        self._stuck: set[object] = set()
        """Those for whom nobody can be displaced."""
        self._vacated: set[str] = set()
        """Those for whom everybody has left who was to leave."""
        self.returned: dict[str, str] = {}
        """For whom nothing is kept any more, since it may not start, and why."""

    def end_of(self, session: PendingSession) -> int | None:
        """Tell when *session* ends at the latest if it starts now."""
        lifetime = session.lifetime
        if lifetime is None:
            lifetime = self._policy.max_lifetime
        return None if lifetime is None else self._now + lifetime

    def note(self, placement: Placement, ends: int | None) -> None:
        """Note who has just started, and until when they run at the latest."""
        self._started.append(placement)
        self._ends.append(ends)

    def go_on(
        self, reserved: Iterable[Reservation], queue: Iterable[PendingSession]
    ) -> None:
        """Go on keeping what passes before have promised to those who still wait."""
        waiting = {session.id: session for session in queue}
        there = {running.id for running in self.running}
        for one in reserved:
            session = waiting.get(one.session)
            if session is None:
                continue
            if one.displacing and there.isdisjoint(one.victims):
                self._vacated.add(session.id)
            if session.hold:
                continue
            if one.displacing:
                self.displacer.go_on(one)
                self._expect(session)
            elif self.keeper.has_waited(session) and (
                self._guarantees is None or not self._guarantees.refuse(session)
            ):
                self._reserve(session, stay=one.parts[0].node)

    def give_back(self, session: PendingSession, reason: str) -> bool:
        """Keep nothing for *session*, which may not start; tell whether there is room.

        While some still leave for it, what they leave may be what it waits for.
        """
        if session.id not in self._vacated:
            return False
        self._vacated.remove(session.id)
        self.returned[session.id] = reason
        return self.keeper.release(session)

    def help(self, session: PendingSession, key: object) -> str:
        """Do what can be done so that *session* starts, and say it.

        What has been of no use to another one like it, with the same *key*, is not
        tried again.
        """
        if self.displacer.is_served(session):
            return reasons.DISPLACES
        if key not in self._stuck:
            told = self.displacer.propose(session, self._guarantees)
            if told:
                if self.displacer.is_served(session):
                    self._expect(session)
                return told
            self._stuck.add(key)
        if key in self._hopeless or not self._reserves:
            return ""
        if not self.keeper.is_patient(session):
            return ""
        told = self._reserve(session)
        if not told:
            self._hopeless.add(key)
        return told

    def _reserve(self, session: PendingSession, *, stay: str = "") -> str:
        """Keep devices for *session* and say when it starts, if anything can be."""
        entitled = self._guarantees is None or self._guarantees.is_entitled(session)
        told = self.keeper.reserve(
            session, self._holdings(), stay=stay, borrows=not entitled
        )
        if told:
            self._expect(session)
        return told

    def _expect(self, session: PendingSession) -> None:
        """Count what is kept for *session* as if it had it already."""
        if self._guarantees is not None:
            self._guarantees.expect(session)

    @property
    def holdings(self) -> list[tuple[RunningSession, Holding]]:
        """What runs on the nodes, and what of them it holds."""
        return [
            (running, Holding(self._cluster.row[node], shares, running.ends))
            for running in self.running
            for node, shares in running.holdings
            if node in self._cluster.row
        ]

    def _holdings(self) -> list[Holding]:
        """Return who holds what now, those included who have just started."""
        started = [
            Holding(self._cluster.row[part.node], part.shares, ends)
            for placement, ends in zip(self._started, self._ends, strict=True)
            for part in placement.members or (placement,)
        ]
        return [held for _, held in self.holdings] + started


def running_on(cluster: Cluster, snapshot: Snapshot) -> Sequence[RunningSession]:
    """Return the sessions that hold anything of the nodes of a line."""
    return [
        running
        for running in snapshot.running
        if any(node in cluster.row for node, _ in running.holdings)
    ]
