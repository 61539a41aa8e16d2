"""Settle: what a verb was given becomes tables, measures and rules, every mistake told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from karat.errors import UsageError, nearest
from karat.measures import DEFAULTS, Measure, parse_all
from karat.measures.scores import Rules, Scores, score
from karat.measures.trec import COMPAT, Compat, as_in
from karat.tables import Qrels, Queries, Run
from karat.tables.asked import Meant
from karat.workflows.offline import inputs


@dataclass(frozen=True)
class EvaluationPlan:
    """What is to be measured, and how.

    Attributes:
        qrels: The judgments as given, on the scale declared.
        about: The queries, if any were given or came with the judgments.
        runs: The runs, each under a name of its own.
        measures: What is to be computed.
        rules: How runs are read.
        rel: Lowest relevant grade, as asked; None if it was not.
    """

    qrels: Qrels
    about: Queries | None
    runs: list[Run]
    measures: list[Measure]
    rules: Rules
    rel: float | None = None

    @property
    def meant(self) -> Meant:
        """What the name of a measure means here: with the ``rel`` and the trec_eval asked for."""
        compat = self.rules.compat.name if self.rules.compat else None
        return partial(canonical_names, rel=self.rel, compat=compat)

    @property
    def waiting(self) -> list[str]:
        """Queries of the golden set that would count and are not judged yet.

        None where the queries are of another file: such a file often holds more than was judged.
        """
        if self.about is None or not inputs.belong(self.about, self.qrels):
            return []
        others = {query for query, weight in self.about.weights().items() if weight == 0}
        others |= self.about.no_answer() | set(self.qrels.query_ids)
        return [query for query in self.about.frame["query_id"] if query not in others]

    def scored(self) -> list[Scores]:
        """Every query of every run under every measure."""
        judgments = _whole_grades(self.qrels) if self.rules.compat else self.qrels
        return [score(run, judgments, self.measures, self.rules) for run in self.runs]


def settle(
    qrels: Any,
    runs: Any,
    measures: str | Iterable[str] | None,
    *,
    queries: Any = None,
    documents: Any = None,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    fully_judged: bool = False,
    collapse: str | None = None,
    compat: str | None = None,
    scale: Any = None,
) -> EvaluationPlan:
    """Settle the arguments that ``evaluate`` and ``compare`` share; see ``evaluate``.

    Raises:
        UsageError: an unknown measure or version, or a value of the wrong kind.
        InputError: files or tables that cannot be read.
    """
    check_types(rel=rel, depth=depth, fully_judged=fully_judged)
    if fully_judged and judged_only:
        raise UsageError(
            "judged_only drops the documents that fully_judged declares not relevant",
            fix="leave out one of the two",
        )
    about = inputs.about(queries, qrels)
    rules = replace(
        _rules(rel, complete, depth, judged_only, compat), fully_judged=bool(fully_judged)
    )
    if about is not None and not compat:  # trec_eval knows neither marks nor weights
        zero_weight = frozenset(query for query, weight in about.weights().items() if weight == 0)
        rules = replace(rules, no_answer=frozenset(about.no_answer()), zero_weight=zero_weight)
    asked = _asked(names(measures, "measures"), rel, rules)
    if not asked:
        raise UsageError("no measure to compute", fix='measures=["nDCG@10"], or leave it out')
    judgments = inputs.qrels(qrels).on_scale(scale)
    if rules.compat:
        judgments.refuse_repeats(rules.compat.name)
    systems = _unique_names(inputs.runs(runs))
    if collapse is not None:
        systems = inputs.collapsed(systems, documents, collapse)
    return EvaluationPlan(judgments, about, systems, asked, rules, rel)


def canonical_names(text: str, rel: float | None, compat: str | None) -> list[str]:
    """The names under which results list the measures that a spelling stands for."""
    try:
        return [str(measure) for measure in _asked([text], rel, Rules(compat=_compat(compat)))]
    except UsageError:
        return []


_TYPES: dict[str, tuple[type, str]] = {
    "rel": (Real, "a number"),
    "depth": (Integral, "a whole number"),
    "seed": (Integral, "a whole number"),
    "threshold": (Real, "a number"),
    "margin": (Real, "a number"),
    "resamples": (Integral, "a whole number"),
    "review": (Integral, "a whole number"),
    "judge_next": (Integral, "a whole number"),
    "bounds": (bool, "True, False or None"),
    "fully_judged": (bool, "True or False"),
}


def check_types(**given_values: Any) -> None:
    """Refuse a value of the wrong kind.

    Raises:
        UsageError: there is one.
    """
    for name, value in given_values.items():
        kind, what = _TYPES[name]
        odd = isinstance(value, bool) and kind is not bool
        if value is not None and (odd or not isinstance(value, kind)):
            raise UsageError(f"{name} is {value!r}, not {what}")


def names(value: Any, what: str) -> list[str] | None:
    """One name or several, as a list."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    names = list(value) if isinstance(value, Iterable) else [value]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{what} holds {name!r}, not a name", fix=f'{what}=["…"]')
    return names


def _rules(
    rel: float | None,
    complete: bool,
    depth: int | None,
    judged_only: bool,
    compat: str | None,
) -> Rules:
    if compat is not None and compat not in COMPAT:
        raise UsageError(
            f"karat does not reproduce {compat!r}", nearest=nearest(compat, COMPAT) or list(COMPAT)
        )
    if depth is not None and depth < 1:
        raise UsageError(f"a depth of {depth} leaves nothing", fix="--depth 1000, for example")
    return Rules(
        rel=1.0 if rel is None else rel,
        complete=complete,
        depth=None if depth is None else min(depth, 1 << 62),
        judged_only=judged_only,
        compat=_compat(compat),
    )


def _compat(name: str | None) -> Compat | None:
    return None if name is None else COMPAT[name]


def _asked(measures: Iterable[str] | None, rel: float | None, rules: Rules) -> list[Measure]:
    if rules.compat is None:
        return parse_all(DEFAULTS if measures is None else measures, rel=rel)
    found = parse_all(["official"] if measures is None else measures, rel=rel, trec=True)
    return [as_in(rules.compat, measure) for measure in found]


def _unique_names(runs: Sequence[Run]) -> list[Run]:
    if not runs:
        raise UsageError("no run to evaluate", fix="karat evaluate QRELS RUN")
    named: dict[str, Run] = {}
    for run in runs:
        name, count = run.name, 1
        while name in named:
            count += 1
            name = f"{run.name}-{count}"
        named[name] = run if name == run.name else run.named(name)
    return list(named.values())


def _whole_grades(qrels: Qrels) -> Qrels:
    """Judgments as trec_eval reads them: grades cut off at the point, no query without a row."""
    grade = qrels.frame["grade"]
    cut = grade.to_numpy().astype(np.int64).astype(np.float64)
    if (cut == grade.to_numpy()).all() and not qrels.without:
        return qrels
    return Qrels(qrels.frame.with_columns(grade=cut), qrels.source, qrels.declared)
