"""Sampling queries of a log to judge: the sample's weighted mean estimates the mean over searches.

In each stratum a query is drawn with a probability proportional to its searches, so every query
drawn represents the same number of searches. Each has a permanent random number, a hash of a salt
and its folded text: next month's sample with the same salt is nearly the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from karat.errors import UsageError, check_known, nearest
from karat.golden.traffic import folded
from karat.stats.averages import Floats

HARD = "hard"  # the stratum of queries known to be hard, which are all included
_LEAST = 2  # queries of a stratum needed to estimate its variance

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Quota:
    """At least this many queries with a value of an attribute."""

    attribute: str
    value: str
    at_least: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The queries drawn."""

    # `query_id`, `text`, `weight` (1 on average; null if the query is not in the log), `stratum`,
    # `band`, `count` of searches, `probability` of being drawn, `origin` (log | written), and the
    # attributes of the log
    queries: pl.DataFrame
    # `stratum`, `band`, `queries` and `searches` of the log in it, `chosen`, and `certain`: those
    # chosen with probability 1
    strata: pl.DataFrame
    # Effective sample size: queries of equal weight with intervals as narrow (Kish)
    effective: float
    notes: tuple[str, ...]  # notes for the user, in sentences

    @property
    def weighted(self) -> pl.DataFrame:
        """The queries that have a weight and so count in weighted means."""
        return self.queries.drop_nulls("weight")


def choose(
    log: pl.DataFrame,
    size: int,
    *,
    salt: str,
    quotas: Sequence[Quota] = (),
    hard: Iterable[str] = (),
) -> Sample:
    """Draw queries from a log.

    Args:
        log: ``text``, ``key``, ``count`` and ``band`` (``traffic.clean``, ``traffic.with_bands``)
            and any attributes.
        size: Queries to draw, at least 2; all if the log has fewer.
        salt: Salt of the random numbers. The same salt gives nearly the same sample next month.
        quotas: Least numbers by attribute; queries with such a value form strata of their own.
        hard: Texts of queries known to be hard, included in addition to ``size``. One in the log
            has the weight of its own searches; one that is not has no weight.

    Raises:
        UsageError: a size, attribute or quota that cannot be met.
    """
    texts = list(hard)
    hard_texts = dict(zip(folded(texts), texts, strict=True))
    hard_texts.pop("", None)
    is_hard = log["key"].is_in(list(hard_texts))
    known, rest = log.filter(is_hard), log.filter(~is_hard)
    strata, cells, meets = _strata(rest, quotas)
    counts = rest["count"].to_numpy().astype(np.float64)
    notes = []
    if size > rest.height:
        besides = " besides the hard ones" if known.height else ""
        notes.append(f"The log has only {rest.height} queries{besides}: all are used, not {size}.")
        size = rest.height
    sizes = _sizes(strata, size, quotas, meets)
    numbers = permanent_numbers(rest["key"], salt)
    at, chance = _draw_strata(cells, sizes, counts, numbers)
    names = strata["stratum"].to_numpy()
    chosen = rest[at].with_columns(
        stratum=pl.Series(names[cells[at]], dtype=pl.String), probability=pl.Series(chance[at])
    )
    sure = known.with_columns(stratum=pl.lit(HARD), probability=pl.lit(1.0))
    stands_for = pl.col("count") / pl.col("probability")
    chosen = pl.concat([chosen, sure], how="diagonal_relaxed")
    chosen = chosen.with_columns(weight=stands_for * chosen.height / stands_for.sum())
    chosen = chosen.with_columns(origin=pl.lit("log"))
    absent = [key for key in hard_texts if key not in set(known["key"])]
    if absent:
        written = {"text": [hard_texts[key] for key in absent], "key": absent}
        more = pl.DataFrame(written).with_columns(stratum=pl.lit(HARD), origin=pl.lit("written"))
        more = more.with_columns(count=pl.lit(0, log.schema["count"]), band=pl.lit(None, pl.String))
        chosen = pl.concat([chosen, more], how="diagonal_relaxed")
        are, they = ("is", "it has") if len(absent) == 1 else ("are", "they have")
        notes.append(
            f"{len(absent)} of the hard queries {are} not in the log: {they} no weight, and "
            "no part in weighted means."
        )
    weight = chosen["weight"].drop_nulls().to_numpy()
    certain = np.bincount(cells[at], chance[at] >= 1, minlength=len(sizes)).astype(np.int64)
    strata = strata.with_columns(chosen=pl.Series(sizes), certain=pl.Series(certain))
    if hard_texts:
        total = len(hard_texts)
        values = (HARD, None, known.height, int(known["count"].sum()), total, total)
        row = pl.DataFrame([values], schema=strata.schema, orient="row")
        strata = pl.concat([strata, row])
    return Sample(
        queries=_columns(chosen, log),
        strata=strata,
        effective=float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0,
        notes=tuple(notes),
    )


