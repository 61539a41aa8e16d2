from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choosing import FEW

import karat
from karat.errors import UsageError
from karat.golden.sampling import (
    Quota,
    choose,
    draw,
    permanent_numbers,
    probabilities,
    query_id,
    refreshed,
)
from karat.golden.traffic import clean, with_bands
from karat.stats.averages import Floats, mean
from karat.stats.intervals import t_interval
from karat.stats.weighing import Weighing
from karat.tables import Queries


def zipf(n: int, top: float, by: float = 1.0) -> Floats:
    """Counts of queries as logs have them: the k-th is asked top / k**by times, at least once."""
    return np.ceil(top / np.arange(1, n + 1) ** by)


def log_of(counts: Floats, **columns: list[object]) -> pl.DataFrame:
    texts = [f"query {at}" for at in range(len(counts))]
    rows = pl.DataFrame({"text": texts, "count": counts.astype(np.int64), **columns})
    return with_bands(clean(rows.filter(pl.col("count") > 0)).frame)


def test_permanent_numbers_are_the_same_on_every_machine() -> None:
    # The first 52 bits of blake2b(b"s\0a", 8 bytes), by hashlib of Python 3.11, plus a half.
    first = int.from_bytes(hashlib.blake2b(b"s\0a", digest_size=8).digest(), "big")
    (number,) = permanent_numbers(["a"], "s")
    assert number == ((first >> 12) + 0.5) / 2**52
    assert f"{number:.8f}" == "0.41188167"
    assert query_id("red shoes") == "q834eb5254358"


def test_permanent_numbers_are_even_and_unlike_by_salt() -> None:
    keys = [str(at) for at in range(20_000)]
    one, two = permanent_numbers(keys, "a"), permanent_numbers(keys, "b")
    # Kolmogorov's distance of 20,000 even numbers is below 1.63 / root n in 99 % of cases.
    assert np.abs(np.sort(one) - (np.arange(20_000) + 0.5) / 20_000).max() < 1.63 / 20_000**0.5
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.03


def test_probabilities_by_hand() -> None:
    # 3 of counts 6, 2, 2, 2: 3 x 6 / 12 is more than 1, so the first is certain; 2 of 2, 2, 2 have
    # 2 x 2 / 6 each.
    assert probabilities(np.array([6.0, 2, 2, 2]), 3) == pytest.approx([1, 2 / 3, 2 / 3, 2 / 3])
    assert probabilities(np.array([1.0, 3]), 0) == pytest.approx([0, 0])
    assert probabilities(np.array([1.0, 3]), 5) == pytest.approx([1, 1])


@FEW
@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=40), st.data())
def test_laws_of_drawing(counts: list[int], data: st.DataObject) -> None:
    n, size = data.draw(st.integers(0, len(counts))), len(counts)
    some = st.lists(st.floats(0.001, 0.999), min_size=size, max_size=size)
    numbers = np.array(data.draw(some))
    drawn, chance = draw(np.array(counts, float), n, numbers)
    assert len(set(drawn.tolist())) == len(drawn) == n
    assert chance.sum() == pytest.approx(n)
    assert ((chance >= 0) & (chance <= 1 + 1e-12)).all()
    assert set(np.flatnonzero(chance >= 1)) <= set(drawn.tolist())


@pytest.mark.deep  # a simulation
def test_inclusion_probabilities_by_simulation() -> None:
    counts = zipf(200, 400)
    rng = np.random.default_rng(11)
    seen = np.zeros(200)
    for _ in range(4000):
        drawn, chance = draw(counts, 30, rng.random(200))
        seen[drawn] += 1
    open_ = chance < 1
    z = (seen / 4000 - chance)[open_] / np.sqrt((chance * (1 - chance))[open_] / 4000)
    # Were the probabilities exact, z would be standard normal: 190 of them are within 4.
    assert np.abs(z).max() < 4
    assert 0.8 < np.sqrt((z**2).mean()) < 1.2
    assert (seen[~open_] == 4000).all()


def simulated(counts: Floats, values: Floats, sizes: list[int], times: int) -> tuple[Floats, float]:
    """Weighted means of many samples by band, and the share of intervals that hold the truth."""
    truth = mean(values, counts)
    band = with_bands(pl.DataFrame({"count": counts.astype(np.int64)}))["band"].to_numpy()
    rng = np.random.default_rng(5)
    means, held = [], 0
    for _ in range(times):
        at, weight, stratum = [], [], []
        numbers = rng.random(len(counts))
        for place, (name, n) in enumerate(zip(("head", "torso", "tail"), sizes, strict=True)):
            here = np.flatnonzero(band == name)
            drawn, chance = draw(counts[here], n, numbers[here])
            at.append(here[drawn])
            weight.append((counts[here] / np.where(chance > 0, chance, 1))[drawn])
            stratum.append(np.full(n, place))
        which, weights = np.concatenate(at), np.concatenate(weight)
        means.append(mean(values[which], weights))
        span = t_interval(values[which], weights, np.concatenate(stratum))
        assert span.low is not None
        assert span.high is not None
        held += span.low <= truth <= span.high
    return np.array(means) - truth, held / times


