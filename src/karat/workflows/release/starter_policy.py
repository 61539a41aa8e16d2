"""A starter policy: a first gate.toml, fitted to a run if one is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from karat.formats.own.policy import write_policy
from karat.release.starter import starter
from karat.stats.weighing import Weighing
from karat.workflows.offline.evaluation_plan import settle
from karat.workflows.offline.run_health import answers_of

DEFAULT = "gate.toml"
"""Default file name of a policy."""


def start_policy(
    path: str | Path = DEFAULT, qrels: Any = None, baseline: Any = None, *, queries: Any = None
) -> str:
    """Write a starter policy; an existing file is never overwritten.

    Args:
        path: The file.
        qrels: As ``evaluate`` takes them; only with ``baseline``.
        baseline: A run: checks that its file has no data for are commented out, and those that it
            fails are relaxed.
        queries: As ``evaluate`` takes them.

    Returns:
        The text of the policy.
    """
    answers = None
    if baseline is not None:
        asked = settle(qrels, [baseline], ["nDCG@10", "AP"], queries=queries)
        [scores] = asked.scored()
        none = np.zeros(scores.evidence.n, np.bool_)
        weighing = Weighing.of(asked.about, scores.evidence.query_ids)
        answers = answers_of(scores, asked.qrels, none, asked.measures, weighing)
    text = starter(answers)
    write_policy(text, path)
    return text
