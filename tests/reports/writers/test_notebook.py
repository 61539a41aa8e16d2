"""Results in a notebook: every number of the tables, nothing of a stranger's run as markup."""

from __future__ import annotations

import builtins
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.choosing import deep_but

import karat
from karat.errors import MissingExtra
from karat.reports.writers import notebook
from karat.reports.writers.notebook import chart, to_html
from karat.tables import Result, Results
from karat.tables.results import Latency, NoAnswer, Outcome, Silence

EVIL = "<script>alert(1)</script> & \"x\" 'y' \x1b[31m"
SAFE = EVIL.replace("\x1b", "\N{REPLACEMENT CHARACTER}")


def row(run: str = "bm25", measure: str = "nDCG@10", **more: Any) -> Result:
    base = Result(
        run, measure, 0.5, "mean", 0.4, 0.62, "t", 40, 1, 2, 3, 4, 5, 0.875, 0.25,
        tie_low=0.5, tie_expected=0.5, tie_high=0.5, unjudged_low=0.5, unjudged_high=0.5,
    )  # fmt: skip
    return replace(base, **more)


class Tables(HTMLParser):
    """The cells of every table, and whether tags close as they open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th", "abbr"):
            self.tables[-1][-1][-1] += data


def test_one_run() -> None:
    (table,) = Tables(to_html(Results([row()]))).tables
    assert table == [
        ["Measure", "Value", "95 %", "Queries", "Judged"],
        ["nDCG@10", "0.5000", "0.400 to 0.620", "40", "88 %"],
    ]


def test_bands_stand_where_they_say_something() -> None:
    rows = [
        row(tie_low=0.45, tie_high=0.55, unjudged_low=0.2, unjudged_high=0.9),
        row(run="dense", value=None, ci_low=None, ci_high=None, judged=None, unjudged_low=None),
        row(
            measure="NumRet",
            aggregate="sum",
            value=1234.0,
            ci_low=None,
            ci_high=None,
            n=1000,
            tie_low=1234.0,
            tie_high=1234.0,
            unjudged_low=1234.0,
            unjudged_high=1234.0,
        ),
    ]
    (table,) = Tables(to_html(Results(rows))).tables
    head = ["Measure", "Run", "Value", "95 %", "Queries", "Judged"]
    first = ["nDCG@10", "bm25", "0.5000", "0.400 to 0.620", "40", "88 %"]
    assert table == [
        [*head, "Tie band", "Unjudged band"],
        [*first, "0.4500 to 0.5500", "0.2000 to 0.9000"],
        ["nDCG@10", "dense", "–", "–", "40", "–", "", "–"],
        ["NumRet", "bm25", "1,234", "–", "1,000", "88 %", "", ""],
    ]


def everything(name: str) -> Results:
    return Results(
        [row(name, name), row("dense", name)],
        slices=[row(name, name, attribute=name, slice=name), row("dense", name, attribute=name)],
        notes=[name],
        no_answer=[NoAnswer(name, 4, 3, 0.75, 1, 0, None, [Silence(1.5, 1.0, 0.25)])],
        latency=[Latency(name, 9, 512.0, 12_345.0, 250_000.0, 1_500_000.0)],
        outcomes=[Outcome(name, name, name, 30, 0.5, 0.1, 0.8, 0.4, None)],
    )


def test_every_part_is_shown() -> None:
    main, *rest = Tables(to_html(everything("bm25"))).tables
    assert len(main) == 3
    assert rest == [
        [["bm25", "Queries", "bm25"], ["bm25", "40", "0.500 0.40 to 0.62"]],
        [["bm25", "Queries", "bm25"], ["None", "40", "0.500 0.40 to 0.62"]],
        [["Run", "Queries", "Answered with nothing", "Share"], ["bm25", "4", "3", "75 %"]],
        [
            ["Run", "Queries", "p50", "p95", "p99", "Slowest"],
            ["bm25", "9", "0.512", "12.3", "250", "1,500"],
        ],
        [
            ["Measure", "Outcome", "Spearman", "95 %", "Kendall", "AUC", "Queries"],
            ["bm25", "bm25", "0.500", "0.10 to 0.80", "0.400", "–", "30"],
        ],
        [["Score", "No answer, silent", "Answerable, silent"], ["1.5", "100 %", "25 %"]],
    ]


def test_nothing_of_a_stranger_is_markup() -> None:
    text = to_html(everything(EVIL))
    parsed = Tables(text)
    assert not parsed.tags & {"script", "img", "iframe", "a", "image", "foreignObject", "link"}
    assert "\x1b" not in text
    cells = {cell for table in parsed.tables for line in table for cell in line}
    assert SAFE in cells
    assert html.escape(SAFE) in text


def test_it_needs_no_network_and_sets_no_colour_of_text() -> None:
    text = to_html(everything("bm25"))
    links = set(re.findall(r"https?://[^\"' )]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    style = text[: text.index("</style>")]
    assert set(re.findall(r"[^-]color: ([^;]+);", style)) == {"inherit"}
    drawing = "".join(re.findall(r"<text[^>]*>", text))
    assert set(re.findall(r'fill="([^"]+)"', drawing)) <= {"currentColor"}


def test_no_results_are_no_error() -> None:
    assert Tables(to_html(Results([], notes=["nothing"]))).tables == []


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Make imports of packages fail, as where they are not installed."""
    real = builtins.__import__

    def importing(name: str, *more: Any, **others: Any) -> Any:
        if name.partition(".")[0] in packages:
            raise ImportError(name)
        return real(name, *more, **others)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_without_the_extra_there_are_tables_and_a_word_on_charts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "vl_convert")
    text = to_html(Results([row()]))
    assert "<svg" not in text
    assert "<code>pip install 'karat[report]'</code>" in text
    assert len(Tables(text).tables) == 1


