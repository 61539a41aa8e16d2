"""karat clicks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.online import _click_grades
from karat.cli.online import options as online_options


@click.group(
    epilog=options.examples(
        "karat clicks fit events --by device", "karat clicks fit pages.txt --model SDBN -f json"
    )
)
def clicks() -> None:
    """Click models: what clicks say about documents, with the effect of positions removed."""


@clicks.command(
    epilog=options.examples(
        "karat clicks fit events",
        "karat clicks fit events --by device --randomised order=random",
        "karat clicks fit train.txt --model DBN --held-out test.txt -f json",
    )
)
@click.argument("log", type=options.Place())
@options.option("-m --model NAME", "The click model; karat clicks models lists them.", "PBM")
@options.option(
    "--held-out LOG2", "Compute likelihood and perplexity on this log, in the form of LOG."
)
@options.option("--by ATTRIBUTE", "Also for each value of arm or of an attribute of searches.")
@options.option(
    "--presentation ATTRIBUTE",
    "How documents were shown, such as with an image: an attribute of impressions or searches.",
)
@options.option(
    "--randomised NAME=VALUE",
    "Searches with this value of an attribute had results in random order: they show how likely "
    "each rank is looked at without a model.",
)
@options.option(
    "--compat NAME",
    "pyclick: estimate as PyClick 98e7e46 does.",
    type=click.Choice(["pyclick"]),
)
@online_options.click_log
@options.output("table", "json", "md")
@options.all_notes
def fit(log: str | Path, output: str, all_notes: bool, **settings: Any) -> None:
    """Fit a click model: how likely each rank is looked at, and how well it predicts.

    LOG is an event store (see karat online import), a log file, or pages of results in the
    research form. Where the log cannot separate positions from documents, that is reported instead
    of examination.
    """
    from karat.cli.progress import working
    from karat.reports.online import clicks as shown
    from karat.workflows.online.click_fit import fit_clicks

    online_options.click_settings(log, settings)
    with working("events") as progress:
        result = fit_clicks(log, progress=progress, **settings)
    options.emit(shown, result, output, all_notes=all_notes)


@clicks.command(epilog=options.examples("karat clicks models", "karat clicks models PBM"))
@click.argument("name", metavar="[NAME]", required=False)
@options.output("table", "json", "md")
def models(name: str | None, output: str) -> None:
    """List the click models, or explain one: what it assumes, and what it cannot see."""
    from karat.reports.online import click_models as shown
    from karat.workflows.online.click_fit import models as listed

    found = listed(name)
    options.emit_entries(shown, found, output, one=name is not None)


clicks.add_command(_click_grades.judge)
clicks.add_command(_click_grades.agree)
