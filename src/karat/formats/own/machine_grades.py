"""Files of grades by machine judges: CSV, JSON lines or Parquet, with who graded and how."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.tables.reading import read_pairs
from karat.formats.tables.writing import write_pairs
from karat.tables import Pairs
from karat.tables.incoming import refuse_rows

_ENDINGS = (".csv", ".jsonl", ".parquet")


def check_name(path: str | Path) -> None:
    """Refuse the name of a file that says no format; before anything is asked and paid."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise UsageError(
            f"cannot tell the format of grades from the name {Path(path).name}",
            fix=f"use the extension {', '.join(_ENDINGS)}",
        )


def write_grades(frame: pl.DataFrame, path: str | Path) -> None:
    write_pairs(Pairs(frame), path)


def read_grades(path: str | Path) -> pl.DataFrame:
    """``query_id``, ``doc_id``, ``grade`` and ``rater`` of graded pairs.

    Raises:
        InputError: no such file, no column of grades, or a grade that is not a number.
    """
    frame = read_pairs(path).frame
    if "grade" not in frame.columns:
        raise InputError("no column grade", file=str(path), fix="a file of karat autojudge run -o")
    known = frame.with_columns(pl.col("grade").cast(pl.Float64, strict=False).alias("_grade"))
    wrong = known["_grade"].is_null() & (known["grade"].cast(pl.String).fill_null("") != "")
    refuse_rows(known, wrong, "the grade {grade!r} is not a number", str(path))
    rater = pl.col("rater").cast(pl.String) if "rater" in frame.columns else pl.lit("a machine")
    graded = known.filter(pl.col("_grade").is_not_null())
    return graded.select(
        "query_id", "doc_id", pl.col("_grade").alias("grade"), rater.alias("rater")
    )
