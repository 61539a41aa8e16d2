"""Tally: counts findings in a file by code, with the first lines of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from karat.tables.findings import SEVERITIES, Finding, shown
from karat.workflows.lint._codes import CODES

KEPT = 5

Lines = Sequence[int] | NDArray[np.int64]


@dataclass(slots=True)
class _Entry:
    count: int = 0
    lines: list[int] = field(default_factory=list)
    example: str | None = None
    query: str | None = None
    says: str | None = None
    fix: str | None = None


class Tally:
    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def add(
        self,
        code: str,
        lines: Lines = (),
        *,
        count: int | None = None,
        example: str | None = None,
        query: str | None = None,
        says: str | None = None,
        fix: str | None = None,
    ) -> None:
        """Count a finding. Of ``example``, ``query``, ``says``, ``fix`` the first given is kept."""
        assert code in CODES, code
        entry = self._entries.setdefault(code, _Entry())
        entry.count += len(lines) if count is None else count
        if len(entry.lines) < KEPT:
            new = [int(line) for line in lines[: 2 * KEPT] if line > 0]
            entry.lines = sorted({*entry.lines, *new})[:KEPT]
        entry.example = entry.example if entry.example is not None else example
        entry.query = entry.query if entry.query is not None else query
        entry.says = entry.says if entry.says is not None else says
        entry.fix = entry.fix if entry.fix is not None else fix

    def merge(self, other: Tally) -> None:
        for code, entry in other._entries.items():
            self.add(
                code,
                entry.lines,
                count=entry.count,
                example=entry.example,
                query=entry.query,
                says=entry.says,
                fix=entry.fix,
            )

    def __contains__(self, code: str) -> bool:
        return code in self._entries

    def findings(self, file: str, unit: str = "line") -> list[Finding]:
        """The findings, most severe first; ``unit`` is what lines are called."""
        findings = [
            Finding(
                code=name,
                severity=CODES[name].severity,
                file=file,
                message=entry.says or CODES[name].says,
                why=CODES[name].why,
                fix=(entry.fix or CODES[name].fix).replace("FILE", file),
                count=entry.count,
                noun=unit if CODES[name].noun == "line" else CODES[name].noun,
                lines=tuple(entry.lines),
                query=None if entry.query is None else shown(entry.query),
                example=None if entry.example is None else shown(entry.example),
            )
            for name, entry in self._entries.items()
            if entry.count
        ]
        order = list(CODES)
        findings.sort(key=lambda each: (SEVERITIES.index(each.severity), order.index(each.code)))
        return findings
