"""Evaluate: values of measures with intervals, counts and notes, from runs and judgments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from karat.diagnosis.slices import slices_of
from karat.errors import UsageError, nearest
from karat.measures.no_answer import no_answer
from karat.measures.scores import Scores
from karat.stats.aggregation import Aggregation
from karat.stats.correlation import outcome
from karat.stats.intervals import RESAMPLES
from karat.stats.quantiles import latency_of
from karat.stats.weighing import Weighing
from karat.tables import Queries, QueryValue, Results
from karat.tables.notes import in_order
from karat.tables.queries import NO, YES
from karat.tables.records import shared
from karat.tables.results import NoAnswer, Outcome
from karat.workflows.offline import notes
from karat.workflows.offline.evaluation_plan import (
    Conditions,
    EvaluationPlan,
    check_types,
    names,
    settle,
)

INTERVALS = ("t", "bca", "none")


def evaluate(
    qrels: Any,
    runs: Any,
    measures: str | Iterable[str] | None = None,
    *,
    queries: Any = None,
    documents: Any = None,
    per_query: bool = False,
    by: str | Sequence[str] = (),
    interval: str = "t",
    seed: int = 0,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    judged_only: bool = False,
    fully_judged: bool = False,
    collapse: str | None = None,
    compat: str | None = None,
    scale: str | tuple[float, float] | None = None,
    bounds: bool | None = None,
    threshold: float | None = None,
    outcomes: str | Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
    part: str | None = None,
    judgments: str | None = None,
    commit: str | None = None,
) -> Results:
    """Evaluate one or more runs.

    Args:
        qrels: The judgments: a path, ``{query: {document: grade}}``, ``{query: {"a", "b"}}`` (ids
            of relevant documents, each of grade 1), a data frame, or Qrels; or the folder of a
            workspace, for its golden set.
        runs: One run, a list of runs, or ``{name: run}``: a path, ``{query: {document: score}}``,
            ``{query: ["a", "b"]}`` (ids, or pairs of id and score, best first), a data frame, or
            a Run. Duplicate names are made unique.
        measures: Name or names of measures; ``karat.measures.DEFAULTS`` if None.
        queries: Weights, strata, attributes and ``no_answer`` marks of the queries: a path, a data
            frame, or Queries. If None, the queries that ``qrels`` includes (a golden set, a BEIR
            folder).
        documents: Required for ``collapse`` and for slices by ``relevant.`` and ``returned.``: a
            path, a data frame, or Documents. For slices, if None, those of the BEIR folder that
            ``qrels`` names.
        per_query: Also return the value of each query.
        by: Attribute or attributes to slice by: of queries (``lang``), combined (``lang,kind``), of
            documents (``relevant.source``, ``returned.source``), built in (``relevant_documents``,
            ``first_relevant``, ``query_length``, ``query_form``, ``frequency_band``), or
            ``NAME:quartiles``. See ``diagnosis.slices.slices_of``.
        interval: 95 % confidence interval: t | bca | none. BCa is too narrow for few queries: with
            20 it covers 88 to 93 %.
        seed: Random seed of the bootstrap, 0 or more.
        rel: Lowest relevant grade, where a measure does not set it; 1 if None.
        complete: Count every query of the qrels (trec_eval -c).
        depth: Cut rankings at this rank (trec_eval -M).
        judged_only: Drop unjudged documents (trec_eval -J).
        fully_judged: Declare that documents without a judgment are not relevant, as in a fully
            judged collection: unjudged bounds are not computed.
        collapse: Column of ``documents`` that names the document of each chunk; chunks are folded
            into their documents.
        compat: trec_eval-9 | trec_eval-10: reproduce that version to the last printed digit.
        scale: Lowest and highest grade, as ``(0, 3)`` or ``"0-3"``; 0 to the largest grade in
            ``qrels`` if None.
        bounds: Compute how far unjudged documents could change each value; if None, only for
            measures that look no deeper than rank 100.
        threshold: For queries marked ``no_answer``: an answer whose best score is below the
            threshold counts as no answer.
        outcomes: Attribute or attributes of the queries to correlate with each measure, or
            ``{name: {query: value}}``; numbers, or yes and no.
        part: Use only this part of the golden set, ``dev`` or ``held_out`` (``GoldenSet.split``,
            ``karat golden split``). Each use of the held-out part, also as a slice by ``part``, is
            recorded next to the golden set's file and counted in a note.
        judgments: Whose judgments count: ``human``, ``llm``, ``clicks`` or ``import``. ``qrels`` is
            then the folder of a workspace, a golden set with sources, or a file of
            ``karat clicks judge``. If None, all; of a workspace those of people, and imported ones
            where people gave none. Intervals (t) include the uncertainty of grades from clicks.
        commit: Commit of the code that made the runs, recorded with a use of the held-out part.

    Raises:
        UsageError: an unknown measure, attribute, interval or version.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed, threshold=threshold, bounds=bounds)
    if interval not in INTERVALS:
        raise UsageError(f"unknown interval {interval!r}", nearest=INTERVALS)
    if seed < 0:
        raise UsageError(f"seed must be 0 or more, got {seed}", fix="--seed 0, for example")
    if bounds and fully_judged:
        raise UsageError(
            "bounds show what unjudged documents could change, and fully_judged declares them not "
            "relevant",
            fix="leave out one of the two",
        )
    by = names(by, "by") or ()
    read = (rel, complete, depth, judged_only, fully_judged, collapse, compat, scale)
    stated = Conditions(*read, judgments)
    plan = settle(
        qrels, runs, measures, stated, queries=queries, documents=documents, by=by, part=part
    )
    found = results_of(
        plan,
        per_query=per_query,
        by=by,
        interval=interval,
        seed=seed,
        bounds=bounds,
        threshold=threshold,
        outcomes=outcomes,
    )
    used, together = plan.uses([(attribute, None) for attribute in by], commit)
    return replace(found, notes=[*used, *in_order([*found.notes, *together])])


