"""karat explain."""

from __future__ import annotations

from typing import Any

import click

from karat.cli import options


@options.command(
    "karat explain qrels.txt bm25.trec q42", "karat explain qrels.txt bm25.trec q42 -m AP --top 20"
)
@click.argument("qrels", metavar="QRELS")
@click.argument("run", metavar="RUN")
@click.argument("query_id", metavar="QUERY_ID")
@options.option("-m --measure MEASURE", "The measure.", "nDCG@10")
@options.option("--top N", "Show at least N ranks.", 10)
@options.option("--queries FILE", "The queries, to show their texts.")
@options.collapse
@options.documents
@options.rel
@options.scale
@options.measures_from
@options.output("table", "json")
@options.all_notes
@options.input_format
@options.qrels_format
def explain(
    qrels: str,
    run: str,
    query_id: str,
    measure: str,
    output: str,
    all_notes: bool,
    input_format: str | None,
    qrels_format: str | None,
    **settings: Any,
) -> None:
    """Explain why one query scored what it did, rank by rank.

    For every document: its rank (= marks a tie in score), grade, gain, discount, and what it adds
    to the score. These contributions sum to the score exactly.
    """
    from karat import formats
    from karat.reports.offline import explanation
    from karat.workflows.offline.explain import explain as explained

    settings["queries"] = settings["queries"] or (qrels if formats.holds_queries(qrels) else None)
    settings["documents"] = settings["documents"] or options.folder(qrels)
    judgments, read = formats.read_qrels(qrels, qrels_format), formats.read_run(run, input_format)
    found = explained(judgments, read, query_id, measure, **settings)
    options.emit(explanation, found, output, all_notes=all_notes)
