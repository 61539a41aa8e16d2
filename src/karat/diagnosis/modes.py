"""Failure modes: the ordered rules that name why a relevant document of a query is not served.

Each rule sees all relevant documents at once. A document has the first mode whose rule holds; a
query has the mode with the largest loss. A rule without its evidence holds for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from karat.diagnosis._calibration import Alignment, aligned
from karat.diagnosis.waterfall import SERVED, Floats, Ints, Mask, Roads
from karat.stats.averages import mean
from karat.stats.intervals import shown, t_interval
from karat.tables import Documents, Qrels
from karat.tables.diagnosis.results import MODES, ModeId, ModeRow, QueryMode
from karat.tables.judgments import Judgments

UNCLEAR = "query_unclear"  # the raters' reason that a query is unclear
_PAIR = ("query_id", "doc_id")
_UPDATED = "updated_at"
_SOURCE = "source_updated_at"


@dataclass(frozen=True)
class Evidence:
    """What rules may know beyond the trace."""

    judgments: Judgments | None = None  # the single judgments, for doubts about labels
    # With `updated_at`, `source_updated_at`, `subject_id` or `supersedes`
    documents: Documents | None = None
    # Ids that the index has, among the relevant documents; None if it was not asked
    index: frozenset[str] | None = None
    qrels: Qrels | None = None  # the judgments as grades, for subtopics
    # Pairs whose clicks oppose their grade, of `online.clicks.grading.opposing`; None if unknown
    clicks: pl.DataFrame | None = None


@dataclass(frozen=True)
class Mode:
    """A failure mode, described like a measure."""

    name: str  # its name on pages
    rule: str  # when it holds
    needs: str  # the evidence that it needs
    look: str  # what to look at first
    helps: str  # what usually helps
    blind: str  # what it cannot see
    ranking: bool = True  # whether it is a problem of ranking


ENTRIES: dict[ModeId, Mode] = {
    "unknowable_intent": Mode(
        "Unclear query",
        "a rater marked the query as unclear",
        "single judgments",
        "the text of the query, and what people did after it",
        "asking back, or suggestions; ranking cannot repair it",
        "queries that no rater dared to call unclear",
        ranking=False,
    ),
    "unclear_policy": Mode(
        "Unclear guideline",
        "after adjudication, raters are still on both sides of relevant and not relevant",
        "single judgments with adjudications",
        "the pairs in dispute, next to the guideline",
        "a rule in the guideline, and judging these pairs again",
        "disputes that were not adjudicated",
        ranking=False,
    ),
    "feedback": Mode(
        "Doubtful label",
        "raters are on both sides of relevant and not relevant, or corrected clicks oppose it, and "
        "no adjudication settled it",
        "single judgments by two raters or more, or grades from clicks",
        "the judgments of the pair, and its clicks",
        "adjudication, or one more rater",
        "labels by one rater of documents that few users looked at",
    ),
    "missing_content": Mode(
        "Missing content",
        "the index does not have the document, or the golden set says that nothing answers the "
        "query, and documents are served all the same",
        "a lookup in the index, or queries marked no_answer",
        "the export of the source, and the log of the indexer",
        "indexing it",
        "without a lookup, a missing document looks like one that was not retrieved",
        ranking=False,
    ),
    "stale_content": Mode(
        "Stale document",
        "the index's copy is older than the source's last change",
        "documents with updated_at and source_updated_at",
        "the time between a change and its indexing",
        "indexing more often, or on change",
        "changes that do not touch the relevant passage",
        ranking=False,
    ),
    "candidate": Mode(
        "Not retrieved",
        "no retriever returned the document, or a filter removed it",
        "a trace",
        "words and meaning that query and document do not share; the filter's fields",
        "another retriever, synonyms, chunks of another size, a wider filter, more depth",
        "why the retriever did not match it",
    ),
    "intent": Mode(
        "Other intent",
        "a rewrite lost it: the original query retrieves it; or all documents above it are "
        "relevant to another subtopic",
        "a retriever of the original query in the trace, or judgments by subtopic",
        "the rewritten text next to the original",
        "keeping the original query as a second retriever; diversity",
        "rewrites of which only the result was traced",
    ),
    "calibration": Mode(
        "Scores that do not add up",
        "lost at a fusion of scored lists, and kept if scores are replaced by the probability of "
        "relevance that they stand for",
        "scores of two retrievers or more, with 50 judged documents each",
        "the reliability of each source's scores",
        "fusion by rank, or aligned scores",
        "sources whose scores say nothing about relevance",
    ),
    "freshness": Mode(
        "Older version first",
        "an older document on the same subject, or one that it supersedes, is above it",
        "documents with updated_at and subject_id, or supersedes",
        "both documents side by side",
        "a boost by age, or removing superseded documents",
        "versions that no field connects",
    ),
    "scoring": Mode(
        "Ranked too low",
        "it was a candidate, and ranked below its ideal rank, for none of the other reasons",
        "a trace",
        "the score parts of the document and of those above it",
        "weights, fields, a better reranker",
        "why the scores differ, where the stage gives no parts",
    ),
    "debugging": Mode(
        "No trace",
        "the query has no trace",
        "nothing",
        "tracing",
        "karat search with an engine that explains, or karat.trace in your own pipeline",
        "everything",
    ),
    "cannot_tell": Mode(
        "Cannot tell",
        "the trace does not show where the document was lost",
        "a complete trace",
        "the note about the query",
        "tracing every stage at its full depth",
        "everything",
    ),
}


@dataclass
class Named:
    """The modes of all documents, filled rule by rule."""

    mode: Ints  # index into MODES; -1 while no rule holds; shape (m,)
    evidence: list[str] = field(default_factory=list)  # of each document
    stage: list[str | None] = field(default_factory=list)
    alignment: Alignment | None = None  # of the scores of the last fusion

    def name(
        self,
        mode: ModeId,
        holds: Mask,
        evidence: str | Callable[[int], str],  # of all documents, or of one by its index
        stage: str | Callable[[int], str] | None = None,
    ) -> None:
        for at in np.flatnonzero(holds & (self.mode < 0)).tolist():
            self.mode[at] = MODES.index(mode)
            self.evidence[at] = evidence(at) if callable(evidence) else evidence
            self.stage[at] = stage(at) if callable(stage) else stage


def name_modes(found: Roads, known: Evidence) -> Named:
    """The mode of every relevant document with a loss, with its evidence and stage."""
    size = len(found.query)
    named = Named(np.full(size, -1, np.int64), [""] * size, [None] * size)
    losing = found.loss > 0
    _labels(found, known, losing, named)
    _content(found, known, losing, named)
    traced = losing & found.traced
    failed = _failed(found)
    named.name(
        "cannot_tell",
        traced & np.isin(found.query, list(failed)),
        lambda at: "stage {} failed{}, so nothing shows what it would give".format(
            *failed[int(found.query[at])]
        ),
        lambda at: failed[int(found.query[at])][0],
    )
    _candidates(found, known, traced, named)
    _intents(found, known, traced, named)
    _calibration(found, known, traced, named)
    _freshness(found, known, traced, named)
    _scoring(found, traced, named)
    named.name("debugging", losing & ~found.traced, "the query has no trace")
    named.name("cannot_tell", losing, "the trace ends before what was served")
    return named


def _among(found: Roads, rows: pl.DataFrame, *on: str) -> Mask:
    """The documents that some rows name, by ``query_id``, ``doc_id`` or both."""
    out = np.zeros(len(found.query), np.bool_)
    named = found.pairs.with_row_index("at").join(rows, on=on, how="semi")
    out[named["at"].to_numpy()] = True
    return out


def _labels(found: Roads, known: Evidence, losing: Mask, named: Named) -> None:
    """Modes 1 to 3: the query or its labels are in doubt."""
    settled = None
    if known.judgments is not None:
        settled = _by_raters(found, known.judgments.frame, losing, named)
    if known.clicks is None:
        return
    opposed = known.clicks
    if settled is not None:
        opposed = opposed.join(settled, on=_PAIR, how="anti")
    of_pair = {(row["query_id"], row["doc_id"]): row for row in opposed.iter_rows(named=True)}

    def evidence(at: int) -> str:
        row = of_pair[found.query_ids[found.query[at]], found.doc_id[at]]
        return (
            f"clicks oppose its grade: relevance {row['value']:.2f} ({row['ci_low']:.2f} to "
            f"{row['ci_high']:.2f}) from {row['effective']:,.0f} looks at it"
        )

    named.name("feedback", losing & _among(found, opposed, *_PAIR), evidence)


def _by_raters(found: Roads, rows: pl.DataFrame, losing: Mask, named: Named) -> pl.DataFrame:
    """Doubts by single judgments; returns the pairs that an adjudication settled."""
    # An explanation may follow: ``query_unclear: which jaguar?``
    reason = pl.col("reason").str.split(":").list.first()
    marked = rows.filter(pl.col("state") == "cannot_judge", reason == UNCLEAR)
    unclear = marked.select("query_id").unique()
    named.name(
        "unknowable_intent",
        losing & _among(found, unclear, "query_id"),
        "a rater marked the query as unclear",
    )
    graded = rows.filter(pl.col("state") == "graded").with_columns(
        relevant=pl.col("grade") >= found.rel, settled=pl.col("kind") == "adjudication"
    )
    split = graded.group_by(*_PAIR, "settled").agg(
        split=pl.col("relevant").n_unique() > 1, raters=pl.col("rater").n_unique()
    )
    after = split.filter("split", "settled")
    settled = split.filter("settled").select(_PAIR)
    before = split.filter(pl.col("split"), ~pl.col("settled")).join(settled, on=_PAIR, how="anti")
    named.name(
        "unclear_policy",
        losing & _among(found, after, *_PAIR),
        "adjudications of the pair are on both sides of relevant",
    )
    named.name(
        "feedback",
        losing & _among(found, before, *_PAIR),
        "raters are on both sides of relevant, without an adjudication",
    )
    return settled


def _content(found: Roads, known: Evidence, losing: Mask, named: Named) -> None:
    """Modes 4 and 5: the index lacks the document, or has an old copy."""
    seen = found.held.any(axis=0) | (found.below > 0)
    if known.index is not None:
        there = found.doc_id.is_in(list(known.index)).to_numpy()
        named.name("missing_content", losing & ~there & ~seen, "it is not in the index")
    if known.documents is not None and {_UPDATED, _SOURCE} <= set(known.documents.frame.columns):
        stale = known.documents.frame.filter(pl.col(_UPDATED) < pl.col(_SOURCE))
        times = {row[0]: row[1:] for row in stale.select("doc_id", _UPDATED, _SOURCE).iter_rows()}
        named.name(
            "stale_content",
            losing & _among(found, stale, "doc_id"),
            lambda at: (
                f"the index has it as of {times[found.doc_id[at]][0]}, "
                f"the source changed on {times[found.doc_id[at]][1]}"
            ),
        )


def _failed(found: Roads) -> dict[int, tuple[str, str]]:
    """Query → its first failed stage, and its error in brackets."""
    rows = found.trace.frame.filter(pl.col("state") == "failed")
    first = rows.unique("query_id", keep="first", maintain_order=True)
    at = found.number
    return {
        at[query]: (stage, f" ({error})" if error else "")
        for query, stage, error in first.select("query_id", "stage", "error").iter_rows()
        if query in at
    }


def _candidates(found: Roads, known: Evidence, traced: Mask, named: Named) -> None:
    """Mode 6: in no retriever's output, or removed by a filter."""
    sources = [stage for stage in found.stages[:-1] if stage.kind == "retrieve"]
    anywhere = np.zeros(len(traced), np.bool_)
    for stage in sources:
        anywhere |= found.held[found.place[stage.name]]
    depths = ", ".join(f"{stage.name} to {stage.depth:,}" for stage in sources)
    unchecked = "; index not checked" if known.index is None else ", and the index has it"
    never = traced & ~anywhere & ~found.held[-1]
    where = " + ".join(stage.name for stage in found.sources) or None
    named.name(
        "candidate",
        never & (found.lost_at == -2),
        f"in no retriever's list ({depths}){unchecked}",
        where,
    )
    for at, stage in enumerate(found.stages[:-1]):
        if stage.kind == "filter":
            named.name(
                "candidate",
                traced & (found.lost_at == at),
                f"{stage.name} removed it",
                stage.name,
            )


