"""What the command line shows of a simulation."""

from __future__ import annotations

import asyncio
import io
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from backendai_hub.api.simulations import (
    AddedWait,
    SimulationProgress,
    SimulationReport,
)
from backendai_hub.commandline.following import following
from backendai_hub.commandline.plot import draw_spark, draw_svg, spread, tell_seconds
from backendai_hub.commandline.simulate import (
    _read_quota,
    _read_slots,
    _read_weight,
    courses_of,
    make_table,
    tell_rest,
)
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.simulation import Displacement, Figures, Point, WaitFigures


def figures(mean: float, *points: Point) -> Figures:
    waits = WaitFigures(sessions=2, started=2, mean=mean, p95=120, longest=7200)
    none = WaitFigures(sessions=0, started=0, mean=None, p95=None, longest=None)
    return Figures(
        seconds=100,
        waits=waits,
        wide=none,
        use={"cpu": 0.5},
        fairness=1.0,
        passes=3,
        points=list(points),
    )


REPORT = SimulationReport(
    before=figures(60, Point(0, 4, 1.0), Point(50, 0, 0.5)),
    after=figures(30, Point(0, 2, 1.0)),
    added=[
        AddedWait(request="cpu=1", seconds=0),
        AddedWait(request="cpu=9", seconds=None, reason="cpu: asks 9"),
    ],
    assumed=1,
)


def test_the_table_has_a_row_for_each_figure_and_both_sides():
    rows = {row["figure"]: (row["before"], row["after"]) for row in make_table(REPORT)}
    assert rows["mean wait"] == ("60 s", "30 s")
    assert rows["95 % wait at most"] == ("2 min", "2 min")
    assert rows["cpu in use"] == ("50.0%", "50.0%")
    assert "wide: mean wait" not in rows


def test_below_it_stands_what_was_added_assumed_and_the_course():
    lines = list(tell_rest(REPORT))
    assert lines[:3] == [
        "cpu=1 would start at once",
        "cpu=9 would not start: cpu: asks 9",
        "1 session says nothing of how long it runs; see --usual-run-time",
    ]
    assert lines[3] == f"before waiting {'█' * 30}{'▁' * 30} 4 at most"


def test_who_has_to_go_is_named_the_first_of_them():
    one = Displacement(
        at=60,
        session="s1",
        owner="ada",
        project="vision",
        by="s2",
        by_owner="bob",
        by_project="speech",
        kind="reclaim",
        mode="reschedule",
        ran=600,
    )
    report = SimulationReport(
        before=replace(figures(60), displaced=3, reclaimed=2, displacements=[one, one]),
        held=2,
        recorded=WaitFigures(sessions=1, started=1, mean=30, p95=30, longest=30),
    )
    rows = {row["figure"]: row["before"] for row in make_table(report)}
    assert rows["had to go for others"] == "3"
    assert rows["of these for a guarantee"] == "2"
    lines = list(tell_rest(report))
    assert lines[:2] == [
        "2 are held, and took no part",
        "recorded: mean wait 30 s, longest 30 s",
    ]
    assert lines[2] == (
        "before after 60 s s1 of ada (vision) starts over for s2 of bob (speech),"
        " who has a guarantee; it had run 10 min"
    )
    assert lines[4] == "before and 1 more have to go"


def test_guarantees_and_maxima_are_read_and_refused():
    due = _read_quota("guarantee", "project:vision:cuda.device=4,cpu=8")
    assert (due.scope, due.name) == ("project", "vision")
    assert due.guaranteed == {"cuda.device": "4", "cpu": "8"}
    assert _read_quota("maximum", "user:ada:cpu=none").maximum == {"cpu": None}
    for text in ("vision:cpu=1", "team:vision:cpu=1", "project::cpu=1", "project:x"):
        with pytest.raises(InvalidRequestError, match="--guarantee"):
            _read_quota("guarantee", text)
    with pytest.raises(InvalidRequestError, match="--maximum: 'cpu' is no amount"):
        _read_quota("maximum", "user:ada:cpu")


class Terminal(io.StringIO):
    """A terminal that remembers what it was sent."""

    def isatty(self) -> bool:
        return True


class Halfway:
    """A service that is half done, and says so."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def simulation_progress(self) -> SimulationProgress:
        self.asked.set()
        return SimulationProgress(running=True, part=0.5, seconds=1.0)


async def test_how_far_it_is_is_shown_at_a_terminal_and_nowhere_else():
    service, terminal = Halfway(), Terminal()
    async with following(service, terminal, every=0):
        async with asyncio.timeout(30):
            await service.asked.wait()
        await asyncio.sleep(0)
    assert "simulating" in terminal.getvalue()
    file = io.StringIO()
    async with following(Halfway(), file, every=0):
        await asyncio.sleep(0)
    assert file.getvalue() == ""


def test_the_drawing_is_svg_with_a_line_for_each_outcome_in_both_panels():
    root = ElementTree.fromstring(draw_svg(courses_of(REPORT)))
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    drawn = [p for p in root.iter(f"{space}path") if p.get("stroke-width")]
    assert len(drawn) == 4
    empty = SimulationReport(before=figures(1))
    ElementTree.fromstring(draw_svg(courses_of(empty)))


def test_blocks_are_as_high_as_values_and_never_more_than_asked():
    assert draw_spark([0, 1, 2]) == "▁▅█"
    assert len(draw_spark([1.0] * 1000, width=60)) == 60
    assert draw_spark([]) == ""
    assert spread([], 10, "used") == []


def test_times_are_written_as_people_say_them():
    told = [tell_seconds(s) for s in (None, 0, 119, 120, 7200, 12_000, 200_000)]
    assert told == ["never", "0 s", "119 s", "2 min", "2 h", "3 h 20 min", "2 d 7 h"]


@pytest.mark.parametrize("text", ["vision", "=2", "a=nan", "a=0", "a=-1", "a=inf"])
def test_a_weight_that_is_none_is_refused(text: str):
    with pytest.raises(InvalidRequestError, match="--weight"):
        _read_weight(text)


def test_amounts_and_weights_are_read():
    assert _read_slots("cpu=2,mem=4g") == {"cpu": "2", "mem": "4g"}
    assert _read_weight("vision=2") == ("vision", 2.0)
    with pytest.raises(InvalidRequestError, match="--add"):
        _read_slots("cpu")
