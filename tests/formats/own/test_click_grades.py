"""Files of grades from clicks: Parquet with how they were made, CSV without."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from karat import read_qrels
from karat.errors import InputError, UsageError
from karat.formats.own.click_grades import (
    COLUMNS,
    check_name,
    click_grades_file,
    read_click_grades,
    read_origin,
    write_click_grades,
)
from karat.tables.online.clicks import ClickOrigin

ORIGIN = ClickOrigin(
    "PBM", [0.1, 0.3, 0.6], [0.0, 1.0, 2.0, 3.0], 20.0, 86_400_000_000, "events", 5, True, None, 2
)


def grades() -> pl.DataFrame:
    rows = [
        {"query_id": "q1", "doc_id": "=a", "grade": 2.0, "value": 0.5, "ci_low": 0.4,
         "ci_high": 0.6, "logit": 0.0, "logit_se": 0.2, "shown": 90.0, "effective": 60.0,
         "clicked": 30.0, "rank": 2.5},
        {"query_id": "q2", "doc_id": "b", "grade": 0.0, "value": 0.0, "ci_low": 0.0,
         "ci_high": 0.1, "logit": None, "logit_se": None, "shown": 30.0, "effective": 30.0,
         "clicked": 0.0, "rank": 1.0},
    ]  # fmt: skip
    return pl.DataFrame(rows, COLUMNS)


def test_parquet_keeps_the_grades_and_how_they_were_made(tmp_path: Path) -> None:
    path = click_grades_file(tmp_path, "team/shop")
    write_click_grades(grades(), ORIGIN, path)
    assert path.parent == tmp_path / "click-grades"  # a name with a slash is one file
    frame, origin = read_click_grades(path)
    assert frame.equals(grades())
    assert origin == ORIGIN
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_as_judgments_they_know_that_they_are_of_clicks(tmp_path: Path) -> None:
    write_click_grades(grades(), ORIGIN, tmp_path / "g.parquet")
    qrels = read_qrels(tmp_path / "g.parquet")
    assert qrels.to_dict() == {"q1": {"=a": 2.0}, "q2": {"b": 0.0}}
    assert qrels.declared == (0.0, 3.0)
    assert qrels.provenance is not None
    assert qrels.provenance.sources == "clicks"
    assert qrels.provenance.how == "by PBM, cut at 0.1, 0.3, 0.6"
    assert qrels.provenance.uncertain is not None
    assert qrels.provenance.uncertain.frame["doc_id"].to_list() == ["=a"]  # the one with an error


def test_csv_is_read_as_judgments(tmp_path: Path) -> None:
    write_click_grades(grades(), ORIGIN, tmp_path / "g.csv")
    first, *_ = (tmp_path / "g.csv").read_text(encoding="utf-8").splitlines()
    assert first.startswith("query_id,doc_id,grade,source,value,")
    qrels = read_qrels(tmp_path / "g.csv")
    assert qrels.to_dict()["q2"] == {"b": 0.0}
    assert qrels.provenance is None


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"use the extension \.parquet or \.csv"):
        check_name(tmp_path / "g.txt")
    with pytest.raises(InputError, match="there is no such file"):
        read_origin(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="expected a file, got a folder"):
        read_origin(tmp_path)
    grades().write_parquet(tmp_path / "plain.parquet")
    with pytest.raises(InputError, match="these are not grades from clicks"):
        read_click_grades(tmp_path / "plain.parquet")
    for text, said in (
        ("{}", "is damaged"), ("[1", "is damaged"), ('{"version": 2}', "another version"),
        ('{"version": 1}', "is damaged"),
    ):  # fmt: skip
        grades().write_parquet(tmp_path / "odd.parquet", metadata={"karat_clicks": text})
        with pytest.raises(InputError, match=said):
            read_click_grades(tmp_path / "odd.parquet")
        with pytest.raises(InputError, match=said):
            read_qrels(tmp_path / "odd.parquet")
    write_click_grades(grades(), ORIGIN, tmp_path / "cut.parquet")
    whole = (tmp_path / "cut.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-200])
    with pytest.raises(InputError, match="damaged"):
        read_click_grades(tmp_path / "cut.parquet")