def _intents(found: Roads, known: Evidence, traced: Mask, named: Named) -> None:
    """Mode 7: a rewrite lost it, or another subtopic displaces it."""
    on_road = {stage.name for stage in found.sources}
    for at, stage in enumerate(found.stages[:-1]):
        if stage.kind == "retrieve" and stage.name not in on_road:
            named.name(
                "intent",
                traced & (found.lost_at == -2) & found.held[at],
                lambda d, at=at, name=stage.name: (  # type: ignore[misc]
                    f"{name} has it at rank {found.rank[at, d]}; what is served does not use it"
                ),
                stage.name,
            )
    if known.qrels is None or known.qrels.subtopics is None:
        return
    of: dict[tuple[str, str], set[str]] = {}
    relevant = known.qrels.subtopics.filter(pl.col("grade") > 0)
    for query, doc, subtopic in relevant.select("query_id", "doc_id", "subtopic").iter_rows():
        of.setdefault((query, doc), set()).add(subtopic)
    holds = np.zeros(len(traced), np.bool_)
    for at in np.flatnonzero(traced & (named.mode < 0)).tolist():
        query = found.query_ids[int(found.query[at])]
        own = of.get((query, found.doc_id[at]), set())
        others = [of.get((query, doc)) for doc in found.above(at)]
        holds[at] = bool(own and others) and all(each and not each & own for each in others)
    named.name("intent", holds, "what is above it is relevant to other subtopics")


