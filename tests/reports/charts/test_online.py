"""Charts of online metrics: gaps are gaps, strangers' words are text, nothing leaves the frame."""

from __future__ import annotations

import re

import pytest

from karat.reports.charts import online as drawing
from karat.reports.charts.online import Line, Place, Point, Spot, over_time, scatter

pytest.importorskip("vl_convert")

PLACES = [Place(f"{day} Nov", f"day {day}", f"at-{day}") for day in range(1, 8)]


def lines(svg: str, look: int = 0) -> list[str]:
    """The paths of a line: what is drawn with its colour, and is no area and no point."""
    paint = re.escape(drawing.LINES[look])
    return [
        found[1]
        for found in re.finditer(r'<path ([^>]*)/>', svg)
        if (re.search(rf'stroke="{paint}"', found[1]) and 'fill="none"' in found[1])
        or (re.search(rf'stroke="{paint}"', found[1]) and "fill" not in found[1])
    ]  # fmt: skip


def corners(path: str) -> int:
    said = re.search(r'd="([^"]*)"', path)
    assert said is not None
    return len(re.findall(r"[ML]", said[1]))


def test_what_has_no_value_cuts_the_line_and_is_no_zero() -> None:
    values = [0.3, 0.31, None, 0.3, 0.32, 0.33]  # and nothing at all at the seventh
    points = [Point(at, value) for at, value in enumerate(values)]
    svg = over_time([Line("all", points)], PLACES, title="CTR", unit="share")
    assert sorted(corners(path) for path in lines(svg)) == [2, 3]
    assert svg.count('stroke-dasharray="1,4"') == 1  # one dotted upright
    # The axis stays about the values: a gap drawn as 0 would pull it down.
    ticks = [float(each) for each in re.findall(r">([\d.]+) %<", svg)]
    assert ticks
    assert min(ticks) >= 28


def test_the_axis_is_about_what_can_be_trusted() -> None:
    points = [Point(at, 0.3 + at / 100, 0.2, 0.4) for at in range(6)]
    wild = [*points, Point(6, 1.0, None, None, thin=True)]
    svg = over_time([Line("all", wild)], PLACES, title="CTR", unit="share")
    ticks = [float(each) for each in re.findall(r">([\d.]+) %<", svg)]
    assert max(ticks) < 50  # and the last stands at the edge, hollow
    assert "var(--back)" in svg
    alone = Line("all", [Point(0, 1.0, thin=True)])
    only = over_time([alone], PLACES[:1], title="CTR", unit="share")
    assert "100 %" in only  # where there is nothing else, it is what there is


def test_each_place_leads_somewhere_and_says_what_it_is() -> None:
    svg = over_time([Line("all", [Point(0, 1.0)])], PLACES, title="<b>CTR</b>")
    assert len(re.findall(r'<a class="mark" href="#at-\d" tabindex="-1"><title>day \d', svg)) == 7
    assert "<b>" not in svg
    assert 'aria-label="&lt;b&gt;CTR&lt;/b&gt;"' in svg
    assert "<script" not in svg
    assert "style=" not in svg  # the policy of pages lets none in


def test_lines_differ_by_more_than_colour() -> None:
    each = [Line(str(look), [Point(0, 1.0), Point(1, 2.0)], look) for look in range(5)]
    svg = over_time(each, PLACES[:2], title="five")
    dashes = {re.search(r'stroke-dasharray="([^"]*)"', lines(svg, look)[0]) for look in range(5)}
    assert len({None if found is None else found[1] for found in dashes}) == 5


def test_marks_stand_between_the_places() -> None:
    points = [Point(at, 1.0) for at in range(7)]
    bare = over_time([Line("all", points)], PLACES, title="CTR")
    svg = over_time([Line("all", points)], PLACES, [(2.5, "1")], title="CTR")
    assert ">1</text>" in svg
    assert svg.count("<line") == bare.count("<line") + 1


@pytest.mark.parametrize("size", [drawing.SMALL, drawing.WIDE, drawing.NARROW])
def test_nothing_to_draw_is_drawn_as_nothing(size: tuple[int, int]) -> None:
    svg = over_time([Line("all", [Point(0, None)])], PLACES, title="none", size=size)
    assert svg.startswith("<svg ")
    assert lines(svg) == []
    assert over_time([], PLACES, title="none", size=size).startswith("<svg ")


