"""Where people should look next to what machine judges graded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from karat.clients.llm.ledger import Ledger
from karat.errors import UsageError
from karat.golden.judge_doubts import disagreements, drawn
from karat.measures import parse
from karat.tables import Run
from karat.tables.golden.machine_judges import Doubt, JudgeConfig
from karat.workflows.offline.machine_grades import check_linear, graded_by, run_weights

_KEYS = ["query_id", "doc_id"]
PEOPLE = "people disagree"


@dataclass(frozen=True)
class Doubts:
    """Pairs that people should judge, as machine judges suggest."""

    pairs: list[Doubt]  # those to judge
    # `query_id`, `doc_id`, `chance`: of what people judged, and of all that could be drawn
    chances: pl.DataFrame
    queued: int | None = None  # pairs added to the queue; None if it was not asked for


def doubts(
    judges: Sequence[JudgeConfig],
    people: pl.DataFrame,  # `query_id`, `doc_id`, `grade`
    *,
    budget: int,
    salt: str,
    queries: pl.Series | None = None,
    runs: Sequence[Run] = (),
    measure: str = "DCG@10",
) -> Doubts:
    """Pairs that people should judge or look at again.

    Args:
        budget: Expected number of pairs to draw, and most disagreements with people.
        queries: Ids of the queries whose pairs may be drawn; all if None.
        runs: One whose mean, or two whose difference, is to be estimated.
        measure: P, RBP or DCG.

    Raises:
        InputError: a judge has graded nothing.
    """
    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs", fix="one run, or two whose difference is in question")
    machine = _graded(judges)
    if queries is not None:
        machine = machine.filter(pl.col("query_id").is_in(queries.implode()))
    people = people.select(*_KEYS, people="grade")
    weights = None
    if runs:
        check_linear(parse(measure))
        weights = run_weights(runs, parse(measure))
    chosen = drawn(machine, people, budget, salt, weights)
    found = chosen.filter("drawn")
    far = disagreements(machine, people).head(budget)
    rows = [
        Doubt(query, doc, by, grade, None, chance)
        for query, doc, by, grade, chance in found.select(
            *_KEYS, "chosen_by", "machine", "chance"
        ).iter_rows()
    ]
    rows += [
        Doubt(query, doc, PEOPLE, grade, person, None)
        for query, doc, grade, person in far.select(*_KEYS, "machine", "people").iter_rows()
    ]
    before = people.select(*_KEYS, chance=pl.lit(1.0))  # what is known is certain
    return Doubts(rows, pl.concat([before, chosen.select(*_KEYS, "chance")]))


def _graded(judges: Sequence[JudgeConfig]) -> pl.DataFrame:
    """Pairs with the mean grade of the judges and its spread."""
    frames = []
    for judge in judges:
        with Ledger(judge.root) as ledger:
            frames.append(graded_by(judge, ledger))
    every = (
        pl.concat(frames)
        .group_by(_KEYS)
        .agg(machine=pl.col("grade").mean(), spread=pl.col("grade").std().fill_null(0.0))
    )
    return every.sort(_KEYS)
