"""The line of those who wait for one resource group, and the group's nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from backendai_hub.scheduling import reasons
from backendai_hub.scheduling.backfill import Holding
from backendai_hub.scheduling.cluster import Cluster
from backendai_hub.scheduling.guarantees import Guarantees
from backendai_hub.scheduling.guards import Fault, check_sequencer, make_scorer
from backendai_hub.scheduling.helping import Helper, running_on
from backendai_hub.scheduling.holds import Hold
from backendai_hub.scheduling.mix import gather
from backendai_hub.scheduling.ordering import Bands, Fifo, Order, ShareState
from backendai_hub.scheduling.placing import Placer, Room
from backendai_hub.scheduling.plugins import (
    UnknownPolicyError,
    find_placement,
    find_sequencer,
)
from backendai_hub.scheduling.scoring import Scorer
from backendai_hub.scheduling.shapes import Shape, Shapes
from backendai_hub.scheduling.snapshot import (
    ContainerPlacement,
    GroupPolicy,
    NodeState,
    PendingSession,
    Placement,
    PreemptionPlan,
    Reservation,
    RunningSession,
    Snapshot,
)
from backendai_hub.scheduling.strategies import Dispersed, RoundRobin
from backendai_hub.scheduling.trials import Trial, copy_nodes

Build = Callable[[Sequence[NodeState]], Cluster]
"""Makes arrays of nodes, for one line to use up."""
Head = tuple[int, int]
"""Minus the priority, and the index in the snapshot's queue."""


