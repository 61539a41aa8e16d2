"""Golden sets as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from karat.tables.schema import Scale


@dataclass(frozen=True)
class Exchange:
    """The content of a file of another tool, in karat's tables."""

    format: str
    # `query_id` and any of `schema.QUERIES`; None if the file has none
    queries: pl.DataFrame | None = None
    # `doc_id` and any of `schema.DOCUMENTS`; None if the file has none
    documents: pl.DataFrame | None = None
    # `query_id`, `doc_id`, `grade` (null: could not be judged), `rater` (null: not named),
    # `reason`; None if the file has none
    judgments: pl.DataFrame | None = None
    # Rankings by name: `query_id`, `doc_id`, `score`
    runs: dict[str, pl.DataFrame] = field(default_factory=dict)
    # Lowest and highest grade; None if the file does not declare it
    scale: tuple[float, float] | None = None
    # Source of the judgments of each rater (`tables.judgments.SOURCES`), if the file has it
    sources: dict[str, str] = field(default_factory=dict)
    # Line of each judgment, from 1, by query, document and rater; empty if the format has no lines
    lines: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)  # what was converted, in sentences with counts
    # Assumptions where the file lacks information, in sentences
    assumed: list[str] = field(default_factory=list)
    # What the target (karat, or the other format) does not support, in sentences
    lost: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GoldenSetRow:
    """A golden set and its settings."""

    id: int  # number in the store
    name: str
    scale: Scale  # lowest and highest grade
    grades: dict[float, str]  # `label: criterion` by grade, ascending
    raters: int  # raters for each pair
    repeats: float  # share of a rater's judgments that are hidden repeats, 0 to 0.5
    salt: str  # salt of its hashes, which determine orders and repeats
    guideline: str  # version of the newest guideline: `1`, `2`, …
    guideline_text: str
    created_us: int  # when it was created, microseconds UTC


@dataclass(frozen=True)
class Edition:
    """An edition."""

    id: int
    name: str
    sha256: str  # hash of its content
    created_us: int
    # `scale`, `rule` (aggregation method), `guideline` (version), `agreement` and `policy` (in
    # sentences)
    about: dict[str, Any]
    queries: int  # number of queries
    grades: int  # number of grades


def addressable(name: str) -> bool:
    """Whether a golden set of this name can have pages: "a/b" and ".." are other addresses."""
    return "/" not in name and name not in {".", ".."} and name.isprintable()
