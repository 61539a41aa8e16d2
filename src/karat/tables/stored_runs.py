"""Runs and comparisons as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from karat.tables.about import brief

State = Literal["waiting", "done", "failed"]
"""State of a comparison: its numbers are requested, computed, or could not be computed."""


@dataclass(frozen=True)
class RunRow:
    """A stored run."""

    id: int  # number in the store
    name: str  # its first name, or the one it was requested by
    sha256: str  # hash of its content
    path: str  # its Parquet file, relative to the workspace; absolute if it is outside
    queries: int
    rows: int  # number of documents returned
    about: dict[str, Any]  # metadata: configuration, commit and so on
    added_us: int  # when it was first imported, microseconds UTC
    # Time of the last import under each of its names, microseconds UTC
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def recorded(self) -> str:
        """The metadata of its file in one line; empty without any."""
        return brief(self.about.get("recorded", {}))


@dataclass(frozen=True)
class ComparisonRow:
    """A stored comparison; its numbers are an artifact."""

    id: int
    set_id: int
    name: str
    runs: tuple[int, ...]  # ids of the runs, the baseline first
    settings: dict[str, Any]  # measures, attributes, margin, edition
    made_by: str
    created_us: int
    state: State
    error: str | None  # why it failed; None otherwise
    computed_us: int | None  # when its numbers were computed, or failed
    judgment_id: int | None  # the newest judgment when they were computed; None before
    key: str | None  # key of the artifact with its numbers; None before
