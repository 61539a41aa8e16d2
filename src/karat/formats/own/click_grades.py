"""Grades from clicks: a Parquet file with how they were made; or CSV, without that.

A workspace has one file for each golden set, next to the store and never in it: clicks grade tens
of millions of pairs, and a person's judgment is another kind of fact.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import polars as pl

from karat.errors import InputError, UsageError
from karat.formats.tables.parquet import BROKEN
from karat.formats.tables.source import Source
from karat.formats.tables.writing import beside, write_pairs
from karat.tables import Pairs
from karat.tables.online.clicks import ClickOrigin
from karat.tables.provenance import CutPoints, Provenance, Uncertain
from karat.tables.records import record_of

FOLDER = "click-grades"  # in a workspace
KEY = "karat_clicks"  # of the metadata
VERSION = 1
COLUMNS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "grade": pl.Float64,
    "value": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "logit": pl.Float64,
    "logit_se": pl.Float64,
    "shown": pl.Float64,
    "effective": pl.Float64,
    "clicked": pl.Float64,
    "rank": pl.Float64,
}
_ENDINGS = (".parquet", ".csv")
_AGAIN = "make them again with karat clicks judge"


def click_grades_file(root: Path, golden: str) -> Path:
    """The file of a golden set in the folder of its workspace, whether there is one or not."""
    return root / FOLDER / f"{quote(golden, safe=' ')}.parquet"


def check_name(path: str | Path) -> None:
    """Refuse the name of a file that is not of a known format; before the log is read."""
    if Path(path).suffix.lower() not in _ENDINGS:
        raise UsageError(
            f"cannot tell the format of grades from the name {Path(path).name}",
            fix=f"use the extension {' or '.join(_ENDINGS)}",
        )


def write_click_grades(grades: pl.DataFrame, origin: ClickOrigin, path: Path) -> None:
    """Write grades whole or not at all; CSV has the column ``source`` in place of metadata."""
    check_name(path)
    frame = grades.select(*COLUMNS)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".csv":
        first = frame.select("query_id", "doc_id", "grade", source=pl.lit("clicks"))
        rest = frame.drop("query_id", "doc_id", "grade")
        write_pairs(Pairs(pl.concat([first, rest], how="horizontal"), str(path)), path)
        return
    low, high = origin.grades[0], origin.grades[-1]
    about = {KEY: json.dumps({"version": VERSION, **asdict(origin)}, ensure_ascii=False)}
    with beside(path) as stream:
        frame.write_parquet(stream, metadata={**about, "karat_scale": f"{low!r} {high!r}"})


def read_click_grades(path: Path) -> tuple[pl.DataFrame, ClickOrigin]:
    """The grades (``COLUMNS``), and how they were made.

    Raises:
        InputError: no such file, or one that ``write_click_grades`` did not write as Parquet.
    """
    origin = read_origin(path)
    try:
        return pl.read_parquet(path, columns=list(COLUMNS)).cast(COLUMNS), origin  # type: ignore[arg-type]
    except BROKEN as error:
        raise _damaged(path, error) from None


def read_origin(path: Path) -> ClickOrigin:
    """How the grades of a file were made."""
    try:
        with Source(path):  # refuses a missing file and a folder
            about = pl.read_parquet_metadata(path)
    except BROKEN as error:
        raise _damaged(path, error) from None
    if KEY not in about:
        raise InputError("these are not grades from clicks", file=str(path), fix=_AGAIN)
    return _origin(about[KEY], str(path))


def _origin(text: str, file: str) -> ClickOrigin:
    try:
        content = json.loads(text)
        version = content.pop("version")
        if version == VERSION:
            return record_of(ClickOrigin, content)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"the metadata {KEY} is damaged", file=file, fix=_AGAIN) from None
    raise InputError(
        "grades from clicks by another version of karat", file=file, fix=f"upgrade, or {_AGAIN}"
    )


def _damaged(path: Path, error: BaseException) -> InputError:
    reason = str(error).split("\n", maxsplit=1)[0]
    return InputError(f"the Parquet data is damaged ({reason})", file=str(path), fix=_AGAIN)


def provenance_of(origin: ClickOrigin, frame: pl.DataFrame) -> Provenance:
    """Whose grades they are, for results; ``frame`` has ``logit`` and ``logit_se``."""
    cuts = ", ".join(f"{cut:g}" for cut in origin.cuts)
    known = frame.select("query_id", "doc_id", "logit", "logit_se").drop_nulls()
    points = CutPoints(tuple(origin.cuts), tuple(origin.grades))
    how = f"by {origin.model}, cut at {cuts}"
    return Provenance("clicks", how, Uncertain(known, points) if known.height else None)


def provenance_in(about: str, path: Path) -> Provenance:
    """The same of a file that was read as judgments; ``about`` is its metadata."""
    try:
        frame = pl.read_parquet(path, columns=["query_id", "doc_id", "logit", "logit_se"])
    except BROKEN as error:
        raise _damaged(path, error) from None
    return provenance_of(_origin(about, str(path)), frame)
