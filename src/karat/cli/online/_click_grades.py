"""karat clicks judge, karat clicks agree."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from karat.cli import options
from karat.cli.online import options as online_options
from karat.cli.progress import working
from karat.cli.workspace.workspace import clock, opened
from karat.errors import UsageError


def _workspace(unless: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return options.option(
        "-w --workspace start DIR",
        f"A folder in the workspace.  [default: the current folder, unless {unless} is given]",
        type=click.Path(path_type=Path),
    )


def _cuts(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"the cut points {text!r} are not numbers", fix="--cut 0.1,0.3,0.6"
        ) from None


def _here(log: str | Path | None, *, preview: bool) -> Path | None:
    """The current folder; None if the grades of a log are counted outside of a workspace."""
    from karat.formats.own.workspace import find_workspace

    try:
        find_workspace(Path())
    except UsageError as error:
        if log is None:
            raise
        if not preview:
            raise UsageError(error.what, fix="-o FILE, or karat init") from None
        return None
    return Path()


@options.command(
    "karat clicks judge events --model PBM --preview",
    "karat clicks judge pages.txt --model SDBN -o grades.parquet",
    name="judge",
)
@click.argument("log", metavar="[LOG]", required=False, type=options.Place())
@options.option(
    "-m --model NAME",
    "A click model (karat clicks models), or naive: the share of impressions that ended in a "
    "satisfied click, which takes position for relevance.",
    "PBM",
)
@options.option(
    "--cut cuts VALUES",
    "Cut points, comma-separated: one for each grade above the lowest.  [default: 0.1,0.3,0.6, for "
    "the scale 0-3]",
    callback=_cuts,
)
@options.option("--least N", "Effective impressions that a pair needs for a grade.", 20.0)
@options.option(
    "--half-life TIME",
    "Age at which a page of results counts half, such as 30d.  [default: all count the same]",
)
@options.option(
    "--randomised NAME=VALUE",
    "Searches whose order was random, such as shuffled=yes: the examination of ranks is theirs.",
)
@options.option(
    "--presentation ATTRIBUTE",
    "How documents were shown, such as with an image: an attribute of impressions or searches.",
)
@_workspace("-o")
@options.option("-o --output-file file FILE", "Write the grades there: .parquet or .csv.")
@options.option("--preview", "Count the grades, and write nothing.")
@online_options.click_log
@options.output("table", "json", "md")
@options.all_notes
def judge(
    log: str | Path | None,
    start: Path | None,
    file: str | None,
    output: str,
    all_notes: bool,
    **settings: Any,
) -> None:
    """Make grades from clicks, with the effect of position removed.

    LOG is an event store, a log of events, or pages of results with clicks in the research form; by
    default the events of the workspace. Grades are written next to the store of the workspace, for
    the queries of its golden set, and never among people's judgments: karat evaluate --judgments
    clicks uses them.

    Exit codes: 0, or 3 if the log does not identify positions.
    """
    from karat.reports.online import click_grades
    from karat.workflows.online.click_judgments import judge_clicks

    online_options.click_settings(log, settings)
    within = (
        start if start is not None or file is not None else _here(log, preview=settings["preview"])
    )
    place = nullcontext(None) if within is None else opened(within)
    with place as workspace, working("events") as progress:
        found = judge_clicks(
            log, workspace=workspace, file=file, now=clock(), progress=progress, **settings
        )
    options.emit(click_grades, found, output, all_notes=all_notes)


@options.command(
    "karat clicks agree --by class",
    "karat clicks agree --clicks grades.parquet --qrels qrels.txt",
    name="agree",
)
@_workspace("--clicks")
@options.option("--clicks FILE", "Grades of karat clicks judge -o, as Parquet; needs --qrels.")
@options.option("--qrels FILE", "People's judgments, for --clicks.")
@options.option("--queries FILE", "With --clicks: texts and attributes of the queries.")
@options.option("--by ATTRIBUTE", "Also by this attribute of the queries.")
@options.rel
@options.option(
    "--queue",
    "Put pairs whose clicks oppose people's grade into the judging queue, for one more rater.",
)
@options.output("table", "json", "md")
@options.all_notes
def agree(
    start: Path | None,
    clicks: str | None,
    rel: float | None,
    output: str,
    all_notes: bool,
    **settings: Any,
) -> None:
    """Show how far grades from clicks agree with people's, and which cut points agree best."""
    from karat.reports.online import click_grades
    from karat.workflows.offline.parts import user
    from karat.workflows.online.click_agreement import agree_clicks

    settings["rel"] = 1.0 if rel is None else rel
    if clicks is not None and start is not None:
        raise UsageError(
            "a workspace has its own grades from clicks", fix="--clicks or --workspace"
        )
    place = nullcontext(None) if clicks is not None else opened(start or Path())
    with place as workspace:
        found = agree_clicks(workspace, clicks=clicks, person=user(), now=clock(), **settings)
    options.emit(click_grades, found, output, all_notes=all_notes)
