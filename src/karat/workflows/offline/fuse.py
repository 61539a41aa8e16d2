"""Fuse: several rankings into one, by rank or by score, with weights given or tuned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from karat.errors import UsageError, nearest
from karat.fusion import Tuned, reciprocal_rank, tuned, weighted_sum
from karat.tables import Run
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluation_plan import check_types, settle

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
        runs: A list of them, or ``{name: run}``: paths, ``{query: {document: score}}``, data
            frames, or Runs.
        method: ``rrf``, reciprocal rank fusion, which looks at ranks only; or ``sum``, the
            weighted sum of normalised scores.
        k: Of rrf: how little the first ranks stand out; 60 if None.
        weights: One for each run, above 0; all 1 if None.
        normalise: Of sum: min-max | z-score | sum | none; min-max if None.
        depth: Read the best so many documents of each run, and keep as many; all if None.
        name: What results call the fused run; the method if None.

    Raises:
        UsageError: a method, or a value, that there is not; an option of the other method.
        InputError: a run that cannot be read, or whose scores cannot be added.
    """
    if method not in METHODS:
        raise UsageError(
            f"there is no way to fuse called {method!r}",
            nearest=nearest(str(method), METHODS, 1),
            fix=f"one of {', '.join(METHODS)}",
        )
    if method == "rrf" and normalise is not None:
        raise UsageError(
            "reciprocal rank fusion looks at ranks, so there is no score to normalise",
            fix="--method sum, or leave out the normalisation",
        )
    if method == "sum" and k is not None:
        raise UsageError(
            "k is a parameter of reciprocal rank fusion, and the sum has none",
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
    """Fuse runs by a weighted sum, each query with weights chosen on other queries.

    Args:
        runs: As ``fuse`` takes them; two or more.
        qrels: The judgments, as ``evaluate`` takes them.
        measure: What the weights are chosen for.
        folds: Parts the queries are dealt into; each is fused with weights chosen on the others.
        seed: Of the dealing.
        normalise: min-max | z-score | sum | none; min-max if None.
        depth: As ``fuse`` takes it.
        queries: As ``evaluate`` takes them; those marked ``no_answer`` choose nothing.
        rel: Lowest grade that counts as relevant, where the measure does not say.
        name: What results call the fused run; ``tuned`` if None.

    Returns:
        The run, its value (what ``evaluate`` says of the run), the weights of each fold, and
        the weights for use from now on.

    Raises:
        UsageError: a measure that cannot be tuned for; too few queries or runs.
        InputError: runs and judgments that do not belong together.
    """
    check_types(seed=seed)
    if seed < 0:
        raise UsageError(f"a seed of {seed} is below 0", fix="--seed 0, for example")
    asked = settle(qrels, runs, [measure], queries=queries, rel=rel)
    return tuned(
        asked.runs,
        asked.qrels,
        asked.measures[0],
        folds=folds,
        seed=seed,
        normalise=normalise or "min-max",
        depth=depth,
        rules=asked.rules,
        name=name or "tuned",
    )
