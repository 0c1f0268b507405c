"""Commands about what waits: priorities, holds, freezes, queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import click
import msgspec

from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.finding import find_session
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.listing import LARGEST_PAGE, USUAL, page_size, show_items
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.preemptions import (
    make_preemptions,
    make_try_preemption,
)
from backendai_hub.commandline.simulate import make_export, make_simulate
from backendai_hub.core.errors import HubError
from backendai_hub.core.sessions import Session

_COLUMNS: Final = ("position", "name", "owner", "priority", "waited", "reason", "id")
_MANY: Final = click.Argument(
    ["references"], metavar="SESSION...", nargs=-1, required=True
)
_GROUP: Final = click.Argument(["group"], type=NounName("resource-group"))
_REASON: Final = click.Option(
    ["--reason"], required=True, help="Why; those who wait are told."
)


async def _prioritize(
    asking: Asking, *, references: tuple[str, ...], priority: int
) -> None:
    ids, missing = await _find_ids(asking, references)
    answer = await asking.client.schedule.set_priority(ids, priority) if ids else None
    _show_results(asking, missing, answer)


async def _terminate(
    asking: Asking, *, references: tuple[str, ...], force: bool
) -> None:
    ids, missing = await _find_ids(asking, references)
    answer = await asking.client.schedule.terminate(ids, force=force) if ids else None
    _show_results(asking, missing, answer)


async def _find_ids(
    asking: Asking, references: tuple[str, ...]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the ids of sessions, and how it failed for those that are not there."""
    ids: list[str] = []
    missing: list[dict[str, Any]] = []
    for reference in references:
        try:
            ids.append((await find_session(asking, reference)).id)
        except HubError as error:
            if len(references) == 1:
                raise
            missing.append({"name": reference, "result": "failed"})
            missing[-1]["reason"] = error.message
    return ids, missing


def _show_results(asking: Asking, missing: list[dict[str, Any]], answer: Any) -> None:
    """Print how each of many ended; the exit code tells whether all went well."""
    results = [] if answer is None else msgspec.to_builtins(answer.results)
    rows = missing + [
        {
            "name": result["name"] or result["id"],
            "result": "ok" if result["error"] is None else "failed",
            "reason": result["error"],
        }
        for result in results
    ]
    asking.output.show_list(rows, ("name", "result", "reason"))
    failed = sum(1 for row in rows if row["result"] != "ok")
    asking.count_failures(failed, len(rows))


async def _hold(asking: Asking, *, references: tuple[str, ...], reason: str) -> None:
    schedule = asking.client.schedule
    await _do_each(asking, references, lambda i: schedule.hold(i, reason=reason))


async def _release(asking: Asking, *, references: tuple[str, ...]) -> None:
    await _do_each(asking, references, asking.client.schedule.release)


async def _do_each(
    asking: Asking,
    references: tuple[str, ...],
    verb: Callable[[str], Awaitable[Session]],
) -> None:
    """Do something to each of some sessions; it ends for each by itself."""
    if len(references) == 1:
        found = await find_session(asking, references[0])
        asking.output.show_one(await verb(found.id))
        return
    rows: list[dict[str, str | None]] = []
    for reference in references:
        row: dict[str, str | None] = {"name": reference, "result": "ok", "reason": None}
        try:
            row["name"] = (await verb((await find_session(asking, reference)).id)).name
        except HubError as error:
            row |= {"result": "failed", "reason": error.message}
        rows.append(row)
    asking.output.show_list(rows, ("name", "result", "reason"))
    asking.count_failures(sum(row["result"] != "ok" for row in rows), len(rows))


async def _freeze(asking: Asking, *, group: str, reason: str) -> None:
    asking.output.show_one(await asking.client.schedule.freeze(group, reason=reason))


async def _unfreeze(asking: Asking, *, group: str) -> None:
    asking.output.show_one(await asking.client.schedule.unfreeze(group))


async def _queue(asking: Asking, *, group: str, limit: int, everything: bool) -> None:
    most = None if everything else limit
    size = LARGEST_PAGE if most is None else page_size(most)
    state = await asking.client.schedule.read_queue(group, limit=1)
    if state.freeze is not None:
        asking.output.note(
            f"{state.resource_group} is frozen since {state.freeze.since}:"
            f" {state.freeze.reason}"
        )
    items = asking.client.schedule.queue(group, page_size=size)
    await show_items(asking, items, columns=_COLUMNS, limit=most)


def make_priority() -> click.Command:
    """Make the command that gives priorities."""
    return make_command(
        "priority",
        _prioritize,
        [_MANY, click.Argument(["priority"], type=click.IntRange(0, 100))],
        help="Give sessions that wait another priority: 0 to 100, higher goes first.",
    )


def make_hold() -> click.Command:
    """Make the command that holds a session."""
    return make_command(
        "hold",
        _hold,
        [_MANY, _REASON],
        help="Keep sessions that wait from starting; they keep their places.",
    )


def make_release() -> click.Command:
    """Make the command that lets a held session start."""
    return make_command(
        "release",
        _release,
        [_MANY],
        help="Let held sessions start when it is their turn.",
    )


def make_queue() -> click.Command:
    """Make the command that shows who waits."""
    return make_command(
        "queue",
        _queue,
        [
            _GROUP,
            click.Option(
                ["--limit"],
                type=click.IntRange(min=1),
                default=USUAL,
                show_default=True,
                help="Show at most so many.",
            ),
            click.Option(["--all", "everything"], is_flag=True, help="Show all."),
        ],
        help="Show who waits in a resource group, who is tried first before others.",
    )


schedule = LazyGroup(
    "schedule",
    help="What may start, and in which order.",
    made={
        "queue": make_queue,
        "preemptions": make_preemptions,
        "try-preemption": make_try_preemption,
        "simulate": make_simulate,
        "export": make_export,
        "priority": make_priority,
        "hold": make_hold,
        "release": make_release,
        "terminate": lambda: make_command(
            "terminate",
            _terminate,
            [
                _MANY,
                click.Option(
                    ["--force"], is_flag=True, help="Do not wait for their nodes."
                ),
            ],
            help="End sessions of anybody; those that wait are cancelled.",
        ),
        "freeze": lambda: make_command(
            "freeze",
            _freeze,
            [_GROUP, _REASON],
            help="Let nothing start in a resource group; what runs goes on.",
        ),
        "unfreeze": lambda: make_command(
            "unfreeze",
            _unfreeze,
            [_GROUP],
            help="Let sessions start in a resource group again.",
        ),
    },
)
