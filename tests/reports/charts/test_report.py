"""Charts: drawn without a browser, safe in a page, and never 0 for nothing."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("vl_convert")

from karat.reports.charts.drawing import PAPER, to_png, to_svg
from karat.reports.charts.report import Bar, Dot, bars, counts, intervals

HOSTILE = '<script>alert(1)</script>" onload="x'


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter() if "text" in node.tag]


def test_names_of_strangers_are_text() -> None:
    svg = to_svg(intervals([Dot(HOSTILE, 0.5, 0.25, 0.75), Dot("__proto__", 0.5, None, None)], "v",
                           zero=False))  # fmt: skip
    ET.fromstring(svg)
    assert "<script" not in svg
    assert "__proto__" in texts(svg)
    turned = to_svg(intervals([Dot("m", 0.5, 0, 1)], "minus \u202eevil", zero=True))
    assert "minus \ufffdevil" in texts(turned)


def test_digits_of_a_name_are_left_alone() -> None:
    assert "model-1.23456" in texts(to_svg(intervals([Dot("model-1.23456", 0.5, 0, 1)], "v",
                                                     zero=False)))  # fmt: skip


def test_no_value_is_said_and_not_drawn() -> None:
    svg = to_svg(intervals([Dot("nothing", None, None, None)], "v", zero=True))
    assert "no value" in texts(svg)
    assert "+0.000" not in texts(svg)
    # A dot is a path of arcs.
    assert not re.search(r'd="M[^"]*A', svg)


def test_filled_is_what_a_test_tells_apart() -> None:
    told, untold = (
        to_svg(intervals([Dot("m", 0.1, 0.05, 0.15, told=told, ink="up")], "v", zero=True))
        for told in (True, False)
    )
    assert 'fill="var(--up)"' in told
    assert 'fill="var(--up)"' not in untold
    assert 'fill="var(--back)"' in untold


def test_links_stay_in_the_page() -> None:
    svg = to_svg(bars([Bar(0.5, "q1", "first"), Bar(-0.5, None, "second")], "adds"), "bars")
    assert re.findall(r'href="([^"]*)"', svg) == ["#q1"]
    assert "vega" not in svg
    assert " style=" not in svg  # the policy of the page forbids it


def marks(svg: str) -> list[tuple[str, str | None, str]]:
    """Tag, link and title of what a reader can point at."""
    space = "{http://www.w3.org/2000/svg}"
    return [
        (node.tag.removeprefix(space), node.get("href"), node.findtext(f"{space}title") or "")
        for node in ET.fromstring(svg).iter()
        if node.get("class") == "mark"
    ]


def test_every_mark_says_its_numbers_and_leads_to_its_rows() -> None:
    bar = to_svg(bars([Bar(0.5, "q1", f"{HOSTILE}\u202e"), Bar(-0.5, None, "second")], "a"), "t")
    assert marks(bar) == [("a", "#q1", f"{HOSTILE}\ufffd"), ("g", None, "second")]
    dot = to_svg(
        intervals(
            [
                Dot("m", 0.1, 0.0, 0.2, href="by-0", tip="m: 0.1"),
                Dot("n", None, None, None, tip="n"),
            ],
            "v",
            zero=True,
            narrow=True,
        ),
        "t",
    )
    assert marks(dot) == [("a", "#by-0", "m: 0.1"), ("g", None, "n")]
    columns = to_svg(counts([3, 0], ["0", "1"], "v", areas=[("by-0", "3 of 0"), (None, "x")]), "t")
    assert marks(columns) == [("a", "#by-0", "3 of 0"), ("g", None, "x")]


def test_a_chart_in_a_page_is_heard_by_its_title_and_marks() -> None:
    chart = intervals([Dot("m", 0.1, 0.0, 0.2, href="by-0", tip="m: 0.1")], "v", zero=True)
    svg = to_svg(chart, f"About {HOSTILE}")
    root = ET.fromstring(svg)
    assert (root.get("role"), root.get("aria-label")) == ("group", f"About {HOSTILE}")
    said = [node for node in root.iter() if node.tag.endswith("}text")]
    assert said
    assert all(node.get("aria-hidden") == "true" for node in said)


def test_columns_carry_their_numbers() -> None:
    assert {"3", "1,200"} <= set(texts(to_svg(counts([3, 1200], ["0", "1"], "value"))))


def test_a_picture_has_colours_of_its_own() -> None:
    chart = intervals([Dot("m", 3.0, 2.0, 4.0)], "v", zero=False, paint=PAPER)
    assert "var(" not in to_svg(chart)
    assert to_png(chart).startswith(b"\x89PNG")
