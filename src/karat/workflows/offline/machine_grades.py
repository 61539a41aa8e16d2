"""Means and differences from people's grades and those of a machine judge, with one interval.

The machine's grades never become part of the judgments: they only narrow the interval of what
people's grades say. People must have judged a random sample: whole queries, or pairs with known
chances.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from karat.clients.llm.ledger import Ledger
from karat.errors import InputError, KaratError, UsageError
from karat.formats.own.judges import read_judge
from karat.formats.own.machine_grades import read_grades
from karat.formats.own.passports import certified
from karat.formats.own.workspace import find_workspace, read_workspace
from karat.formats.tables.reading import read_pairs
from karat.golden.judge_family import family_note
from karat.measures import Measure, parse
from karat.measures.linear_numerators import gain_by_grade, weight_by_rank
from karat.stats.prediction_powered import (
    Pairs,
    Powered,
    Stratum,
    effective_after,
    mean_ideal,
    powered_mean,
    powered_pairs_mean,
    powered_ratio,
)
from karat.tables import Qrels, Queries, Results, Run
from karat.tables.comparison import Comparison
from karat.tables.golden.machine_judges import JudgeConfig
from karat.tables.records import shared
from karat.tables.results import MachineMean
from karat.workflows.offline.evaluate import evaluate

_LINEAR = {"P", "RBP", "DCG"}
"""Measures that pairs can be a sample for: linear in the gains, whatever is not shown."""
_KEYS = ["query_id", "doc_id"]
_Result = TypeVar("_Result", Results, Comparison)
_OF_QUERY = 3  # judged pairs of a query that the ideal of nDCG needs on average
_DOLLARS, _SECONDS = 10.0, 600.0  # of more judging, for what it would buy


@dataclass(frozen=True)
class Costs:
    """What it takes to judge a pair; None is unknown."""

    dollars: float | None = None  # by the machine
    seconds: float | None = None  # by a person


@dataclass(frozen=True)
class _Given:
    qrels: Qrels  # people's grades
    machine: Qrels
    judge: str
    chances: pl.DataFrame | None  # `query_id`, `doc_id`, `chance`
    queries: Queries | None
    costs: Costs


def machine_means(
    qrels: Qrels,
    runs: Sequence[Run],  # the runs
    grades: pl.DataFrame,  # the machine's: `query_id`, `doc_id`, `grade`, `rater`
    measures: Sequence[str],  # names of measures
    *,
    difference: bool = False,  # differences to the first run rather than means
    chances: pl.DataFrame | None = None,
    queries: Queries | None = None,  # with weights and strata
    costs: Costs | None = None,
) -> list[MachineMean]:
    """A row for each run and measure; with ``difference``, for each run but the first.

    Args:
        qrels: People's grades. Without ``chances``, of whole queries, which are a random sample of
            those that the machine graded (in each stratum of ``queries``, if it has any).
        chances: Of the pairs that people judged to be judged, above 0 and up to 1. Then pairs are
            the unit, and measures must be P, RBP, DCG or nDCG: for nDCG the mean DCG over the mean
            ideal DCG, and the chances are of all pairs that the machine graded.

    Raises:
        InputError: people judged none of the machine's queries, or parts of queries.
    """
    raters = grades["rater"].unique().sort().to_list()
    if len(raters) > 1:
        raise InputError(
            f"grades of {len(raters)} judges: {', '.join(raters[:3])}",
            fix="give those of one; an average of judges is another judge",
        )
    repeated = grades.select(_KEYS).is_duplicated()
    if repeated.any():
        row = grades.filter(repeated).row(0, named=True)
        raise InputError("graded twice", query=row["query_id"], doc_id=row["doc_id"])
    machine = Qrels(grades.select(*_KEYS, "grade"), source="machine grades")
    given = _Given(
        qrels, machine, raters[0] if raters else "a machine", chances, queries, costs or Costs()
    )
    asked = [parse(name) for name in measures]
    first = runs[0] if difference else None
    shown = runs[1:] if difference else runs
    if chances is not None:
        return [_by_pair(given, run, first, measure) for measure in asked for run in shown]
    whole, names = _whole(given), [str(measure) for measure in asked]
    by_people = query_values(given.qrels.only(whole), shown, first, names)
    by_machine = query_values(given.machine, shown, first, names)
    return [
        _by_query(given, run, first, name, by_people[place, name], by_machine[place, name])
        for name in names
        for place, run in enumerate(shown)
    ]


def _by_query(
    given: _Given,
    run: Run,
    baseline: Run | None,
    measure: str,
    human: Mapping[str, float],
    machine: Mapping[str, float],
) -> MachineMean:
    """People judged whole queries; ``human`` and ``machine`` have the value of each."""
    people = set(given.qrels.query_ids)
    both = [query for query in human if query in machine]
    rest = [query for query in machine if query not in people]
    parts = []
    for weight, judged, others in _strata(given.queries, both, rest):
        if not judged:
            reason = "a stratum has no query judged"
            return _refused(given, run, baseline, measure, "query", reason)
        parts.append(
            Stratum(
                np.array([human[query] for query in judged]),
                np.array([machine[query] for query in judged]),
                np.array([machine[query] for query in others]),
                weight,
            )
        )
    alone = powered_mean(parts, lam=0.0)
    only = float(np.mean([machine[query] for query in (*both, *rest)]))
    return _row(given, run, baseline, measure, "query", powered_mean(parts), alone, only)


def _whole(given: _Given) -> list[str]:
    """Queries that people judged as far as the machine did.

    Raises:
        InputError: they judged none, or only parts of some.
    """
    people = given.qrels.frame.select(_KEYS).unique()
    graded = given.machine.frame.select(_KEYS)
    shared = graded.join(people.select("query_id").unique(), on="query_id", how="semi")
    if not shared.height:
        raise InputError(
            "people judged none of the queries that the machine graded",
            file=given.qrels.source,
            fix="judge a random sample of them, each query with all its pairs",
        )
    missing = shared.join(people, on=_KEYS, how="anti")
    if missing.height:
        row = missing.row(0, named=True)
        count = missing["query_id"].n_unique()
        raise InputError(
            f"people judged a part of {count:,} queries: {missing.height:,} pairs that the machine "
            "graded have no grade of theirs",
            file=given.qrels.source,
            query=row["query_id"],
            doc_id=row["doc_id"],
            fix="judge these queries whole, or give the chances of the judged pairs (--chances)",
        )
    return shared["query_id"].unique(maintain_order=True).to_list()


def query_values(
    qrels: Qrels, runs: Sequence[Run], baseline: Run | None, measures: Sequence[str]
) -> dict[tuple[int, str], dict[str, float]]:
    """By the place of a run and a measure: the value of each query, or its difference."""
    named = [run.named(str(place)) for place, run in enumerate(runs)]
    named += [] if baseline is None else [baseline.named("baseline")]
    rows = evaluate(
        qrels, named, measures, complete=True, interval="none", bounds=False, per_query=True
    ).per_query
    by_run: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.value is not None:
            by_run[row.run, row.measure][row.query_id] = row.value
    found = {}
    for place, name in product(range(len(runs)), measures):
        own, base = by_run[str(place), name], by_run["baseline", name]
        found[place, name] = (
            own if baseline is None else {q: own[q] - base[q] for q in own if q in base}
        )
    return found


def _strata(
    queries: Queries | None, judged: Sequence[str], others: Sequence[str]
) -> list[tuple[float, list[str], list[str]]]:
    """Weight, judged queries and others of each stratum."""
    weights = {} if queries is None else queries.weights()
    if queries is None or "stratum" not in queries.frame.columns:
        if len({weights.get(query) for query in (*judged, *others)}) > 1:
            raise UsageError(
                "queries have different weights, and no strata",
                fix="a column stratum: the weights of its strata are used",
            )
        return [(1.0, list(judged), list(others))]
    name_of = queries.attribute("stratum")
    names = sorted({name_of.get(query, "") for query in (*judged, *others)})
    found = []
    for name in names:
        mine = [query for query in judged if name_of.get(query, "") == name]
        rest = [query for query in others if name_of.get(query, "") == name]
        weight = sum(weights.get(query, 0.0) if weights else 1.0 for query in (*mine, *rest))
        if weight > 0:
            found.append((weight, mine, rest))
    return found


def _by_pair(given: _Given, run: Run, baseline: Run | None, measure: Measure) -> MachineMean:
    """People judged pairs with known chances."""
    name, whole = str(measure), measure.entry.symbol == "nDCG"
    if measure.entry.symbol not in _LINEAR and not whole:
        return _refused(
            given, run, baseline, name, "pair",
            f"{name} is not linear in the gains: judge whole queries, or use DCG, P or RBP",
        )  # fmt: skip
    table = _pairs_table(given, [run] if baseline is None else [baseline, run], measure)
    pairs = _pairs(given, table, measure)
    if not whole:
        only = pairs.weight * pairs.machine
        return _row(
            given, run, baseline, name, "pair",
            powered_pairs_mean(pairs), powered_pairs_mean(pairs, lam=0.0),
            float(only.sum()) / pairs.queries,
        )  # fmt: skip
    reason = _no_ideal(table, pairs)
    if reason:
        return _refused(given, run, baseline, name, "pair", reason)
    depth = int(measure.cutoff or np.bincount(pairs.query).max())
    discounts = weight_by_rank(measure, np.arange(1, depth + 1))
    ideal, alone = mean_ideal(pairs, discounts), mean_ideal(pairs, discounts, lam=0.0)
    found = powered_ratio(pairs, ideal, alone)
    if math.isnan(found.estimate):
        return _refused(given, run, baseline, name, "pair", found.interval.reason)
    certain = replace(pairs, human=pairs.machine, chance=np.ones(len(pairs.machine)))
    row = _row(
        given, run, baseline, name, "pair",
        found, powered_ratio(pairs, alone, alone, lam=0.0),
        powered_ratio(certain, *[mean_ideal(certain, discounts)] * 2, lam=0.0).estimate,
    )  # fmt: skip
    return replace(row, aggregate="ratio")


def _no_ideal(table: pl.DataFrame, pairs: Pairs) -> str:
    """Why the ideal DCG cannot be estimated; empty if it can."""
    without = table.filter(pl.col("machine").is_not_null() & pl.col("chance").is_null()).height
    if without:
        return (
            f"{without:,} pairs that the machine graded have no chance, and the ideal of nDCG "
            "depends on all of them: give each one, or use DCG"
        )
    drawn = ~np.isnan(pairs.human) & (pairs.chance < 1)
    waiting = np.unique(pairs.query[np.isnan(pairs.human)])
    each = drawn.sum() / max(len(waiting), 1)
    if len(waiting) and each < _OF_QUERY:
        return (
            f"people judged {each:.1f} pairs a query, and nDCG needs {_OF_QUERY} for its ideal: "
            "judge more, or use DCG"
        )
    return ""


def _pairs_table(given: _Given, runs: Sequence[Run], measure: Measure) -> pl.DataFrame:
    """The pairs that enter a measure, with weight, grades and chance; for nDCG all pairs."""
    assert given.chances is not None
    shown = run_weights(runs, measure).filter(pl.col("weight") != 0)
    if measure.entry.symbol == "nDCG":
        judged = given.qrels.frame.join(given.chances, on=_KEYS, how="semi")
        every = pl.concat([each.select(_KEYS) for each in (given.machine.frame, judged, shown)])
        shown = every.unique(maintain_order=True).join(shown, on=_KEYS, how="left")
        shown = shown.with_columns(pl.col("weight").fill_null(0.0))
    asked = given.machine.frame["query_id"].unique()
    table = (
        shown.filter(pl.col("query_id").is_in(asked.implode()))
        .join(given.machine.frame.select(*_KEYS, machine="grade"), on=_KEYS, how="left")
        .join(given.qrels.frame.select(*_KEYS, human="grade"), on=_KEYS, how="left")
        .join(given.chances.select(*_KEYS, "chance"), on=_KEYS, how="left")
    )
    lacking = table.filter(pl.col("human").is_not_null() & ~(pl.col("chance") > 0).fill_null(False))
    if lacking.height:
        row = lacking.row(0, named=True)
        raise InputError(
            "people judged this pair, and its chance to be judged is not known",
            query=row["query_id"],
            doc_id=row["doc_id"],
            fix="a chance above 0 for each judged pair; pairs that somebody chose have none",
        )
    return table


def _pairs(given: _Given, table: pl.DataFrame, measure: Measure) -> Pairs:
    gain = gain_by_grade(measure)
    asked = given.machine.frame["query_id"].unique(maintain_order=True)
    place = {query: number for number, query in enumerate(asked.to_list())}
    human = table["human"].cast(pl.Float64).to_numpy()
    known = ~np.isnan(human)
    gained = np.full(len(human), np.nan)
    gained[known] = gain(human[known])
    return Pairs(
        np.array([place[query] for query in table["query_id"].to_list()], np.int64),
        table["weight"].to_numpy(),
        gain(table["machine"].fill_null(0.0).to_numpy()),
        gained,
        table["chance"].fill_null(1.0).to_numpy(),
        len(place),
    )


def run_weights(runs: Sequence[Run], measure: Measure) -> pl.DataFrame:
    """``query_id``, ``doc_id`` and ``weight``: what a gain of 1 of a document adds to the value.

    Args:
        runs: One; or two, for the second minus the first.
        measure: P, RBP or DCG; of nDCG the numerator.
    """
    shown = _ranked(runs[-1], measure, "weight")
    if len(runs) == 1:
        return shown
    base = _ranked(runs[0], measure, "base")
    both = shown.join(base, on=_KEYS, how="full", coalesce=True).fill_null(0.0)
    return both.select(*_KEYS, pl.col("weight") - pl.col("base"))


def check_linear(measure: Measure) -> None:
    if measure.entry.symbol not in _LINEAR:
        raise UsageError(f"{measure} is not linear in the gains", fix="P@k, DCG@k or RBP")


def _ranked(run: Run, measure: Measure, name: str) -> pl.DataFrame:
    """The documents of a run with the weight of their ranks."""
    depth = None if measure.cutoff is None else int(measure.cutoff)
    ids = run.answers["query_id"].to_list()
    top = run.top(ids, depth)
    weight = weight_by_rank(measure, top["rank"].to_numpy().astype(np.int64))
    queries = pl.Series("query_id", [ids[place] for place in top["query"].to_list()], pl.String)
    return top.select(queries, "doc_id", pl.Series(name, weight))


def _row(
    given: _Given,
    run: Run,
    baseline: Run | None,
    measure: str,
    unit: Any,
    found: Powered,
    alone: Powered,
    machine: float,
) -> MachineMean:
    return MachineMean(
        run=run.name,
        baseline=None if baseline is None else baseline.name,
        measure=measure,
        unit=unit,
        judge=given.judge,
        ci_low=found.interval.low,
        ci_high=found.interval.high,
        people=alone.estimate,
        people_low=alone.interval.low,
        people_high=alone.interval.high,
        machine=machine,
        weight=found.lam,
        reason=found.interval.reason,
        **shared(found, MachineMean) | _more(given, found, unit),
    )


def _more(given: _Given, found: Powered, unit: str) -> dict[str, Any]:
    """Queries that more money of the judge buys, and their worth; and those of more time."""
    if unit != "query":
        return {}
    pairs = len(given.machine) / max(len(given.machine.query_ids), 1)
    bought, timed = (
        None if not each else most / (each * pairs)
        for each, most in ((given.costs.dollars, _DOLLARS), (given.costs.seconds, _SECONDS))
    )
    return {
        "dollars_queries": bought,
        "dollars_effective": bought and effective_after(found, machine_only=bought),
        "minutes_queries": timed,
        "minutes_effective": timed and effective_after(found, judged=timed),
    }


def _refused(
    given: _Given, run: Run, baseline: Run | None, measure: str, unit: Any, reason: str
) -> MachineMean:
    none = (None,) * 10
    name = None if baseline is None else baseline.name
    return MachineMean(run.name, name, measure, unit, given.judge, *none, 0, 0, reason)


@dataclass(frozen=True)
class MachineGrades:
    """Grades by a machine, as a command is given them."""

    frame: pl.DataFrame  # `query_id`, `doc_id`, `grade` and `rater`
    chances: pl.DataFrame | None  # `query_id`, `doc_id`, `chance` of pairs that people judged
    certified: frozenset[str]  # judges of the workspace
    judge: JudgeConfig | None = None  # None if the grades are those of a file
    costs: Costs | None = None


def read_machine_grades(name: str, chances: str | None) -> MachineGrades:
    """The grades of a file, or of a judge as it is declared now, and the chances of another file.

    Raises:
        InputError: a file that cannot be read, or chances that are not above 0 and up to 1.
    """
    if Path(name).suffix or Path(name).exists():
        frame, known = read_grades(name), _read_chances(chances)
        passed: frozenset[str] = frozenset()
        with suppress(KaratError):
            passed = certified(find_workspace(Path(name).parent).resolve().parent)
        return MachineGrades(frame, known, passed)
    judge = read_judge(name, Path())
    with Ledger(judge.root) as ledger:
        frame, price = graded_by(judge, ledger), ledger.price(judge.rater)
    return MachineGrades(
        frame.with_columns(rater=pl.lit(judge.rater)),
        _read_chances(chances),
        certified(judge.root),
        judge,
        Costs(price, _seconds(judge.root)),
    )


def graded_by(judge: JudgeConfig, ledger: Ledger) -> pl.DataFrame:
    """``query_id``, ``doc_id`` and ``grade`` of what a judge graded as it is declared now.

    Raises:
        InputError: nothing.
    """
    rows = ledger.grades(judge.rater)
    if not rows:
        raise InputError(
            f"{judge.rater} has graded nothing", fix=f"karat autojudge run {judge.name}"
        )
    return pl.DataFrame(rows, schema=[*_KEYS, "grade"], orient="row")


def _read_chances(path: str | None) -> pl.DataFrame | None:
    if path is None:
        return None
    frame = read_pairs(path).frame
    if "chance" not in frame.columns:
        raise InputError("no column chance", file=path, fix="query_id,doc_id,chance")
    known = frame.select(*_KEYS, pl.col("chance").cast(pl.Float64, strict=False))
    wrong = known.filter(~pl.col("chance").is_between(0, 1, closed="right").fill_null(False))
    if wrong.height:
        row = wrong.row(0, named=True)
        raise InputError(
            "a chance is above 0 and up to 1", file=path, query=row["query_id"],
            doc_id=row["doc_id"],
        )  # fmt: skip
    return known


def with_machine_grades(
    results: _Result,
    measures: Sequence[str],
    qrels: Qrels,
    runs: Sequence[Run],
    given: MachineGrades,
    queries: Queries | None,
) -> _Result:
    """The results with estimates from people's grades and a machine's, and what limits these."""
    found = machine_means(
        qrels,
        runs,
        given.frame,
        measures,
        difference=not isinstance(results, Results),
        chances=given.chances,
        queries=queries,
        costs=given.costs,
    )
    found = [replace(row, certified=row.judge in given.certified) for row in found]
    notes: list[str] = [f"{row.run}: {row.reason}" for row in found if row.reason]
    if any(row.aggregate == "ratio" for row in found):
        notes.append(
            "nDCG of single pairs is the mean DCG over the mean ideal DCG, by the delta method, "
            "not the mean of nDCG over queries"
        )
    abouts = [(run.name, run.about) for run in runs]
    family = None if given.judge is None else family_note(given.judge, abouts)
    notes += [] if family is None else [family]
    return replace(results, machine_grades=found, notes=[*notes, *results.notes])


def _seconds(root: Path) -> float | None:
    """The median time of a rating in the golden set of a workspace; None where there is none."""
    with suppress(KaratError, ImportError):
        from karat.store.sql import golden_sets, judgments
        from karat.store.sql.opening import open_store

        config = read_workspace(root / "karat.toml")
        store = open_store(config.store)
        try:
            with store.read() as connection:
                golden = golden_sets.find(connection, config.golden)
                found = judgments.current(connection, golden.id).ratings
        finally:
            store.dispose()
        timed = found.filter(pl.col("source") == "human")["seconds"].median()
        return float(timed) if isinstance(timed, float) and timed > 0 else None
    return None
