"""Semantic search: the same every time, and near things are near."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from karat.demo import _semantic


@pytest.fixture(scope="module")
def library(library: pl.DataFrame, *, deep: bool) -> pl.DataFrame:
    """A build takes each fourth document, and those that are asked for."""
    at, asked = pl.int_range(pl.len()) % 4 == 0, pl.col("doc_id") == "collections.defaultdict"
    return library if deep else library.filter(at | asked)


@pytest.fixture(scope="module")
def space(library: pl.DataFrame) -> _semantic.Space:
    return _semantic.Space(library)


def test_words_fall_into_their_parts() -> None:
    assert _semantic.words("assertEqual read_text os.path.join HTTPError") == [
        *("assert", "equal", "read", "text", "os", "path", "join", "httperror"),
    ]
    assert _semantic.words("") == []


def test_long_words_also_count_by_groups_of_three_letters() -> None:
    assert _semantic.features("set") == [("set", 1.0)]
    assert [feature for feature, _ in _semantic.features("dict")] == [
        *("dict", "#<di", "#dic", "#ict", "#ct>"),
    ]


def test_vectors_have_length_one(space: _semantic.Space) -> None:
    lengths = np.linalg.norm(space.vectors, axis=1)
    assert space.vectors.shape == (len(space.doc_ids), _semantic.DIMENSIONS)
    assert np.all(np.isclose(lengths, 1) | (lengths == 0))


def test_a_document_is_the_nearest_to_its_own_text(
    space: _semantic.Space, library: pl.DataFrame
) -> None:
    # A few share their text with others (str.title, bytes.title), so not every one is.
    sample = library.filter(pl.col("text").str.len_chars() > 200)
    sample = sample.gather_every(sample.height // 30)
    hits = sum(
        doc_id in [near for near, _ in space.nearest(f"{title} {title} {text}", 3)]
        for doc_id, title, text in sample.select("doc_id", "title", "text").iter_rows()
    )
    assert sample.height > 25
    assert hits / sample.height > 0.9


def test_a_slip_of_the_finger_is_forgiven(space: _semantic.Space) -> None:
    assert "collections.defaultdict" in [doc_id for doc_id, _ in space.nearest("deafultdict", 10)]


def test_the_same_every_time(library: pl.DataFrame) -> None:
    texts, pages = {"1": "read a file line by line", "2": "copy"}, library.head(400)
    space = _semantic.Space(pages)
    assert _semantic.rank(pages, texts) == {
        query_id: space.nearest(text) for query_id, text in texts.items()
    }


def test_best_first_and_at_most_depth(space: _semantic.Space) -> None:
    found = space.nearest("wait for a thread")
    assert len(found) == 100
    assert found == sorted(found, key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
    assert all(0 < cosine <= 1 for _, cosine in found)


@pytest.mark.parametrize("text", ["", "!?", "🥕", "\x00", "ж"])
def test_a_query_without_known_words_has_an_empty_list(space: _semantic.Space, text: str) -> None:
    assert space.nearest(text) == []


def test_few_documents_are_enough() -> None:
    pages = pl.DataFrame(
        {"doc_id": ["a", "b", "c"], "title": ["red", "green", "blue"], "text": ["x", "y", "z"]}
    )
    assert _semantic.rank(pages, {"q": "red"})["q"][0][0] in {"a", "b", "c"}
