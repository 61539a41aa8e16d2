"""Whether an edition may be frozen: weights named, and the lower end of the interval compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from karat.golden.editions import may_freeze
from karat.golden.reliability import agreement
from karat.tables.golden.agreement import Figure
from karat.tables.judgments import Judgments
from karat.tables.workspace import WorkspaceConfig


def policy(**said: Any) -> WorkspaceConfig:
    """A workspace that asks for a κ of .70 with quadratic weights, unless said otherwise."""
    return WorkspaceConfig(Path(), "sqlite:", Path(), **said)


def head(
    value: float | None, low: float | None, reason: str = "", weights: str = "quadratic"
) -> Figure:
    """A headline as agreement has it."""
    return Figure("κ", value, low, None, 20, 200, reason, weights)


FIGURE = "κ is {} (quadratic weights), and its 95 % interval begins at {}: {}"
WANTED = "required: .70 or more (quadratic weights)"


@pytest.mark.parametrize(
    ("found", "verdict", "sentence"),
    [
        (head(0.81, 0.74), "ok", FIGURE.format(".81", ".74", "surely .70 or more")),
        (head(0.74, 0.66), "warn", FIGURE.format(".74", ".66", "not surely .70 or more")),
        (head(0.41, -0.02), "warn", FIGURE.format(".41", "-.02", "below .70")),
        (
            head(0.9, None, "one query alone"),
            "warn",
            f"κ is .90 (quadratic weights), without an interval (one query alone); {WANTED}",
        ),
        (
            head(0.9, 0.8, weights="none"),
            "warn",
            f"κ is .90 (no weights), which cannot be compared; {WANTED}",
        ),
        (
            head(None, None, "all grades are equal"),
            "warn",
            f"κ is not available (all grades are equal); {WANTED}",
        ),
    ],
)
def test_verdicts(found: Figure, verdict: str, sentence: str) -> None:
    freeze = may_freeze(found, policy())
    assert (freeze.verdict, freeze.sentence) == (verdict, sentence)
    strict = may_freeze(found, policy(refuse=True))
    assert strict.verdict == ("ok" if verdict == "ok" else "refuse")
    assert strict.sentence == sentence


def test_the_headline_of_a_golden_set() -> None:
    # Over 40 queries bob gives 3 where ann gives 3, and 0 where she gives 0, but for two queries.
    rows = [
        {"query_id": f"q{n}", "doc_id": doc, "rater": rater, "grade": grade - own}
        for n in range(40)
        for doc, grade in (("a", 0.0), ("b", 3.0))
        for rater, own in (("ann", 0.0), ("bob", 1.0 if n < 2 and doc == "b" else 0.0))
    ]
    frame = pl.DataFrame(rows).with_columns(
        judgment=pl.int_range(pl.len()),
        state=pl.lit("graded"),
        source=pl.lit("human"),
        kind=pl.lit("rating"),
        time_us=pl.lit(1),
    )
    found = agreement(Judgments(frame, (0.0, 3.0))).headline
    assert may_freeze(found, policy()).verdict == "ok"
    assert may_freeze(found, policy(weights="none")).verdict == "warn"


def test_the_bound_itself_passes_and_a_hair_below_does_not_read_as_it() -> None:
    assert may_freeze(head(0.8, 0.7), policy()).verdict == "ok"
    for low, shown in ((0.699, ".699"), (0.69999, ".7000")):
        found = may_freeze(head(0.8, low), policy())
        assert found.verdict == "warn"
        assert f"begins at {shown}:" in found.sentence
    assert may_freeze(head(0.699, 0.5), policy()).sentence.startswith("κ is .699 ")
    assert "begins at 1.00: surely" in may_freeze(head(1.0, 1.0), policy()).sentence
