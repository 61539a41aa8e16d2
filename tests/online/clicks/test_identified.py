"""Whether a log can separate documents from positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.click_logs import pages_of

from karat.online.clicks._identified import not_identified
from karat.online.clicks.counts import Cells
from karat.online.clicks.fitting import fit

Row = tuple[str, str, set[int]]


def _reason(*rows: Row) -> str:
    return not_identified(pages_of(rows).cells())


def test_a_clicked_document_at_two_ranks_connects_them() -> None:
    assert _reason(("q", "ab", {0}), ("q", "ba", {1})) == ""


def test_ranks_are_connected_through_others() -> None:
    """Document b connects ranks 1 and 2, document d of another query 2 and 3."""
    assert _reason(("q", "ab", {1}), ("q", "ba", {0}), ("r", "cde", {1}), ("r", "ced", {2})) == ""


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [("q", "abc", {0, 1, 2}), ("r", "abc", {0})],
            "documents at ranks 2-3 were never shown at another rank",
        ),
        (
            [("q", "abcd", {0, 1, 2}), ("q", "badc", {0, 2, 3})],
            "documents at ranks 3-4 were never shown at ranks 1-2",
        ),
        (
            [("q", "abc", {0}), ("q", "cba", set())],
            "documents at rank 2 were never shown at another rank",
        ),
        (
            [("q", "abc", {0, 1}), ("q", "bac", {0}), ("q", "acb", set()), ("r", "abc", {2})],
            "",
        ),
        (
            [("q", "ab", {0}), ("q", "cd", {1}), ("q", "da", set()), ("q", "bc", set())],
            "",
        ),
        (
            [("q", "ab", set()), ("q", "ba", set())],
            "no document shown at rank 2 and at rank 1 was ever clicked",
        ),
    ],
)
def test_the_reason_names_the_ranks(rows: list[Row], reason: str) -> None:
    assert _reason(*rows) == reason


def test_known_places_need_no_connection() -> None:
    cells = pages_of([("q", "abc", {0, 1, 2})]).cells()
    assert "ranks 2-3" in not_identified(cells)
    assert not_identified(cells, known=[1, 2]) == ""


def test_ranks_below_the_first_have_no_anchor() -> None:
    cells = pages_of([("q", "ab", {0}), ("q", "ba", {1})]).cells()
    deep = replace(cells, places=cells.places.with_columns(pl.col("rank") + 1))
    assert not_identified(deep) == "no document was shown at rank 1"


def _presented(cells: Cells) -> Cells:
    """The same cells, those of the first document with an image."""
    places = pl.concat([cells.places, cells.places.with_columns(presentation=pl.lit("image"))])
    place = cells.place + np.where(cells.pair == 0, len(cells.places), 0)
    return replace(cells, places=places, place=place)


def test_a_presentation_is_a_place_of_its_own() -> None:
    """Only document a has the image, so nothing connects images with ranks without."""
    rows = [("q", "abc", {0}), ("q", "cab", {1}), ("q", "bca", {1}), ("q", "cba", {0, 1, 2})]
    cells = _presented(pages_of(rows).cells())
    reason = "documents at ranks 1-3 (image) were never shown at ranks 1-3"
    assert not_identified(cells) == reason
    assert fit("PBM", cells).reason == reason
