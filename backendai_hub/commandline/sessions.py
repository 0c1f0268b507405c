"""Commands about sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.clusters import CLUSTER_OPTIONS, read_cluster
from backendai_hub.commandline.fields import (
    KindType,
    gather_fields,
    read_text,
)
from backendai_hub.commandline.finding import find_session
from backendai_hub.commandline.lazy import LazyGroup
from backendai_hub.commandline.listing import (
    USUAL,
    page_size,
    read_columns,
    show_items,
)
from backendai_hub.commandline.logs import follow_session, show_log
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.places import PLACE_OPTIONS
from backendai_hub.commandline.why import DRY_RUN, describe_why, try_out
from backendai_hub.core.errors import HubError
from backendai_hub.core.fields import Page, Slots
from backendai_hub.core.sessions import TERMINAL, Session, SessionStatus, SessionType

_COLUMNS: Final = ("id", "name", "owner", "project", "status", "slots", "reason")
_FIELDS: Final = tuple(
    name
    for name in Session.__struct_fields__
    if name not in {"idle_expires_at", "containers", "cluster_network"}
)
"""What a list has of each session."""
_SLOTS: Final = Slots(limits=False)


async def _list(
    asking: Asking,
    *,
    columns: str | None,
    limit: int,
    everything: bool,
    **filters: str | None,
) -> None:
    most = None if everything else limit
    items = asking.client.sessions.list(page_size=page_size(most), **filters)
    chosen = read_columns(columns, _COLUMNS, _FIELDS)
    await show_items(asking, items, columns=chosen, limit=most)


async def _info(asking: Asking, *, reference: str) -> None:
    found = await find_session(asking, reference, ended=True)
    if found.id != reference:  # found in a list, which does not tell everything
        found = await asking.client.sessions.get(found.id)
    asking.output.show_one(found)


async def _start(
    asking: Asking,
    *,
    image: str,
    wait: bool,
    dry_run: bool,
    slots: tuple[Any, ...],
    **given: Any,
) -> None:
    fields = read_cluster(gather_fields({**given, "slots": slots}))
    if "type" in fields:
        fields["type"] = SessionType(fields["type"])
    request = SessionRequest(image=image, **fields)
    if dry_run:
        await try_out(asking, request)
        return
    session = await asking.client.sessions.create(request)
    if wait:
        await _wait(asking, session.id)
        return
    asking.output.show_one(session)


async def _wait_for(asking: Asking, *, reference: str) -> None:
    await _wait(asking, (await find_session(asking, reference)).id)


async def _wait(asking: Asking, session_id: str) -> None:
    """Tell what a session waits for, until it runs or has ended."""
    after, told = 0, ""
    while True:
        session = await asking.client.sessions.get(session_id)
        if session.status is SessionStatus.RUNNING or session.status in TERMINAL:
            break
        if session.reason != told:
            told = session.reason
            asking.output.note(f"{session.name}: {session.status}, {told}")
        for event in await asking.client.sessions.events(
            session_id, after=after, wait=20.0
        ):
            after = event.seq
    asking.output.show_one(session)
    if session.status is not SessionStatus.RUNNING:
        asking.count_failures(1, 1)


async def _rename(asking: Asking, *, reference: str, name: str) -> None:
    session = await find_session(asking, reference)
    asking.output.show_one(await asking.client.sessions.rename(session.id, name))


async def _terminate(
    asking: Asking, *, references: tuple[str, ...], force: bool
) -> None:
    results: list[dict[str, Any]] = []
    for reference in references:
        entry = {"name": reference, "status": None, "reason": None}
        try:
            session = await find_session(asking, reference)
            session = await asking.client.sessions.terminate(session.id, force=force)
            entry = {"name": session.name, "status": session.status, "reason": None}
        except HubError as error:
            if len(references) == 1:
                raise
            entry["reason"] = error.message
        results.append(entry)
    asking.output.show_list(results, ("name", "status", "reason"))
    failed = sum(1 for entry in results if entry["status"] is None)
    asking.count_failures(failed, len(results))


async def _events(asking: Asking, *, reference: str, follow: bool) -> None:
    session = await find_session(asking, reference)
    after = 0
    while True:
        wait = 20.0 if follow else 0.0
        events = await asking.client.sessions.events(session.id, after=after, wait=wait)
        if events or not follow:
            asking.output.show_list(events, ("at", "kind", "text"))
        if events:
            after = events[-1].seq
        if not follow or any(event.status in TERMINAL for event in events):
            return


async def _why(asking: Asking, *, reference: str) -> None:
    session = await find_session(asking, reference)
    why = await asking.client.sessions.why(session.id)
    if asking.output.as_json:
        asking.output.show_one(why)
        return
    for line in describe_why(session.name, why):
        asking.output.say(line)


async def _history(asking: Asking, *, reference: str) -> None:
    session = await find_session(asking, reference)
    found = [a async for a in asking.client.sessions.history(session.id)]
    asking.output.show_list(
        found, ("phase", "result", "attempts", "first_at", "last_at", "message")
    )


async def _resources(asking: Asking) -> None:
    found = await asking.client.resources()
    if asking.output.as_json:
        asking.output.show_one(found)
        return
    asking.output.note("free now")
    asking.output.show_list(found.room, ("slot", "free", "total", "largest"))
    asking.output.note("limits")
    asking.output.show_list(found.limits, ("scope", "name", "slot", "used", "cap"))


async def _logs(
    asking: Asking,
    *,
    reference: str,
    follow: bool,
    tail: int,
    attempt: int | None,
    host: str | None,
) -> None:
    if follow and (attempt is not None or host is not None):
        raise click.UsageError(
            "--follow shows the last attempt, of the main container; leave one out"
        )
    session = await find_session(asking, reference, ended=True)
    if follow:
        await follow_session(asking, session)
        return
    await show_log(asking, session, tail=tail, attempt=attempt, host=host)


class SlotsType(click.ParamType[Any]):
    """Amounts as people write them: ``cpu=2,mem=4g``."""

    name = "amounts"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Read one option's value."""
        if not isinstance(value, str):
            return value
        try:
            return read_text(_SLOTS, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_REFERENCE: Final = click.Argument(["reference"], metavar="SESSION")
_LIST_OPTIONS: Final = (
    click.Option(
        ["--status"],
        help="Show only these, such as RUNNING; 'live' is what has not ended.",
    ),
    click.Option(["--owner"], help="Whose; '*' is everybody's that you may see."),
    click.Option(["--order"], help="How to sort, such as -created_at."),
    click.Option(
        ["--limit"],
        type=click.IntRange(min=1),
        default=USUAL,
        show_default=True,
        help="Show at most so many.",
    ),
    click.Option(["--all", "everything"], is_flag=True, help="Show all."),
    click.Option(
        ["--columns"], metavar="FIELD,…", help=f"Show these: {', '.join(_FIELDS)}."
    ),
)
_START_OPTIONS: Final = (
    click.Argument(["image"], type=NounName("image")),
    click.Option(["--name"], help="What to call it."),
    click.Option(
        ["--project"], type=NounName("project"), help="For which project it counts."
    ),
    click.Option(
        ["--resource-group"],
        type=NounName("resource-group"),
        help="On whose nodes it runs.",
    ),
    click.Option(
        ["--resources", "--slots", "slots"],
        type=SlotsType(),
        multiple=True,
        metavar="SLOT=AMOUNT",
        help="How much it gets, such as cpu=2,mem=4g.",
    ),
    click.Option(["--shmem"], help="Shared memory, which is part of mem."),
    click.Option(["--priority"], type=int, help="0 to 100; higher comes first."),
    *CLUSTER_OPTIONS,
    *PLACE_OPTIONS,
    click.Option(
        ["--type"],
        type=click.Choice([str(t) for t in SessionType]),
        help="What it is for.",
    ),
    click.Option(
        ["--bootstrap-script"],
        type=KindType("bootstrap_script", Page()),
        help="A script to run once before it is ready.",
    ),
    DRY_RUN,
    click.Option(
        ["--wait"], is_flag=True, help="Wait until it runs, and say what it waits for."
    ),
)


def _verb(name: str) -> Callable[[], click.Command]:
    """Return what makes a command about what waits, when it is needed."""

    def make() -> click.Command:
        from backendai_hub.commandline import schedule  # noqa: PLC0415 - later

        made: click.Command = getattr(schedule, f"make_{name}")()
        return made

    return make


def _make_usage() -> click.Command:
    from backendai_hub.commandline.usage import make_usage  # noqa: PLC0415 - later

    return make_usage()


session = LazyGroup(
    "session",
    help="Sessions.",
    made={
        "list": lambda: make_command(
            "list", _list, _LIST_OPTIONS, help="List sessions."
        ),
        "info": lambda: make_command(
            "info", _info, [_REFERENCE], help="Show one session."
        ),
        "show": lambda: make_command(
            "show", _info, [_REFERENCE], help="Show one session; the same as info."
        ),
        "logs": lambda: make_command(
            "logs",
            _logs,
            [
                _REFERENCE,
                click.Option(
                    ["--follow", "-f"], is_flag=True, help="Go on until it ends."
                ),
                click.Option(
                    ["--tail"],
                    type=click.IntRange(1, 10_000),
                    default=1000,
                    show_default=True,
                    help="Print so many lines of the end at most.",
                ),
                click.Option(
                    ["--attempt"],
                    type=click.IntRange(min=1),
                    help="Of which attempt; the last, unless said.",
                ),
                click.Option(
                    ["--host"],
                    help="Of which container, such as sub1; the main one, unless said.",
                ),
            ],
            help="Show what a session has printed.",
        ),
        "start": lambda: make_command(
            "start",
            _start,
            _START_OPTIONS,
            help="Ask for a session of IMAGE; it waits until there is room for it.",
        ),
        "wait": lambda: make_command(
            "wait",
            _wait_for,
            [_REFERENCE],
            help="Wait until a session runs; exit code 1 if it ends before.",
        ),
        "rename": lambda: make_command(
            "rename",
            _rename,
            [_REFERENCE, click.Argument(["name"])],
            help="Call a session that has not ended something else.",
        ),
        "priority": _verb("priority"),
        "hold": _verb("hold"),
        "release": _verb("release"),
        "terminate": lambda: make_command(
            "terminate",
            _terminate,
            [
                click.Argument(
                    ["references"], metavar="SESSION...", nargs=-1, required=True
                ),
                click.Option(
                    ["--force"], is_flag=True, help="Do not wait for the node."
                ),
            ],
            help="End sessions; those that wait are cancelled.",
        ),
        "usage": _make_usage,
        "why": lambda: make_command(
            "why",
            _why,
            [_REFERENCE],
            help="Say why a session waits, and what would start it.",
        ),
        "history": lambda: make_command(
            "history",
            _history,
            [_REFERENCE],
            help="Show the attempts to place a session, and how they ended.",
        ),
        "events": lambda: make_command(
            "events",
            _events,
            [
                _REFERENCE,
                click.Option(["--follow"], is_flag=True, help="Go on until it ends."),
            ],
            help="Show what has happened to a session.",
        ),
    },
)
resources = make_command(
    "resources", _resources, [], help="Show what is free now, and your limits."
)
