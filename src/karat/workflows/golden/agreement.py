"""How far raters agree, and which disagreements are to be settled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import polars as pl
import sqlalchemy as sa

from karat.errors import UsageError, check_known
from karat.golden.aggregation import contradictions, disagreements
from karat.golden.reliability import agreement
from karat.store.sql import audit, golden_sets, judgments, pairs, queries, queue, ratings
from karat.store.sql.states import state_of
from karat.tables.golden.agreement import Agreement
from karat.tables.golden.golden_sets import GoldenSetRow
from karat.tables.judgments import Judgments
from karat.tables.workspace import KappaWeights, WorkspaceConfig
from karat.workflows.workspace.artifacts import Memory
from karat.workflows.workspace.workspace import Workspace

RATERS, IMPORT = "raters", "import"
_NO_CLASS = {"query_id", "text", "need", "weight", "probability", "count", "dropped_us"}


_MOMENTS = Memory(4)
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Moment:
    """A consistent snapshot of a golden set; what is derived from it is computed once."""

    queries: pl.DataFrame  # as `karat.store.sql.queries.frame` returns them
    judgments: Judgments  # the judgments of these queries that count
    # The same, with first ratings in place of corrections made after seeing others' votes;
    # agreement is computed from these
    first: Judgments
    pairs: pl.DataFrame  # the queue, as `karat.store.sql.pairs.frame` returns it
    golden: GoldenSetRow  # the golden set's settings
    derived: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def derive(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """A value computed from this snapshot, once."""
        if key not in self.derived:
            self.derived[key] = make()
        return self.derived[key]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Disagreements:
    frame: pl.DataFrame  # as `disagreements_at` returns them
    queued: int  # number of adjudications opened


def moment(connection: sa.Connection, set_id: int) -> Moment:
    """A snapshot of a golden set, read once for each of its states.

    ``connection`` is in one transaction (``Store.read``).
    """
    state = str(connection.engine.url), set_id, state_of(connection, set_id)
    return _MOMENTS.get(state, lambda: _read(connection, set_id))


def _read(connection: sa.Connection, set_id: int) -> Moment:
    query_rows = queries.frame(connection, set_id)
    current = judgments.current(connection, set_id)
    first = ratings.first(connection, set_id, current).of(query_rows["query_id"])
    of_queries = current.of(query_rows["query_id"])
    queue_rows = pairs.frame(connection, set_id)
    return Moment(query_rows, of_queries, first, queue_rows, golden_sets.by_id(connection, set_id))


def agreement_at(snapshot: Moment, workspace: WorkspaceConfig, by: str | None = None) -> Agreement:
    """How far the raters agree in a snapshot, by the policy of a workspace."""
    policy = workspace.weights, workspace.at_least, by
    return snapshot.derive(("agreement", *policy), lambda: _agreement(snapshot, *policy))


def _agreement(snapshot: Moment, weights: KappaWeights, target: float, by: str | None) -> Agreement:
    classes = None
    if by is not None:
        names = [name for name in snapshot.queries.columns if name not in _NO_CLASS]
        check_known(by, names, f"queries have no attribute {by!r}")
        classed = snapshot.queries.drop_nulls(by)
        classes = dict(zip(classed["query_id"], classed[by].cast(pl.String), strict=True))
    gold = snapshot.pairs.filter(pl.col("gold_grade").is_not_null())
    return agreement(
        snapshot.first,
        weights=weights,
        by=classes,
        gold=gold.select("query_id", "doc_id", grade="gold_grade"),
        target=target,
    )


def disagreements_at(snapshot: Moment) -> pl.DataFrame:
    """Unsettled pairs whose grades are far apart, or on both sides of relevant.

    Returns:
        As ``karat.golden.aggregation`` returns them, those of raters first, with ``text`` of the
        query, ``between`` (``raters``, or ``import``: raters contradict an imported grade, which
        therefore has no effect) and ``imported`` (that grade; null between raters).
    """
    return snapshot.derive("disagreements", lambda: _disagreements(snapshot))


def _disagreements(snapshot: Moment) -> pl.DataFrame:
    unsettled = pl.concat(
        [
            disagreements(snapshot.judgments).with_columns(
                imported=pl.lit(None, pl.Float64), between=pl.lit(RATERS)
            ),
            contradictions(snapshot.judgments).with_columns(between=pl.lit(IMPORT)),
        ]
    ).filter(~pl.col("settled"))
    texts = snapshot.queries.select("query_id", "text")
    return unsettled.join(texts, on="query_id", how="left", maintain_order="left")


def agreement_in(opened: Workspace, by: str | None = None) -> Agreement:
    with opened.store.read() as connection:
        snapshot = moment(connection, opened.golden.id)
    return agreement_at(snapshot, opened.workspace, by)


def disagreements_in(
    opened: Workspace, *, now: int, queue_them: bool = False, queue_imported: bool = False
) -> Disagreements:
    """``disagreements_at`` of the golden set as it is now."""
    with opened.store.read() as connection:
        listed = disagreements_at(moment(connection, opened.golden.id))
    kinds = [RATERS] * queue_them + [IMPORT] * queue_imported
    to_queue = listed.filter(pl.col("between").is_in(kinds))
    count = 0
    if to_queue.height:
        keys = to_queue.select("query_id", "doc_id")
        with opened.store.begin() as connection:
            count = queue.open_adjudications(connection, opened.golden.id, keys, now)
    return Disagreements(listed, count)


def put_before_adjudicator(
    opened: Workspace,
    chosen: Sequence[tuple[str, str]] | None,
    *,
    person: str,
    now: int,
    between: str = RATERS,  # `raters`, or `import` for imported grades that raters contradict
) -> int:
    """Queue disagreements for adjudication; returns the number of adjudications added.

    Args:
        chosen: Query and document of each; all of kind ``between`` if None. Pairs without an open
            disagreement are ignored.
    """
    if between not in (RATERS, IMPORT):
        raise UsageError(f"unknown kind of disagreement {between!r}", fix=f"{RATERS} or {IMPORT}")
    if chosen is not None and not chosen:
        raise UsageError("no pair is selected", fix="select at least one, or send all")
    with opened.store.begin() as connection:
        open_pairs = disagreements_at(moment(connection, opened.golden.id))
        open_pairs = open_pairs.filter(pl.col("between") == between).select("query_id", "doc_id")
        if chosen is not None:
            schema = {"query_id": pl.String(), "doc_id": pl.String()}
            selected = pl.DataFrame(list(chosen), schema=schema, orient="row").unique()
            open_pairs = open_pairs.join(selected, on=["query_id", "doc_id"], how="semi")
        if not open_pairs.height:
            return 0
        count = queue.open_adjudications(connection, opened.golden.id, open_pairs, now)
        if count:
            about = {"pairs": count, "between": between}
            audit.note(connection, person, "ask adjudicator", opened.golden.name, now, about)
    return count
