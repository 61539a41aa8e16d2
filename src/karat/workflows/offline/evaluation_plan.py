"""Evaluation plan: the arguments of a command as tables, measures and rules, all validated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from karat.errors import UsageError, nearest
from karat.measures import DEFAULTS, Measure, parse_all
from karat.measures.scores import Rules, Scores, score, with_draws
from karat.measures.trec import COMPAT, Compat, as_in
from karat.stats.imputation import DRAWS
from karat.tables import Documents, Qrels, Queries, Run
from karat.tables.asked import Meant
from karat.workflows.offline import inputs
from karat.workflows.offline.judgment_source import judged_by
from karat.workflows.offline.parts import Within, of_parts, within


@dataclass(frozen=True, slots=True)
class Conditions:
    """The rules of an evaluation as the caller states them; see ``evaluate``."""

    rel: float | None = None
    complete: bool = False
    depth: int | None = None
    judged_only: bool = False
    fully_judged: bool = False
    collapse: str | None = None
    compat: str | None = None
    scale: Any = None
    judgments: str | None = None


STANDARD = Conditions()


@dataclass(frozen=True)
class EvaluationPlan:
    qrels: Qrels  # the judgments, on the declared scale
    about: Queries | None  # the queries, if given or included with the judgments
    runs: list[Run]  # the runs, with unique names
    measures: list[Measure]
    rules: Rules  # how runs are read
    conditions: Conditions  # the rules as stated by the caller
    documents: Documents | None  # the documents to slice by
    given: list[Run]  # the runs as they were given, restricted to the part if there is one
    part: Within | None  # the part of the golden set, if only one is used

    @property
    def meant(self) -> Meant:
        """Resolves measure names under the requested ``rel`` and trec_eval version."""
        compat = self.rules.compat.name if self.rules.compat else None
        return partial(canonical_names, rel=self.conditions.rel, compat=compat)

    @property
    def waiting(self) -> list[str]:
        """Queries of the golden set that would count but are not judged yet.

        Empty if the queries come from another file: it often has more queries than were judged.
        """
        if self.about is None or not inputs.belong(self.about, self.qrels):
            return []
        others = {query for query, weight in self.about.weights().items() if weight == 0}
        others |= self.about.no_answer() | set(self.qrels.query_ids)
        return [query for query in self.about.frame["query_id"] if query not in others]

    @cached_property
    def scored(self) -> list[Scores]:
        """Scores of every run, computed once: one value for each query and measure."""
        judgments = _whole_grades(self.qrels) if self.rules.compat else self.qrels
        return [score(run, judgments, self.measures, self.rules) for run in self.runs]

    def with_draws(self, interval: str) -> list[Scores]:
        """``scored``, with the values in draws of the grades if t intervals need them."""
        source = self.qrels.provenance
        certain = source is None or source.uncertain is None
        if certain or interval != "t" or self.rules.compat:
            return self.scored
        return with_draws(self.scored, self.qrels, DRAWS, np.random.default_rng(0))

    @property
    def sources(self) -> str | None:
        """Whose judgments they are, joined by +; None if unknown."""
        return None if self.qrels.provenance is None else self.qrels.provenance.sources

    def uses(
        self,
        shown: Iterable[tuple[str, str | None]],
        commit: str | None,
        runs: Sequence[Run] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Record a use of the held-out part once numbers are computed; notes as ``of_parts``."""
        measured = self.given if runs is None else runs
        used, together = of_parts(self.about, self.qrels, measured, shown, commit)
        if self.part is not None and measured:
            used = self.part.used(commit=commit)
        return used, together


