"""Commands about what would be: simulate it, and export how things are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from backendai_hub.api.simulations import (
    AddedRequest,
    SimulationReport,
    SimulationRequest,
)
from backendai_hub.commandline.asking import Asking, make_command
from backendai_hub.commandline.plot import draw_spark, draw_svg, spread, tell_seconds
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.simulation import Figures, WaitFigures

_MOST_BYTES: Final = 3 << 20


async def _export(asking: Asking, *, file: str) -> None:
    exported = await asking.client.schedule.export()
    _write_file(file, exported.trace)
    asking.output.say(
        f"wrote {exported.nodes} nodes and {exported.requests} requests to {file}",
        {"file": file, "nodes": exported.nodes, "requests": exported.requests},
    )


async def _simulate(
    asking: Asking,
    *,
    trace: str | None,
    drain: tuple[str, ...],
    add: tuple[str, ...],
    weight: tuple[str, ...],
    plot: str | None,
    **given: Any,
) -> None:
    of_added = {name: given.pop(name) for name in ("run_time", "project")}
    added = [AddedRequest(slots=_read_slots(text), **of_added) for text in add]
    report = await asking.client.schedule.simulate(
        SimulationRequest(
            trace=None if trace is None else _read_file(trace),
            drain=list(drain),
            add=added,
            weights=dict(_read_weight(text) for text in weight),
            **given,
        )
    )
    if plot is not None:
        _write_file(plot, draw_svg(courses_of(report)))
    if asking.output.as_json:
        asking.output.show_one(report)
        return
    asking.output.show_list(list(make_table(report)), ("figure", *names_of(report)))
    for line in tell_rest(report):
        asking.output.note(line)


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


def _read_slots(text: str) -> dict[str, Any]:
    slots = {}
    for part in text.split(","):
        name, equals, amount = part.partition("=")
        if not (name and equals and amount):
            raise InvalidRequestError(
                f"--add: {part!r} is no amount; write cuda.device=4,cpu=16"
            )
        slots[name.strip()] = amount.strip()
    return slots


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
    for name, figures in courses_of(report):
        course = draw_spark(spread(figures.points, figures.seconds, "waiting"))
        most = max((point.waiting for point in figures.points), default=0)
        yield f"{name:<6} waiting {course} {most} at most"
        course = draw_spark([1.0, *spread(figures.points, figures.seconds, "used")])
        yield f"{name:<6} in use  {course[1:]}"


# --- the commands ---------------------------------------------------------------------


def make_export() -> click.Command:
    """Make the command that writes how things are to a file."""
    return make_command(
        "export",
        _export,
        [click.Argument(["file"], type=click.Path(dir_okay=False, writable=True))],
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
            click.Option(["--sequencer"], help="Another order of the queue."),
            click.Option(["--placement"], help="Another choice of nodes."),
            click.Option(
                ["--weight"],
                multiple=True,
                metavar="NAME=NUMBER",
                help="Another weight of a domain, project or user.",
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