def _draw_strata(cells: Ints, sizes: Ints, counts: Floats, numbers: Floats) -> tuple[Ints, Floats]:
    """Draw from each stratum: the places drawn, and the probability of every query."""
    chance = np.zeros(len(counts))
    picked: list[Ints] = []
    for cell, n in enumerate(sizes.tolist()):
        here = np.flatnonzero(cells == cell)
        drawn, probability = draw(counts[here], n, numbers[here])
        chance[here] = probability
        picked.append(here[drawn])
    return np.concatenate([*picked, np.zeros(0, np.int64)]).astype(np.int64), chance


def permanent_numbers(keys: Iterable[str], salt: str) -> Floats:
    """A number between 0 and 1, both excluded, for each folded text; the same on every machine.

    Source: Brewer, Early & Joyce 1972; for search, Astrakhantsev et al. 2022, arXiv:2203.01381.
    """
    start = hashlib.blake2b(f"{salt}\0".encode(), digest_size=8)
    out = []
    for key in keys:
        digest = start.copy()
        digest.update(key.encode())
        out.append((int.from_bytes(digest.digest()) >> 12) + 0.5)
    return np.array(out) / 2.0**52


def query_id(key: str) -> str:
    """The id of a query, a hash of its folded text."""
    return f"q{hashlib.blake2b(key.encode(), digest_size=6).hexdigest()}"


def probabilities(counts: Floats, n: int) -> Floats:
    """Inclusion probability of each query in a sample of ``n``, proportional to its searches.

    Args:
        counts: Searches of each query, above 0; shape (N,).
        n: From 0 to N.

    Returns:
        Shape (N,); at most 1 each, with the sum ``n``.
    """
    certain = np.zeros(len(counts), bool)
    if n >= len(counts):
        return np.ones(len(counts))
    while True:
        left = n - int(certain.sum())
        total = counts[~certain].sum()
        chance = np.where(certain, 1.0, left * counts / total)
        more = (chance >= 1 - 1e-12) & ~certain
        if not more.any():
            return chance
        certain |= more


def draw(counts: Floats, n: int, numbers: Floats) -> tuple[Ints, Floats]:
    """Draw ``n`` queries with these probabilities, by permanent random numbers.

    Args:
        counts: As in ``probabilities``.
        n: From 0 to N.
        numbers: Permanent random numbers, above 0 and below 1; shape (N,).

    Returns:
        Indices of the drawn queries, ascending, shape (n,); and the inclusion probability of each
        query, shape (N,), which is approximate because the sample size is fixed.

    Source: Pareto sampling, Rosén 1997, doi:10.1016/S0378-3758(96)00186-3.
    """
    chance = probabilities(counts, n)
    rank = np.full(len(counts), -1.0)  # certain queries come first
    open_ = chance < 1
    p, u = chance[open_], numbers[open_]
    rank[open_] = np.where(p > 0, u * (1 - p) / ((1 - u) * np.where(p > 0, p, 1)), np.inf)
    return np.sort(np.argsort(rank, kind="stable")[:n]), chance


