"""Notes: the sentences that must stand beside numbers, so that none is believed too far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from karat.measures.scores import Rules, Scores
from karat.stats.intervals import TRUSTED_FROM
from karat.tables import Qrels, Result


def of(
    qrels: Qrels,
    scored: Sequence[Scores],
    results: Sequence[Result],
    rules: Rules,
    *,
    interval: str,
    seed: int,
) -> list[str]:
    """The notes of one evaluation, most important first."""
    said: list[str] = []
    for scores in scored:
        name = f"{scores.run.name}: " if len(scored) > 1 else ""
        said += [name + note for note in _of_run(scores, rules)]
    said += _of_ties(scored)
    said += _of_all(qrels, scored, rules)
    few = min((row.n for row in results if row.ci_low is not None), default=TRUSTED_FROM)
    if few < TRUSTED_FROM:
        said.append(
            f"intervals over fewer than {TRUSTED_FROM} queries are not to be trusted "
            f"(the least here is {few})"
        )
    if interval == "bca":
        said.append(f"BCa bootstrap intervals from 2,000 resamples, seed {seed}")
    return said


def _of_run(scores: Scores, rules: Rules) -> Iterator[str]:
    run, evidence = scores.run, scores.evidence
    if evidence.returned.any() and not len(evidence.rank):
        yield (
            "none of the documents retrieved is judged: do document ids mean the same in run and "
            "qrels? (chunks fold into documents with --collapse)"
        )
    for state, usual in (
        ("failed", "got no answer: no value"),
        ("missing", "not in the run: scored 0"),
        ("empty", "answered with nothing: scored 0"),
    ):
        held = scores.answered == state
        what = usual
        if rules.compat and not rules.complete:
            what = f"not in the run: left out, as in {rules.compat.name}"
        elif state != "failed":
            held = held & scores.topics
        if held.any():
            yield _counted(held, evidence.query_ids, what)
    if scores.unjudged:
        listed = _list(scores.unjudged)
        yield f"{_queries(len(scores.unjudged))} of the run without judgments: left out ({listed})"
    if run.contradicted:
        yield (
            f"ranks contradict scores in {_queries(run.contradicted)}: scores decide, ranks do "
            "not count"
        )


def _of_ties(scored: Sequence[Scores]) -> Iterator[str]:
    shares = []
    for scores in scored:
        returned, tied = int(scores.evidence.returned.sum()), int(scores.evidence.tied.sum())
        if tied:
            name = f" of {scores.run.name}" if len(scored) > 1 else ""
            shares.append(f"{_percent(tied / returned)}{name}")
    if shares:
        yield (
            f"tied in score with another document: {', '.join(shares)}; ties go by document id, "
            "descending, as in trec_eval, and another order could give other numbers"
        )


def _of_all(qrels: Qrels, scored: Sequence[Scores], rules: Rules) -> Iterator[str]:
    evidence = scored[0].evidence
    bare = ~scored[0].topics
    if bare.any() and not rules.compat:
        yield _counted(
            bare,
            evidence.query_ids,
            f"without a document of grade {scored[0].lowest_rel:g} or better: left out (undefined)",
        )
    silent = any(
        (np.isin(scores.answered, ["missing", "empty"]) & scores.topics).any() for scores in scored
    )
    if not rules.compat and not rules.complete and (bare.any() or silent):
        yield (
            "trec_eval differs here: without -c it leaves out queries that the run lacks, which "
            "flatters a system that fails on hard ones, and it counts queries without a relevant "
            "document as 0 (--compat trec_eval-9 does as it does)"
        )
    grade = qrels.frame["grade"].to_numpy()
    negative = int((grade <= -1 if rules.compat else grade < 0).sum())
    if negative:
        yield (
            f"{'1 judgment is' if negative == 1 else f'{negative:,} judgments are'} below 0, which "
            "means pooled and not judged, as in TREC: counted as neither relevant nor judged"
        )
    if rules.compat and (grade != np.floor(grade)).any():
        yield "grades are cut to whole numbers, as trec_eval does: 0.9 counts as 0"


def _counted(held: np.ndarray, query_ids: list[str], what: str) -> str:
    chosen = [query_ids[i] for i in np.flatnonzero(held)]
    return f"{_queries(len(chosen))} {what} ({_list(chosen)})"


def _percent(share: float) -> str:
    # 99.97 % must not be printed as 100 %, nor 0.03 % as 0 %.
    if 0.01 <= share <= 0.99 or share == 1:
        return f"{100 * share:.0f} %"
    return f"{min(max(100 * share, 0.01), 99.99):.2f} %"


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _list(ids: Sequence[str], most: int = 5) -> str:
    return ", ".join(ids[:most]) + ("" if len(ids) <= most else ", …")
