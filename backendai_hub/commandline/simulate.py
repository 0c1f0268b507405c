"""Commands about what would be: simulate it, and export how things are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from backendai_hub.api.simulations import (
    AddedRequest,
    PreemptionChange,
    QuotaRequest,
    SimulationReport,
    SimulationRequest,
)
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.following import following
from backendai_hub.commandline.plot import draw_spark, draw_svg, spread, tell_seconds
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.simulation import Figures, WaitFigures

_MOST_BYTES: Final = 3 << 20
_COUNTED: Final = ("nodes", "requests", "left_out")
_OF_ADDED: Final = ("run_time", "project", "owner", "job_priority")
_RULES: Final = ("enabled", "order", "mode", "min_runtime", "victim_scope")
_SCOPES: Final = frozenset({"domain", "project", "user"})
_RULE_OPTIONS: Final = (
    click.Option(
        ["--preemption/--no-preemption", "enabled"],
        default=None,
        help="Let sessions displace others by job priority, or not.",
    ),
    click.Option(
        ["--order"],
        type=click.Choice(
            ["oldest", "newest", "fewest-sessions", "smallest-resources"]
        ),
        help="Who is displaced first.",
    ),
    click.Option(
        ["--mode"],
        type=click.Choice(["terminate", "reschedule"]),
        help="Whether those who are displaced end, or start over.",
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
)


async def _export(
    asking: Asking, *, file: str, days: int | None, pseudonyms: bool
) -> None:
    exported = await asking.client.schedule.export(days=days, pseudonyms=pseudonyms)
    _write_file(file, exported.trace)
    told = {name: getattr(exported, name) for name in _COUNTED}
    asking.output.say(
        f"wrote {exported.nodes} nodes and {exported.requests} requests to {file}",
        {"file": file, **told},
    )
    if exported.left_out:
        asking.output.note(
            f"{exported.left_out} that ran at the beginning are left out: their nodes"
            " or devices are not there any more"
        )


async def _simulate(
    asking: Asking, *, trace: str | None, plot: str | None, **given: Any
) -> None:
    request = _write_request(None if trace is None else _read_file(trace), given)
    async with following(asking.client.schedule, sys.stderr):
        report = await asking.client.schedule.simulate(request)
    if plot is not None:
        _write_file(plot, draw_svg(courses_of(report)))
    if asking.output.as_json:
        asking.output.show_one(report)
        return
    asking.output.show_list(list(make_table(report)), ("figure", *names_of(report)))
    for line in tell_rest(report):
        asking.output.note(line)


def _write_request(trace: str | None, given: dict[str, Any]) -> SimulationRequest:
    """Ask what the options say."""
    of_added = {name: given.pop(name) for name in _OF_ADDED}
    rules = {name: given.pop(name) for name in _RULES}
    quotas = [
        *(_read_quota("guarantee", text) for text in given.pop("guarantee")),
        *(_read_quota("maximum", text) for text in given.pop("maximum")),
    ]
    return SimulationRequest(
        trace=trace,
        drain=list(given.pop("drain")),
        add=[
            AddedRequest(slots=_read_slots(text), **of_added)
            for text in given.pop("add")
        ],
        weights=dict(_read_weight(text) for text in given.pop("weight")),
        preemption=PreemptionChange(**rules),
        quotas=quotas,
        **given,
    )


def _write_file(name: str, text: str) -> None:
    Path(name).write_text(text, "utf-8")


def _read_file(name: str) -> str:
    path = Path(name)
    if path.stat().st_size > _MOST_BYTES:
        raise InvalidRequestError(
            f"{name}: a trace has at most {_MOST_BYTES >> 20} MiB; leave some out"
        )
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequestError(f"{name}: this is no text in UTF-8") from None


def _read_slots(text: str, option: str = "--add") -> dict[str, Any]:
    slots = {}
    for part in text.split(","):
        name, equals, amount = part.partition("=")
        if not (name and equals and amount):
            raise InvalidRequestError(
                f"{option}: {part!r} is no amount; write cuda.device=4,cpu=16"
            )
        slots[name.strip()] = amount.strip()
    return slots


def _read_quota(option: str, text: str) -> QuotaRequest:
    scope, _, rest = text.partition(":")
    name, colon, amounts = rest.partition(":")
    if scope not in _SCOPES or not (name and colon):
        raise InvalidRequestError(
            f"--{option}: {text!r} will not do; write project:vision:cuda.device=4"
        )
    slots = _read_slots(amounts, f"--{option}")
    given: dict[str, Any] = {"scope": scope, "name": name}
    if option == "guarantee":
        return QuotaRequest(**given, guaranteed=slots)
    lifted = {slot: None if n == "none" else n for slot, n in slots.items()}
    return QuotaRequest(**given, maximum=lifted)


def _read_weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        weight = float(number)
    except ValueError:
        weight = 0.0
    # What is no number is not more than 0, either.
    if not (name and 0 < weight <= 1_000_000):
        raise InvalidRequestError(
            f"--weight: {text!r} will not do; write a name and a number above 0, such"
            " as vision=2"
        )
    return name, weight


# --- what is shown --------------------------------------------------------------------


def courses_of(report: SimulationReport) -> list[tuple[str, Figures]]:
    """Return what there is to draw."""
    found = [("before", report.before)]
    return found if report.after is None else [*found, ("after", report.after)]


def names_of(report: SimulationReport) -> tuple[str, ...]:
    """Name the columns."""
    return tuple(name for name, _ in courses_of(report))


def make_table(report: SimulationReport) -> Iterator[dict[str, str]]:
    """Yield the rows: a figure, before and after."""
    sides = courses_of(report)
    told = [(name, dict(_tell(figures))) for name, figures in sides]
    for figure in dict.fromkeys(key for _, rows in told for key in rows):
        yield {"figure": figure, **{name: rows.get(figure, "") for name, rows in told}}


def _tell(figures: Figures) -> Iterator[tuple[str, str]]:
    yield from _tell_waits("", figures.waits)
    if figures.wide.sessions:
        yield from _tell_waits("wide: ", figures.wide)
    for slot, part in figures.use.items():
        yield f"{slot} in use", f"{part:.1%}"
    if figures.fairness is not None:
        yield "fairness (Jain)", f"{figures.fairness:.3f}"
    if figures.displaced:
        yield "had to go for others", str(figures.displaced)
        yield "of these for a guarantee", str(figures.reclaimed)
    yield "takes", tell_seconds(figures.seconds)


def _tell_waits(word: str, waits: WaitFigures) -> Iterator[tuple[str, str]]:
    yield f"{word}started", f"{waits.started} of {waits.sessions}"
    yield f"{word}mean wait", tell_seconds(waits.mean)
    yield f"{word}95 % wait at most", tell_seconds(waits.p95)
    yield f"{word}longest wait", tell_seconds(waits.longest)


def tell_rest(report: SimulationReport) -> Iterator[str]:
    """Yield what stands below the table: what was added, assumed, and the course."""
    for added in report.added:
        if added.seconds is None:
            yield f"{added.request} would not start: {added.reason}"
        elif added.seconds:
            yield f"{added.request} would start after {tell_seconds(added.seconds)}"
        else:
            yield f"{added.request} would start at once"
    if report.assumed:
        many = "1 session says" if report.assumed == 1 else f"{report.assumed} say"
        yield f"{many} nothing of how long it runs; see --usual-run-time"
    if report.held:
        many = "1 session is" if report.held == 1 else f"{report.held} are"
        yield f"{many} held, and took no part"
    if report.recorded is not None:
        waits = dict(_tell_waits("", report.recorded))
        yield (
            f"recorded: mean wait {waits['mean wait']}, longest {waits['longest wait']}"
        )
    for name, figures in courses_of(report):
        yield from _tell_displaced(name, figures)
        course = draw_spark(spread(figures.points, figures.seconds, "waiting"))
        most = max((point.waiting for point in figures.points), default=0)
        yield f"{name:<6} waiting {course} {most} at most"
        course = draw_spark([1.0, *spread(figures.points, figures.seconds, "used")])
        yield f"{name:<6} in use  {course[1:]}"


def _tell_displaced(name: str, figures: Figures) -> Iterator[str]:
    """Yield who had to go for whom, the first of them."""
    for one in figures.displacements:
        why = "has a guarantee" if one.kind == "reclaim" else "is more urgent"
        then = "starts over" if one.mode == "reschedule" else "is ended"
        yield (
            f"{name:<6} after {tell_seconds(one.at)} {one.session} of {one.owner}"
            f" ({one.project}) {then} for {one.by} of {one.by_owner}"
            f" ({one.by_project}), who {why}; it had run {tell_seconds(one.ran)}"
        )
    more = figures.displaced - len(figures.displacements)
    if more:
        yield f"{name:<6} and {more} more have to go"


# --- the commands ---------------------------------------------------------------------


def make_export() -> click.Command:
    """Make the command that writes how things are to a file."""
    return make_command(
        "export",
        _export,
        [
            click.Argument(["file"], type=click.Path(dir_okay=False, writable=True)),
            click.Option(
                ["--days"],
                type=click.IntRange(1, 366),
                help="Write what was asked for and ran in so many days, not how it is.",
            ),
            click.Option(
                ["--pseudonyms"],
                is_flag=True,
                help="Write numbers for domains, projects and users.",
            ),
        ],
        help="Write nodes, what runs, who waits and limits to FILE, as a trace.",
    )


def make_simulate() -> click.Command:
    """Make the command that says what would be."""
    return make_command(
        "simulate",
        _simulate,
        [
            click.Option(
                ["--trace"],
                type=click.Path(exists=True, dir_okay=False),
                help="Begin with this trace (JSON lines or CSV), not with how it is.",
            ),
            click.Option(
                ["--drain"], multiple=True, metavar="NODE", help="Take a node away."
            ),
            click.Option(
                ["--add"],
                multiple=True,
                metavar="SLOT=AMOUNT,…",
                help="Let somebody ask for this, too.",
            ),
            click.Option(
                ["--run-time"],
                type=click.IntRange(min=0),
                default=3600,
                show_default=True,
                help="For how many seconds what is added runs.",
            ),
            click.Option(
                ["--project"], default="default", help="For which project it is added."
            ),
            click.Option(
                ["--owner"], default="somebody", help="For which user it is added."
            ),
            click.Option(
                ["--job-priority"],
                type=int,
                default=0,
                show_default=True,
                help="The job priority of what is added.",
            ),
            click.Option(["--sequencer"], help="Another order of the queue."),
            click.Option(["--placement"], help="Another choice of nodes."),
            click.Option(
                ["--weight"],
                multiple=True,
                metavar="NAME=NUMBER",
                help="Another weight of a domain, project or user.",
            ),
            *_RULE_OPTIONS,
            click.Option(
                ["--guarantee"],
                multiple=True,
                metavar="SCOPE:NAME:SLOT=AMOUNT,…",
                help="Another guarantee, such as project:vision:cuda.device=4.",
            ),
            click.Option(
                ["--maximum"],
                multiple=True,
                metavar="SCOPE:NAME:SLOT=AMOUNT,…",
                help="Another maximum; none lifts it.",
            ),
            click.Option(
                ["--usual-run-time"],
                type=click.IntRange(min=1),
                default=14_400,
                show_default=True,
                help="How many seconds those run who do not say.",
            ),
            click.Option(
                ["--plot"],
                type=click.Path(dir_okay=False, writable=True),
                help="Draw the course to this SVG file.",
            ),
        ],
        help="Say how waits, use and fairness would be; nothing is changed.",
    )