def _calibration(found: Roads, known: Evidence, traced: Mask, named: Named) -> None:
    """Mode 8: lost at a fusion that aligned scores would have kept it in."""
    named.alignment = None if known.qrels is None else aligned(found, known.qrels)
    if named.alignment is None or not named.alignment.helps:
        return
    ranks, stage, gain = named.alignment.ranks, named.alignment.stage, named.alignment.gain
    better = (ranks > 0) & ((found.rank[-1] == 0) | (ranks < found.rank[-1]))
    named.name(
        "calibration",
        traced & found.given(stage) & better,
        lambda at: (
            f"aligned scores rank it {ranks[at]}; over all queries they give {gain:+.3f} "
            f"DCG@{found.k}"
        ),
        stage.name,
    )


def _freshness(found: Roads, known: Evidence, traced: Mask, named: Named) -> None:
    """Mode 9: an older version is above it."""
    if known.documents is None:
        return
    frame = known.documents.frame
    names = set(frame.columns)
    old: dict[str, set[str]] = {}
    if "supersedes" in names:
        for doc, before in frame.select("doc_id", "supersedes").drop_nulls().iter_rows():
            old.setdefault(doc, set()).add(str(before))
    if {"subject_id", _UPDATED} <= names:
        versions = frame.select("doc_id", "subject_id", _UPDATED).drop_nulls()
        versions = versions.filter(pl.col("subject_id").is_duplicated())
        older = versions.join(versions, on="subject_id", suffix="_old").filter(
            pl.col(f"{_UPDATED}_old") < pl.col(_UPDATED)
        )
        for doc, before in older.select("doc_id", "doc_id_old").iter_rows():
            old.setdefault(doc, set()).add(before)
    if not old:
        return
    displacing = {}
    for at in np.flatnonzero(traced & (named.mode < 0)).tolist():
        before = old.get(found.doc_id[at])
        first = next((doc for doc in found.above(at) if doc in before), None) if before else None
        if first is not None:
            displacing[at] = first
    holds = np.zeros(len(traced), np.bool_)
    holds[list(displacing)] = True
    named.name("freshness", holds, lambda at: f"the older {displacing[at]} is above it")


