"""Results in the output format of trec_eval: name padded to 22, topic, value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat.measures import Measure, parse
from karat.measures.names import trec_name
from karat.measures.trec import in_trec_order
from karat.tables import Results


def lines(
    results: Results, run: str, *, per_query: bool = False, runid: str | None = None
) -> Iterator[str]:
    """The lines trec_eval prints for one run."""
    rows = {row.measure: row.value for row in results.results if row.run == run}
    measures = in_trec_order([parse(name) for name in rows])
    if per_query:
        yield from _topics(results, run, measures)
    if runid is not None:
        yield f"{'runid':<22}\tall\t{runid}"
    for measure in measures:
        value = rows[str(measure)]
        if value is not None:
            yield _line(measure, "all", value)


def _topics(results: Results, run: str, measures: Sequence[Measure]) -> Iterator[str]:
    values = {(row.query_id, row.measure): row.value for row in results.per_query if row.run == run}
    printed = [measure for measure in measures if not measure.entry.summary_only]
    for query_id in sorted({query for query, _ in values}, key=str.encode):
        for measure in printed:
            value = values[query_id, str(measure)]
            if value is not None:
                yield _line(measure, query_id, value)


def _line(measure: Measure, topic: str, value: float) -> str:
    shown = f"{value:.0f}" if measure.entry.integer else f"{value:6.4f}"
    return f"{trec_name(measure):<22}\t{topic}\t{shown}"