def results_of(
    plan: EvaluationPlan,
    *,
    per_query: bool = False,
    by: Sequence[str] = (),
    interval: str = "t",
    seed: int = 0,
    bounds: bool | None = None,
    threshold: float | None = None,
    outcomes: str | Sequence[str] | Mapping[str, Mapping[str, Any]] = (),
) -> Results:
    """The results of ``evaluate``, from the scores of a plan."""
    about, rules, scored = plan.about, plan.rules, plan.with_draws(interval)
    ids = scored[0].evidence.query_ids
    # trec_eval has neither weights nor strata.
    weighing = Weighing.of(None if rules.compat else about, ids)
    drawn = weighing.drawn(RESAMPLES, seed) if interval == "bca" else None
    rows = [Aggregation(scores, weighing, interval, drawn, bounds=bounds) for scores in scored]
    counted = scored[0].overall & np.array([q not in rules.no_answer for q in ids], np.bool_)
    results = [of_run.row(measure, counted) for of_run in rows for measure in plan.measures]
    slices = [
        of_run.row(measure, chosen, attribute, value)
        for attribute in by
        for value, chosen in slices_of(about, attribute, scored, plan.documents, plan.qrels)
        for of_run in rows
        for measure in plan.measures
    ]
    observed = _outcome_values(outcomes, about)
    every, waiting = [*results, *slices], plan.waiting
    of_rows = notes.of(
        plan.qrels, rows, every, rules, interval=interval, seed=seed, waiting=waiting
    )
    correlated, outcome_notes = _correlate(scored, observed)
    silence = _silent(scored, threshold)
    unequal = notes.of_unequal(scored[0], about)
    return Results(
        results,
        slices,
        [row for s in scored for row in values_by_query(s, observed)] if per_query else [],
        in_order([*unequal, *of_rows, *notes.of_silence(silence), *outcome_notes]),
        judgments=plan.sources,
        no_answer=silence,
        latency=[latency for run in plan.runs if (latency := latency_of(run)) is not None],
        outcomes=correlated,
        runs={run.name: run for run in plan.runs},
        fully_judged=rules.fully_judged,
        shown=_in_a_notebook,
        meant=plan.meant,
        scores={
            of_run.scores.run.name: of_run.behind(
                [row for row in results if row.run == of_run.scores.run.name],
                counted & of_run.scores.overall,
            )
            for of_run in rows
        },
        plan=plan,
    )


