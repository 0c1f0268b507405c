"""Why a session waits, what would start it now, and when it starts otherwise.

Everything is read off a pass of the scheduler as it has been made: the same nodes,
devices, limits and order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile

from msgspec.structs import replace

from backendai_hub.core.quotas import QuotaShortfall
from backendai_hub.scheduling.chains import Waits
from backendai_hub.scheduling.changes import Change
from backendai_hub.scheduling.explained import (
    DEFAULT,
    Explanation,
    Options,
    Places,
    Standing,
    Verdict,
)
from backendai_hub.scheduling.lines import Line
from backendai_hub.scheduling.ordering import SEQUENCERS
from backendai_hub.scheduling.plan import Pass
from backendai_hub.scheduling.searching import Search
from backendai_hub.scheduling.snapshot import (
    GroupPolicy,
    PendingSession,
    RunningSession,
    Snapshot,
)
from backendai_hub.scheduling.starts import Starts, find_shortfalls

_MOST_CHANGES = 4
_MOST_PROVED = 1000
"""How long a queue may be for a change to be proved by a whole pass."""


class Explainer:
    """Answers questions about who waits after one pass."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._pass = Pass(snapshot)
        self.plan = self._pass.run()
        self._queue = {session.id: session for session in snapshot.queue}
        self._lines = self._pass.lines
        self._index: dict[str, Line] = {}
        self._line: dict[str, Line] = {}
        """The line of each group that somebody waits in."""
        for line in self._lines:
            for session in line.queue:
                self._index[session.id] = line
                self._line[session.group] = line
        waiting = [self._queue[session_id] for session_id in self.plan.waiting]
        self._stand = Places(waiting, self._index)
        self._starts = Starts(snapshot, self._pass.limits, self._stand, self._index)
        self._places: dict[object, int] = {}
        """Which place newcomers get, by who they are."""
        self._others: dict[str, Line] = {}

    def explain(
        self,
        session_id: str,
        options: Options = DEFAULT,
        *,
        waits: Waits | None = None,
        others: Mapping[str, Waits] | None = None,
    ) -> Explanation | None:
        """Explain why a session waits; None if it does not.

        *options* is what could be otherwise. *waits* is what it waits for, if nothing
        else holds it up, and *others* what each of those waits for whom that is said
        of as well.
        """
        if session_id not in self._stand.of:
            return None
        session, line = self._queue[session_id], self._index[session_id]
        order, place = self._stand.order[id(line)], self._stand.of[session_id]
        standing = Standing(
            session=session,
            line=line,
            told=self.plan.waiting[session_id],
            order=order,
            place=place,
            waiting=len(order),
        )
        found = self._explain(standing, options)
        if waits is None or not (session.hold and waits.firsts):
            return found
        return self._starts.once_others_end(found, waits, others or {})

    def consider(
        self,
        session: PendingSession,
        options: Options = DEFAULT,
    ) -> Verdict:
        """Tell what would become of *session* if it were asked for now.

        Those who wait have found no room in this pass, whoever comes after them: so it
        starts if there is room for it as the pass has left the nodes.
        """
        line = self._line_of(session.group)
        allowed = not (self._shortfalls(session) or line.refuse(session))
        if allowed and not session.hold:
            nodes = line.rehearse(session)
            if nodes:
                return Verdict(nodes=nodes)
        order = self._stand.order.get(id(line), [])
        place = self._place_of(session, line, order)
        standing = Standing(
            session=session,
            line=line,
            told=session.hold or line.why_not(session),
            order=order,
            place=place,
            waiting=len(order) + 1,
        )
        return Verdict(explanation=self._explain(standing, options))

    def _place_of(
        self, session: PendingSession, line: Line, order: Sequence[str]
    ) -> int:
        """Return the place that a newcomer gets; it is the same for all requests."""
        key = (id(line), session.scopes, session.owner_id, session.priority)
        place = self._places.get(key)
        if place is None:
            place = line.place_of(session, [self._queue[i] for i in order])
            if line.policy.sequencer in SEQUENCERS:
                self._places[key] = place
        return place

    def _explain(self, standing: Standing, options: Options) -> Explanation:
        session, line = standing.session, standing.line
        place = standing.place
        changes = self._changes(standing, options)
        forecast = self._starts.foretell(session, line, place)
        return Explanation(
            session=session.id,
            position=place,
            waiting=standing.waiting,
            reasons=self._reasons(session, line, standing.told),
            changes=tuple(islice(changes, _MOST_CHANGES)),
            starts=forecast.starts,
            at_the_earliest=not forecast.exact,
            ahead=self._stand.ahead(line, place),
            behind=forecast.behind,
            after="" if forecast.after is None else forecast.after.id,
            node="" if forecast.row < 0 else line.cluster.nodes[forecast.row].name,
            window=forecast.window,
            unknown=forecast.unknown,
        )

    # --- reasons -----------------------------------------------------------------

    def _reasons(
        self, session: PendingSession, line: Line, told: str
    ) -> tuple[str, ...]:
        """Return every reason at once; what nobody's leaving would mend comes first.

        Who is held is told what would keep it waiting afterwards, as things are now.
        """
        stopped = [*filter(None, dict.fromkeys([session.hold, line.problem]))]
        lacking = [str(shortfall) for shortfall in self._shortfalls(session)]
        lacking += filter(None, [line.refuse(session)])
        odd = filter(None, [line.fault.odd])
        if not (stopped or lacking):
            return (told, *odd)
        lacks = line.cluster.nodes and not line.trial(session).fits(session)
        room = [line.lacks_room(session)] if lacks else []
        return (*stopped, *lacking, *room, *odd)

    def _shortfalls(self, session: PendingSession) -> list[QuotaShortfall]:
        return find_shortfalls(self._pass.limits, session)

    # --- what would start it -------------------------------------------------------

    def _changes(self, standing: Standing, options: Options) -> Iterator[Change]:
        session, line = standing.session, standing.line
        held = bool(session.hold)
        if held:
            session = replace(session, hold="")
        elsewhere: list[Change] = []
        if not held or options.leaves_hold:
            elsewhere = [
                replace(change, released=held)
                for change in self._elsewhere(session, options.groups)
            ]
        if line.problem:
            yield from elsewhere
            return
        if held and self._is_open_to(session, line):
            yield from elsewhere
            yield Change(released=True)
            return
        search = self._search(standing, session, line, options)
        found = [replace(change, released=held) for change in search.find()]
        own = [c for c in found if c.is_place and c.is_own]
        yield from own
        yield from elsewhere
        yield from (c for c in found if c not in own)
        if not found and not elsewhere and not held:
            yield from self._smaller_elsewhere(standing, options)

    def _is_open_to(self, session: PendingSession, line: Line) -> bool:
        """Tell whether nothing at all is in the way of *session* in a line."""
        if line.problem or line.refuse(session) or self._shortfalls(session):
            return False
        return line.trial(session).fits(session)

    def _search(
        self,
        standing: Standing,
        session: PendingSession,
        line: Line,
        options: Options,
    ) -> Search:
        held = bool(standing.session.hold)
        return Search(
            session,
            line,
            self._pass.limits,
            options.least,
            before=partial(self._before, standing),
            proves=lambda change: self._proves(
                standing, replace(change, released=held)
            ),
            now=self._snapshot.now,
            timed=options.timed,
        )

    def _smaller_elsewhere(
        self, standing: Standing, options: Options
    ) -> Iterator[Change]:
        """Yield the first that asks for less in another resource group."""
        session = standing.session
        for group in options.groups:
            if not session.group or group == session.group:
                continue
            moved = replace(session, group=group)
            line = self._line_of(group)
            if line.problem or line.refuse(moved):
                continue
            search = self._search(standing, moved, line, options)
            for change in islice(search.less(), 1):
                changed = change.of(moved)
                if self._is_open_to(changed, line):
                    yield replace(change, group=group)
                    return

    def _before(self, standing: Standing) -> list[PendingSession]:
        """Return who is served before it, of whatever group."""
        session = standing.session
        if session.id in self.plan.waiting:
            earlier = takewhile(lambda i: i != session.id, self.plan.waiting)
            return [self._queue[i] for i in earlier]
        own = set(standing.order[: standing.place - 1])
        lines = self._index
        return [
            one
            for one in map(self._queue.__getitem__, self.plan.waiting)
            if one.id in own
            or (lines[one.id] is not standing.line and one.priority >= session.priority)
        ]

    def _proves(self, standing: Standing, change: Change) -> bool:
        """Tell by a pass of its own whether a change starts a session."""
        if len(self._queue) > _MOST_PROVED:
            return False
        snapshot, session_id = self._snapshot, standing.session.id
        if session_id not in self._queue:
            snapshot = replace(snapshot, queue=(*snapshot.queue, standing.session))
        decided = Pass(change.apply(snapshot, session_id)).run()
        return session_id not in decided.waiting

    def _elsewhere(
        self, session: PendingSession, groups: tuple[str, ...]
    ) -> Iterator[Change]:
        if not session.group or self._shortfalls(session):
            return
        for group in groups:
            if group == session.group:
                continue
            moved = replace(session, group=group)
            line = self._line_of(group)
            if self._is_open_to(moved, line):
                yield Change(group=group)

    def _line_of(self, group: str) -> Line:
        """Return the line of a group, which may be one that nobody waits in."""
        # Those who name no group wait with everybody else, for all nodes.
        line = self._line.get("", self._line.get(group))
        if line is not None:
            return line
        if group not in self._others:
            nodes = [node for node in self._snapshot.nodes if node.group == group]
            policy = self._snapshot.groups.get(group, GroupPolicy())
            self._others[group] = Line(self._snapshot, [], nodes, policy)
        return self._others[group]

    @property
    def lines(self) -> Sequence[Sequence[str]]:
        """Who waits for the same nodes, by id, in the order of the pass."""
        return list(self._stand.order.values())

    def find_waiting(self, session_id: str) -> PendingSession | None:
        """Return what waits under this id."""
        return self._queue.get(session_id)

    def find_running(self, session_id: str) -> RunningSession | None:
        """Return what runs under this id."""
        return self._starts.find_running(session_id)
