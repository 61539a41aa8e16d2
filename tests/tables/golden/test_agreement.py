"""The sentence that says how far raters agree."""

from __future__ import annotations

import dataclasses
import json

import pytest

from karat.tables.golden.agreement import Agreement, Confusion, Figure

KAPPA = Figure("κ, quadratic weights", 0.74, 0.66, 0.81, 52, 780, weights="quadratic")
FOUND = Agreement(
    headline=KAPPA,
    weights="quadratic",
    target=0.7,
    needed=37,
    raters=("ann", "bob"),
    queries=52,
    pairs=780,
    figures=(KAPPA,),
    two_raters=(),
    one_rater=(),
    classes=(),
    guidelines=(),
    confusion=Confusion("ann", "bob", (0.0, 1.0), ((3, 1), (0, 4))),
    drift=(),
)


def but(headline: Figure = KAPPA, **changed: object) -> str:
    return dataclasses.replace(FOUND, headline=headline, **changed).sentence  # type: ignore[arg-type]


def test_the_sentence_says_the_figure_how_sure_and_what_is_to_be_done() -> None:
    assert FOUND.sentence == (
        "κ .74 (.66-.81), quadratic weights, 52 queries; "
        "about 40 more double judgments to show that it is above .7"
    )


@pytest.mark.parametrize(
    ("needed", "end"),
    [
        (0, "significantly above .7"),
        (None, "more judgments alone would not raise it above .7"),
        (101, "about 110 more double judgments to show that it is above .7"),
        (2341, "about 2400 more double judgments to show that it is above .7"),
        (1, "about 1 more double judgment to show that it is above .7"),
    ],
)
def test_what_is_to_be_done(needed: int | None, end: str) -> None:
    assert but(needed=needed).endswith(f"; {end}")


def test_more_raters_below_zero_and_one_query() -> None:
    low = dataclasses.replace(KAPPA, value=-0.02, ci_low=-0.3, ci_high=0.31, queries=1)
    assert but(low, raters=("a", "b", "c"), weights="none", needed=None).startswith(
        "mean κ of 3 raters -.02 (-.30 to .31), no weights, 1 query;"
    )


def test_without_an_interval_or_a_figure_it_says_why() -> None:
    perfect = dataclasses.replace(
        KAPPA, value=1.0, ci_low=None, ci_high=None, reason="no disagreement was observed"
    )
    assert but(perfect, needed=None) == (
        "κ 1.00, quadratic weights, 52 queries; no interval: no disagreement was observed"
    )
    none = dataclasses.replace(perfect, value=None, reason="nothing was graded by two raters")
    assert but(none) == "agreement not available: nothing was graded by two raters"


def test_as_json() -> None:
    found = json.loads(json.dumps(FOUND.to_dict()))
    assert found["sentence"] == FOUND.sentence
    assert found["headline"]["ci_low"] == 0.66
    assert found["confusion"]["counts"] == [[3, 1], [0, 4]]
