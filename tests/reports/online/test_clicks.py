"""What is said of a fitted click model, at 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from karat.online.clicks.registry import MODELS
from karat.reports.online import click_models, clicks
from karat.reports.writers.terminal import console
from karat.tables.online.clicks import ClickFit, Examination, Propensities, Stratum

EXAMINATION = [
    Examination(1, 1.0, None, None, 100),
    Examination(2, 0.8114, 0.7601, 0.8627, 100),
    Examination(3, 0.5, 0.45, 0.56, 90),
]
FIT = ClickFit(
    model="PBM",
    log_likelihood=-0.27876,
    perplexity=1.34199,
    perplexity_by_rank=[1.5, 1.3, 1.2],
    examination=EXAMINATION,
    identified=True,
    seconds=0.1,
    reason="",
    held_out=False,
    pages=1200,
    pairs=34,
    impressions=3600,
    clicks=900,
    unseen=None,
    worst_queries=[{"query": "red shoes", "pages": 40, "perplexity": 1.71}],
    iterations=12,
    notes=["a note"],
)


def printed(result: ClickFit) -> str:
    out = io.StringIO()
    clicks.show(result, console(out, 80))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_one_rank_is_compared_with_no_other() -> None:
    text = printed(replace(FIT, examination=EXAMINATION[:1], perplexity_by_rank=[1.5]))
    assert text.startswith("All documents were shown at rank 1: there is no other rank to compare")


def test_a_fit() -> None:
    text = printed(FIT)
    lines = text.splitlines()
    assert lines[0] == "Rank 3 is looked at 50 % as often as rank 1 (45 to 56 %)"
    assert lines[1] == "PBM, 1,200 pages of results, 34 pairs of query and document, 900 clicks"
    assert "2        0.811  0.760 to 0.863       1.300" in text
    assert "1        1.000               –       1.500" in text
    said = " ".join(text.split())
    assert (
        "Fit: perplexity 1.3420 (1 is perfect, 2 a coin), log-likelihood per rank −0.2788" in said
    )
    assert "red shoes     40       1.710" in text
    assert "· a note" in text


def test_positions_that_are_not_identified_come_first() -> None:
    reason = "documents at ranks 2-3 were never shown at another rank"
    result = replace(FIT, identified=False, examination=None, reason=reason)
    text = printed(result)
    assert " ".join(text.split()).startswith(f"Positions are not identified: {reason}")
    assert "Examination" not in text
    assert "Likelihood and perplexity are valid" in text
    assert "3       1.200" in text
    page = clicks.to_markdown(result)
    assert page.startswith(f"**Positions are not identified: {reason}**")
    assert "| 3 | 1.200 |" in page


@pytest.mark.parametrize(
    ("differs_at", "examination", "sentence"),
    [
        (None, EXAMINATION, "the model agrees."),
        (3, EXAMINATION, "the model differs most at rank 3."),
        (None, None, "the model has none."),
    ],
)
def test_propensities_are_next_to_the_model(
    differs_at: int | None, examination: list[Examination] | None, sentence: str
) -> None:
    random = [EXAMINATION[0], Examination(2, 0.7, 0.6, 0.8, 40)]
    found = Propensities("randomised", 310, random, differs_at)
    result = replace(FIT, propensities=found, examination=examination)
    text = " ".join(printed(result).split())
    said = "Use examination from 310 searches in random order, which needs no model"
    assert f"{said}: {sentence}" in text
    assert "0.700 0.600 to 0.800 1.300" in text  # rank 2
    if examination:
        assert "0.500 0.450 to 0.560 – – 1.200" in text  # rank 3, without a propensity


def test_strata_and_presentation() -> None:
    strata = [Stratum("phone", 700, EXAMINATION, True), Stratum(None, 5, None, False)]
    text = printed(replace(FIT, by="device", strata=strata))
    assert "phone     700         yes   0.811   0.500" in text
    assert "(none)      5          no       –       –" in text
    shown = [replace(each, presentation=way) for each in EXAMINATION for way in (None, "image")]
    text = printed(replace(FIT, examination=shown, unseen=3, held_out=True))
    assert text.startswith("Rank 3 (image) is looked at 50 % as often as rank 1")
    assert "Held-out log, with 3 new pairs: perplexity 1.3420" in text


def test_a_model_without_examination() -> None:
    text = printed(replace(FIT, model="DCTR", examination=None))
    assert text.startswith("DCTR does not estimate how likely a rank is looked at")


def test_the_catalogue() -> None:
    out = io.StringIO()
    click_models.show_entries(MODELS, console(out, 80))
    for model in MODELS:
        click_models.show_entry(model, console(out, 80))
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert click_models.as_json(MODELS[4])["needs"] == "cells"
    assert click_models.markdown(MODELS).count("\n- Cannot see: ") == len(MODELS) == 8
