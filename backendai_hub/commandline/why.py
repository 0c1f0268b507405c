"""Why a session waits, in lines that a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import click

from backendai_hub.api.explanations import DryRun, Why
from backendai_hub.api.sessions import SessionRequest
from backendai_hub.commandline.asking import Asking
from backendai_hub.core.times import tell_time

DRY_RUN: Final = click.Option(
    ["--dry-run"],
    is_flag=True,
    help="Run nothing; say whether it would be refused, start, or wait for what.",
)


def describe_why(name: str, why: Why) -> Iterator[str]:
    """Yield the lines that a person reads."""
    if why.position is None:
        yield f"{name} is {why.status}: {'; '.join(why.reasons)}"
        if why.hangs_on:
            yield f"  {why.hangs_on}"
        return
    yield f"{name} waits, number {why.position} of {why.waiting}"
    yield from _tell(why)


def describe_dry_run(outcome: DryRun) -> Iterator[str]:
    """Yield the lines that a person reads about a session that there is not."""
    for objection in outcome.refused:
        yield f"would be refused  {objection.text}"
    if outcome.refused:
        return
    asked = ", ".join(f"{slot} {amount}" for slot, amount in outcome.slots.items())
    where = f"in {outcome.resource_group}, for the project {outcome.project}"
    if outcome.why is None:
        nodes = ", ".join(outcome.nodes)
        yield f"would start now{f' on {nodes}' if nodes else ''}, with {asked}"
        yield f"  {where}"
        return
    why = outcome.why
    yield f"would wait, number {why.position} of {why.waiting}, for {asked}"
    yield f"  {where}"
    yield from _tell(why)


def _tell(why: Why) -> Iterator[str]:
    """Yield what holds a session up and what would help."""
    for reason in why.reasons:
        yield f"  because  {reason}"
    for change in why.changes:
        yield f"  would start now  {change.text}"
    if why.starts_at is None:
        # What is said above already is not said again.
        more = "" if why.hangs_on in why.reasons else f": {why.hangs_on}"
        yield f"  starts  nobody knows when{more}"
    else:
        word = "not before" if why.at_the_earliest else "at the latest"
        moment = tell_time(datetime.fromisoformat(why.starts_at))
        yield f"  starts  {word} {moment}, {why.hangs_on}"


async def try_out(asking: Asking, request: SessionRequest) -> None:
    """Print what would become of a session; the code is 1 if it would be refused."""
    outcome = await asking.client.sessions.dry_run(request)
    asking.code = int(bool(outcome.refused))
    if asking.output.as_json:
        asking.output.show_one(outcome)
        return
    for line in describe_dry_run(outcome):
        asking.output.say(line)
