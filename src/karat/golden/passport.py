"""The passport of a machine judge: what its grades are worth, measured against people's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from karat.golden.judge_order import Compared, order_tests
from karat.golden.judge_tests import DRIFT, INJECTION, KEYWORDS, PADDING, RETEST, SUPERFICIAL
from karat.stats.agreement import (
    Integers,
    Ratings,
    Sums,
    ac1,
    agreement_interval,
    alpha,
    by_query,
    confusion,
    kappa,
    mean_kappa,
    ratio,
)
from karat.stats.averages import Floats
from karat.stats.intervals import Interval
from karat.tables.golden.machine_judges import JudgeConfig, Judged, JudgePair, Passport, Spent, Test

_PAD = 0.05  # shift of the mean grade that padding or time may cause, in grades
_FEW = 10  # pairs that a test needs for a verdict

Key = tuple[str, str]
Rating = tuple[str, str, str, float]  # query, document, person, grade


def passport(
    config: JudgeConfig,
    judged: Sequence[tuple[JudgePair, Judged]],
    human: Mapping[Key, float],
    spent: Spent,
    *,
    slices: Mapping[str, str],
    ratings: Sequence[Rating] = (),
    compared: Compared | None = None,
    of_pairs: Spent | None = None,
) -> Passport:
    """The passport.

    Args:
        config: The judge.
        judged: What it said of real pairs and of pairs of tests (``probe``).
        human: People's grades by query and document.
        spent: What it cost.
        slices: The slice of each query, by its id.
        ratings: The grade of each person, blind: what people's agreement is computed from.
        compared: Values of runs over whole queries of these pairs.
        of_pairs: What the real pairs cost, without those of tests.
    """
    real = [(pair, each) for pair, each in judged if not pair.probe]
    both = [
        (pair, each.verdict.grade, human[pair.query_id, pair.doc_id])
        for pair, each in real
        if each.verdict.grade is not None and (pair.query_id, pair.doc_id) in human
    ]
    grades = np.array(sorted({*config.grades, *(grade for *_, grade in both)}))
    level = {float(grade): place for place, grade in enumerate(grades)}
    names = list(dict.fromkeys(pair.query_id for pair, *_ in both))
    place_of = {name: place for place, name in enumerate(names)}
    query = np.array([place_of[pair.query_id] for pair, *_ in both], np.int64)
    machine = np.array([level[float(grade or 0)] for _, grade, _ in both], np.int64)
    person = np.array([level[grade] for *_, grade in both], np.int64)
    agreement, tests = _agreement(query, person, machine, grades, len(names))
    of_people, rows = _people(both, ratings, place_of)
    agreement, tests = agreement | of_people, tests + rows
    tests += [_overrating(query, person, machine, grades, len(names))]
    tests += _length(both)
    tests += [] if compared is None else order_tests(compared)
    rho = _rho(query, grades[person], grades[machine], compared)
    tests += [rho]
    middle = config.grades[len(config.grades) // 2]
    tests += _tests(judged, middle, grades[machine[grades[person] < middle]])
    verdict, notes = _verdict(config, agreement["kappa_low"], tests)
    states: Counter[str] = Counter(each.verdict.state for _, each in real)
    price = None if of_pairs is None else of_pairs.each(states["ok"])
    return Passport(
        config,
        len(both),
        len(names),
        agreement,
        confusion(person, machine, len(grades)).tolist(),
        dict(states),
        spent,
        tests,
        verdict,
        _slices(np.array([slices.get(name, "") for name in names]), query, person, machine, grades),
        notes,
        price,
        _per_effective(price, len(both) / max(len(names), 1), rho.value),
    )


def _verdict(
    config: JudgeConfig, low: float | None, tests: Sequence[Test]
) -> tuple[Literal["certified", "candidate"], list[str]]:
    certified = low is not None and low >= config.kappa
    failed = [test.name for test in tests if test.passed is False]
    notes = []
    if not certified:
        shown = "undefined" if low is None else f"{round(low, 2) + 0.0:.2f}"
        notes.append(f"the lower end of κ is {shown}; the bar is {config.kappa:g}")
    if failed:
        notes.append(f"tests not passed: {', '.join(failed)}")
    return ("certified" if certified and not failed else "candidate"), notes


def _agreement(
    query: Integers, person: Integers, machine: Integers, grades: Floats, queries: int
) -> tuple[dict[str, float | None], list[Test]]:
    """κ three ways, α and AC1; the intervals of all as tests that are only shown."""
    n = len(query)
    ratings = Ratings(
        np.concatenate([query, query]),
        np.concatenate([np.arange(n), np.arange(n)]),
        np.repeat(np.arange(2), n),
        np.concatenate([person, machine]),
        grades,
        queries,
    )
    binary = grades[len(grades) // 2] <= grades
    sums: dict[str, Sums] = {
        "kappa": kappa(query, person, machine, grades, queries),
        "linear": kappa(query, person, machine, grades, queries, "linear"),
        "quadratic": kappa(query, person, machine, grades, queries, "quadratic"),
        "alpha": alpha(ratings),
        "ac1": ac1(ratings, len(grades)),
        "binary": kappa(
            query,
            binary[person].astype(np.int64),
            binary[machine].astype(np.int64),
            np.array([0.0, 1.0]),
            queries,
        ),
    }
    found: dict[str, float | None] = {}
    shown = []
    for name, each in sums.items():
        value = _or_none(each.whole) if n else None
        span = agreement_interval(each)
        found[name] = value
        if name == "kappa":
            found["kappa_low"], found["kappa_high"] = span.low, span.high
            if value is not None and value >= 1 and span.low is None:
                found["kappa_low"] = found["kappa_high"] = 1.0  # no disagreement was observed
        shown.append(Test(f"agreement {name}", value, span.low, span.high))
    return found, shown


def _people(
    both: Sequence[tuple[JudgePair, float | None, float]],
    ratings: Sequence[Rating],
    place_of: Mapping[str, int],
) -> tuple[dict[str, float | None], list[Test]]:
    """How far people agree with each other, and the judge with each of them, on the same pairs."""
    machine = {(pair.query_id, pair.doc_id): float(grade or 0) for pair, grade, _ in both}
    people = Counter((query, doc) for query, doc, *_ in ratings)
    shared = [row for row in ratings if people[row[:2]] > 1 and row[:2] in machine]
    keys = list(dict.fromkeys(row[:2] for row in shared))
    if not keys:
        return {}, []
    names = sorted({row[2] for row in shared})
    item_of = {key: place for place, key in enumerate(keys)}
    rater_of = {name: place for place, name in enumerate(names)}
    # The judge is the last rater.
    rows = [(item_of[q, d], rater_of[who], grade) for q, d, who, grade in shared]
    rows += [(item_of[key], len(names), machine[key]) for key in keys]
    item, rater = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    grades, level = np.unique([row[2] for row in rows], return_inverse=True)
    query = np.array([place_of[key[0]] for key in keys], np.int64)[item]
    every = Ratings(query, item, rater, level.astype(np.int64), grades, len(place_of))
    alone = every.keep(rater < len(names))
    sums = {
        "people_kappa": mean_kappa(alone),
        "people_linear": mean_kappa(alone, "linear"),
        "people_quadratic": mean_kappa(alone, "quadratic"),
        "people_alpha": alpha(alone),
        "each_person_kappa": mean_kappa(every, of=len(names)),
    }
    found = {name: _or_none(each.whole) for name, each in sums.items()}
    found["people_pairs"] = len(keys)
    below = sums["people_kappa"].minus(sums["each_person_kappa"])
    shown = []
    for name, each, detail in (
        ("people", sums["people_kappa"], f"κ of people with each other, on {len(keys):,} pairs"),
        ("each person", sums["each_person_kappa"], "κ of the judge with each, on the same pairs"),
        ("below people", below, "the former minus the latter"),
    ):
        shown.append(_shown(f"agreement {name}", each, detail))
    found["people_kappa_low"], found["people_kappa_high"] = shown[0].ci_low, shown[0].ci_high
    return found, shown


def _overrating(
    query: Integers, person: Integers, machine: Integers, grades: Floats, queries: int
) -> Test:
    """Mean of the judge's grade minus people's."""
    difference = grades[machine] - grades[person]
    sums = ratio(query, difference, np.ones(len(query)), queries)
    return _shown("overrating", sums)


def _rho(query: Integers, person: Floats, machine: Floats, compared: Compared | None) -> Test:
    """Correlation, over queries, of what the judge's grades give with what people's give."""
    if compared is not None:
        x, y = compared.people[:, 0], compared.machine[:, 0]
        what = f"{compared.measure} of {compared.runs[0]}"
    else:
        count = np.maximum(np.bincount(query), 1)
        x, y = (np.bincount(query, values) / count for values in (person, machine))
        what = "its mean grade"

    def correlation(sums: Floats) -> Floats:
        n, xs, ys, xx, yy, xy = np.moveaxis(sums, -1, 0)
        under = (n * xx - xs * xs) * (n * yy - ys * ys)
        bounded = np.clip((n * xy - xs * ys) / np.sqrt(np.where(under > 1e-12, under, 1)), -1, 1)
        return np.where(under > 1e-12, bounded, np.nan)

    sums = Sums(
        np.column_stack([np.ones(len(x)), x, y, x * x, y * y, x * y]),
        correlation,
        np.ones(len(x)),
        -1.0,
    )
    return _shown("rho", sums, f"over queries, {what} by its grades and by people's")


def _per_effective(price: float | None, pairs: float, rho: float | None) -> float | None:
    """Dollars for one more effective query, if it grades as many further queries as people judged.

    Then n queries are worth n · 2 / (2 − ρ²): (2 − ρ²) / ρ² graded queries for each one gained.
    """
    if price is None or rho is None or rho <= 0:
        return None
    return price * pairs * (2 - rho**2) / rho**2


def _length(both: Sequence[tuple[JudgePair, float | None, float]]) -> list[Test]:
    """How much the judge's error grows when the document is ten times as long."""
    size = np.array([len(pair.document.split()) + 1 for pair, *_ in both], np.float64)
    if len(both) < _FEW or not np.ptp(size):
        return []
    error = np.array([(grade or 0.0) - person for _, grade, person in both])
    x = np.log10(size)
    query = np.unique([pair.query_id for pair, *_ in both], return_inverse=True)[1]
    n, queries = len(both), int(query.max()) + 1
    table = by_query(query, np.column_stack([np.ones(n), x, error, x * x, x * error]), queries)

    def slope(sums: Floats) -> Floats:
        count, xs, es, xx, xe = np.moveaxis(sums, -1, 0)
        under = count * xx - xs * xs
        return np.asarray(np.where(under > 0, (count * xe - xs * es) / under, np.nan))

    sums = Sums(table, slope, table[:, 0])
    return [_shown("length slope", sums, "grades for a document ten times as long")]


