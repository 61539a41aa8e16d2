"""trec_eval's mean is a plain sum from left to right, on every Python."""

from __future__ import annotations

import math

from karat.workflows.offline.evaluate import evaluate


def test_the_mean_of_compat_is_not_compensated() -> None:
    # P@10 of .1 for ten queries: left to right .1 + .1 + … is 0.9999999999999999, and a tenth of
    # it 0.09999999999999999, where an exact sum gives 0.1. Python's own sum() is exact since 3.12.
    qrels = {f"q{i}": {"a": 1} for i in range(10)}
    run = {f"q{i}": {"a": 1.0} for i in range(10)}
    total = 0.0
    for _ in range(10):
        total += 0.1
    assert total / 10 != math.fsum([0.1] * 10) / 10
    plain = evaluate(qrels, run, ["P_10"], compat="trec_eval-9")
    assert plain.value("P@10") == total / 10
    assert evaluate(qrels, run, ["P@10"]).value("P@10") == math.fsum([0.1] * 10) / 10
