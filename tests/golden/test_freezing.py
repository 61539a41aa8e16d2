"""Whether an edition may be frozen: weights named, and the lower end of the interval compared."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest

from karat.golden.freezing import AgreementPolicy, may_freeze
from karat.golden.reliability import agreement
from karat.tables.judgments import Judgments


@dataclass
class Figure:
    value: float | None
    ci_low: float | None
    reason: str = ""
    weights: str | None = "quadratic"


@dataclass
class Found:
    headline: Figure


POLICY = AgreementPolicy(weights="quadratic", at_least=0.7)
FIGURE = "κ is {} (quadratic weights), and its 95 % interval begins at {}: {}"
WANTED = "is to be .70 or more (quadratic weights)"


@pytest.mark.parametrize(
    ("found", "verdict", "sentence"),
    [
        (Found(Figure(0.81, 0.74)), "ok", FIGURE.format(".81", ".74", "surely .70 or more")),
        (Found(Figure(0.74, 0.66)), "warn", FIGURE.format(".74", ".66", "not surely .70 or more")),
        (Found(Figure(0.41, -0.02)), "warn", FIGURE.format(".41", "-.02", "below .70")),
        (
            Found(Figure(0.9, None, "one query alone")),
            "warn",
            f"κ is .90 (quadratic weights), without an interval (one query alone); it {WANTED}",
        ),
        (
            Found(Figure(0.9, 0.8, weights="none")),
            "warn",
            f"κ is .90 (no weights), which cannot be compared: it {WANTED}",
        ),
        (
            Found(Figure(None, None, "all grades are equal")),
            "warn",
            f"κ cannot be told (all grades are equal), and {WANTED}",
        ),
        (None, "warn", f"nothing was judged twice, and κ {WANTED}"),
    ],
)
def test_verdicts(found: Found | None, verdict: str, sentence: str) -> None:
    freeze = may_freeze(found, POLICY)
    assert (freeze.verdict, freeze.sentence) == (verdict, sentence)
    strict = may_freeze(found, AgreementPolicy(at_least=0.7, refuse=True))
    assert strict.verdict == ("ok" if verdict == "ok" else "refuse")
    assert strict.sentence == sentence


def test_the_agreement_of_a_golden_set_is_such_a_thing() -> None:
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
    found = agreement(Judgments(frame, (0.0, 3.0)))
    assert may_freeze(found, POLICY).verdict == "ok"
    assert may_freeze(found, AgreementPolicy(weights="none")).verdict == "warn"


def test_the_bound_itself_passes_and_a_hair_below_does_not_read_as_it() -> None:
    assert may_freeze(Found(Figure(0.8, 0.7)), POLICY).verdict == "ok"
    for low, shown in ((0.699, ".699"), (0.69999, ".7000")):
        found = may_freeze(Found(Figure(0.8, low)), POLICY)
        assert found.verdict == "warn"
        assert f"begins at {shown}:" in found.sentence
    assert may_freeze(Found(Figure(0.699, 0.5)), POLICY).sentence.startswith("κ is .699 ")
    assert "begins at 1.00: surely" in may_freeze(Found(Figure(1.0, 1.0)), POLICY).sentence