def refreshed(before: pl.DataFrame, after: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """The difference of two samples.

    Args:
        before: The old ``Sample.queries``.
        after: The new ``Sample.queries``.
        log: The log of the new sample, with ``key`` and ``band``.

    Returns:
        ``query_id``, ``text``, ``change`` (kept | new | gone), and ``reason`` for those gone: not
        in the log any more, now in another band, or others were drawn. Queries that are gone keep
        their judgments, but have no weight in the new sample.
    """
    ids = pl.Series([query_id(key) for key in log["key"]], dtype=pl.String)
    now = dict(zip(ids, log["band"], strict=True))
    bands = before["band"] if "band" in before.columns else [None] * before.height
    old = dict(zip(before["query_id"], bands, strict=True))
    kept = set(old) & set(after["query_id"])
    rows: list[tuple[str, str, str, str | None]] = []
    for query, text in after.select("query_id", "text").iter_rows():
        rows.append((query, text, "kept" if query in kept else "new", None))
    for query, text in before.select("query_id", "text").iter_rows():
        if query in kept:
            continue
        if query not in now:
            reason = "not in the log any more"
        elif old[query] is not None and now[query] != old[query]:
            reason = f"now {now[query]}, was {old[query]}"
        else:
            reason = "others were drawn"
        rows.append((query, text, "gone", reason))
    names = ["query_id", "text", "change", "reason"]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _columns(chosen: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    ids = [query_id(key) for key in chosen["key"]]
    first = ["query_id", "text", "weight", "stratum", "band", "count", "probability", "origin"]
    fixed = {*first, "key", "spellings"}
    if log["personal"].null_count() == log.height if "personal" in log.columns else True:
        fixed.add("personal")
    others = [name for name in log.columns if name not in fixed]
    return chosen.with_columns(query_id=pl.Series(ids, dtype=pl.String)).select(*first, *others)


def _strata(log: pl.DataFrame, quotas: Sequence[Quota]) -> tuple[pl.DataFrame, Ints, list[Mask]]:
    """Strata, most searched first; the stratum of each query; the strata that meet each quota."""
    name = pl.col("band")
    met = []
    for at, quota in enumerate(quotas):
        _refuse_attribute(log, quota)
        one = (pl.col(quota.attribute).cast(pl.String) == quota.value).fill_null(value=False)
        met.append(one.alias(f"met {at}"))
        suffix = pl.lit(f" {quota.attribute}={quota.value}")
        name = name + pl.when(one).then(suffix).otherwise(pl.lit(""))
    frame = log.select("band", "count", *met, stratum=name)
    strata = (
        frame.group_by("stratum", "band", maintain_order=True)
        .agg(
            queries=pl.len().cast(pl.Int64),
            searches=pl.col("count").sum().cast(pl.Int64),
            mean=pl.col("count").mean(),
            **{f"met {at}": pl.col(f"met {at}").first() for at in range(len(met))},
        )
        .sort("mean", "stratum", descending=[True, False])
    )
    place = {each: at for at, each in enumerate(strata["stratum"])}
    cells = np.array([place[each] for each in frame["stratum"]], np.int64)
    meets = [strata[f"met {at}"].to_numpy() for at in range(len(met))]
    return strata.select("stratum", "band", "queries", "searches"), cells, meets


def _refuse_attribute(log: pl.DataFrame, quota: Quota) -> None:
    fixed = {"text", "key", "count", "spellings", "personal"}
    attributes = [name for name in log.columns if name not in fixed]
    check_known(
        quota.attribute,
        attributes,
        f"queries have no attribute {quota.attribute!r}; they have {', '.join(attributes)}",
        None,
    )
    values = log[quota.attribute].cast(pl.String)
    available = int((values == quota.value).sum())
    if available < quota.at_least or quota.at_least < 1:
        raise UsageError(
            f"a quota of {quota.at_least} with {quota.attribute}={quota.value}, and the log has "
            f"{available}",
            nearest=nearest(quota.value, values.drop_nulls().unique()) if not available else (),
            fix=f"ask for 1 to {available}" if available else None,
        )


def _sizes(strata: pl.DataFrame, size: int, quotas: Sequence[Quota], meets: Sequence[Mask]) -> Ints:
    """How many queries each stratum gets."""
    available = strata["queries"].to_numpy().astype(np.int64)
    searches = strata["searches"].to_numpy().astype(np.float64)
    bands = strata["band"].to_list()
    least = np.minimum(available, _LEAST)
    if size < max(int(least.sum()), min(_LEAST, int(available.sum()))):
        raise UsageError(
            f"{size} queries are too few for {len(available)} strata",
            fix=f"take {least.sum()} or more, or fewer bands and quotas",
        )
    names = list(dict.fromkeys(bands))
    of = np.array([names.index(band) for band in bands], np.int64)
    totals = _shared(
        np.bincount(of, searches, len(names)).astype(np.float64),
        np.bincount(of, least, len(names)).astype(np.int64),
        np.bincount(of, available, len(names)).astype(np.int64),
        size,
    )
    sizes = np.zeros(len(available), np.int64)
    for band, total in enumerate(totals.tolist()):
        here = of == band
        sizes[here] = _shared(searches[here], least[here], available[here], total)
    for quota, met in zip(quotas, meets, strict=True):
        while sizes[met].sum() < quota.at_least:
            gets = np.where(met & (sizes < available), searches / (2 * sizes + 1), -1.0)
            to = int(gets.argmax())
            gives = ~np.any(meets, axis=0) & (sizes > least)
            if not gives.any():
                raise UsageError(
                    f"{size} queries are too few for the quota "
                    f"{quota.attribute}={quota.value}:{quota.at_least}",
                    fix="take more queries, or lower the quotas",
                )
            same = gives & (of == of[to])
            gives = same if same.any() else gives
            sizes[np.where(gives, searches / (2 * sizes), np.inf).argmin()] -= 1
            sizes[to] += 1
    return sizes


def _shared(shares: Floats, least: Ints, most: Ints, size: int) -> Ints:
    """Numbers proportional to shares, within bounds (Webster's method: one at a time)."""
    out = least.copy()
    for _ in range(size - int(least.sum())):
        out[int(np.where(out < most, shares / (2 * out + 1), -1.0).argmax())] += 1
    return out