def quality(counts: Floats) -> Floats:
    """A measure that is higher for what is asked often, as search mostly is."""
    noise = np.random.default_rng(2).normal(0, 0.25, len(counts))
    return np.clip(0.4 + 0.12 * np.log10(counts) + noise, 0, 1)


def test_the_weighted_mean_is_that_over_searches_and_its_interval_covers(deep: bool) -> None:
    # By 1 / root k no query is asked so often that it is certain.
    counts = zipf(1500, 60, by=0.5)
    errors, covered = simulated(
        counts, quality(counts), [20, 20, 20], trials := 2000 if deep else 500
    )
    standard_error = errors.std() / trials**0.5
    assert abs(errors.mean()) < 3.5 * standard_error
    # Of 2,000 intervals of 95 % coverage, 93.3 to 96.7 % hold the truth in 99.9 % of cases; of 500,
    # 91.8 to 98.2 %.
    assert (0.93 if deep else 0.915) < covered < (0.975 if deep else 0.985)
    # The mean that leaves the weights out, over all queries, is another: the test can fail.
    values = quality(counts)
    assert abs(values.mean() - mean(values, counts)) > 10 * standard_error


@pytest.mark.deep  # coverage, as the one before
def test_a_head_taken_whole_makes_intervals_too_wide_and_never_too_narrow() -> None:
    counts = zipf(600, 1200)
    errors, covered = simulated(counts, quality(counts), [6, 27, 27], 2000)
    assert abs(errors.mean()) < 3.5 * errors.std() / 2000**0.5
    assert covered > 0.95


def test_evaluate_uses_the_weights_and_strata_of_a_sample() -> None:
    counts = zipf(300, 600)
    drawn = choose(log_of(counts), 40, salt="s").queries
    queries = Queries(drawn)
    ids = drawn["query_id"].to_list()
    relevant = [place % 3 == 0 for place in range(40)]
    qrels = {query: {"d": 1} for query in ids}
    run = {q: {"d" if yes else "x": 1.0} for q, yes in zip(ids, relevant, strict=True)}
    result = karat.evaluate(qrels, run, ["P@1"], queries=queries)
    weighing = Weighing.of(queries, ids)
    values = np.array(relevant, float)
    row = result.results[0]
    assert row.value == pytest.approx(mean(values, weighing.weights), abs=1e-12)
    span = t_interval(values, weighing.weights, weighing.strata)
    assert (row.ci_low, row.ci_high) == pytest.approx((span.low, span.high))


def test_a_sample_by_band() -> None:
    log = log_of(zipf(2000, 4000))
    done = choose(log, 60, salt="s")
    assert done.queries.columns[:8] == [
        *("query_id", "text", "weight", "stratum", "band", "count", "probability", "origin")
    ]
    assert done.queries.height == 60
    assert done.queries["query_id"].n_unique() == 60
    assert done.queries["weight"].sum() == pytest.approx(60)
    assert done.strata["chosen"].sum() == 60
    # The weight of each band is its share of the searches, exactly.
    total = done.strata["searches"].sum()
    for row in done.strata.iter_rows(named=True):
        here = done.queries.filter(stratum=row["stratum"])
        assert here["weight"].sum() / 60 == pytest.approx(row["searches"] / total)
    assert 10 < done.effective < 60
    again = choose(log.sample(fraction=1, shuffle=True, seed=1), 60, salt="s").queries
    assert set(again["query_id"]) == set(done.queries["query_id"])


def test_more_than_the_log_holds_is_all_of_it() -> None:
    done = choose(log_of(np.array([5.0, 3, 2, 1])), 10, salt="s")
    assert done.queries["probability"].to_list() == [1.0] * 4
    # Weights are the counts, 1 on average: 5, 3, 2, 1 times 4 / 11.
    assert sorted(done.queries["weight"]) == pytest.approx([4 / 11, 8 / 11, 12 / 11, 20 / 11])
    assert done.notes == ("The log has only 4 queries: all are used, not 10.",)


def test_quotas_are_met_and_weights_make_up_for_them() -> None:
    kind = ["x" if at % 40 == 7 else "xy" for at in range(2000)]
    log = log_of(zipf(2000, 4000), kind=kind)
    done = choose(log, 60, salt="s", quotas=[Quota("kind", "x", 15)])
    is_x = done.queries["kind"] == "x"
    assert is_x.sum() >= 15
    assert done.queries.height == 60
    assert choose(log, 60, salt="s").queries["kind"].to_list().count("x") < 15
    of_searches = log.filter(kind="x")["count"].sum() / log["count"].sum()
    of_weight = done.queries.filter(is_x)["weight"].sum() / 60
    assert of_weight == pytest.approx(of_searches)