class Line:
    """One group's queue in its order, and its nodes as the pass has left them."""

    def __init__(
        self,
        snapshot: Snapshot,
        indices: Sequence[int],
        nodes: Sequence[NodeState],
        policy: GroupPolicy,
        build: Build = Cluster,
    ) -> None:
        self.policy = policy
        self._queue = [snapshot.queue[i] for i in indices]
        shown = snapshot.shown.get(self._queue[0].group) if self._queue else None
        self._first = self._queue if shown is None else shown
        """Those who show what is asked for."""
        self._indices = indices
        self._head = -1
        self._problem = "" if nodes else _nobody(snapshot)
        self.fault = Fault(snapshot.now, len(indices), policy.names)
        self.cluster = build(nodes)
        self.cluster.read_labels(self._queue)
        self._order, scorer = self._follow(policy)
        split = policy.allow_split
        placer = Placer(self.cluster, scorer, allow_split=split)
        self._shapes = Shapes(self.cluster, allow_split=split)
        self._nodes = Trial(placer, self._shapes, policy.rack_label)
        self._no_room: dict[object, str] = {}
        self._scarce: set[Shape] = set()
        """What somebody has asked for who has found no room."""
        self._displaces = policy.displaces
        self.guarantees: Guarantees | None = None
        if policy.quotas:
            running = running_on(self.cluster, snapshot)
            names = {key: scope.name for key, scope in snapshot.scopes.items()}
            self.guarantees = Guarantees(self.cluster, policy, running, names)
        self._helper = Helper(
            self.cluster,
            policy,
            snapshot,
            self.guarantees,
            reserves=snapshot.whole,
        )
        self._keeper = self._helper.keeper
        self._reserved = snapshot.reserved

    def begin(self, allowed: Callable[[PendingSession], bool]) -> None:
        """Note who has a claim on room, as far as *allowed*, and what is kept."""
        if self._problem:
            return
        if self.guarantees is not None:
            for session in self._queue:
                if not session.hold and allowed(session):
                    self.guarantees.claim(session)
        self._helper.go_on(self._reserved, self._queue)

    def _follow(self, policy: GroupPolicy) -> tuple[Order, Scorer]:
        """Begin what the policy names; if it is not there, the line waits for it."""
        try:
            sequencer = find_sequencer(policy.sequencer)
            placement = find_placement(policy.placement)
        except UnknownPolicyError as error:
            self._problem = str(error)
            sequencer, placement = find_sequencer("fifo"), Dispersed()
        if isinstance(placement, RoundRobin):
            placement = placement.after(policy.last_node)
        typical = gather(self.cluster, policy.typical, self._first)
        self._sequencer = check_sequencer(sequencer, self.fault)
        scorer = make_scorer(placement, self.cluster, typical, self.fault)
        return self._bands(self._queue), scorer

    def _bands(self, queue: Sequence[PendingSession]) -> Bands:
        shares = self.policy.shares
        return Bands(queue, self._sequencer, ShareState() if shares is None else shares)

    # --- its order ---------------------------------------------------------------

    def advance(self) -> Head | None:
        """Go on to the next candidate, and return where it stands."""
        head = self._order.next()
        if head is None:
            return None
        self._head = head
        return -self._queue[head].priority, self._indices[head]

    def is_overtaken_by(self, session: PendingSession) -> bool:
        """Tell whether *session*, who has just come, may be before the candidate.

        Among equals who come first are served first, or nobody knows without trying.
        """
        head = self._queue[self._head]
        if session.group not in {"", head.group}:
            return False
        if session.priority != head.priority:
            return session.priority > head.priority
        return self.policy.sequencer != Fifo.name

    def placed(self) -> None:
        """Note that the candidate got room."""
        self._order.placed(self._head)

    # --- its nodes ---------------------------------------------------------------

    def place(self, session: PendingSession) -> Placement | str:
        """Take room for *session*, or say why there is none."""
        if self.problem:
            return self.problem
        guarantees, keeper = self.guarantees, self._keeper
        refusal = "" if guarantees is None else guarantees.refuse(session)
        if refusal:
            self.give_back(session, refusal)
            return refusal
        ends = self._helper.end_of(session)
        beside = self._open_holds(session, ends) if keeper.holds else ()
        shape = self._shapes.of(session)
        if shape in self._scarce:
            kind = self._class_of(session, shape, beside)
            known = self._no_room.get(kind)
            if known is not None:
                return self._follow_others(session, kind, known)
        rooms = self._nodes.take(session, shape=shape)
        if rooms is None and beside:
            rooms = keeper.use(beside, partial(self._nodes.take, session))
        if self.fault.told:
            return self._undo(rooms)
        if rooms is None:
            self._scarce.add(shape)
            kind = self._class_of(session, shape, beside)
            return self._explain(session, kind, beside)
        if keeper.holds and keeper.release(session):
            self._no_room.clear()
        if guarantees is not None:
            guarantees.take(session)
        placement = self._write(session, rooms)
        self._helper.note(placement, ends)
        return placement

    def _undo(self, rooms: Sequence[Room] | None) -> str:
        """Give back what a policy has chosen while it failed, and say that it did."""
        for room in reversed(rooms or ()):
            self._nodes.placer.undo(room)
        return self.fault.told

    def withdraw(self, session: PendingSession, reason: str) -> None:
        """Forget what *session* has a claim on: it waits for something else."""
        if self.guarantees is not None:
            self.guarantees.withdraw(session)
        self.give_back(session, reason)

    def give_back(self, session: PendingSession, reason: str) -> None:
        """Keep nothing for *session* any more, if all have left that were to leave."""
        if self._helper.give_back(session, reason):
            self._no_room.clear()

    def refuse(self, session: PendingSession) -> str:
        """Say what guarantee or maximum is in the way of *session*, if one is."""
        return "" if self.guarantees is None else self.guarantees.refuse(session)

    def shape_of(self, session: PendingSession) -> Shape:
        """Return what *session* asks of a node; those who ask the same share it."""
        return self._shapes.of(session)

    def _open_holds(
        self, session: PendingSession, ends: int | None
    ) -> tuple[Hold, ...]:
        entitled = self.guarantees is not None and self.guarantees.is_entitled(session)
        return self._keeper.open_to(session, ends, entitled=entitled)

    def _class_of(
        self, session: PendingSession, shape: Shape, beside: Sequence[Hold]
    ) -> object:
        """Return what sessions have in common that find room, or none, together."""
        owner = "" if self.cluster.keeps_apart else session.owner_id
        if not (session.members or beside):
            return (shape, owner)
        asked = tuple(member.request for member in session.members)
        return (shape, owner, asked, session.layout, tuple(map(id, beside)))

    def _help(self, session: PendingSession, kind: object) -> str:
        """Do what can be done for *session*, which finds no room with all its kind."""
        whom = (session.job_priority, session.owner_id, session.scopes)
        return self._helper.help(session, (kind, whom) if self._displaces else kind)

    def _follow_others(self, session: PendingSession, kind: object, reason: str) -> str:
        """Give *session* the reason of those like it, and what is done for it alone."""
        told = self._help(session, kind)
        return f"{reason}; {told}" if told else reason

    def _write(self, session: PendingSession, rooms: Sequence[Room]) -> Placement:
        nodes = self.cluster.nodes
        first = nodes[rooms[0].row]
        return Placement(
            session=session.id,
            node=first.id,
            image=session.references[first.runtime],
            shares=rooms[0].shares,
            members=tuple(
                ContainerPlacement(
                    member=member.name,
                    node=nodes[room.row].id,
                    image=session.references[nodes[room.row].runtime],
                    shares=room.shares,
                )
                for member, room in zip(session.members, rooms, strict=True)
            )
            if session.members
            else (),
        )

    # --- what would be ---------------------------------------------------------------

    def trial(self, session: PendingSession) -> Trial:
        """Return a copy of the nodes to try things on, as *session* may use them."""
        # Which nodes a cluster tries hangs on scores; whether one has room does not.
        placement = None
        if session.members and not self.problem:
            placement = find_placement(self.policy.placement)
        trial = copy_nodes(self.cluster, self.policy, placement, self.fault)
        for hold in self._open_holds(session, self._helper.end_of(session)):
            hold.put_back(trial.placer.cluster)
        return trial

    def rehearse(self, session: PendingSession) -> tuple[str, ...]:
        """Tell on which nodes, by id, *session* would start; nothing is taken."""
        if self.problem or self.refuse(session):
            return ()
        rooms = self._nodes.take(session)
        for room in reversed(rooms or ()):
            self._nodes.placer.undo(room)
        if rooms is None:
            rooms = self.trial(session).take(session)
        return tuple(
            dict.fromkeys(self.cluster.nodes[room.row].id for room in rooms or ())
        )

    def why_not(self, session: PendingSession) -> str:
        """Say why there is no room for one who has not been in the queue."""
        if self.problem:
            return self.problem
        return self.refuse(session) or self.lacks_room(session)

    def lacks_room(self, session: PendingSession) -> str:
        """Say what the nodes lack for *session*, and what is kept for others."""
        beside = self._keeper.open_to(session, self._helper.end_of(session))
        return "; ".join(self._why_not(session, beside))

    def place_of(
        self, session: PendingSession, waiting: Sequence[PendingSession]
    ) -> int:
        """Return which place among *waiting*, in their order, a newcomer gets.

        Nobody is asked to move over: those before it have its priority or a higher
        one, and stand there by the group's own order.
        """
        if self.policy.sequencer == Fifo.name:
            return 1 + sum(one.priority >= session.priority for one in waiting)
        queue = [*waiting, session]
        order = self._bands(queue)
        place = 1
        while (index := order.next()) is not None and queue[index] is not session:
            place += 1
        return place

    @property
    def reservations(self) -> list[Reservation]:
        """What is kept for whom."""
        return self._keeper.reservations

    @property
    def preemptions(self) -> list[PreemptionPlan]:
        """Who should go for whom."""
        return self._helper.displacer.proposals

    @property
    def returned(self) -> Mapping[str, str]:
        """For whom nothing is kept any more, and why."""
        return self._helper.returned

    @property
    def holdings(self) -> list[tuple[RunningSession, Holding]]:
        """What runs on its nodes, and what of it."""
        return self._helper.holdings

    def kept_from(self, session: PendingSession) -> list[Holding]:
        """Return what is free but kept from *session* by windows, and until when."""
        keeper = self._keeper
        beside = keeper.open_to(session, self._helper.end_of(session))
        return [
            Holding(hold.row, hold.shares, hold.until)
            for hold in keeper.holds
            if hold.until is not None and hold.shares and hold not in beside
        ]

    def needed(self) -> set[int]:
        """Return when others need what is free, and kept for them until then."""
        return {h.needed for h in self._keeper.holds if h.needed is not None}

    def row_of(self, running: RunningSession) -> int:
        """Return the first of its nodes that a session runs on; -1 if it is on none."""
        rows = (self.cluster.row.get(node, -1) for node, _ in running.holdings)
        return next(rows, -1)

    @property
    def queue(self) -> Sequence[PendingSession]:
        """Who waits for its nodes, in the order of submission."""
        return self._queue

    @property
    def group(self) -> str:
        """The resource group, by id; none where somebody waits for any."""
        groups = {session.group for session in self._queue}
        return groups.pop() if len(groups) == 1 else ""

    @property
    def problem(self) -> str:
        """Why nothing of it can start whatever there is, if so."""
        return self._problem or self.fault.told

    def end_of(self, session: PendingSession) -> int | None:
        """Tell when *session* ends at the latest if it starts now."""
        return self._helper.end_of(session)

    # --- why it waits ----------------------------------------------------------------

    def _explain(
        self, session: PendingSession, kind: object, beside: Sequence[Hold]
    ) -> str:
        """Say why there is no room, and what is done about it."""
        parts = self._why_not(session, beside)
        self._no_room[kind] = "; ".join(parts)
        told = self._help(session, kind)
        return "; ".join([*parts, told] if told else parts)

    def _why_not(self, session: PendingSession, beside: Sequence[Hold]) -> list[str]:
        others = [h for h in self._keeper.holds if h not in beside and h.shares]
        trial = self.trial(session) if session.members else None
        told = reasons.explain_no_room(self.cluster, session, others, trial)
        parts = [told]
        if others:
            parts.append(reasons.tell_holds(others))
        return parts


def _nobody(snapshot: Snapshot) -> str:
    return reasons.NO_NODES_IN_GROUP if snapshot.nodes else reasons.NO_NODES
