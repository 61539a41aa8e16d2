"""The demo's documents and its built folder, made once for all tests beside this file."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from karat.demo import _documents, _golden_set
from karat.demo.build import Demo


@pytest.fixture(scope="session")
def library() -> pl.DataFrame:
    """The documents of the demo."""
    return _documents.collect()


@pytest.fixture(scope="session")
def demo(built_demo: Path) -> Demo:
    """The demo that the command made for all tests; none may write into its folder."""
    folder = built_demo / "demo"
    printed = (built_demo / "printed.txt").read_text("utf-8")
    said = re.search(r"searched\s+the\s+([\d,]+)\s+modules", printed)
    assert said is not None
    return Demo(
        directory=folder,
        corpus=folder / "corpus.jsonl",
        queries=folder / "queries.jsonl",
        qrels=folder / "qrels" / "test.tsv",
        judgments=folder / "judgments.tsv",
        policy=folder / "gate.toml",
        report=folder / "report.html",
        runs=tuple(folder / "runs" / f"{name}.trec" for name in ("bm25", "semantic", "hybrid")),
        document_count=int(said[1].replace(",", "")),
        query_count=len(_golden_set.queries()),
        judgment_count=len(_golden_set.judgments()),
    )