def _scoring(found: Roads, traced: Mask, named: Named) -> None:
    """Mode 10: a candidate that is ranked too low."""
    ranker = found.ranker.name if found.ranker is not None else SERVED

    def cut(lost: int) -> bool:  # a stage that serves keeps the order of the ranker
        return found.stages[lost].kind == "serve"

    def evidence(at: int) -> str:
        lost = int(found.lost_at[at])
        if lost == -1:
            return f"served at rank {found.rank[-1, at]}"
        name = found.stages[lost].name
        if cut(lost):
            row = found.place.get(ranker)
            rank = 0 if row is None else int(found.rank[row, at])
            place = f"{ranker} ranks it {rank}" if rank else "it is not in the top"
            return f"{place}, below the {found.k} that are served"
        ranks = (
            f"{name_of} rank {found.rank[found.place[name_of], at]}"
            for name_of in found.inputs_of(found.stages[lost])
            if found.held[found.place[name_of], at]
        )
        return f"{name} did not keep it ({', '.join(ranks)})"

    def stage(at: int) -> str:
        lost = int(found.lost_at[at])
        return ranker if lost < 0 or cut(lost) else found.stages[lost].name

    candidate = traced & found.held[:-1].any(axis=0) if len(found.stages) > 1 else traced
    named.name("scoring", candidate, evidence, stage)


