"""Where people should look: pairs on which judges and people disagree, or an estimate depends.

Pairs that people have not judged are drawn by chance, so that an estimate may use what people say
of them: a pair's chance is proportional to its weight times how far people's grade is likely to be
from the machine's, and never 0.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from karat.golden.sampling import permanent_numbers, probabilities
from karat.stats.averages import Floats

_KEYS = ["query_id", "doc_id"]
_FEW = 5  # pairs of a machine's grade from which its own error is taken
_FLOOR = 0.1  # of the mean of what chances are proportional to: the least of a pair
_FAR = 2.0  # steps between a person and a machine from which they disagree
JUDGES, SIGN, ERRORS = "judges disagree", "it moves the result", "likely error"


def disagreements(machine: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Pairs whose grades by people and by the machine are far apart, the farthest first.

    Args:
        machine: ``query_id``, ``doc_id``, ``machine``: mean grade of the judges.
        people: ``query_id``, ``doc_id``, ``people``.
    """
    both = machine.join(people, on=_KEYS).with_columns(
        far=(pl.col("machine") - pl.col("people")).abs()
    )
    return both.filter(pl.col("far") >= _FAR).sort(["far", *_KEYS], descending=[True, False, False])


def drawn(
    machine: pl.DataFrame,
    people: pl.DataFrame,
    budget: int,
    salt: str,
    weights: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Pairs that people have not judged, each with its chance, those drawn marked.

    Args:
        machine: ``query_id``, ``doc_id``, ``machine``, and ``spread``: standard deviation of the
            judges' grades, 0 for one judge.
        people: ``query_id``, ``doc_id``, ``people``.
        budget: Expected number of pairs; each is drawn by itself, by permanent random numbers.
        salt: Of these numbers: the same one draws the same pairs.
        weights: ``query_id``, ``doc_id``, ``weight``: what a gain of 1 adds to a mean, or to a
            difference of two runs. Pairs without one are not drawn.

    Returns:
        ``machine``'s columns, ``chance``, ``drawn`` and ``chosen_by``, the highest chance first.
    """
    open_ = machine.join(people, on=_KEYS, how="anti")
    if weights is not None:
        open_ = open_.join(weights.filter(pl.col("weight") != 0), on=_KEYS)
    error, spread = _error(open_, machine.join(people, on=_KEYS)), open_["spread"].to_numpy()
    doubt = np.sqrt(error**2 + spread**2)
    if weights is not None:
        doubt = doubt * np.abs(open_["weight"].to_numpy())
    size = doubt + _FLOOR * max(float(doubt.mean()) if len(doubt) else 0.0, 1e-9)
    chance = probabilities(size, budget)
    numbers = permanent_numbers((f"{q}\0{d}" for q, d in open_.select(_KEYS).iter_rows()), salt)
    why = np.where(spread > error, JUDGES, ERRORS if weights is None else SIGN)
    return open_.with_columns(
        chance=pl.Series(chance, dtype=pl.Float64),
        drawn=pl.Series(numbers < chance, dtype=pl.Boolean),
        chosen_by=pl.Series(why.tolist(), dtype=pl.String),
    ).sort(["chance", *_KEYS], descending=[True, False, False])


def _error(open_: pl.DataFrame, both: pl.DataFrame) -> Floats:
    """Root mean square of people's grade less the machine's, by the latter; 1 if unknown."""
    if not both.height:
        return np.ones(open_.height)
    squared = both.with_columns(
        grade=pl.col("machine").round(), square=(pl.col("machine") - pl.col("people")) ** 2
    )
    whole = float(np.sqrt(squared["square"].to_numpy().mean()))
    of_grade = {
        grade: float(np.sqrt(mean))
        for grade, mean, count in squared.group_by("grade")
        .agg(pl.col("square").mean(), pl.len())
        .iter_rows()
        if count >= _FEW
    }
    return np.array([of_grade.get(grade, whole) for grade in open_["machine"].round().to_list()])
