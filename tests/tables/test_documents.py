"""Documents: each once, and the document a chunk belongs to."""

from __future__ import annotations

import polars as pl
import pytest

from karat.errors import InputError
from karat.tables import Documents

FRAME = pl.DataFrame({"doc_id": ["a1", "b", "c"], "parent_id": ["a", None, ""], "source": "x"})


def test_a_chunk_without_parent_is_its_own() -> None:
    # Many tables write a missing parent as empty text.
    documents = Documents(FRAME)
    assert documents.parents().rows() == [("a1", "a"), ("b", "b"), ("c", "c")]
    assert documents.parents("source").rows() == [("a1", "x"), ("b", "x"), ("c", "x")]
    assert len(documents) == 3
    assert repr(documents) == "<Documents documents: 3>"


def test_an_unknown_parent_column_is_refused() -> None:
    with pytest.raises(InputError, match="documents have no column 'parent'; they have doc_id"):
        Documents(FRAME).parents("parent")


def test_a_document_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"corpus\.csv: duplicate document a1"):
        Documents(pl.concat([FRAME, FRAME]), source="corpus.csv")


def test_no_id_column_and_empty_ids_are_refused() -> None:
    with pytest.raises(InputError, match="fix: rename 'docid' to 'doc_id'"):
        Documents(pl.DataFrame({"docid": ["a"]}))
    with pytest.raises(InputError, match="row 2: doc_id is empty"):
        Documents(pl.DataFrame({"doc_id": ["a", ""]}))
