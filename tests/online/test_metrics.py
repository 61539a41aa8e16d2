"""The entries of online metrics: their names, what they say, and what their expressions come to."""

from __future__ import annotations

from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pytest

from karat.errors import UsageError
from karat.online import worst
from karat.online.estimates import needed
from karat.online.metrics import registry
from karat.online.metrics.entry import Distribution, Metric, Ratio
from karat.online.metrics.expressions import EVERY_SEARCH, counted_over
from karat.tables.online.events import KINDS
from karat.tables.schema import CLICKS, EVENTS, SEARCHES, SESSIONS

ALL = registry.all_metrics()
NAMES = [metric.name for metric in ALL]


def frame(columns: Any, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Facts with these values, null where nothing is said."""
    return pl.DataFrame(rows, schema={column.name: column.dtype for column in columns})


# Each search is a case of its own:
SEARCHES_SEEN = frame(
    SEARCHES,
    [
        # clicks at 2 and 4, after 3 s
        {"seen": 1, "items": 10, "clicks": 2, "clicked": 1, "first_rank": 2, "paul_5": 0.625,
         "first_click_us": 3_000_000, "left_us": 9_000_000, "zero": 0, "abandoned": 0,
         "reformulated": 0},
        # seen and left after 8 s, and said again with a word more
        {"seen": 1, "items": 10, "clicks": 0, "clicked": 0, "paul_5": 0.0, "left_us": 8_000_000,
         "zero": 0, "abandoned": 1, "abandoned_as": "reformulated", "reformulated": 1,
         "reformulation": "add"},
        # nothing found
        {"seen": 0, "items": 0, "clicks": 0, "clicked": 0, "paul_5": 0.0, "left_us": 1_000_000,
         "zero": 1, "abandoned": 1, "abandoned_as": "zero", "reformulated": 0},
        # it is not known what was seen or found
        {"clicks": 0, "clicked": 0, "paul_5": 0.0, "left_us": 0, "reformulated": 0},
        # clicked on two, of which page 2 was not logged, at positions that are not known
        {"seen": 1, "items": 2, "clicks": 2, "clicked": 1, "paul_5": 0.0,
         "first_click_us": 5_000_000, "left_us": 5_000_000, "zero": 0, "abandoned": 0,
         "reformulated": 0},
    ],
)  # fmt: skip


def columns_of(metric: Metric) -> dict[str, nw.Expr]:
    compute = metric.compute
    if isinstance(compute, Distribution):
        censored = {} if compute.censored is None else {"censored": compute.censored()}
        return {"value": compute.value(), **censored}
    below = {} if compute.denominator is None else {"denominator": compute.denominator()}
    more = {"least": compute.least, "most": compute.most}
    ends = {name: each() for name, each in more.items() if each is not None}
    return {"numerator": compute.numerator(), **below, **ends}


def values(name: str) -> dict[str, list[Any]]:
    """What the expressions of a metric come to on the five searches, by Polars."""
    made = nw.from_native(SEARCHES_SEEN.lazy()).select(**columns_of(registry.find(name)))
    found: dict[str, list[Any]] = made.collect().to_native().to_dict(as_series=False)
    return found


def test_names_differ_in_more_than_case() -> None:
    assert len({name.casefold() for name in NAMES}) == len(NAMES)


def test_counts_beside_metrics_are_in_no_catalogue() -> None:
    beside = [each for each in needed(ALL) if each not in ALL]
    counts = [EVERY_SEARCH, *beside, *worst.metrics(clicks=True)]
    names = [each.name for each in counts]
    assert len(beside) == 4  # dwell, all and only the ended; first clicks; latency
    assert len(set(names)) == len(names)
    for each in counts:
        with pytest.raises(UsageError):
            registry.find(each.name)


@pytest.mark.parametrize("metric", ALL, ids=NAMES)
def test_an_entry_says_everything(metric: Metric) -> None:
    for text in (metric.title, metric.definition, metric.says, metric.source, *metric.traps):
        assert text.strip()
        assert "  " not in text
    assert metric.traps
    assert metric.family in registry.FAMILIES
    assert all(trap.endswith((".", "…")) for trap in metric.traps), metric.traps
    assert not metric.says.endswith(".")
    known = {column.name for column in EVENTS} | set(KINDS)
    assert {name for need in metric.needs for name in need.split("|")} <= known
    if isinstance(metric.compute, Ratio):
        assert " / " in metric.definition
        assert counted_over(metric)
        assert (metric.compute.least is None) == (metric.compute.most is None)
    if metric.unit == "rank":
        assert metric.highest is not None


@pytest.mark.parametrize("metric", ALL, ids=NAMES)
def test_its_name_leads_back_to_it(metric: Metric) -> None:
    assert registry.find(metric.name) is metric or registry.find(metric.name) == metric or (
        registry.find(metric.name).definition == metric.definition
    )  # fmt: skip
    assert registry.find(metric.name.lower()).name == metric.name
    assert registry.find(metric.name.upper()).name == metric.name
    shell = metric.name.replace("(", ":").replace(")", "")
    assert registry.find(shell).name == metric.name


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("ctr@3", "CTR@3"),
        (" CTR @ 3 ", "CTR@3"),
        ("CTR@1000", "CTR@1000"),
        ("PaulScore:F=0.9", "PaulScore(F=0.9)"),
        ("paulscore(f = .5)", "PaulScore(F=0.5)"),
        ("Latency:p95", "Latency(p95)"),
        ("latency(p99.9)", "Latency(p99.9)"),
        ("Latency:p05", "Latency(p5)"),
        ("Reformulation:add", "Reformulation(add)"),
    ],
)
def test_names_are_read_in_many_spellings(typed: str, name: str) -> None:
    assert registry.find(typed).name == name


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("CTRR", "did you mean CTR"),
        ("abandonmnt", "did you mean Abandonment"),
        ("PaulScore", "PaulScore(F=0.5), PaulScore(F=0.9)"),
        ("PaulScore:F=0.7", "similar ones are"),
        ("Latency", "Latency(p50)"),
        ("Latency:p0", "above p0"),
        ("Latency:p100", "below p100"),
        ("CTR@0", "position from 1"),
        ("CTR@five", "position from 1"),
        ("CTR@99999", "position from 1"),
        ("CTR@1001", "position from 1 to 1,000"),
        ("SAT@5", "no cutoff"),
        ("CTR(clicked)", "no parameters in brackets"),
        ("Dwell(meen)", "did you mean Dwell(mean)"),
        ("", "not the name"),
        ("nDCG@10", "nDCG@10 is an offline measure: it needs judgments, not events"),
        ("ndcg@10", "evaluate a run for it; karat online against"),
        ("map", "map is an offline measure"),
        ("MRCR@3", "MRCR has no cutoff"),
        ("foo@3", "unknown online metric 'foo'"),
        ("click-through rate", "did you mean CTR?"),
        ("no-result rate", "did you mean ZeroResults?"),
        ("NoResultRate", "did you mean ZeroResults?"),
        ("average click position", "did you mean MRCR or ClickPosition?"),
        ("bounce", "did you mean QuickBack?"),
        ("conversion_rate", "did you mean Conversion?"),
        ("a b", "not the name"),
    ],
)
def test_a_wrong_name_is_told_what_is_right(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.find(typed)
    assert said in str(caught.value)


def test_several_names_are_each_metric_once() -> None:
    assert [m.name for m in registry.find_all(["ctr", "SAT", "CTR"])] == ["CTR", "SAT"]


def test_the_usual_ones_are_metrics() -> None:
    assert [registry.find(name).name for name in registry.DEFAULT] == list(registry.DEFAULT)


def test_a_search_counts_for_click_through_where_its_results_were_seen() -> None:
    assert values("CTR") == {
        "numerator": [1, 0, 0, 0, 1],
        "denominator": [1, 1, 0, None, 1],
    }


def test_a_click_at_an_unknown_place_is_not_one_below() -> None:
    # The last search is left out; 2 is within the first two, and not the first.
    assert values("CTR@2") == {"numerator": [1, 0, 0, 0, 0], "denominator": [1, 1, 0, 0, 0]}
    assert values("CTR@1")["numerator"] == [0, 0, 0, 0, 0]
    assert values("MRCR") == {
        "numerator": [0.5, None, None, None, None],
        "denominator": [1, 1, 0, 0, 0],
    }
    assert values("MRCR(clicked)")["denominator"] == [1, 0, 0, 0, 0]
    assert values("PaulScore:F=0.5") == {
        "numerator": [0.625, 0.0, 0.0, 0.0, 0.0],
        "denominator": [1, 1, 0, 0, 0],
    }


def test_documents_clicked_are_counted_over_items_seen() -> None:
    # Two of ten, none of ten, none, unknown, and both of two.
    assert values("ItemCTR") == {
        "numerator": [2, 0, 0, 0, 2],
        "denominator": [10, 10, 0, None, 2],
    }


def test_unknown_is_not_counted_as_zero_results() -> None:
    assert values("ZeroResults") == {
        "numerator": [0, 0, 1, None, 0],
        "denominator": [1, 1, 1, 0, 1],
    }


def test_the_parts_of_abandonment_are_over_the_same_searches() -> None:
    whole = values("Abandonment")
    assert whole == {"numerator": [0, 1, 1, None, 0], "denominator": [1, 1, 1, 0, 1]}
    parts = [values(f"Abandonment({part})") for part in ("zero", "reformulated", "terminal")]
    assert all(part["denominator"] == whole["denominator"] for part in parts)
    assert [part["numerator"] for part in parts] == [
        [0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]


def test_every_search_counts_for_reformulation() -> None:
    assert values("Reformulation") == {"numerator": [0, 1, 0, 0, 0], "denominator": [1] * 5}
    assert values("Reformulation(add)")["numerator"] == [0, 1, 0, 0, 0]
    assert values("Reformulation(drop)")["numerator"] == [0, 0, 0, 0, 0]


def test_a_search_without_a_click_is_censored_when_it_is_left() -> None:
    assert values("TimeToFirstClick") == {
        "value": [3_000_000, 8_000_000, None, None, 5_000_000],
        "censored": [0, 1, 1, 1, 0],
    }


@pytest.mark.parametrize(
    "metric",
    [  # all of them in evidence: tests/contracts/test_engines.py
        pytest.param(metric, id=metric.name, marks=() if at % 4 == 0 else pytest.mark.deep)
        for at, metric in enumerate(ALL)
    ],
)
def test_expressions_come_to_the_same_on_duckdb(metric: Metric) -> None:
    rows = {
        "searches": SEARCHES_SEEN,
        "clicks": frame(
            CLICKS,
            [
                {"position": 1, "dwell_us": 31_000_000, "censored": 0},
                {"position": None, "dwell_us": 0, "censored": 1},
            ],
        ),
        "sessions": frame(SESSIONS, [{"searches": 2, "tasks": 1, "success": 1}]),
    }[metric.compute.facts]
    wanted = {name: each.cast(nw.Float64) for name, each in columns_of(metric).items()}
    by_polars = nw.from_native(rows.with_row_index("at").lazy()).select("at", **wanted)
    table = rows.with_row_index("at").to_arrow()
    with duckdb.connect() as connection:
        by_duckdb = nw.from_native(connection.from_arrow(table)).select("at", **wanted)
        found = by_duckdb.collect("polars").to_native().sort("at").drop("at")
    expected = by_polars.collect().to_native().sort("at").drop("at")
    assert found.to_dict(as_series=False) == expected.to_dict(as_series=False)
