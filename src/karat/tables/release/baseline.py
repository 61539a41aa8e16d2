"""Saved baselines: the values of a run, query by query, and what they were computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from karat.tables.checksum import checksum

VERSION = 1


@dataclass(frozen=True)
class SavedBaseline:
    """The values of one run.

    Attributes:
        karat: Version of karat that computed them.
        run: Name of the run.
        measures: Canonical names of the measures, in the order of ``values``.
        rel: Lowest grade that counts as relevant, where a measure does not say.
        complete: Whether every query of the qrels counts.
        depth: Depth at which rankings were cut, or None.
        collapse: Column by which chunks were folded into documents; None if they were not.
        hashes: SHA-256 of what they were computed from: ``qrels``, ``queries``, ``chunks`` (which
            chunk belongs to which document, for ``collapse``) and ``run``; None where there was
            none.
        answered: ok | empty | missing | failed for each query, those without a right answer too.
        values: For each query one value for each measure; None where there is none.
        p95_us: 95th percentile of the times to an answer; None without times.
        times_us: The time to an answer by query, in microseconds; empty without times.
        source: What messages call it.
    """

    karat: str
    run: str
    measures: tuple[str, ...]
    rel: float
    complete: bool
    depth: int | None
    collapse: str | None
    hashes: dict[str, str | None]
    answered: dict[str, str]
    values: dict[str, tuple[float | None, ...]]
    p95_us: float | None = None
    times_us: Mapping[str, float] = field(default_factory=dict)
    source: str = "baseline"

    @property
    def notes(self) -> list[str]:
        """Sentences that whoever saves it must know."""
        count = sum(any(value is not None for value in row) for row in self.values.values())
        lacking = [
            query
            for query, state in self.answered.items()
            if state == "missing" and any(value is not None for value in self.values[query])
        ]
        if not lacking:
            return []
        are, more, them = ("is", "", "it") if len(lacking) == 1 else ("are", ", …", "them")
        said = f"{len(lacking):,} of {count:,} queries {are} not in {self.run} ({lacking[0]}{more})"
        return [f"{said}, and the baseline has 0 for {them}"]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of ``karat gate --save-baseline``; queries one by one."""
        held = asdict(self)
        del held["answered"], held["values"], held["source"], held["times_us"]
        queries = [
            {"query_id": query, "answered": state, "values": list(self.values[query])}
            | ({"latency_us": self.times_us[query]} if query in self.times_us else {})
            for query, state in self.answered.items()
        ]
        content = {"karat_baseline": VERSION} | held | {"queries": queries}
        return content | {"sha256": checksum(content)}
