"""``backendai run``: a command on the cluster, as if it ran here."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from backendai_hub.api.sessions import SessionRequest
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.clusters import CLUSTER_OPTIONS, read_cluster
from backendai_hub.commandline.fields import KindType, gather_fields
from backendai_hub.commandline.logs import follow_session
from backendai_hub.commandline.names import NounName
from backendai_hub.commandline.output import Output
from backendai_hub.commandline.places import PLACE_OPTIONS
from backendai_hub.commandline.sessions import SlotsType
from backendai_hub.commandline.why import DRY_RUN, try_out
from backendai_hub.core.errors import NotFoundError
from backendai_hub.core.fields import Page
from backendai_hub.core.sessions import Session, SessionStatus, SessionType

_DURATION: Final = re.compile(r"(\d+)\s*(s|m|min|h|d)?")
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def read_duration(text: str) -> int:
    """Read ``90``, ``90s``, ``30m``, ``2h``, ``1h30m`` or ``1d`` as seconds."""
    plain = text.strip()
    if not re.fullmatch(rf"(?:{_DURATION.pattern}\s*)+", plain):
        raise ValueError("write a duration such as 90, 30m, 2h or 1h30m")
    return sum(
        int(number) * _SECONDS[unit or "s"] for number, unit in _DURATION.findall(plain)
    )


def read_moment(text: str, now: datetime) -> datetime:
    """Read a time (without a zone: of here), or ``+2h`` from now."""
    if text.startswith("+"):
        return now + timedelta(seconds=read_duration(text[1:]))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "write a time such as 2026-01-31T18:00, or +2h from now"
        ) from None
    return moment if moment.tzinfo is not None else moment.astimezone()


def join_command(words: Sequence[str]) -> str:
    """Make a line for the shell of *words*; one word is such a line already."""
    return words[0] if len(words) == 1 else shlex.join(words)


def read_variables(given: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE``, each of them once."""
    found = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--env {entry!r}: write NAME=VALUE")
        found[name] = value
    return found


def read_wishes(given: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Make fields of a request of the options that are called or written otherwise."""
    given = dict(given)
    timeout, at = given.pop("timeout"), given.pop("at")
    fields: dict[str, Any] = {
        "dependencies": list(given.pop("after")),
        "environ": read_variables(given.pop("env")),
        "max_attempts": given.pop("retries") + 1,
        "is_preemptible": not given.pop("not_preemptible", False),
    }
    try:
        if timeout is not None:
            fields["batch_timeout"] = read_duration(timeout)
        if at is not None:
            fields["starts_at"] = read_moment(at, now)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return read_cluster({**fields, **gather_fields(given)})


async def _run(
    asking: Asking,
    *,
    command: tuple[str, ...],
    detach: bool,
    dry_run: bool,
    image: str | None,
    **given: Any,
) -> None:
    request = SessionRequest(
        type=SessionType.BATCH,
        image=image or await _usual_image(asking),
        startup_command=join_command(command),
        **read_wishes(given, datetime.now().astimezone()),
    )
    if dry_run:
        await try_out(asking, request)
        return
    session = await asking.client.sessions.create(request)
    if detach:
        asking.output.show_one(session)
        return
    try:
        session = await follow_session(asking, session, to_stderr=asking.output.as_json)
    except asyncio.CancelledError:
        _say_goodbye(asking.output, session)
        raise
    if asking.output.as_json:
        asking.output.show_one(session)
    asking.code = exit_code_of(session)


def exit_code_of(session: Session) -> int:
    """Return what a program ends with that stands for the session."""
    if session.status is not SessionStatus.TERMINATED or session.exit_code is None:
        return 1
    failed = session.result != "success"
    return session.exit_code & 0xFF or int(failed)


def _say_goodbye(output: Output, session: Session) -> None:
    output.note(
        f"{session.name} goes on without you; backendai session logs --follow"
        f" {session.id} shows what it prints, backendai session terminate"
        f" {session.id} ends it"
    )


async def _usual_image(asking: Asking) -> str:
    found = (await asking.client.resources()).images
    if not found:
        raise NotFoundError("there is no environment to run it in; ask for one")
    return found[0].name


_OPTIONS: Final = (
    click.Argument(
        ["command"],
        metavar="[--] COMMAND...",
        nargs=-1,
        required=True,
        type=click.UNPROCESSED,
    ),
    click.Option(
        ["--image"],
        type=NounName("image"),
        help="The environment; the first on offer, unless said.",
    ),
    click.Option(["--name"], help="What to call it."),
    click.Option(
        ["--resources", "--slots", "slots"],
        type=SlotsType(),
        multiple=True,
        metavar="SLOT=AMOUNT",
        help="How much it gets, such as cpu=2,mem=4g.",
    ),
    click.Option(["--shmem"], help="Shared memory, which is part of mem."),
    *CLUSTER_OPTIONS,
    click.Option(
        ["--after"],
        multiple=True,
        metavar="JOB",
        help="Start only when this one has succeeded; may be given several times.",
    ),
    click.Option(
        ["--at"], metavar="TIME", help="Do not start before: 2026-01-31T18:00, or +2h."
    ),
    click.Option(
        ["--timeout"], metavar="DURATION", help="End it after so long: 90, 30m, 2h."
    ),
    click.Option(
        ["--retries"],
        type=click.IntRange(0, 99),
        default=0,
        show_default=True,
        help="Start it again so often if its node is lost.",
    ),
    *PLACE_OPTIONS,
    click.Option(
        ["--env"],
        multiple=True,
        metavar="NAME=VALUE",
        help="A variable of its environment; may be given several times.",
    ),
    click.Option(
        ["--project"], type=NounName("project"), help="For which project it counts."
    ),
    click.Option(
        ["--resource-group"],
        type=NounName("resource-group"),
        help="On whose nodes it runs.",
    ),
    click.Option(["--priority"], type=int, help="0 to 100; higher comes first."),
    click.Option(
        ["--job-priority"], type=int, help="Who has more may displace who has less."
    ),
    click.Option(
        ["--not-preemptible"],
        is_flag=True,
        help="Never let it be displaced by others.",
    ),
    click.Option(["--tag"], help="A word to find it by."),
    click.Option(
        ["--bootstrap-script"],
        type=KindType("bootstrap_script", Page()),
        help="A script to run once before the command.",
    ),
    DRY_RUN,
    click.Option(
        ["--detach", "-d"], is_flag=True, help="Do not wait for it; print what it is."
    ),
)

run = make_command(
    "run",
    _run,
    _OPTIONS,
    help="Run COMMAND on the cluster, print what it prints, and end with its exit code."
    " One word is a line for the shell. If it could not be run, the code is 1.",
)
# What follows the command's first word is the command's own.
run.allow_interspersed_args = False
