"""karat clicks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.online import options as online_options


@click.group(
    epilog=options.examples(
        "karat clicks fit events --by device", "karat clicks fit pages.txt --model SDBN -f json"
    )
)
def clicks() -> None:
    """Click models: what clicks say about documents, with the effect of positions removed."""


def _only(texts: tuple[str, ...]) -> dict[str, str] | None:
    from karat.errors import UsageError

    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, value) in zip(texts, pairs, strict=True):
        if not (name.strip() and equals and value):
            raise UsageError(f"--only {text}: no value given", fix="--only NAME=VALUE")
    return {name.strip(): value for name, _, value in pairs} or None


@clicks.command(
    epilog=options.examples(
        "karat clicks fit events",
        "karat clicks fit events --by device --randomised order=random",
        "karat clicks fit train.txt --model DBN --held-out test.txt -f json",
    )
)
@click.argument("log", type=click.Path(path_type=Path))
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
@options.option("--depth RANK", "Leave out lower ranks.", 10, type=click.IntRange(1, 60))
@options.option(
    "--compat NAME",
    "pyclick: estimate as PyClick 98e7e46 does.",
    type=click.Choice(["pyclick"]),
)
@options.option(
    "--only NAME=VALUE",
    "Count only searches with this value of arm or an attribute; repeat for more.",
    multiple=True,
)
@online_options.days
@online_options.read_log
@online_options.rules
@online_options.engine
@options.output("table", "json", "md")
@options.all_notes
def fit(log: Path, output: str, all_notes: bool, **settings: Any) -> None:
    """Fit a click model: how likely each rank is looked at, and how well it predicts.

    LOG is an event store (see karat online import), a log file, or pages of results in the
    research form. Where the log cannot separate positions from documents, that is reported instead
    of examination.
    """
    from karat.cli.progress import working
    from karat.formats.events.click_pages import looks_like_pages
    from karat.online.rules import rules_from
    from karat.reports.online import clicks as shown
    from karat.tables.days import day_text
    from karat.workflows.online.click_fit import fit_clicks

    if not looks_like_pages(log):
        online_options.need_log(settings["engine"])
    for name in ("first", "last"):
        day = settings.pop(f"{name}_day")
        settings[name] = None if day is None else day_text(day)
    settings["only"] = _only(settings["only"])
    settings["rules"] = rules_from(settings["rules"])
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
    if output == "json":
        rows = [shown.as_json(model) for model in found]
        print(json.dumps(rows if name is None else rows[0], indent=2, ensure_ascii=False))
    elif output == "md":
        print(shown.markdown(found), end="")
    elif name is None:
        shown.show_entries(found, options.out())
    else:
        shown.show_entry(found[0], options.out())
