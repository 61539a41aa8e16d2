"""Certify: a comparison whose sign no judgment of its pool can turn, and checking that again."""

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
from karat.workflows.offline.evaluation_plan import EvaluationPlan, settle

CLOSE = 1e-9
"""How far a number worked out again may be from the one stated."""


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
    """A certificate that no grade of the unjudged turns the sign of a difference.

    Args:
        qrels: As ``compare`` takes them; so the following.
        baseline: The run compared with.
        candidate: The run in question.
        measure: Name of one measure.
        queries: Weights of the queries, and which have no answer.
        documents: Needed to collapse.
        rel: Lowest grade that counts as relevant.
        complete: Every query of the qrels counts.
        depth: Cut rankings after so many documents.
        collapse: Fold chunks into the document named in this column of ``documents``.
        scale: Lowest and highest grade that a judgment can give.

    Raises:
        UsageError: the sign could turn, or what the unjudged do to the measure is not known.
        InputError: runs and judgments that do not belong together.
    """
    asked = settle(
        qrels,
        inputs.named_runs(baseline, candidate),  # as compare calls them
        measure,
        queries=queries,
        documents=documents,
        rel=rel,
        complete=complete,
        depth=depth,
        collapse=collapse,
        scale=scale,
    )
    if len(asked.measures) != 1 or len(asked.runs) != 2:
        raise UsageError(
            f"a certificate is of one measure and two runs, not of {len(asked.measures)} and "
            f"{len(asked.runs)}"
        )
    [of] = asked.measures
    if of.aggregate != "mean":
        raise UsageError(f"{of} is a {of.aggregate} and no mean over queries", fix="-m nDCG@10")
    counting = _counting(of, asked.qrels, asked.runs, asked.rules, asked.about)
    if not counting:
        raise UsageError("nothing to certify: no query has a value in both runs")
    blank = Certificate(
        karat=_version(),
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
    made, proof = _worked_out(blank)
    if not proof.sign:
        raise _undecided(of, made)
    return made


def _undecided(measure: Measure, made: Certificate) -> UsageError:
    """Why there is no certificate."""
    if max(abs(made.unjudged_low), abs(made.unjudged_high)) <= SLACK:
        what = f"nothing to certify: the difference in {measure} is 0, whatever the unjudged are"
        return UsageError(what)
    could, fix = "could", "judge more: --judge-next 20 lists the pairs that say most about it"
    if not made.unjudged_exact:
        could, fix = "might", "judge more, or certify nDCG@10, of which the exact ends are known"
    return UsageError(
        f"nothing to certify: over all grades that the unjudged could have, the difference in "
        f"{measure} {could} be anything from {made.unjudged_low:+.4f} to "
        f"{made.unjudged_high:+.4f}",
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
    """Whether a certificate is right, and still covers runs and judgments as they are now.

    From the certificate alone: that the file is not damaged, and that its numbers follow from its
    pool and its judgments; whoever edits it can make both so. With runs: that they have this pool.
    With qrels: that its judgments stand as they did, and that new ones are among those it allows
    for. With both: that the same queries count, with the same weights.

    Args:
        certificate: A path, or a Certificate.
        qrels: As ``compare`` takes them; None to leave them out.
        baseline: The run compared with; None to leave the runs out.
        candidate: The run in question; None likewise.
        queries: Weights of the queries, and which have no answer.
        documents: Needed if chunks are to be collapsed.
        collapse: Column to collapse by; that of the certificate if None.

    Raises:
        InputError: a file is damaged, or the certificate is none.
        UsageError: only one run was given.
    """
    stated = certificate if isinstance(certificate, Certificate) else read_certificate(certificate)
    if (baseline is None) != (candidate is None):
        raise UsageError("a certificate is of two runs, and one was given", fix="give both")
    measure = parse(stated.measure)
    findings, notes = _itself(stated), ["its numbers follow from its pool and its judgments"]
    if findings:
        return Verification(False, findings, [], stated)
    runs: list[Run] = []
    if baseline is not None:
        runs = inputs.named_runs(baseline, candidate)
        if len(runs) != 2:
            raise UsageError(f"a certificate is of two runs, not of {len(runs)}", fix="give two")
        column = collapse or stated.collapse
        runs = inputs.collapsed(runs, documents, column) if column else runs
        findings += pool_findings(stated, measure, runs)
        notes += [] if findings else ["both runs have the same documents at the same ranks"]
    if qrels is not None:
        judgments = inputs.qrels(qrels)
        wrong, said = judgment_findings(stated, measure, judgments)
        findings, notes = findings + wrong, notes + said
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
    """What the certificate rests on; its numbers are still to be worked out."""
    shown = [tops(run, measure, asked.rules.depth) for run in asked.runs]
    graded = judged_by_query(asked.qrels, list(counting))
    found = []
    for query_id, weight in counting.items():
        first, second = (of_run.get(query_id, ()) for of_run in shown)
        pool = {*first, *second}
        grades = graded.get(query_id, {})
        kept = {doc: grade for doc, grade in grades.items() if grade > 0 or doc in pool}
        found.append(CertifiedQuery(query_id, weight, first, second, kept, 0.0, 0.0, None, None))
    return tuple(found)


def _worked_out(stated: Certificate) -> tuple[Certificate, Proof]:
    """The certificate with all of its numbers, from its pool and its judgments."""
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
    made = replace(
        stated,
        difference=difference,
        # The last bits of a sum may lie on the wrong side of what it must not pass.
        unjudged_low=_end(min(proof.ends[0], difference)),
        unjudged_high=_end(max(proof.ends[1], difference)),
        unjudged_exact=proof.exact,
        verdict="worse" if proof.sign < 0 else "better",
        unseen=proof.unseen,
        unseen_unlimited=proof.unseen_unlimited,
        reason=proof.reason,
        queries=tuple(rows),
    )
    return made, proof


def _itself(stated: Certificate) -> list[str]:
    """What is wrong with a certificate, from its own content."""
    if stated.sha256 is not None and stated.sha256 != stated.fingerprint:
        return ["the file is damaged or was edited: its sha256 does not fit the rest of it"]
    try:
        with np.errstate(all="ignore"):  # numbers beyond all reason prove nothing
            made, proof = _worked_out(stated)
    except (KaratError, ArithmeticError) as error:
        return [f"its numbers cannot be worked out: {error}"]
    if not proof.sign or made.verdict != stated.verdict:
        span = f"{made.unjudged_low:+.4f} to {made.unjudged_high:+.4f}"
        return [f"its verdict does not follow from its pool: the difference could be {span}"]
    found = [
        f"its {name} is {_shown(getattr(stated, name))}, and {_shown(getattr(made, name))} follows "
        "from its pool"
        for name in ("difference", "unjudged_low", "unjudged_high", "unjudged_exact")
        if not _alike(getattr(stated, name), getattr(made, name))
    ]
    if not _allows(made, stated):
        found.append(
            f"it allows {_allowed(stated)} unseen relevant documents, and {_allowed(made)} "
            "follows from its pool"
        )
    for mine, theirs in zip(stated.queries, made.queries, strict=True):
        names = ("unjudged_low", "unjudged_high", "ideal", "ideal_allowed")
        same = [_alike(getattr(mine, name), getattr(theirs, name)) for name in names]
        if found or not all(same):
            found += [] if found else [f"the numbers of query {mine.query_id} do not follow"]
            break
    return found


def _topics(
    stated: Certificate, measure: Measure, qrels: Qrels, runs: Sequence[Run], about: Queries | None
) -> list[str]:
    """Which queries count now, against those of the certificate."""
    rules = Rules(
        rel=stated.rel,
        complete=stated.complete,
        depth=stated.depth,
        no_answer=frozenset(about.no_answer()) if about else frozenset(),
    )
    # From 0, as the certificate is; no grade is above its scale.
    graded = Qrels(qrels.rows, qrels.source, (0.0, stated.scale[1]))
    return topic_findings(stated, _counting(measure, graded, runs, rules, about))


def _end(value: float) -> float:
    return float(value) + 0.0  # not -0.0


def _alike(mine: float | bool | None, theirs: float | bool | None) -> bool:
    if mine is None or theirs is None or isinstance(mine, bool):
        return mine is theirs
    return abs(mine - theirs) <= CLOSE * max(1.0, abs(theirs))


def _allows(proven: Certificate, stated: Certificate) -> bool:
    """Whether one certificate allows for as many unseen documents as another."""
    if proven.unseen_unlimited or stated.unseen_unlimited:
        return proven.unseen_unlimited
    return stated.unseen is None or (proven.unseen is not None and stated.unseen <= proven.unseen)


def _allowed(certificate: Certificate) -> str:
    if certificate.unseen_unlimited:
        return "any number of"
    return "none" if certificate.unseen is None else f"{certificate.unseen:,}"


def _unchecked(runs: bool, judgments: bool) -> list[str]:
    """That what was not given was not checked."""
    lacking = [what for what, there in (("runs", runs), ("judgments", judgments)) if not there]
    return [f"{' and '.join(lacking)} were not checked: none were given"] if lacking else []


def _shown(value: float | bool) -> str:
    return str(value) if not isinstance(value, float) else f"{value:.9g}"


def _version() -> str:
    try:
        return metadata.version("karat")
    except metadata.PackageNotFoundError:
        return "unknown"