def test_hard_queries_are_all_taken_and_stand_apart() -> None:
    log = log_of(zipf(500, 1000))
    done = choose(log, 30, salt="s", hard=["Query  400", "not in the log", ""])
    hard = done.queries.filter(stratum="hard")
    assert hard.select("text", "count", "probability", "origin").rows() == [
        ("query 400", 3, 1.0, "log"),
        ("not in the log", 0, None, "written"),
    ]
    assert done.queries.height == 32
    # It stands for its own 3 searches; the other has no weight.
    assert hard["weight"][0] == pytest.approx(3 * 31 / log["count"].sum())
    assert hard["weight"][1] is None
    assert done.weighted.height == 31
    assert "1 of the hard queries" in done.notes[0]
    assert len(Queries(done.weighted)) == 31


def test_the_same_salt_keeps_the_sample_when_the_log_changes() -> None:
    rng = np.random.default_rng(4)
    rates = 6000 / np.arange(1, 2001) / 2
    first, second = (log_of(rng.poisson(rates).astype(float)) for _ in range(2))
    before, after = choose(first, 100, salt="s"), choose(second, 100, salt="s")
    assert choose(first, 100, salt="s").queries.equals(before.queries)
    change = refreshed(before.queries, after.queries, second)
    counted = dict(change["change"].value_counts().iter_rows())
    kept = set(before.queries["query_id"]) & set(after.queries["query_id"])
    assert counted["kept"] == len(kept)
    assert counted["kept"] + counted["new"] == counted["kept"] + counted["gone"] == 100
    other = choose(second, 100, salt="another").queries["query_id"]
    assert counted["kept"] > 65
    assert counted["kept"] > len(set(before.queries["query_id"]) & set(other)) + 15
    gone = change.filter(change="gone")
    assert gone["reason"].null_count() == 0
    assert change.filter(pl.col("change") != "gone")["reason"].null_count() == 100


def test_a_refresh_says_why_a_query_is_gone() -> None:
    names = {"query_id": [query_id("a"), query_id("b"), query_id("c"), query_id("d")]}
    before = pl.DataFrame({**names, "text": [*"abcd"], "band": ["head", "torso", "tail", "tail"]})
    log = pl.DataFrame({"key": ["a", "b", "c"], "band": ["head", "tail", "tail"]})
    after = before.head(1)
    assert refreshed(before, after, log).select("text", "change", "reason").rows() == [
        ("a", "kept", None),
        ("b", "gone", "now tail, was torso"),
        ("c", "gone", "others were drawn"),
        ("d", "gone", "not in the log any more"),
    ]


def test_a_first_sample_is_all_new() -> None:
    log = log_of(np.array([5.0, 3, 2, 1]))
    nothing = pl.DataFrame(schema={"query_id": pl.String, "text": pl.String})
    change = refreshed(nothing, choose(log, 4, salt="s").queries, log)
    assert change["change"].to_list() == ["new"] * 4


def test_a_larger_sample_keeps_the_smaller_one(deep: bool) -> None:
    log = log_of(zipf(3000, 6000))
    for salt in "abcdefgh" if deep else "abc":
        small = set(choose(log, 50, salt=salt).queries["query_id"])
        large = set(choose(log, 100, salt=salt).queries["query_id"])
        assert len(small - large) <= 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": 1}, "too few"),
        ({"quotas": [Quota("kind", "x", 100)]}, "the log has 25"),
        ({"quotas": [Quota("kinds", "x", 1)]}, "did you mean kind"),
        ({"quotas": [Quota("kind", "X", 1)]}, "did you mean x"),
        ({"quotas": [Quota("kind", "x", 20)], "size": 12}, "too few for the quota"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], said: str) -> None:
    log = log_of(zipf(500, 1000), kind=["x" if at % 20 == 7 else "y" for at in range(500)])
    with pytest.raises(UsageError, match=said):
        choose(log, **{"size": 40, "salt": "s", **wrong})  # type: ignore[arg-type]


def test_a_log_of_hard_queries_only() -> None:
    done = choose(log_of(np.array([3.0, 2, 1])), 5, salt="s", hard=[f"query {at}" for at in "012"])
    # All are certain: 3, 2 and 1 of 6 searches, 1 on average.
    assert done.queries["weight"].to_list() == pytest.approx([1.5, 1.0, 0.5])
    assert done.strata.rows() == [("hard", None, 3, 6, 3, 3)]
