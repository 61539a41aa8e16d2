"""Fuse: combine rankings by rank or by score, with given or tuned weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.errors import UsageError, check_known
from karat.fusion import Tuned, reciprocal_rank, tuned, weighted_sum
from karat.tables import Run
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluation_plan import Conditions, check_types, settle

METHODS = ("rrf", "sum")


def fuse(
    runs: Any,
    method: str = "rrf",
    *,
    k: float | None = None,
    weights: Iterable[float] | None = None,
    normalise: str | None = None,
    depth: int | None = None,
    name: str | None = None,
) -> Run:
    """Fuse runs into one.

    Args:
        runs: A list of runs, or ``{name: run}``: paths, ``{query: {document: score}}``, data
            frames, or Runs.
        method: ``rrf`` (reciprocal rank fusion, which uses ranks only) or ``sum`` (weighted sum of
            normalised scores).
        k: Rank constant of ``rrf``: the larger, the less the first ranks dominate; 60 if None.
        weights: One weight per run, above 0; all 1 if None.
        normalise: Score normalisation of ``sum``: min-max | z-score | sum | none; min-max if None.
        depth: Number of documents per query to read from each run, and to return; all if None.
        name: Name of the fused run; the method if None.

    Raises:
        UsageError: an unknown method or value, or an option of the other method.
        InputError: a run that cannot be read, or scores that cannot be added.
    """
    check_known(str(method), METHODS, f"unknown fusion method {method!r}")
    if method == "rrf" and normalise is not None:
        raise UsageError(
            "reciprocal rank fusion uses ranks, so there are no scores to normalise",
            fix="--method sum, or leave out the normalisation",
        )
    if method == "sum" and k is not None:
        raise UsageError(
            "k is a parameter of reciprocal rank fusion, not of the weighted sum",
            fix="--method rrf, or leave out k",
        )
    systems = inputs.runs(runs)
    if method == "rrf":
        return reciprocal_rank(
            systems,
            k=60 if k is None else k,
            depth=depth,
            weights=weights,
            name=name or "rrf",
        )
    return weighted_sum(
        systems, weights, normalise=normalise or "min-max", depth=depth, name=name or "sum"
    )


def fuse_tuned(
    runs: Any,
    qrels: Any,
    measure: str = "nDCG@10",
    *,
    folds: int = 5,
    seed: int = 0,
    normalise: str | None = None,
    depth: int | None = None,
    queries: Any = None,
    rel: float | None = None,
    name: str | None = None,
) -> Tuned:
    """Fuse runs by a weighted sum whose weights are tuned by cross-validation.

    Args:
        runs: Two or more runs, as in ``fuse``.
        qrels: The judgments, in any form that ``evaluate`` accepts.
        measure: The measure to tune for.
        folds: Number of folds; each is fused with weights tuned on the others.
        seed: Random seed of the assignment of queries to folds, 0 or more.
        normalise: min-max | z-score | sum | none; min-max if None.
        depth: Number of documents per query, as in ``fuse``.
        queries: As in ``evaluate``; queries marked ``no_answer`` are not used for tuning.
        rel: Lowest relevant grade, where the measure does not set it.
        name: Name of the fused run; ``tuned`` if None.

    Returns:
        The fused run, its cross-validated value, the weights of each fold, and the weights tuned
        on all queries, for future use.

    Raises:
        UsageError: a measure that cannot be tuned for; too few queries or runs.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed)
    if seed < 0:
        raise UsageError(f"seed must be 0 or more, got {seed}", fix="--seed 0, for example")
    plan = settle(qrels, runs, [measure], Conditions(rel), queries=queries)
    return tuned(
        plan.runs,
        plan.qrels,
        plan.measures[0],
        folds=folds,
        seed=seed,
        normalise=normalise or "min-max",
        depth=depth,
        rules=plan.rules,
        name=name or "tuned",
    )
