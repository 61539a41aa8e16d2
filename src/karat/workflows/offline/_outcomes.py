"""Outcomes: what came of each query, laid beside a measure and correlated with it.

Did the answer built on this retrieval succeed, was anything bought, how long did the user stay:
a column of the user's own, one value for each query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from karat.errors import UsageError, nearest
from karat.measures.scores import Scores
from karat.stats.correlation import outcome
from karat.tables import Queries
from karat.tables.queries import NO, YES
from karat.tables.results import Outcome

Values = dict[str, dict[str, float]]
"""For each outcome, its value for each query that has one."""


def outcome_values(
    asked: str | Sequence[str] | Mapping[str, Mapping[str, Any]], about: Queries | None
) -> Values:
    """Outcomes from columns of the queries, or from mappings of the user's.

    Raises:
        UsageError: a column there is not, or a value that is neither a number nor yes or no.
    """
    if isinstance(asked, Mapping):
        for name, values in asked.items():
            if not isinstance(values, Mapping):
                raise UsageError(
                    f"the outcome {name!r} is {type(values).__name__}, not values by query",
                    fix='outcomes={"answered": {"q1": True}}',
                )
        return {name: _numbers(name, values) for name, values in asked.items()}
    if not isinstance(asked, Iterable):
        raise UsageError(f"outcomes is {asked!r}, not names of attributes")
    names = [asked] if isinstance(asked, str) else list(asked)
    if names and about is None:
        raise UsageError(
            f"the outcome {names[0]!r} is a column of the queries, and there are none",
            fix="--queries FILE",
        )
    return {name: _numbers(name, about.attribute(name)) for name in names if about is not None}


def correlate(scored: Sequence[Scores], outcomes: Values) -> tuple[list[Outcome], list[str]]:
    """One row for each run, measure and outcome; and why some numbers are lacking."""
    rows: list[Outcome] = []
    reasons: dict[str, dict[str, None]] = {}
    for scores in scored:
        for name, values in outcomes.items():
            beside = np.array([values.get(q, math.nan) for q in scores.evidence.query_ids])
            for measure, measured in scores.values.items():
                found = outcome(np.where(scores.overall, measured, math.nan), beside)
                if found.reason:
                    reasons.setdefault(found.reason, {})[f"{measure} with {name}"] = None
                rows.append(
                    Outcome(
                        run=scores.run.name,
                        measure=str(measure),
                        outcome=name,
                        n=found.n,
                        spearman=found.spearman,
                        ci_low=found.ci_low,
                        ci_high=found.ci_high,
                        kendall=found.kendall,
                        auc=found.auc,
                    )
                )
    said = [f"{', '.join(which)}: {reason}" for reason, which in reasons.items()]
    known = {query for scores in scored for query in scores.evidence.query_ids}
    for name, values in outcomes.items():
        if not known & values.keys():
            raise UsageError(
                f"the outcome {name!r} has a value for none of the judged queries",
                nearest=nearest(next(iter(values), ""), sorted(known)),
            )
    return rows, said


def _numbers(name: str, values: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(query): _number(name, str(query), value)
        for query, value in values.items()
        if value is not None and value != ""
    }


def _number(name: str, query: str, value: Any) -> float:
    text = str(value).strip().casefold()
    if text in YES or text in NO:
        return float(text in YES)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"the outcome {name!r} of query {query} is {value!r}: neither a number nor yes or no",
            fix="leave it empty where there is none",
        )
    return number
