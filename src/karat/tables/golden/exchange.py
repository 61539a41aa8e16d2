"""Exchange: what another tool's file held, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True)
class Exchange:
    """The content of a file of another tool, in karat's tables.

    Attributes:
        format: Name of the format.
        queries: ``query_id`` and any of ``schema.QUERIES``; None if the file has none.
        documents: ``doc_id`` and any of ``schema.DOCUMENTS``; None likewise.
        judgments: ``query_id``, ``doc_id``, ``grade`` (null: could not be judged), ``rater`` (null:
            nobody is named), ``reason``; None likewise.
        runs: Rankings by name: ``query_id``, ``doc_id``, ``score``.
        scale: Lowest and highest grade that a judgment can give; None if nothing says so.
        sources: Where the judgments of a rater come from (``tables.judgments.SOURCES``), where the
            file says so.
        lines: Where judgments stand, by query, document and rater; empty where a format has no
            lines.
        kept: What was taken over, in sentences with counts.
        assumed: What the file does not say and was assumed.
        lost: What the file says and karat, or the other format, has no place for.
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
