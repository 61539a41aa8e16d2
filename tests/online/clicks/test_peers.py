"""The numbers of PyClick 98e7e46 on the log of V26 of the field notes: Beta(1,1), 50 iterations."""

from __future__ import annotations

import pytest
from tests.click_logs import t12

from karat.online.clicks.fitting import Fitted, evaluated, fit

# Log-likelihood and perplexity, printed by PyClick with six decimals
PEER = {
    "GCTR": (-0.376938, 1.493931),
    "RCTR": (-0.339877, 1.429149),
    "DCTR": (-0.287392, 1.352375),
    "PBM": (-0.278756, 1.341993),
    "SDBN": (-0.269036, 1.366446),
    "DBN": (-0.262190, 1.360938),
}


def _of(fitted: Fitted, parameter: str, docs: str = "abcj") -> list[float]:
    rows = [fitted.pairs["doc_id"].to_list().index(doc) for doc in docs]
    return [float(fitted.parameters[parameter].value[row]) for row in rows]


@pytest.mark.parametrize("model", PEER)
def test_likelihood_and_perplexity(model: str) -> None:
    fitted = fit(model, t12(), compat=True)
    result = evaluated(fitted, t12())
    assert (result.log_likelihood, result.perplexity) == pytest.approx(PEER[model], abs=1e-6)
    assert len(result.perplexity_by_rank) == 10
    assert fitted.iterations == (50 if model in {"PBM", "DBN"} else 0)


@pytest.mark.parametrize("model", ["GCTR", "RCTR", "DCTR", "SDBN"])
def test_counting_needs_no_compatibility(model: str) -> None:
    result = evaluated(fit(model, t12()), t12())
    assert (result.log_likelihood, result.perplexity) == pytest.approx(PEER[model], abs=1e-6)


def test_relevance() -> None:
    assert fit("GCTR", t12()).parameters["ctr"].value == pytest.approx([0.131148], abs=1e-6)
    ctr = [0.5, 0.285714, 0.357143, 0.071429]
    assert _of(fit("DCTR", t12()), "ctr") == pytest.approx(ctr, abs=1e-6)
    position = fit("PBM", t12(), compat=True)
    attraction = [0.735549, 0.494579, 0.642849, 0.137788]
    assert _of(position, "attraction") == pytest.approx(attraction, abs=1e-6)
    looks = position.parameters["examination"].value[:3]
    assert looks == pytest.approx([0.577675, 0.581121, 0.376315], abs=1e-6)


def test_the_counts_of_sdbn_by_hand() -> None:
    """Clicks + 1 over impressions down to the last click + 2; last clicks + 1 over clicks + 2.

    Document a is clicked 6 times in the 9 pages where it is at or above the last click or there is
    none, 3 of them as the last.
    """
    fitted = fit("SDBN", t12())
    attraction = [7 / 11, 4 / 12, 5 / 10, 2 / 7, 2 / 6, 1 / 5]
    assert _of(fitted, "attraction", "abcdej") == pytest.approx(attraction)
    assert _of(fitted, "satisfaction", "abc") == pytest.approx([4 / 8, 4 / 5, 4 / 6])
    value = dict(fitted.relevance.select("doc_id", "value").iter_rows())
    assert [value[doc] for doc in "abcj"] == pytest.approx(
        [0.318182, 0.266667, 0.333333, 0.1], abs=1e-6
    )


def test_the_pbm_converges_to_the_same_optimum() -> None:
    """PyClick's EM, run until it no longer changes, has these two."""
    result = evaluated(fit("PBM", t12()), t12())
    assert result.log_likelihood == pytest.approx(-0.2787548, abs=1e-7)
    assert result.perplexity == pytest.approx(1.3419921, abs=1e-7)


def test_the_log_does_not_identify_positions() -> None:
    """Documents d, e, f and g are at ranks 4 to 7 in all four orders, the others elsewhere."""
    fitted = fit("PBM", t12())
    assert not fitted.identified
    assert fitted.examination is None
    assert fitted.reason == "documents at ranks 4-7 were never shown at ranks 1-3, 8-10"
    assert fitted.relevance["value"].null_count() == 10