def test_a_scatter_leads_from_each_of_its_spots() -> None:
    evil = "<script>alert(1)</script>\u202e"
    spots = [Spot(0.1, 0.2, "up", evil, "q-0"), Spot(0.5, 0.9, "ink", "b", "q-1")]
    svg = scatter(spots, "nDCG@10", "SAT", title="both", shares=(False, True))
    assert re.findall(r'href="(#q-\d)"', svg) == ["#q-0", "#q-1"]
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert "var(--up)" in svg
    assert "nDCG@10" in svg
    one = scatter([Spot(0.0, 0.0)], "a", "b", title="one")  # no range at all
    assert one.startswith("<svg ")


def test_a_band_ends_where_an_interval_is_lacking() -> None:
    ends = [(0.2, 0.4), (0.2, 0.4), (None, None), (0.2, 0.4), (0.2, 0.4)]
    points = [Point(at, 0.3, low, high) for at, (low, high) in enumerate(ends)]
    svg = over_time([Line("all", points)], PLACES, title="CTR", unit="share")
    assert [corners(path) for path in lines(svg)] == [5]  # the line goes on
    bands = re.findall(r'<path [^>]*fill-opacity="0.16"[^>]*>', svg)
    assert len(bands) == 2


def heights(svg: str) -> list[float]:
    """How far down the corners of bands and of intervals that stand alone are drawn."""
    paint = re.escape(drawing.LINES[0])
    said = re.findall(rf'<path [^>]*fill="{paint}"[^>]*fill-opacity="0.16"[^>]*>', svg)
    assert said
    shapes = [re.search(r' d="([^"]*)"', each) for each in said]
    return [float(y) for each in shapes if each for y in re.findall(r",(-?[\d.]+)", each[1])]


def test_no_interval_leaves_the_frame() -> None:
    sure = [Point(at, 150 + at % 2, 149, 152) for at in range(5)]
    far = [Point(at, 10.0, 5.0, 20.0, thin=True) for at in (5, 6)]
    svg = over_time([Line("all", [*sure, *far])], PLACES, title="Latency", unit="milliseconds")
    assert all(0 <= y <= drawing.SMALL[1] for y in heights(svg))
    high = [Point(at, 900.0, 800.0, 950.0, thin=True) for at in (5, 6)]
    svg = over_time([Line("all", [*sure, *high])], PLACES, title="Latency", unit="milliseconds")
    assert all(0 <= y <= drawing.SMALL[1] for y in heights(svg))


def test_few_that_can_be_trusted_do_not_make_the_axis() -> None:
    values = [0.3, 0.1, 0.9, 0.2, 0.8, 0.5]
    points = [Point(at, value, thin=at > 0) for at, value in enumerate(values)]
    svg = over_time([Line("all", points)], PLACES, title="CTR", unit="share")
    ticks = [float(each) for each in re.findall(r">([\d.]+) %<", svg)]
    assert max(ticks) >= 80
    assert "triangle" not in svg


def test_shares_that_are_all_0_have_an_axis_of_their_size() -> None:
    points = [Point(at, 0.0) for at in range(7)]
    svg = over_time([Line("all", points)], PLACES, title="ErrorRate", unit="share")
    ticks = [float(each) for each in re.findall(r">([\d.]+) %<", svg)]
    assert (min(ticks), max(ticks)) == (0, 5)


@pytest.mark.parametrize(
    ("unit", "upwards", "said"),
    [
        ("share", "", r">[\d.]+ %</text>"),
        ("seconds", "", r">[\d.]+ s</text>"),
        ("milliseconds", "", r">[\d.]+ ms</text>"),
        ("count", "searches per user", r">searches per user</text>"),
    ],
)
def test_the_axis_says_its_unit(unit: str, upwards: str, said: str) -> None:
    points = [Point(at, 0.5 + at / 10) for at in range(4)]
    svg = over_time([Line("all", points)], PLACES, title="x", unit=unit, upwards=upwards)
    assert re.search(said, svg)
