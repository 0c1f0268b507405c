"""Sessions that make room for others, made through the operations."""

from __future__ import annotations

from typing import Any

import msgspec

from backendai_hub.api.preemptions import PreemptionQuery
from backendai_hub.core.access import Caller
from backendai_hub.core.preemptions import EnactedPreemption
from backendai_hub.core.sessions import Session, SessionStatus
from backendai_hub.db.signals import Signals
from backendai_hub.operations.platform import Platform
from backendai_hub.operations.preemption_views import list_preemptions
from backendai_hub.reconcilers.scheduler import SchedulerReconciler
from tests.factories import Node, principal_of, seen
from tests.jobs import State, ask, containers_of
from tests.tenants import ROOT, Office, read

GPU = {"cuda.device": "1"}


async def opt_in(platform: Platform, **rules: Any) -> None:
    """Let sessions of the default group displace anybody's, and ask to be first."""
    office = Office(platform)
    found = await office.read("resource-group", "default")
    options = msgspec.to_builtins(found.scheduler_opts)
    wider = {"enabled": True, "victim_scope": "resource-group"}
    options["preemption"] = {**wider, **rules}
    await office.change("resource-group", "default", scheduler_opts=options)
    await office.change("keypair-policy", "default", max_job_priority=None)


async def look(platform: Platform) -> int:
    """Have a scheduler look that has just been started and knows nothing."""
    return await SchedulerReconciler(platform, Signals()).reconcile()


async def occupy(
    platform: Platform, node: Node, user: str = "alice", **request: Any
) -> Session:
    """Have a job with a GPU run, beside those that run already."""
    session = await ask(platform, user, **{"slots": GPU, **request})
    assert await look(platform) == 1
    await report(platform, node, {session.id: State.RUNNING})
    shown = await read(platform, session)
    assert shown.status is SessionStatus.RUNNING
    return shown


async def report(
    platform: Platform, node: Node, states: dict[str, State], **changes: Any
) -> None:
    """Have the node report on these sessions; others go on as they were."""
    found = [
        seen(container, state)
        for session, state in states.items()
        for container in await containers_of(platform, session)
    ]
    # An older list of assignments: nothing is concluded from who is not named.
    await node.report(found, **{"generation": 0, **changes})


async def vanish(platform: Platform, node: Node, session: Session) -> None:
    """Have the node say that nothing of a session is left."""
    await report(platform, node, {session.id: State.GONE})


async def plans(
    platform: Platform, user: str | None = None, **query: Any
) -> list[EnactedPreemption]:
    """List what was carried out, as somebody sees it; without a name, all."""
    asking = ROOT if user is None else await principal_of(platform, user, Caller.USER)
    page = await list_preemptions(platform, asking, PreemptionQuery(**query))
    return page.items
