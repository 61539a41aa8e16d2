"""Exchange: the content of another tool's file, and how it was converted."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True)
class Exchange:
    """The content of a file of another tool, in karat's tables.

    Attributes:
        format: Name of the format.
        queries: ``query_id`` and any of ``schema.QUERIES``; None if the file has none.
        documents: ``doc_id`` and any of ``schema.DOCUMENTS``; None if the file has none.
        judgments: ``query_id``, ``doc_id``, ``grade`` (null: could not be judged), ``rater`` (null:
            not named), ``reason``; None if the file has none.
        runs: Rankings by name: ``query_id``, ``doc_id``, ``score``.
        scale: Lowest and highest grade; None if the file does not declare it.
        sources: Source of the judgments of each rater (``tables.judgments.SOURCES``), if the file
            has it.
        lines: Line of each judgment, from 1, by query, document and rater; empty if the format has
            no lines.
        kept: What was converted, in sentences with counts.
        assumed: Assumptions where the file lacks information, in sentences.
        lost: What the target (karat, or the other format) does not support, in sentences.
    """

    format: str
    queries: pl.DataFrame | None = None
    documents: pl.DataFrame | None = None
    judgments: pl.DataFrame | None = None
    runs: dict[str, pl.DataFrame] = field(default_factory=dict)
    scale: tuple[float, float] | None = None
    sources: dict[str, str] = field(default_factory=dict)
    lines: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