def _in_a_notebook(results: Results) -> str:
    from karat.reports.writers.notebook import to_html  # not needed by the command line

    return to_html(results)


def _silent(scored: Sequence[Scores], threshold: float | None) -> list[NoAnswer]:
    marked = scored[0].rules.silent
    if threshold is not None and scored[0].rules.compat:
        raise UsageError(
            "trec_eval does not support a threshold", fix="leave out --compat or --threshold"
        )
    if not marked:
        if threshold is not None:
            raise UsageError(
                "a threshold applies to queries marked no_answer, and there are none",
                fix="mark queries no_answer, or leave out the threshold",
            )
        return []
    return [no_answer(scores.run, marked, scores.answerable, threshold) for scores in scored]


def values_by_query(scores: Scores, outcomes: Values) -> list[QueryValue]:
    rules = scores.rules
    unlisted = rules.compat is not None and not rules.compat.lists_missing
    rows = []
    for measure, values in scores.values.items():
        name = str(measure)
        for index, query_id in enumerate(scores.evidence.query_ids):
            if unlisted and scores.answered[index] != "ok":
                continue
            value = None if np.isnan(values[index]) else float(values[index])
            state = scores.state(measure, index)
            outcome = _came(outcomes, query_id)
            rows.append(QueryValue(scores.run.name, name, query_id, value, state, outcome))
        rows += [
            QueryValue(scores.run.name, name, query_id, None, "unjudged", _came(outcomes, query_id))
            for query_id in scores.unjudged
        ]
    return rows


def _came(outcomes: Values, query_id: str) -> dict[str, float] | None:
    if not outcomes:
        return None
    return {name: values[query_id] for name, values in outcomes.items() if query_id in values}


Values = dict[str, dict[str, float]]  # for each outcome, its value for each query that has one


def _outcome_values(
    requested: str | Sequence[str] | Mapping[str, Mapping[str, Any]], about: Queries | None
) -> Values:
    """Outcomes from columns of the queries, or from ``{name: {query: value}}``.

    An outcome is a column of the user's: did the answer built on this retrieval succeed, was
    anything bought, how long did the user stay.
    """
    if isinstance(requested, Mapping):
        for name, values in requested.items():
            if not isinstance(values, Mapping):
                raise UsageError(
                    f"the outcome {name!r} is a {type(values).__name__}, not a mapping from "
                    "query to value",
                    fix='outcomes={"answered": {"q1": True}}',
                )
        return {name: _numbers(name, values) for name, values in requested.items()}
    if not isinstance(requested, Iterable):
        raise UsageError(f"outcomes must be names of query attributes, got {requested!r}")
    names = [requested] if isinstance(requested, str) else list(requested)
    if names and about is None:
        raise UsageError(
            f"the outcome {names[0]!r} is a column of the queries, and no queries were given",
            fix="--queries FILE",
        )
    return {name: _numbers(name, about.attribute(name)) for name in names if about is not None}


def _correlate(scored: Sequence[Scores], outcomes: Values) -> tuple[list[Outcome], list[str]]:
    """One row for each run, measure and outcome; and why some values are missing."""
    rows: list[Outcome] = []
    reasons: dict[str, dict[str, None]] = {}
    for scores in scored:
        for name, values in outcomes.items():
            observed = np.array([values.get(q, math.nan) for q in scores.evidence.query_ids])
            for measure, measured in scores.values.items():
                correlation = outcome(np.where(scores.overall, measured, math.nan), observed)
                if correlation.reason:
                    reasons.setdefault(correlation.reason, {})[f"{measure} with {name}"] = None
                found = shared(correlation, Outcome)
                rows.append(Outcome(scores.run.name, str(measure), name, **found))
    notes = [f"{', '.join(which)}: {reason}" for reason, which in reasons.items()]
    judged = {query for scores in scored for query in scores.evidence.query_ids}
    for name, values in outcomes.items():
        if not judged & values.keys():
            raise UsageError(
                f"the outcome {name!r} has no value for any judged query",
                nearest=nearest(next(iter(values), ""), sorted(judged)),
            )
    return rows, notes


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
            fix="leave it empty if it is unknown",
        )
    return number
