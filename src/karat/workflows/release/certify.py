"""Certificates: a difference whose sign no further judgment can change, and its verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from karat.diagnosis.certificate_fit import (
    judged_by_query,
    judgment_findings,
    pool_findings,
    topic_findings,
    tops,
)
from karat.errors import KaratError, UsageError
from karat.formats.own.certificate import read_certificate
from karat.measures import Measure, parse
from karat.measures.certificate import SLACK, Proof, certified_pair, prove
from karat.measures.scores import Rules, score
from karat.stats import mean
from karat.stats.weighing import Weighing
from karat.tables import Qrels, Queries, Run
from karat.tables.release.certificate import Certificate, CertifiedQuery, Verification
from karat.workflows.offline import inputs
from karat.workflows.offline.evaluation_plan import Conditions, EvaluationPlan, settle

CLOSE = 1e-9  # relative tolerance between a recomputed number and the one stated


def certify(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    measure: str,
    *,
    queries: Any = None,
    documents: Any = None,
    rel: float | None = None,
    complete: bool = False,
    depth: int | None = None,
    collapse: str | None = None,
    scale: str | tuple[float, float] | None = None,
) -> Certificate:
    """Certify that no grades of unjudged documents can change the sign of a difference.

    Args:
        qrels: As ``compare`` takes them; so the following.
        baseline: The run compared with.
        candidate: The candidate run.
        measure: Name of one measure.
        queries: Weights of the queries, and which have no right answer.
        documents: Needed for ``collapse``.
        rel: Lowest grade that counts as relevant.
        complete: Every query of the qrels counts.
        depth: Cut rankings after this many documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest possible grade.

    Raises:
        UsageError: the sign could change, or the measure has no bounds for unjudged documents.
        InputError: runs and judgments that do not belong together.
    """
    stated = Conditions(rel, complete, depth, collapse=collapse, scale=scale)
    runs = inputs.named_runs(baseline, candidate)  # as compare calls them
    asked = settle(qrels, runs, measure, stated, queries=queries, documents=documents)
    if len(asked.measures) != 1 or len(asked.runs) != 2:
        raise UsageError(
            f"a certificate needs one measure and two runs, got {len(asked.measures)} and "
            f"{len(asked.runs)}"
        )
    [of] = asked.measures
    if of.aggregate != "mean":
        raise UsageError(f"{of} is a {of.aggregate}, not a mean over queries", fix="-m nDCG@10")
    counting = _counting(of, asked.qrels, asked.runs, asked.rules, asked.about)
    if not counting:
        raise UsageError("nothing to certify: no query has a value in both runs")
    blank = Certificate(
        karat=metadata.version("karat"),
        measure=str(of),
        scale=asked.qrels.scale,
        rel=asked.rules.rel,
        depth=None if depth is None else int(asked.rules.depth or depth),
        complete=asked.rules.complete,
        collapse=collapse,
        baseline=asked.runs[0].name,
        candidate=asked.runs[1].name,
        difference=0.0,
        unjudged_low=0.0,
        unjudged_high=0.0,
        unjudged_exact=False,
        verdict="better",
        unseen=None,
        unseen_unlimited=False,
        reason="",
        queries=_queries(of, asked, counting),
    )
    certificate, proof = _computed(blank)
    if not proof.sign:
        raise _undecided(of, certificate)
    return certificate


def _undecided(measure: Measure, certificate: Certificate) -> UsageError:
    """Why there is no certificate."""
    if max(abs(certificate.unjudged_low), abs(certificate.unjudged_high)) <= SLACK:
        reason = f"nothing to certify: the difference in {measure} is 0, whatever the unjudged are"
        return UsageError(reason)
    could, fix = "could", "judge more: --judge-next 20 lists the pairs that matter most"
    if not certificate.unjudged_exact:
        could, fix = "might", "judge more, or certify nDCG@10, whose bounds are exact"
    return UsageError(
        f"nothing to certify: over all grades that unjudged documents could have, the difference "
        f"in {measure} {could} be anything from {certificate.unjudged_low:+.4f} to "
        f"{certificate.unjudged_high:+.4f}",
        fix=fix,
    )


def verify_certificate(
    certificate: Any,
    qrels: Any = None,
    baseline: Any = None,
    candidate: Any = None,
    *,
    queries: Any = None,
    documents: Any = None,
    collapse: str | None = None,
) -> Verification:
    """Whether a certificate is valid, and still covers the current runs and judgments.

    From the certificate alone: that the file is not damaged, and that its numbers follow from its
    pool and judgments (an edited file can satisfy both). With runs: that they have this pool. With
    qrels: that its judgments are unchanged, and that it allows for the new ones. With both: that
    the same queries count, with the same weights.

    Args:
        certificate: A path, or a Certificate.
        qrels: As ``compare`` takes them; None to leave them unchecked.
        baseline: The run compared with; None to leave the runs unchecked.
        candidate: The candidate run; None likewise.
        queries: Weights of the queries, and which have no right answer.
        documents: Needed to collapse chunks.
        collapse: Column to collapse by; that of the certificate if None.

    Raises:
        InputError: a file is damaged, or not a certificate.
        UsageError: only one run was given.
    """
    stated = certificate if isinstance(certificate, Certificate) else read_certificate(certificate)
    if (baseline is None) != (candidate is None):
        raise UsageError("expected two runs, got one", fix="give both")
    measure = parse(stated.measure)
    findings, notes = _itself(stated), ["its numbers follow from its pool and its judgments"]
    if findings:
        return Verification(False, findings, [], stated)
    runs: list[Run] = []
    if baseline is not None:
        runs = inputs.named_runs(baseline, candidate)
        if len(runs) != 2:
            raise UsageError(f"expected two runs, got {len(runs)}", fix="give two")
        column = collapse or stated.collapse
        runs = inputs.collapsed(runs, documents, column) if column else runs
        findings += pool_findings(stated, measure, runs)
        notes += [] if findings else ["both runs have the same documents at the same ranks"]
    if qrels is not None:
        judgments = inputs.qrels(qrels)
        judgment_errors, judgment_notes = judgment_findings(stated, measure, judgments)
        findings, notes = findings + judgment_errors, notes + judgment_notes
        if runs and not findings:
            about = inputs.about(queries, qrels)
            findings += _topics(stated, measure, judgments, runs, about)
    notes += _unchecked(bool(runs), qrels is not None)
    return Verification(not findings, findings, notes, stated)


def _counting(
    measure: Measure, qrels: Qrels, runs: Sequence[Run], rules: Rules, about: Queries | None
) -> dict[str, float]:
    """The queries that have a value in both runs and a weight above 0, with their weights."""
    first, second = (score(run, qrels, [measure], rules) for run in runs)
    used = ~np.isnan(second.values[measure] - first.values[measure])
    query_ids = first.evidence.query_ids
    weights = Weighing.of(about, query_ids).weights
    shares = np.ones(len(query_ids)) if weights is None else weights
    return {query_ids[i]: float(shares[i]) for i in np.flatnonzero(used & (shares > 0))}


def _queries(
    measure: Measure, asked: EvaluationPlan, counting: Mapping[str, float]
) -> tuple[CertifiedQuery, ...]:
    """Pool and judgments of each query; the numbers are computed later."""
    rankings = [tops(run, measure, asked.rules.depth) for run in asked.runs]
    graded = judged_by_query(asked.qrels, list(counting))
    rows = []
    for query_id, weight in counting.items():
        first, second = (of_run.get(query_id, ()) for of_run in rankings)
        pool = {*first, *second}
        grades = graded.get(query_id, {})
        relevant_or_pooled = {
            doc: grade for doc, grade in grades.items() if grade > 0 or doc in pool
        }
        rows.append(
            CertifiedQuery(
                query_id, weight, first, second, relevant_or_pooled, 0.0, 0.0, None, None
            )
        )
    return tuple(rows)


def _computed(stated: Certificate) -> tuple[Certificate, Proof]:
    measure = parse(stated.measure)
    pair = certified_pair(stated.queries, stated.scale[1])
    weights = np.array([query.weight for query in stated.queries])
    shares = None if (weights == 1).all() else weights
    proof = prove(measure, pair, shares)
    # A query that counts without a relevant document has the value 0.
    first, second = (np.nan_to_num(measure(e)) for e in (pair.of_baseline, pair.of_candidate))
    difference = mean(second - first, shares)
    rows = [
        replace(
            query,
            unjudged_low=_end(proof.low[i]),
            unjudged_high=_end(proof.high[i]),
            ideal=None if proof.ideal is None else float(proof.ideal[i]),
            ideal_allowed=None if proof.allowed is None else float(proof.allowed[i]),
        )
        for i, query in enumerate(stated.queries)
    ]
    computed = replace(
        stated,
        difference=difference,
        # Rounding may put the difference outside its bounds by the last bits.
        unjudged_low=_end(min(proof.ends[0], difference)),
        unjudged_high=_end(max(proof.ends[1], difference)),
        unjudged_exact=proof.exact,
        verdict="worse" if proof.sign < 0 else "better",
        unseen=proof.unseen,
        unseen_unlimited=proof.unseen_unlimited,
        reason=proof.reason,
        queries=tuple(rows),
    )
    return computed, proof


def _itself(stated: Certificate) -> list[str]:
    """What is wrong with a certificate, from its own content."""
    if stated.sha256 is not None and stated.sha256 != stated.fingerprint:
        return ["the file is damaged or was edited: its sha256 does not match its content"]
    try:
        with np.errstate(all="ignore"):  # absurd numbers prove nothing
            computed, proof = _computed(stated)
    except (KaratError, ArithmeticError) as error:
        return [f"its numbers cannot be recomputed: {error}"]
    if not proof.sign or computed.verdict != stated.verdict:
        span = f"{computed.unjudged_low:+.4f} to {computed.unjudged_high:+.4f}"
        return [f"its verdict does not follow from its pool: the difference could be {span}"]
    findings = [
        f"its {name} is {_shown(getattr(stated, name))}, but its pool gives "
        f"{_shown(getattr(computed, name))}"
        for name in ("difference", "unjudged_low", "unjudged_high", "unjudged_exact")
        if not _alike(getattr(stated, name), getattr(computed, name))
    ]
    if not _allows(computed, stated):
        findings.append(
            f"it allows {_allowed(stated)} unseen relevant documents, but its pool gives "
            f"{_allowed(computed)}"
        )
    if findings:
        return findings
    names = ("unjudged_low", "unjudged_high", "ideal", "ideal_allowed")
    for mine, theirs in zip(stated.queries, computed.queries, strict=True):
        if not all(_alike(getattr(mine, name), getattr(theirs, name)) for name in names):
            return [f"the numbers of query {mine.query_id} do not follow from its pool"]
    return []


def _topics(
    stated: Certificate, measure: Measure, qrels: Qrels, runs: Sequence[Run], about: Queries | None
) -> list[str]:
    """Differences between the queries that count now and those of the certificate."""
    rules = Rules(
        rel=stated.rel,
        complete=stated.complete,
        depth=stated.depth,
        no_answer=frozenset(about.no_answer()) if about else frozenset(),
    )
    # From 0, as in the certificate; no grade is above its scale.
    graded = Qrels(qrels.rows, qrels.source, (0.0, stated.scale[1]))
    return topic_findings(stated, _counting(measure, graded, runs, rules, about))


def _end(value: float) -> float:
    return float(value) + 0.0  # not -0.0


def _alike(mine: float | bool | None, theirs: float | bool | None) -> bool:
    if mine is None or theirs is None or isinstance(mine, bool):
        return mine is theirs
    return abs(mine - theirs) <= CLOSE * max(1.0, abs(theirs))


def _allows(proven: Certificate, stated: Certificate) -> bool:
    """Whether the proven certificate allows for as many unseen documents as is stated."""
    if proven.unseen_unlimited or stated.unseen_unlimited:
        return proven.unseen_unlimited
    return stated.unseen is None or (proven.unseen is not None and stated.unseen <= proven.unseen)


def _allowed(certificate: Certificate) -> str:
    if certificate.unseen_unlimited:
        return "any number of"
    return "none" if certificate.unseen is None else f"{certificate.unseen:,}"


def _unchecked(runs: bool, judgments: bool) -> list[str]:
    """A note on inputs that were not given, and so not checked."""
    lacking = [name for name, given in (("runs", runs), ("judgments", judgments)) if not given]
    return [f"{' and '.join(lacking)} were not checked: none were given"] if lacking else []


def _shown(value: float | bool) -> str:
    return str(value) if not isinstance(value, float) else f"{value:.9g}"