def test_a_chart_without_altair_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "altair")
    with pytest.raises(MissingExtra, match=r"karat\[report\]"):
        chart(Results([row()]))


def test_the_chart_holds_the_values_and_intervals() -> None:
    pytest.importorskip("altair")
    rows = [
        row(ci_low=-0.1, ci_high=1.2),
        row("dense", value=0.25, ci_low=None, ci_high=None),
        row(measure="NumRet", aggregate="sum", value=12.0),  # a sum is no share
        row(measure="DCG", value=1.5),  # nor is what exceeds 1
        row(measure="AP", value=None),
    ]
    spec = chart(Results(rows)).to_dict()
    (data,) = spec["datasets"].values()
    assert data == [
        {"run": "bm25", "measure": "nDCG@10", "value": 0.5, "low": 0.0, "high": 1.0},
        {"run": "dense", "measure": "nDCG@10", "value": 0.25, "low": 0.25, "high": 0.25},
    ]
    json.dumps(spec, allow_nan=False)


def test_the_chart_is_drawn_without_ids_that_could_clash_in_a_page() -> None:
    pytest.importorskip("vl_convert")
    text = to_html(everything("bm25"))
    assert text.count("<svg") == 1
    assert not re.findall(r"""\bid=["']""", text)
    assert "<svg" not in to_html(Results([row(aggregate="sum", value=12.0)]))


@pytest.mark.parametrize(
    "name",
    deep_but(
        {"constructor", "a\ud800b", '"]'},
        ["toString", "constructor", "__proto__", "valueOf", "a\u2028b", "a\ud800b", "{", '"]', ""],
    ),
)
def test_no_name_keeps_results_from_being_shown(name: str) -> None:
    pytest.importorskip("vl_convert")
    text = to_html(everything(name))
    assert "<svg" in text
    text.encode()
    assert len(Tables(text).tables) == 7


def test_a_chart_that_cannot_be_drawn_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no")

    monkeypatch.setattr(notebook, "_spec", broken)
    pytest.importorskip("vl_convert")
    text = to_html(Results([row()]))
    assert "<svg" not in text
    assert "pip install" not in text
    assert len(Tables(text).tables) == 1


def test_a_notebook_calls_what_the_workflow_gave() -> None:
    results = karat.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["RR"])
    shown = replace(results, shown=to_html)
    assert shown._repr_html_() == to_html(results)