def of_queries(
    found: Roads, named: Named, failing: Sequence[int], values: Floats, texts: dict[str, str]
) -> list[QueryMode]:
    """The mode of each failing query: the one with the largest loss; worst queries first.

    Args:
        found: The roads.
        named: The modes of their documents.
        failing: Indices of the failing queries.
        values: Value of each query; shape (q,).
        texts: Query → text.
    """
    losses = np.maximum(found.loss, 0.0)
    out = []
    for query in failing:
        every = found.documents(query)
        own = every[named.mode[every] >= 0]
        query_id = found.query_ids[query]
        if query_id in found.unanswerable:
            out.append(_unanswered(found, query_id, texts.get(query_id)))
        if not len(own):
            continue
        by_mode = np.bincount(named.mode[own], losses[own], minlength=len(MODES))
        mode = int(by_mode.argmax())
        mine = own[named.mode[own] == mode]
        worst = int(mine[losses[mine].argmax()])
        out.append(
            QueryMode(
                query_id=query_id,
                value=float(values[query]),
                mode=MODES[mode],
                stage=named.stage[worst],
                evidence=named.evidence[worst],
                doc_id=found.doc_id[worst],
                loss=float(found.loss[every].sum()),
                text=texts.get(query_id),
            )
        )
    return sorted(out, key=lambda row: -row.loss)


def _unanswered(found: Roads, query_id: str, text: str | None) -> QueryMode:
    shown = min(len(found.run.of(query_id)), found.k)
    documents = "a document is" if shown == 1 else f"{shown:,} documents are"
    evidence = f"it is marked no_answer, and {documents} served"
    return QueryMode(query_id, None, "missing_content", None, evidence, None, 0.0, text)


def summary(found: Roads, named: Named, rows: Sequence[QueryMode]) -> list[ModeRow]:
    """The share of each mode among the failing queries, the most frequent first."""
    if not rows:
        return []
    query_ids = [row.query_id for row in rows]
    failing = np.zeros(len(found.query_ids), np.bool_)
    failing[[found.number[query] for query in query_ids]] = True
    weights = found.weights_of(query_ids)
    losing = np.where(failing[found.query], np.maximum(found.loss, 0.0), 0.0)
    total = losing.sum() or 1.0
    out = []
    for number, mode in enumerate(MODES):
        is_mode = np.array([row.mode == mode for row in rows], np.float64)
        if not is_mode.any():
            continue
        span = shown(t_interval(is_mode, weights), is_mode, 0.0, 1.0)
        out.append(
            ModeRow(
                mode,
                int(is_mode.sum()),
                mean(is_mode, weights),
                span.low,
                span.high,
                float(losing[named.mode == number].sum() / total),
            )
        )
    return sorted(out, key=lambda row: -row.queries)
