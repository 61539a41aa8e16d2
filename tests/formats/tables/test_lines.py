"""Lines of fields: what is said of files that are separated otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat import formats
from karat.errors import InputError


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("q1,0,d1,2", "comma-separated: name the format csv, or add a header line"),
        ("q1;0;d1;2", "separated by semicolons: add a header line"),
    ],
)
def test_other_separators_are_told(line: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=fix):
        formats.read_qrels(tmp_path / "x", "trec")
