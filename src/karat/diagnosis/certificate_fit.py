"""Certificate fit: whether current runs and judgments are those that a certificate covers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from karat.measures.certificate import counts_unseen
from karat.measures.entry import Measure
from karat.tables.qrels import Qrels
from karat.tables.release.certificate import Certificate, CertifiedQuery
from karat.tables.run import Run

Ranking = tuple[str, ...]


def tops(run: Run, measure: Measure, depth: int | None) -> dict[str, Ranking]:
    """The documents of each query of a run, best first, down to the cutoff of a measure."""
    limits = [limit for limit in (depth, measure.depth) if limit is not None]
    k = min([*limits, len(run)])
    ends = np.minimum(run.starts[:-1] + k, run.starts[1:])
    return {
        query_id: tuple(run.rows["doc_id"].slice(start, end - start).to_list())
        for query_id, start, end in zip(
            run.query_ids, run.starts[:-1].tolist(), ends.tolist(), strict=True
        )
    }


def judged_by_query(qrels: Qrels, query_ids: Sequence[str]) -> dict[str, dict[str, float]]:
    """What ``Qrels.judged`` finds, as ``{query_id: {doc_id: grade}}``; in their orders."""
    found: dict[str, dict[str, float]] = {}
    for query, doc_id, grade in qrels.judged(query_ids).iter_rows():
        found.setdefault(query_ids[query], {})[doc_id] = grade
    return found


def pool_findings(stated: Certificate, measure: Measure, runs: Sequence[Run]) -> list[str]:
    """Where runs differ from the pool of a certificate; empty if nowhere.

    Args:
        stated: The certificate.
        measure: Its measure.
        runs: The baseline and the candidate, collapsed if need be.
    """
    shown = [tops(run, measure, stated.depth) for run in runs]
    held = [{q.query_id: q.baseline for q in stated.queries}]
    held.append({q.query_id: q.candidate for q in stated.queries})
    if _same(shown[0], held[0]) and _same(shown[1], held[1]):
        return []
    if _same(shown[0], held[1]) and _same(shown[1], held[0]):
        names = f"{stated.baseline} is the baseline of the certificate, and {stated.candidate} the"
        return [f"the runs are the other way round: {names} candidate"]
    found = []
    for role, now, then in zip(("baseline", "candidate"), shown, held, strict=True):
        odd = [query for query, ranking in then.items() if now.get(query, ()) != ranking]
        if odd:
            where = _first_difference(now.get(odd[0], ()), then[odd[0]])
            found.append(f"the {role} is another: query {odd[0]} has {where}{_more(odd)}")
    return found


def judgment_findings(
    stated: Certificate, measure: Measure, qrels: Qrels
) -> tuple[list[str], list[str]]:
    """Judgments that a certificate does not cover, and new ones that it covers.

    Returns:
        Findings, empty if it covers them; and notes.
    """
    low, high = stated.scale
    if qrels.declared is not None and qrels.declared[1] != high:
        ends = f"{qrels.declared[0]:g} to {qrels.declared[1]:g}"
        return [f"the scale is {ends} now, and the certificate is for {low:g} to {high:g}"], []
    above = qrels.frame.filter(pl.col("grade") > high)
    if above.height:
        query_id, doc_id, grade = above.select("query_id", "doc_id", "grade").row(0)
        what = f"query {query_id}: document {doc_id} has grade {grade:g}"
        return [f"{what}, above the scale of the certificate, {low:g} to {high:g}"], []
    now = judged_by_query(qrels, [query.query_id for query in stated.queries])
    tally = _Tally(measure, stated)
    for query in stated.queries:
        tally.add(query, now.get(query.query_id, {}))
    return tally.findings(), tally.notes()


def topic_findings(stated: Certificate, counting: Mapping[str, float]) -> list[str]:
    """Queries that now count or weigh differently than in a certificate; empty if none.

    Args:
        stated: The certificate.
        counting: The queries that count now, with their weights.
    """
    held = {query.query_id: query.weight for query in stated.queries}
    found = []
    more = [query for query in counting if query not in held]
    if more:
        found.append(f"query {more[0]} counts now, and is not in the certificate{_more(more)}")
    fewer = [query for query in held if query not in counting]
    if fewer:
        found.append(f"query {fewer[0]} of the certificate does not count any more{_more(fewer)}")
    # Only their proportions matter.
    total, held_total = sum(counting.values()), sum(held.values())
    odd = [
        query
        for query, weight in held.items()
        if query in counting
        and not math.isclose(counting[query] * held_total, weight * total, rel_tol=1e-9)
    ]
    if odd and not found:
        found.append(
            f"query {odd[0]} weighs {counting[odd[0]]:g} now, and {held[odd[0]]:g} in the "
            f"certificate{_more(odd)}"
        )
    return found


class _Tally:
    """Current judgments compared with those of a certificate, by query."""

    def __init__(self, measure: Measure, stated: Certificate) -> None:
        self.measure, self.stated = measure, stated
        self.gone: list[str] = []
        self.changed: list[str] = []
        self.odd: list[str] = []
        self.inside = 0
        self.outside: Counter[str] = Counter()

    def add(self, query: CertifiedQuery, now: Mapping[str, float]) -> None:
        """One query, with its judgments from 0 up."""
        pool = {*query.baseline, *query.candidate}
        for doc_id, grade in query.judgments.items():
            if doc_id not in now:
                self.gone.append(f"query {query.query_id}: document {doc_id}, grade {grade:g}")
            elif now[doc_id] != grade:
                text = f"document {doc_id} had grade {grade:g} and has {now[doc_id]:g}"
                self.changed.append(f"query {query.query_id}: {text}")
        for doc_id, grade in now.items():
            if doc_id in query.judgments:
                continue
            counts = doc_id in pool or counts_unseen(self.measure, grade)
            if counts and not self._possible(grade):
                text = f"document {doc_id} has grade {grade:g}"
                self.odd.append(f"query {query.query_id}: {text}")
            elif doc_id in pool:
                self.inside += 1
            elif counts:
                self.outside[query.query_id] += 1

    def findings(self) -> list[str]:
        """What the certificate does not cover."""
        found = []
        for kept, what in (
            (self.gone, "a judgment has gone"),
            (self.changed, "a judgment was changed"),
            (self.odd, "a grade is not one that the certificate reckoned with"),
        ):
            found += [f"{what}: {kept[0]}{_more(kept, 'judgments')}"] if kept else []
        limit = self.stated.unseen or 0
        unlimited = self.stated.unseen_unlimited
        over = [q for q, number in self.outside.items() if not unlimited and number > limit]
        if over:
            number = self.outside[over[0]]
            many = "one relevant document" if number == 1 else f"{number:,} relevant documents"
            most = "none" if limit == 0 else f"{limit:,} to a query"
            found.append(
                f"query {over[0]} has {many} outside the pool that the certificate did not know "
                f"of, and it allows {most}{_more(over)}"
            )
        return found

    def notes(self) -> list[str]:
        """What is new, and covered."""
        found = ["the judgments it rests on are as they were"] if not self.findings() else []
        if self.inside:
            found.append(f"new judgments of documents in the pool: {self.inside:,}")
        if self.outside:
            most = max(self.outside.values())
            found.append(
                f"new relevant documents outside the pool: {self.outside.total():,}, at most "
                f"{most:,} to a query"
            )
        return found

    def _possible(self, grade: float) -> bool:
        """Whether the certificate covers a grade of the scale.

        With a custom gain it covers the grades listed and whole ones: a grade between two of
        them may gain more than either.
        """
        gain = self.measure.settings.get("gain")
        return gain is None or isinstance(gain, str) or grade in gain or grade.is_integer()


def _same(now: Mapping[str, Ranking], then: Mapping[str, Ranking]) -> bool:
    return all(now.get(query, ()) == ranking for query, ranking in then.items())


def _first_difference(now: Ranking, then: Ranking) -> str:
    place = next((i for i, pair in enumerate(zip(now, then, strict=False)) if len({*pair}) > 1), -1)
    if place >= 0:
        return f"{now[place]} at rank {place + 1}, where the certificate has {then[place]}"
    if not now:
        return f"no documents, where the certificate has {len(then)}"
    return f"{len(now)} documents, where the certificate has {len(then)}"


def _more(found: Sequence[str], what: str = "queries") -> str:
    return f" ({len(found):,} {what} in all)" if len(found) > 1 else ""
