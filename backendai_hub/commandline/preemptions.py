"""Commands about who makes room for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import click

from backendai_hub.api.preemptions import PreemptionTrial, PreemptionTrialRequest
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.finding import find_session
from backendai_hub.commandline.listing import USUAL, page_size, show_items
from backendai_hub.commandline.names import NounName
from backendai_hub.core.preemptions import EnactedPreemption

_COLUMNS: Final = (
    "at",
    "session",
    "owner",
    "kind",
    "nodes",
    "victims",
    "ending",
    "id",
)
_PROPOSED: Final = ("session", "owner", "kind", "nodes", "victims")


async def _list(
    asking: Asking,
    *,
    session: str | None,
    only_open: bool,
    limit: int,
    everything: bool,
    **filters: str | None,
) -> None:
    if session is not None:
        filters["session"] = (await find_session(asking, session)).id
    if only_open:
        filters["open"] = "true"
    most = None if everything else limit
    items = asking.client.schedule.preemptions(page_size=page_size(most), **filters)
    if asking.output.as_json:
        await show_items(asking, items, columns=_COLUMNS, limit=most)
        return
    await show_items(asking, _as_rows(items), columns=_COLUMNS, limit=most)


async def _as_rows(
    items: AsyncIterator[EnactedPreemption],
) -> AsyncIterator[dict[str, Any]]:
    async for item in items:
        yield {
            "at": item.created_at,
            "session": item.name or "(another's)",
            "owner": item.owner or "",
            "kind": item.kind,
            "nodes": ", ".join(item.nodes),
            "victims": _name_victims(item),
            "ending": str(item.ending or "open"),
            "id": item.id,
        }


def _name_victims(item: EnactedPreemption) -> str:
    names = [f"{v.name} ({v.fate or 'leaving'})" for v in item.victims]
    if item.others:
        names.append(f"{item.others} of others")
    return ", ".join(names)


def make_preemptions() -> click.Command:
    """Make the command that lists who made room for whom."""
    return make_command(
        "preemptions",
        _list,
        [
            click.Option(
                ["--session"],
                metavar="SESSION",
                help="Only those that this session is part of, on either side.",
            ),
            click.Option(
                ["--group", "resource_group"],
                type=NounName("resource-group"),
                help="Only those of this resource group.",
            ),
            click.Option(
                ["--kind"],
                type=click.Choice(["priority", "reclaim"]),
                help="Only those for job priority, or for what is guaranteed.",
            ),
            click.Option(
                ["--open", "only_open"],
                is_flag=True,
                help="Only those for which room is still kept.",
            ),
            click.Option(
                ["--limit"],
                type=click.IntRange(min=1),
                default=USUAL,
                show_default=True,
                help="Show at most so many.",
            ),
            click.Option(["--all", "everything"], is_flag=True, help="Show all."),
        ],
        help="List who had to make room for whom, the newest first.",
    )


async def _try(
    asking: Asking,
    *,
    group: str,
    order: str | None,
    mode: str | None,
    min_runtime: int | None,
    victim_scope: str | None,
) -> None:
    request = PreemptionTrialRequest(
        order=order,  # type: ignore[arg-type]  # one of the choices
        mode=mode,  # type: ignore[arg-type]
        min_runtime=min_runtime,
        victim_scope=victim_scope,  # type: ignore[arg-type]
    )
    found = await asking.client.schedule.try_preemption(group, request)
    if asking.output.as_json:
        asking.output.show_one(found)
        return
    asking.output.note(_sum_up(found))
    asking.output.show_list(
        [
            {
                "session": item.name,
                "owner": item.owner,
                "kind": item.kind,
                "nodes": ", ".join(item.nodes),
                "victims": ", ".join(f"{v.name} of {v.owner}" for v in item.victims),
            }
            for item in found.items
        ],
        _PROPOSED,
    )


def _sum_up(found: PreemptionTrial) -> str:
    state = "on" if found.enabled else "off"
    return (
        f"{found.resource_group}: preemption is {state}; {found.waiting} wait, for"
        f" {len(found.items)} of them others would have to leave. Nobody does by this."
    )


def make_try_preemption() -> click.Command:
    """Make the command that tells who would have to make room."""
    return make_command(
        "try-preemption",
        _try,
        [
            click.Argument(["group"], type=NounName("resource-group")),
            click.Option(
                ["--order"],
                type=click.Choice(
                    ["oldest", "newest", "fewest-sessions", "smallest-resources"]
                ),
                help="Who goes first.",
            ),
            click.Option(
                ["--mode"],
                type=click.Choice(["terminate", "reschedule"]),
                help="Whether those who go end, or wait in the queue again.",
            ),
            click.Option(
                ["--min-runtime"],
                type=click.IntRange(min=0),
                help="Seconds that nobody is displaced before.",
            ),
            click.Option(
                ["--victim-scope"],
                type=click.Choice(["user", "project", "domain", "resource-group"]),
                help="Whose sessions may be displaced.",
            ),
        ],
        help="Say who would have to leave now if a resource group had these rules.",
    )
