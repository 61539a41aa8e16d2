"""The second search system: latent semantic analysis (TF-IDF, then a truncated SVD).

Documents and queries become vectors of 128 numbers; near vectors share related words, not only
the same ones. Each word also counts by its groups of three letters, which relates `read` to
`reading` and tolerates typing errors.
Source: Deerwester et al., Indexing by Latent Semantic Analysis, JASIS 41(6), 1990.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

DEPTH = 100
DIMENSIONS = 128
LETTER_GROUP_WEIGHT = 0.3  # of a group of three letters; the whole word has 1
TITLE_WEIGHT = 2

Vectors = NDArray[np.float64]


def words(text: str) -> list[str]:
    """Lower-case words; identifiers are split (`readText`, `read_text`)."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.findall(r"[^\W_]+", split.lower())


def features(word: str) -> list[tuple[str, float]]:
    """The word and its letter groups, which begin with # so that none is a word."""
    edged = f"<{word}>"
    groups = [f"#{edged[i : i + 3]}" for i in range(len(edged) - 2)] if len(word) > 3 else []
    return [(word, 1.0), *((group, LETTER_GROUP_WEIGHT) for group in groups)]


class Space:
    """The vectors of all documents, and the projection of queries into the same space."""

    def __init__(self, documents: pl.DataFrame, dimensions: int = DIMENSIONS) -> None:
        """Index documents (doc_id, title, text)."""
        self.doc_ids: list[str] = documents["doc_id"].to_list()
        self.by_id = documents["doc_id"].rank("ordinal").to_numpy()
        counted = [
            Counter(words(f"{title} " * TITLE_WEIGHT + text))
            for title, text in documents.select("title", "text").iter_rows()
        ]
        vocabulary = {word for count in counted for word in count}
        parts = {word: features(word) for word in vocabulary}
        known = sorted({feature for each in parts.values() for feature, _ in each})
        self.columns = {feature: column for column, feature in enumerate(known)}
        self.places = {word: self.placed(each) for word, each in parts.items()}
        raw = self.weights(counted)
        document_count = np.asarray((raw > 0).sum(axis=0)).ravel()
        self.rarity = np.log((1 + len(counted)) / (1 + document_count)) + 1
        weighted = normalised(raw @ sparse.diags_array(self.rarity))
        size = min(dimensions, min(weighted.shape) - 1)
        # ARPACK starts from v0, by default at random.
        start = np.ones(min(weighted.shape))
        _, _, self.axes = svds(weighted, k=size, v0=start)
        self.across = np.ascontiguousarray(self.axes.T)  # else each product makes it anew
        self.vectors = unit(weighted @ self.across)

    def placed(self, parts: Iterable[tuple[str, float]]) -> list[tuple[int, float]]:
        """Columns of the known features of a word, with their weights."""
        columns = ((self.columns.get(feature), weight) for feature, weight in parts)
        return [(column, weight) for column, weight in columns if column is not None]

    @classmethod
    def of(
        cls,
        doc_ids: list[str],
        columns: dict[str, int],
        rarity: Vectors,
        axes: Vectors,
        vectors: Vectors,
    ) -> Space:
        """A space whose vectors are known."""
        space = cls.__new__(cls)
        space.doc_ids, space.columns, space.rarity = doc_ids, columns, rarity
        space.axes, space.vectors, space.places = axes, vectors, {}
        space.across = np.ascontiguousarray(axes.T)
        space.by_id = pl.Series(doc_ids).rank("ordinal").to_numpy()
        return space

    def weights(self, counted: Iterable[Counter[str]]) -> sparse.csr_array:
        """log(1 + weighted count) per feature: shape (texts, features)."""
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        for row, count in enumerate(counted):
            total: dict[int, float] = {}
            for word, times in count.items():
                places = self.places.get(word)
                for column, weight in self.placed(features(word)) if places is None else places:
                    total[column] = total.get(column, 0.0) + weight * times
            rows += [row] * len(total)
            columns += total.keys()
            values += total.values()
        shape = (row + 1, len(self.columns))
        return sparse.csr_array((np.log1p(values), (rows, columns)), shape=shape)

    def place(self, text: str) -> Vectors:
        """The unit vector of a text, shape (dimensions,); all 0 if it has no known word."""
        weighted = self.weights([Counter(words(text))]) @ sparse.diags_array(self.rarity)
        vector: Vectors = unit(weighted @ self.across)[0]
        return vector

    def nearest(self, text: str, depth: int = DEPTH) -> list[tuple[str, float]]:
        """At most `depth` (doc_id, cosine above 0), best first, ties by doc_id descending."""
        # Rounded, because the last digits differ from one linear algebra library to the next.
        cosines = np.round(self.vectors @ self.place(text), 6)
        best = np.lexsort((self.by_id, cosines))[::-1][:depth]
        return [(self.doc_ids[i], float(cosines[i])) for i in best if cosines[i] > 0]


def rank(
    documents: pl.DataFrame | Space, queries: Mapping[str, str], depth: int = DEPTH
) -> dict[str, list[tuple[str, float]]]:
    """Rank the documents (doc_id, title, text; or their space) for each query text, by cosine.

    Ties by doc_id descending, by bytes. A query without a known word has an empty list.
    """
    space = documents if isinstance(documents, Space) else Space(documents)
    return {query_id: space.nearest(text, depth) for query_id, text in queries.items()}


def unit(vectors: Vectors) -> Vectors:
    """Each row scaled to length 1; rows of 0 stay 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths))


def normalised(matrix: sparse.csr_array) -> sparse.csr_array:
    """`unit` for a sparse matrix."""
    lengths = np.sqrt(np.asarray((matrix * matrix).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths == 0, 1, lengths)) @ matrix)
