"""Lost: the queries that lost most where a gate did not pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from karat.diagnosis.movement import moves
from karat.measures.evidence import Mask
from karat.measures.run_pair import Pair
from karat.measures.scores import Scores
from karat.stats.effects import TIED
from karat.stats.verdicts import Contrast
from karat.tables.comparison import Move
from karat.tables.release.gate import Check, Lost
from karat.workflows.offline.evaluation_plan import EvaluationPlan

LOST = 10
"""Queries that are listed for a check that did not pass."""


def lost(
    before: Scores,
    now: Scores,
    asked: EvaluationPlan,
    checks: Sequence[tuple[Check, Mask]],
    *,
    documents: bool,
) -> Iterator[Lost]:
    """The queries that lost most where a check did not pass, measure by measure.

    Args:
        before: Scores of the baseline.
        now: Of the candidate.
        asked: What is measured, and how.
        checks: The checks, and which queries each is over.
        documents: Whether the documents of the baseline are known.
    """
    texts = asked.about.texts() if asked.about else {}
    ids = now.evidence.query_ids
    evidence, depth = (before.evidence, now.evidence), asked.rules.depth
    for measure in asked.measures:
        contrast = Contrast(before, now, measure)
        gain = contrast.sign * contrast.difference
        found: dict[int, Check] = {}
        broken = [
            (check, chosen)
            for check, chosen in checks
            if check.measure == str(measure) and check.verdict in ("fail", "cannot_tell")
        ]
        # A query is told with the slice that it is lost in, if there is one.
        for check, chosen in sorted(broken, key=lambda each: each[0].attribute is None):
            within = np.where(chosen, gain, np.nan)
            order = np.argsort(within, kind="stable")[:LOST]
            for index in order[within[order] < -TIED].tolist():
                found.setdefault(index, check)
        ordered = sorted(found, key=lambda index: (gain[index], index))
        moved: dict[str, list[Move]] = {}
        if documents and ordered:
            pair = Pair(before.run, now.run, asked.qrels, *evidence, depth)
            for move in moves(measure, pair, ordered):
                moved.setdefault(move.query_id, []).append(move)
        for index in ordered:
            old, new = (float(values[index]) for values in contrast.both)
            yield Lost(
                measure=str(measure),
                query_id=ids[index],
                text=texts.get(ids[index]),
                baseline_value=old,
                candidate_value=new,
                attribute=found[index].attribute,
                slice=found[index].slice,
                moves=moved.get(ids[index], []) if documents else None,
            )
