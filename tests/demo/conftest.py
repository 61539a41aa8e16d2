"""The demo's documents and its built folder, made once for all tests beside this file."""

from __future__ import annotations

import polars as pl
import pytest

from karat.demo import _documents, build


@pytest.fixture(scope="session")
def library() -> pl.DataFrame:
    """The documents of the demo."""
    return _documents.collect()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> build.Demo:
    """A finished demo; tests must not write into its folder."""
    return build.build(tmp_path_factory.mktemp("demo") / "karat-demo", lambda message: None)