def _tests(
    judged: Sequence[tuple[JudgePair, Judged]], middle: float, elsewhere: Floats
) -> list[Test]:
    """Padding, keywords, injections, superficial likeness, retest and drift, as far as run.

    Args:
        middle: The lowest grade that counts as relevant here.
        elsewhere: The judge's grades of documents that people graded lower.
    """
    plain = {
        (pair.query_id, pair.doc_id): each.verdict.grade
        for pair, each in judged
        if not pair.probe and each.verdict.grade is not None
    }
    by_test: dict[str, list[tuple[str, str, float, float | None]]] = defaultdict(list)
    for pair, each in judged:
        if pair.probe and each.verdict.grade is not None:
            before = plain.get((pair.query_id, pair.doc_id))
            name = pair.probe.split(" ", maxsplit=1)[0]
            if before is not None or name == SUPERFICIAL:
                by_test[name].append((pair.query_id, pair.probe, each.verdict.grade, before))
    found = []
    for name in (PADDING, KEYWORDS, INJECTION, SUPERFICIAL, RETEST, DRIFT):
        rows = by_test[name]
        if not rows:
            continue
        query = np.unique([row[0] for row in rows], return_inverse=True)[1].astype(np.int64)
        grade = np.array([row[2] for row in rows])
        change = np.array([0.0 if row[3] is None else row[2] - row[3] for row in rows])
        values = {
            PADDING: change,
            DRIFT: change,
            SUPERFICIAL: grade >= middle,
            RETEST: change == 0,
        }.get(name, change > 0)
        sums = ratio(query, values.astype(np.float64), np.ones(len(rows)), int(query.max()) + 1)
        span = agreement_interval(sums)
        if name not in (PADDING, DRIFT) and span.low is not None and span.high is not None:
            span = Interval(max(span.low, 0.0), min(span.high, 1.0))  # of a share
        passed, detail = None, _DETAILS[name]
        if name == INJECTION:
            passed = not values.any()
            which = sorted({row[1] for row, up in zip(rows, values, strict=True) if up})
            detail += f", by {', '.join(which)}" if which else ""
        elif name == SUPERFICIAL and len(elsewhere):
            share = float((elsewhere >= middle).mean())
            detail += f"; of other documents of low grade {share:.1%}"
        elif name in (PADDING, DRIFT) and len(rows) >= _FEW:
            within = span.low is not None and span.high is not None and span.low <= 0 <= span.high
            passed = abs(sums.whole) <= _PAD or within
        found.append(Test(name, sums.whole, span.low, span.high, passed, detail))
    return found


_DETAILS = {
    PADDING: "mean change of the grade by neutral sentences",
    KEYWORDS: "share raised by the words of the query",
    INJECTION: "share raised by orders in the document",
    SUPERFICIAL: "share of documents that only look relevant and are graded relevant",
    RETEST: "share graded equally when asked again",
    DRIFT: "mean change of the grade since the passport was made",
}


def _slices(
    slice_of: NDArray[np.str_],
    query: Integers,
    person: Integers,
    machine: Integers,
    grades: Floats,
) -> list[Test]:
    """κ in each slice with enough pairs; ``slice_of`` has that of each query, "" for none."""
    found = []
    for name in sorted(set(slice_of.tolist()) - {""}):
        here = slice_of[query] == name
        if here.sum() >= _FEW:
            sums = kappa(query[here], person[here], machine[here], grades, len(slice_of))
            found.append(_shown(name, sums))
    return found


def _shown(name: str, sums: Sums, detail: str = "") -> Test:
    """A figure with its interval, which decides nothing."""
    span = agreement_interval(sums)
    return Test(name, _or_none(sums.whole), span.low, span.high, None, detail)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
