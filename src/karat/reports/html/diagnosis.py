"""A diagnosis as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from karat.reports.charts.diagnosis import bump
from karat.reports.diagnosis.diagnosis import queries_table, roads_table, summary, tables
from karat.reports.html.page import styled
from karat.reports.table import Column, Table
from karat.tables.diagnosis.results import Diagnosis, Road, StageRow

_SIZE = 'width="160" height="10" viewBox="0 0 160 10" preserveAspectRatio="none"'
_QUERIES = 100  # failing queries that are listed


def to_page(found: Diagnosis, roads: Mapping[str, Sequence[Road]]) -> str:
    """The diagnosis as one HTML file that loads nothing else; ``roads`` by query."""
    texts = {row.query_id: row.text for row in found.queries}
    followed = [
        (
            f"{texts[query]} ({query})" if texts.get(query) else query,
            bump(query, documents),
            roads_table(query, documents),
        )
        for query, documents in roads.items()
        if documents
    ]
    return styled(
        "diagnosis.html.j2",
        kind="diagnosis",
        title=f"Why queries of {found.run} fail",
        summary=summary(found),
        pipeline=found.pipeline,
        tables=list(_tables(found)),
        roads=followed,
        notes=found.notes,
    )


def _tables(found: Diagnosis) -> Iterator[Table]:
    for table in tables(found):
        if table.rows is found.stages:
            yield _drawn(table, found.stages)
        elif table.title == queries_table(found).title:
            yield queries_table(found, _QUERIES)
        else:
            yield table


def _drawn(table: Table, stages: Sequence[StageRow]) -> Table:
    """The waterfall, with a bar in each row: returned, lost, and the rest."""
    most = max([1, *(row.relevant_in for row in stages)])

    def bar(row: StageRow) -> str:
        shares = [(most, "line"), (row.relevant_in, "down"), (row.relevant_out, "up")]
        drawn = "".join(
            f'<rect width="{160 * count / most:.1f}" height="10" fill="var(--{ink})"/>'
            for count, ink in shares
        )
        said = f"returned {row.relevant_out:,} of {row.relevant_in:,}, lost {row.lost:,}"
        return f'<svg {_SIZE} role="img" aria-label="{said}">{drawn}</svg>'

    column = Column("bar", "Returned, lost", value=lambda _: "", html=bar)
    return replace(table, columns=(*table.columns[:2], column, *table.columns[2:]))
