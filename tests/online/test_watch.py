"""Whether a window is as usual: seasons, chance, many tests, and which queries moved it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from karat.errors import UsageError
from karat.online import watch
from karat.online.metrics.entry import Metric
from karat.online.metrics.registry import find
from karat.online.watch import Reading, Series, compare, contributions, ordered
from karat.tables.online.watch import Change

ZERO, CTR = find("ZeroResults"), find("CTR")


def share(value: float, n: int, users: int | None = None) -> Reading:
    """A share of n searches, each of a person of its own."""
    return Reading(value, math.sqrt(value * (1 - value) / n), n, users or n)


def series(
    now: float | None, before: list[float], n: int = 1000, metric: Metric = ZERO, margin: float = 0
) -> Series:
    return Series(
        metric, {}, None if now is None else share(now, n), [share(b, n) for b in before], margin
    )


def one(*given: Series) -> Change:
    return compare(given)[0]


def test_one_series_by_hand() -> None:
    # Expected .06; variance between (.04, .06, .08) is .0004. Sampling, with n = 100 each:
    # mean of .0384, .0564 and .0736 is .056133; over 100, .00056133. The spread is less than that,
    # so the ratio is 1. Now .2: .16 / 100 = .0016; half way to it, .00108067.
    # SE² = .00108067 + .00056133 / 3; t with 2 degrees of freedom.
    found = one(series(0.2, [0.04, 0.06, 0.08], n=100))
    error = math.sqrt((0.0016 + 0.00056133333) / 2 + 0.00056133333 / 3)
    assert found.expected == pytest.approx(0.06)
    assert found.change == pytest.approx(0.14)
    assert found.df == 2
    assert found.p == pytest.approx(2 * stats.t.sf(0.14 / error, 2), rel=1e-6)
    assert found.p_adjusted == found.p
    # Usual: as far as windows usually vary, .00056133 · (1 + 1/3), and nothing is below 0.
    reach = stats.t.ppf(0.975, 2) * math.sqrt(0.00056133333 * 4 / 3)
    assert (found.usual_low, found.usual_high) == pytest.approx((0, 0.06 + reach))


def test_weeks_that_differ_for_reasons_of_their_own_make_it_less_sure() -> None:
    # Between (.02, .06, .10): variance .0016, n = 10,000: sampling is about a 300th of it, and
    # SE² ≈ .0016 · (1 + 1/3): .14 / .0462 = 3.03, p of t with 2 degrees of freedom .094.
    found = one(series(0.2, [0.02, 0.06, 0.1], n=10_000))
    assert found.p == pytest.approx(0.094, abs=0.002)
    assert found.verdict == "usual"


def test_a_dip_of_every_sunday_is_no_alarm() -> None:
    # Sundays are at .30 where other days are at .50. Beside Sundays, this one is as usual; beside
    # the days just before it, it would be an alarm.
    sundays = [0.302, 0.297, 0.303, 0.299]
    assert one(series(0.298, sundays, 2000, CTR)).verdict == "usual"
    assert one(series(0.298, [0.502, 0.497, 0.503, 0.499], 2000, CTR)).verdict == "worse"


def test_better_and_worse_go_by_the_direction() -> None:
    usual = [0.3, 0.31, 0.29, 0.3]
    assert one(series(0.5, usual, 2000, CTR)).verdict == "better"
    assert one(series(0.1, usual, 2000, CTR)).verdict == "worse"
    assert one(series(0.5, usual, 2000, ZERO)).verdict == "worse"
    assert one(series(0.1, usual, 2000, ZERO)).verdict == "better"


def test_too_little_cannot_tell() -> None:
    found = one(series(0.5, [0.1, 0.1]))
    assert (found.verdict, found.p) == ("cannot_tell", None)
    assert found.reason == "3 earlier windows are needed, and 2 have a value"
    assert one(series(0.5, [0.1])).reason.endswith("1 earlier window has a value")
    few = one(series(0.5, [0.1, 0.1, 0.1], n=29))
    assert few.reason == "29 users in the window and 29 in earlier ones; 30 are needed"
    gone = one(series(None, [0.1, 0.1, 0.1]))
    assert gone.reason == "a denominator of 0 in the window, and 1,000 in earlier ones"


def test_what_never_happened_before_is_found() -> None:
    # No window before had one; by chance 300 of 1,000 have none. And all of them at once.
    assert one(series(0.3, [0.0, 0.0, 0.0, 0.0])).verdict == "worse"
    assert one(series(1.0, [0.0, 0.0, 0.0, 0.0])).verdict == "worse"
    assert one(series(0.0, [0.0, 0.0, 0.0, 0.0])).verdict == "usual"
    # 1 of 1,000 where there was none: SE of the window alone is .001.
    assert one(series(0.001, [0.0, 0.0, 0.0, 0.0])).verdict == "usual"


def test_what_stops_happening_is_not_taken_for_sure() -> None:
    # 0 of 30 varies by nothing; 1 of 30 before did: .033 · .967 / 30 is the variance of both.
    found = one(series(0.0, [1 / 30, 1 / 30, 1 / 30], n=30))
    assert found.verdict == "usual"


def test_a_margin_is_what_nobody_minds() -> None:
    usual = [0.3, 0.301, 0.299, 0.3]
    assert one(series(0.34, usual, 20_000, ZERO)).verdict == "worse"
    inside = one(series(0.34, usual, 20_000, ZERO, margin=0.05))
    assert (inside.verdict, inside.p) == ("usual", 1.0)
    # Beyond it, it is the rest that is tested.
    beyond = one(series(0.34, usual, 20_000, ZERO, margin=0.02))
    assert beyond.p is not None
    assert beyond.p > (one(series(0.32, usual, 20_000, ZERO)).p or 0)


def test_margins_as_typed() -> None:
    margins = watch.read_margins(["5%", "ctr=2%", "zeroresults=0.01"], find)
    assert margins(find("Latency:p95"), 200.0) == pytest.approx(10)
    assert margins(CTR, 0.5) == pytest.approx(0.01)
    assert margins(ZERO, 0.5) == pytest.approx(0.01)
    assert watch.read_margins([], find)(CTR, 0.5) == 0
    for wrong in ("0.05", "x%", "-1%", "CTR=", "nan%", "inf%"):
        with pytest.raises(UsageError, match="invalid margin"):
            watch.read_margins([wrong], find)
    with pytest.raises(UsageError, match="did you mean"):
        watch.read_margins(["Zero=1%"], find)


def test_many_series_say_how_much_weeks_differ() -> None:
    # 400 series of 4 windows whose true variance is 3 times what sampling explains: ratios are
    # 3 χ²₃ / 3. They agree as far as they can, so they are worth the most there is: 2 · 3.
    rng = np.random.default_rng(1)
    ratios = rng.chisquare(3, 400)
    worth, level = watch.spread_prior(ratios, np.full(400, 3.0))
    assert worth == 6
    # Smyth's level is of the logs; with worth held at 6, it is exp(ln 3 + ψ(3) - ln 3) = 2.52.
    assert level == pytest.approx(3 * math.exp(special.digamma(3) - math.log(3)), rel=0.1)
    # Less than sampling explains is never taken: luck has it so.
    assert watch.spread_prior(ratios / 30, np.full(400, 3.0)) == (6, 1.0)
    # Series that differ much say little.
    torn = ratios * np.exp(3 * rng.normal(size=400))
    assert watch.spread_prior(torn, np.full(400, 3.0))[0] < 1.5
    assert watch.spread_prior(ratios[:4], np.full(4, 3.0)) == (0.0, 1.0)


@given(st.floats(0.01, 50))
def test_the_inverse_of_trigamma(x: float) -> None:
    assert watch._trigamma_inverse(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-5)


@pytest.mark.deep  # coverage
@pytest.mark.parametrize("between", [0.0, 0.01, 0.05, 0.2])
def test_false_alarms(between: float) -> None:
    """Nothing changes, over 600 watches of 24 series and 4 weeks: 5 % may say anything at all.

    Weeks are drawn with a spread of their own on the logit scale, for each series, and then
    searches. 5 % of 600 are 30, and of such binomial counts 99.9 % are below 30 + 3.1·5.3 = 47.
    """
    rng, alarms, weeks = np.random.default_rng(7), 0, 5
    base = special.logit(np.resize([0.05, 0.1, 0.3, 0.5], 24))
    sizes = np.resize([200, 1000, 5000], 24)
    for _ in range(600):
        rates = special.expit(base[:, None] + between * rng.normal(size=(24, weeks)))
        found = rng.binomial(sizes[:, None], rates) / sizes[:, None]
        given = [
            Series(ZERO, {"class": str(i)}, share(row[0], n), [share(v, n) for v in row[1:]])
            for i, (row, n) in enumerate(zip(found.tolist(), sizes.tolist(), strict=True))
        ]
        alarms += any(change.verdict in ("worse", "better") for change in compare(given))
    assert alarms <= 47


@pytest.mark.deep  # coverage
def test_false_alarms_of_rare_things() -> None:
    """The same where shares are near 0 and windows small, which is far from normal."""
    rng, alarms = np.random.default_rng(12), 0
    rates = np.resize([0.01, 0.03, 0.05], 24)
    sizes = np.resize([40, 60, 200], 24)
    for _ in range(600):
        found = rng.binomial(sizes, rates, (5, 24)).T / sizes[:, None]
        given = [
            Series(ZERO, {"class": str(i)}, share(row[0], n), [share(v, n) for v in row[1:]])
            for i, (row, n) in enumerate(zip(found.tolist(), sizes.tolist(), strict=True))
        ]
        alarms += any(change.verdict in ("worse", "better") for change in compare(given))
    assert alarms <= 47


@pytest.mark.deep  # coverage
def test_false_alarms_where_weeks_are_shared() -> None:
    """The same where a week moves all series together, as a holiday does; a bound of 10 %.

    Series that hang together positively break nothing, but how much weeks differ is then said by
    few weeks, and not by as many as there are series.
    """
    rng, alarms = np.random.default_rng(8), 0
    base = special.logit(np.resize([0.05, 0.1, 0.3, 0.5], 24))
    sizes = np.resize([200, 1000, 5000], 24)
    for _ in range(600):
        rates = special.expit(base[:, None] + 0.05 * rng.normal(size=(1, 5)))
        found = rng.binomial(sizes[:, None], rates) / sizes[:, None]
        given = [
            Series(ZERO, {"class": str(i)}, share(row[0], n), [share(v, n) for v in row[1:]])
            for i, (row, n) in enumerate(zip(found.tolist(), sizes.tolist(), strict=True))
        ]
        alarms += any(change.verdict in ("worse", "better") for change in compare(given))
    assert alarms <= 60


def test_slices_change_no_verdict_on_the_whole() -> None:
    whole = [series(now, [0.04, 0.06, 0.05, 0.05]) for now in (0.05, 0.09, 0.2)]
    sliced = [
        replace(series(0.05, [0.04, 0.06, 0.05, 0.05]), slice={"arm": f"{n}"}) for n in range(60)
    ]
    alone, among = compare(whole), compare([*sliced[:30], *whole, *sliced[30:]])
    assert among[30:33] == alone
    assert [change.slice for change in among[:30]] == [one.slice for one in sliced[:30]]
    assert compare(sliced) == [*among[:30], *among[33:]]


def test_a_jump_is_found_among_many() -> None:
    """One class of 24 goes from 5 % to 30 % of 200 searches: found in 9 of 10 watches, alone."""
    rng, hits, others = np.random.default_rng(9), 0, 0
    for _ in range(100):
        rates = np.full((24, 5), 0.05)
        rates[3, 0] = 0.3
        found = rng.binomial(200, rates) / 200
        given = [
            Series(ZERO, {"class": str(i)}, share(row[0], 200), [share(v, 200) for v in row[1:]])
            for i, row in enumerate(found.tolist())
        ]
        said = ordered(compare(given))
        hits += said[0].verdict == "worse" and said[0].slice == {"class": "3"}
        others += sum(change.verdict in ("worse", "better") for change in said[1:])
    assert hits >= 90
    assert others <= 15  # 5 % of what is found, 100 or so: 5 ± 3·2.2


def frame(**queries: tuple[float, float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query": list(queries),
            "numerator": [float(n) for n, _ in queries.values()],
            "denominator": [float(d) for _, d in queries.values()],
        },
        {"query": pl.String, "numerator": pl.Float64, "denominator": pl.Float64},
    )


def test_the_query_that_moved_it_by_hand() -> None:
    # Before: 10 of 100 and 10 of 100, in both weeks: expected .1. Now a: 60 of 100; b: 20 of 200,
    # asked twice as often and as before: 80 / 300 = .2667. a adds (60 - .1·100) / 300 = .1667 less
    # (10 - .1·100) / 200 = 0; b adds (20 - 20) / 300 = 0.
    week = frame(a=(10, 100), b=(10, 100))
    rows, change = contributions(frame(a=(60, 100), b=(20, 200)), [week, week])
    assert change == pytest.approx(80 / 300 - 0.1)
    assert [row.query for row in rows] == ["a", "b"]
    assert [row.adds for row in rows] == pytest.approx([50 / 300, 0], abs=1e-12)
    assert (rows[0].value, rows[0].before, rows[0].n, rows[0].n_before) == (0.6, 0.1, 100, 100)


def test_queries_that_come_and_go() -> None:
    # A query that no week had, and one that is gone: both count, and nothing is divided by 0.
    rows, change = contributions(
        frame(new=(10, 10), old=(0, 90)), [frame(gone=(5, 10), old=(0, 90))]
    )
    # Expected .05, now .1. new: (10 - .5) / 100; gone: -(5 - .5) / 100; old: nothing.
    assert {row.query: row.adds for row in rows} == pytest.approx(
        {"new": 0.095, "gone": -0.045, "old": 0.0}
    )
    assert change == pytest.approx(0.05)
    by_name = {row.query: row for row in rows}
    assert (by_name["new"].before, by_name["gone"].value) == (None, None)


cells = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda t: (min(t), max(t))),
    min_size=1,
).filter(lambda queries: any(d for _, d in queries.values()))


@given(cells, st.lists(cells, min_size=1, max_size=4))
def test_contributions_add_up_exactly(
    now: dict[str, tuple[int, int]], before: list[dict[str, tuple[int, int]]]
) -> None:
    rows, change = contributions(frame(**now), [frame(**week) for week in before])
    assert math.fsum(row.adds for row in rows) == pytest.approx(change, abs=1e-12)
    assert {row.query for row in rows} == set(now).union(*before)
    up = 1 if change >= 0 else -1
    adds = [round(up * row.adds, 12) for row in rows]  # beyond that it is rounding that differs
    assert adds == sorted(adds, reverse=True)
