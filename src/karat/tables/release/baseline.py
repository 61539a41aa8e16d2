"""Saved baselines: the per-query values of a run, and the hashes of their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from karat.tables.checksum import checksum

VERSION = 1


@dataclass(frozen=True)
class SavedBaseline:
    """The values of one run."""

    karat: str  # version of karat that computed them
    run: str
    measures: tuple[str, ...]  # canonical names of the measures, in the order of `values`
    rel: float  # lowest grade that counts as relevant, for measures that do not set it
    complete: bool  # whether every query of the qrels counts
    depth: int | None  # depth at which rankings were cut; None if they were not
    collapse: str | None  # column by which chunks were folded into documents; None if they were not
    # SHA-256 of the inputs `qrels`, `queries`, `chunks` (the parent of each chunk, for `collapse`)
    # and `run`; None if there was no such input
    hashes: dict[str, str | None]
    # ok | empty | missing | failed for each query, including no-answer queries
    answered: dict[str, str]
    # For each query one value for each measure; None without a value
    values: dict[str, tuple[float | None, ...]]
    # 95th percentile of response times, in microseconds; None without times
    p95_us: float | None = None
    # Response time of each query, in microseconds; empty without times
    times_us: Mapping[str, float] = field(default_factory=dict)
    source: str = "baseline"  # its name in error messages

    @property
    def notes(self) -> list[str]:
        """Notes for the user who saves it."""
        count = sum(any(value is not None for value in row) for row in self.values.values())
        missing = [
            query
            for query, state in self.answered.items()
            if state == "missing" and any(value is not None for value in self.values[query])
        ]
        if not missing:
            return []
        are, more, them = ("is", "", "it") if len(missing) == 1 else ("are", ", …", "them")
        note = f"{len(missing):,} of {count:,} queries {are} not in {self.run} ({missing[0]}{more})"
        return [f"{note}, and the baseline has 0 for {them}"]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat gate --save-baseline``."""
        fields = asdict(self)
        del fields["answered"], fields["values"], fields["source"], fields["times_us"]
        queries = [
            {"query_id": query, "answered": state, "values": list(self.values[query])}
            | ({"latency_us": self.times_us[query]} if query in self.times_us else {})
            for query, state in self.answered.items()
        ]
        content = {"karat_baseline": VERSION} | fields | {"queries": queries}
        return content | {"sha256": checksum(content)}
