"""karat measures."""

from __future__ import annotations

import click

from karat.cli import options


@options.command("karat measures", "karat measures nDCG", "karat measures --for rag")
@click.argument("name", metavar="[NAME]", required=False)
@options.option(
    "--for task TASK",
    "Which measures to use, and why, for one-number, rag, qa, navigation, retrieval, documents, "
    "hybrid, support, ecommerce, code, medical, legal or research.",
)
@options.measures_from
@options.output("table", "json", "md")
def measures(name: str | None, task: str | None, output: str) -> None:
    """List the measures, explain one, or say which to use for a task.

    NAME may be in any spelling: nDCG@10, ndcg_cut_10, MRR.
    """
    from karat.measures import entries
    from karat.reports.offline import catalogue as shown
    from karat.workflows.offline import catalogue

    if task is not None:
        advice = catalogue.find_task(task)
        content = shown.task_as_json(advice)
        options.print_or_show(content, output, lambda out: shown.show_task(advice, out))
        return
    found = entries() if name is None else [catalogue.find_entry(name)]
    options.emit_entries(shown, found, output, one=name is not None)
