"""What the command line shows of a simulation."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from backendai_hub.api.simulations import AddedWait, SimulationReport
from backendai_hub.commandline.plot import draw_spark, draw_svg, spread, tell_seconds
from backendai_hub.commandline.simulate import (
    _read_slots,
    _read_weight,
    courses_of,
    make_table,
    tell_rest,
)
from backendai_hub.core.errors import InvalidRequestError
from backendai_hub.core.simulation import Figures, Point, WaitFigures


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
