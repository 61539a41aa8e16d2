"""Changes grouped by cause: planted incidents, of which it is known what they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from tests.watches import change

from karat.online.causes import Grouped, grouped
from karat.online.metrics.registry import find
from karat.online.watch import Reading, Series, compare, ordered
from karat.tables.online.watch import Change

Rates = dict[str, NDArray[np.float64]]
Incident = Callable[[pl.DataFrame, Rates], None]
CLASSES = ("name", "code", "howto", "misspelt", "de")
# Numerator and denominator of each metric, as columns of searches.
METRICS = {
    "ZeroResults": ("zero", None),
    "ErrorRate": ("error", None),
    "Abandonment": ("none", None),
    "CTR": ("click", "shown"),
}


def searches(rng: np.random.Generator, size: int, incident: Incident | None) -> pl.DataFrame:
    """Searches of five classes, each of 40 queries and as many rare ones as there are searches.

    5 % are in vain, 1 % fail, and 60 % of the others get a click, unless the incident says so.
    """
    kind = rng.choice(CLASSES, size, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    weight = 1 / np.arange(1, 41)
    at = rng.choice(40, size, p=weight / weight.sum()).astype(str)
    rare = rng.integers(0, 10**9, size).astype(str)
    query = np.where(rng.random(size) < 0.3, rare, np.char.add(np.char.add(kind, " "), at))
    frame = pl.DataFrame(
        {
            "class": kind, "query": query, "arm": rng.choice(["a", "b"], size),
            "device": rng.choice(["phone", "desktop"], size, p=[0.4, 0.6]),
        }
    )  # fmt: skip
    rates = {
        name: np.full(size, r) for name, r in (("zero", 0.05), ("error", 0.01), ("click", 0.6))
    }
    if incident is not None:
        incident(frame, rates)
    zero, error = (rng.random(size) < rates[name] for name in ("zero", "error"))
    click = (rng.random(size) < rates["click"]) & ~zero & ~error
    return frame.with_columns(zero=zero, error=error, click=click, none=~click, shown=~zero)


def counted(windows: Sequence[pl.DataFrame], cut: Sequence[str]) -> pl.DataFrame:
    return pl.concat(
        frame.group_by(*cut, "query").agg(
            numerator=pl.col(over).sum().cast(pl.Float64),
            denominator=(pl.len() if per is None else pl.col(per).sum()).cast(pl.Float64),
        ).with_columns(metric=pl.lit(name), window=pl.lit(at))
        for at, frame in enumerate(windows)
        for name, (over, per) in METRICS.items()
    )  # fmt: skip


def causes(
    incident: Incident | None,
    by: Sequence[str] = ("class", "device", "arm"),
    size: int = 4000,
    seed: int = 1,
) -> tuple[list[Change], list[Grouped]]:
    """The changes of a window after four others without the incident, and their causes."""
    rng = np.random.default_rng(seed)
    windows = [searches(rng, size, incident), *(searches(rng, size, None) for _ in range(4))]
    cuts: list[tuple[str, ...]] = [(), *((name,) for name in by)]
    pairs = [*cuts, *itertools.combinations(by, 2)]
    counts = {frozenset(cut): counted(windows, cut) for cut in pairs}
    series = []
    for cut in cuts:
        sums = counts[frozenset(cut)].group_by("metric", *cut, "window").agg(
            pl.col("numerator", "denominator").sum()
        ).sort("metric", *cut, "window")  # fmt: skip
        for (name, *values), rows in sums.group_by("metric", *cut, maintain_order=True):
            now, *before = (
                _reading(*row) for row in rows.select("numerator", "denominator").rows()
            )
            part = dict(zip(cut, map(str, values), strict=True))
            series.append(Series(find(str(name)), part, now, before))
    changes = ordered(compare(series))
    return changes, grouped(changes, counts)


def _reading(over: float, per: float) -> Reading:
    value = over / per
    return Reading(value, math.sqrt(value * (1 - value) / per), round(per), round(per))


def leads(changes: Sequence[Change], found: Sequence[Grouped]) -> list[tuple[str, str]]:
    return [
        (changes[each.lead].metric, " ".join(changes[each.lead].slice.values())) for each in found
    ]


def of(column: str, *values: str) -> Callable[[pl.DataFrame], NDArray[np.bool_]]:
    return lambda frame: frame[column].is_in(values).to_numpy()


def planted(**rates: tuple[Callable[[pl.DataFrame], NDArray[np.bool_]] | None, float]) -> Incident:
    """An incident: for each rate where it changes (None: everywhere), and to what."""

    def changed(frame: pl.DataFrame, base: Rates) -> None:
        for name, (where, rate) in rates.items():
            base[name][slice(None) if where is None else where(frame)] = rate

    return changed


def two_classes(frame: pl.DataFrame, rates: Rates) -> None:
    rates["zero"][of("class", "misspelt")(frame)] = 0.6
    rates["zero"][of("class", "de")(frame)] = 0.5


MISSPELT = planted(zero=(of("class", "misspelt"), 0.78))
QUERIES = planted(
    zero=(of("query", "name 0", "name 1"), 0.7),
    error=(of("query", "code 0", "code 1", "code 2"), 0.4),
)
ARM_AND_DEVICE = planted(zero=(of("arm", "b"), 0.15), error=(of("device", "phone"), 0.08))


def test_a_class_explains_what_it_makes_worse() -> None:
    changes, [one] = causes(MISSPELT)
    assert leads(changes, [one]) == [("ZeroResults", "misspelt")]
    worse = [at for at, each in enumerate(changes) if each.verdict == "worse"]
    assert {one.lead, *one.explains} == set(worse)
    assert len(worse) >= 8
    # 10 % of searches rose by 73 points, which is all of the change: 7.3 points.
    assert one.share == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("incident", "expected"),
    [
        (planted(error=(None, 0.1)), [("ErrorRate", "")]),
        (planted(click=(of("arm", "b"), 0.45)), [("CTR", "b")]),
        (two_classes, [("ZeroResults", "misspelt"), ("ZeroResults", "de")]),
        # Errors are abandoned as well, and either may lead.
        (QUERIES, [("ZeroResults", "name"), (None, "code")]),
        (ARM_AND_DEVICE, [("ZeroResults", "b"), ("ErrorRate", "phone")]),
    ],
    ids=["everywhere", "an arm", "two classes", "queries", "an arm and a device"],
)
def test_an_incident_is_one_cause_and_two_are_two(
    incident: Incident, expected: list[tuple[str | None, str]]
) -> None:
    changes, found = causes(incident)
    named = zip(leads(changes, found), expected, strict=True)
    assert [(metric and own, part) for (own, part), (metric, _) in named] == expected
    grouped_ = [at for each in found for at in (each.lead, *each.explains)]
    assert sorted(grouped_) == [at for at, one in enumerate(changes) if one.verdict == "worse"]


def test_without_slices_queries_are_the_difference() -> None:
    changes, found = causes(QUERIES, by=())
    assert leads(changes, found) == [("ZeroResults", ""), ("ErrorRate", "")]
    assert {"name 0", "name 1"} <= set(found[0].queries)
    assert {"code 0", "code 1", "code 2"} <= set(found[1].queries)
    assert max(len(each.queries) for each in found) <= 5, "few of them by chance"


def test_rare_queries_that_fail_as_usual_are_no_cause() -> None:
    # Every query is asked once. 5 % are in vain as ever, and abandonment rises for all: what the
    # failed ones contribute to it is an eighth.
    rng = np.random.default_rng(3)
    windows = []
    for clicked in (0.4, 0.6, 0.6, 0.6, 0.6):
        frame = searches(rng, 4000, planted(click=(None, clicked)))
        windows.append(frame.with_columns(query=pl.Series(rng.integers(0, 2**60, 4000)).cast(str)))
    counts = {frozenset[str](): counted(windows, ())}
    zero, none = change(part={}, value=0.06), change("Abandonment", {}, value=0.62, expected=0.44)
    found = grouped([zero, none], counts)
    assert [each.queries for each in found] == [(), ()] or len(found) == 1


def test_what_does_not_add_up_is_grouped_by_metric() -> None:
    slow = [change("Latency(p95)", part) for part in ({"arm": "b"}, {}, {"device": "phone"})]
    ends = change("SessionsPerUser", {})
    found = grouped([*slow, ends], {})
    assert [(each.lead, set(each.explains)) for each in found] == [(1, {0, 2}), (3, set())]
    assert found[0].explains[0] is None
    assert grouped([], {}) == []


@pytest.mark.deep  # 12 seeds of each; above: one
@pytest.mark.parametrize(
    ("incident", "lead", "most"),
    [
        (MISSPELT, ("ZeroResults", "misspelt"), 14),
        (planted(error=(None, 0.1)), ("ErrorRate", ""), 14),
        (planted(click=(of("arm", "b"), 0.45)), None, 14),
        (planted(click=(None, 0.5)), None, 14),
    ],
    ids=["a class", "everywhere", "an arm", "clicks everywhere"],
)
def test_one_incident_is_seldom_two(
    incident: Incident, lead: tuple[str, str] | None, most: int
) -> None:
    """Over 12 windows of 1,500 searches there are at most two causes too many."""
    number = 0
    for seed in range(12):
        changes, found = causes(incident, size=1500, seed=seed)
        number += len(found)
        if lead is not None:
            assert leads(changes, found)[0] == lead
    assert number <= most
