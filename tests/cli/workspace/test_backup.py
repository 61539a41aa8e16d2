"""karat backup and karat restore: what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_there_and_back(typed: Any, tmp_path: Path) -> None:
    typed("init shop")
    said = typed("backup kept.zip -w shop").out
    assert "1 golden set, 0 queries, 0 judgments, 0 editions, 0 runs, 0 accounts, and 2 files" in (
        said.replace("\n", " ")
    )
    assert "hashes of passwords" in said
    assert "already exists" in typed("backup kept.zip -w shop", code=2).err
    assert "1 golden set" in typed("restore kept.zip new").out
    assert "golden in sqlite" in typed("golden status -w new").out
    assert "not empty" in typed("restore kept.zip new", code=2).err
    assert "cannot be read" in typed("restore none.zip other", code=2).err
    assert not (tmp_path / "other").exists()


def test_a_store_may_be_named(typed: Any, tmp_path: Path) -> None:
    typed("init shop")
    typed("backup kept.tar.gz -w shop")
    said = typed("restore kept.tar.gz new --store sqlite:///other.db").out
    assert "password" not in said  # the URL has none
    assert (tmp_path / "new/other.db").is_file()
    assert "in sqlite" in typed("golden status -w new").out
    refused = typed("restore kept.tar.gz x --store mysql://host/db", code=2).err
    assert "mysql is not supported" in refused
    assert not (tmp_path / "x").exists()
