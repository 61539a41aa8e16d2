"""Exchange: the content of another tool's file, and how it was converted."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl


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