def settle(
    qrels: Any,
    runs: Any,
    measures: str | Iterable[str] | None,
    conditions: Conditions = STANDARD,
    *,
    queries: Any = None,
    documents: Any = None,
    by: Sequence[str] = (),
    part: str | None = None,
) -> EvaluationPlan:
    """Validate the arguments that ``evaluate`` and ``compare`` share; see ``evaluate``.

    A plan in place of judgments is returned as it is: if it is given to both, runs are scored once.
    """
    if isinstance(qrels, EvaluationPlan):
        return qrels
    qrels, own_queries = judged_by(qrels, conditions.judgments)
    queries = own_queries if queries is None else queries
    table = inputs.documents_for(by, documents, qrels)
    given, subset = inputs.runs(runs), None
    if part is not None:
        subset = within(part, qrels, given, queries)
        qrels, given, queries = subset.qrels, subset.runs, subset.queries
    rules = _rules(conditions)
    about = inputs.about(queries, qrels)
    if about is not None and rules.compat is None:  # trec_eval has no no_answer queries or weights
        zero_weight = frozenset(query for query, weight in about.weights().items() if weight == 0)
        rules = replace(rules, no_answer=frozenset(about.no_answer()), zero_weight=zero_weight)
    parsed = _asked(names(measures, "measures"), conditions.rel, rules)
    if not parsed:
        raise UsageError("no measure to compute", fix='measures=["nDCG@10"], or leave it out')
    grades = inputs.qrels(qrels).on_scale(conditions.scale)
    if rules.compat:
        grades.refuse_repeats(rules.compat.name)
    unique_runs = _unique_names(given)
    if conditions.collapse is not None:
        chunks = documents if table is None else table
        unique_runs = inputs.collapsed(unique_runs, chunks, conditions.collapse)
    return EvaluationPlan(
        grades, about, unique_runs, parsed, rules, conditions, table, given, subset
    )


def canonical_names(text: str, rel: float | None, compat: str | None) -> list[str]:
    """The names in results of the measures that a spelling stands for; empty if unknown."""
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
    """Raise UsageError for an argument of the wrong type."""
    for name, value in given_values.items():
        kind, what = _TYPES[name]
        not_a_number = isinstance(value, bool) and kind is not bool
        if value is not None and (not_a_number or not isinstance(value, kind)):
            raise UsageError(f"{name} is {value!r}, not {what}")


def names(value: Any, what: str) -> list[str] | None:
    """One name or several, as a list."""
    if value is None or isinstance(value, str):
        return None if value is None else [value]
    names = list(value) if isinstance(value, Iterable) else [value]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{what} contains {name!r}, not a name", fix=f'{what}=["…"]')
    return names


def _rules(stated: Conditions) -> Rules:
    compat, depth = stated.compat, stated.depth
    check_types(rel=stated.rel, depth=depth, fully_judged=stated.fully_judged)
    if stated.fully_judged and stated.judged_only:
        raise UsageError(
            "judged_only drops the documents that fully_judged declares not relevant",
            fix="leave out one of the two",
        )
    if compat is not None and compat not in COMPAT:
        raise UsageError(
            f"karat does not reproduce {compat!r}", nearest=nearest(compat, COMPAT) or list(COMPAT)
        )
    if depth is not None and depth < 1:
        raise UsageError(f"depth must be 1 or more, got {depth}", fix="--depth 1000, for example")
    return Rules(
        rel=1.0 if stated.rel is None else stated.rel,
        complete=stated.complete,
        depth=None if depth is None else min(depth, 1 << 62),
        judged_only=stated.judged_only,
        fully_judged=bool(stated.fully_judged),
        compat=_compat(compat),
    )


def _compat(name: str | None) -> Compat | None:
    return None if name is None else COMPAT[name]


def _asked(measures: Iterable[str] | None, rel: float | None, rules: Rules) -> list[Measure]:
    if rules.compat is None:
        return parse_all(DEFAULTS if measures is None else measures, rel=rel)
    parsed = parse_all(["official"] if measures is None else measures, rel=rel, trec=True)
    return [as_in(rules.compat, measure) for measure in parsed]


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
    """Judgments as trec_eval reads them: grades truncated to integers, no query without a row."""
    grade = qrels.frame["grade"]
    cut = grade.to_numpy().astype(np.int64).astype(np.float64)
    if (cut == grade.to_numpy()).all() and not qrels.without:
        return qrels
    return Qrels(qrels.frame.with_columns(grade=cut), qrels.source, qrels.declared)
