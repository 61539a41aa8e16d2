"""karat shadow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.tables import Qrels, Queries


@options.group(
    "karat shadow compare shadow.jsonl",
    "karat shadow run prod next --log queries.csv --out s.jsonl --rate 10",
)
def shadow() -> None:
    """Is it safe to show: a candidate asked next to the baseline, unseen by users."""


compared = options.together(
    options.option("-k", "Depth of the top.", 10, type=click.IntRange(1)),
    options.option(
        "--qrels FILE", "Judgments, for the change of nDCG.  [default: those of --workspace]"
    ),
    options.option(
        "--queries FILE",
        "Texts and attributes of the queries.  [default: those of --workspace, or a golden set in "
        "--qrels]",
    ),
    options.option(
        "--by SLICE",
        "Slice by an attribute of the queries, query_length, query_form or frequency_band; repeat.",
        multiple=True,
    ),
    options.option(
        "--limits FILE", "Limits of the candidate: [shadow] in a TOML file.  [default: built-in]"
    ),
    options.option(
        "--explained REASON", "Why answers overlap less than the limit; the reason is recorded."
    ),
    options.option(
        "--judge-next N",
        "List N judging priorities: unjudged documents of changed queries.",
        0,
        show_default=False,
        type=click.IntRange(min=0),
    ),
    options.option(
        "-w --workspace DIR", "A workspace, for its judgments and queries and its judging queue."
    ),
    options.option("--queue", "Add the judging priorities to the judging queue of the workspace."),
    options.output("table", "json", "md"),
    options.all_notes,
)


@options.command(
    "karat shadow compare shadow.jsonl --limits limits.toml",
    "karat shadow compare old.jsonl new.jsonl old-again.jsonl --qrels qrels.txt",
    of=shadow,
)
@click.argument("files", metavar="LOG | A B [A2]", nargs=-1, required=True)
@compared
def compare(files: tuple[str, ...], **how: Any) -> int:
    """Compare two sides' answers to the same requests: failures, latency, results, and a verdict.

    LOG is a shadow log, of karat shadow run or of karat.Shadow in your service. Or name runs of the
    baseline, of the candidate and, to know its noise, of the baseline again. Exit codes: 0 pass ·
    1 fail · 3 cannot tell.
    """
    return _compared(files, **how)


@options.command(
    "karat shadow run prod next --log queries.csv --out s.jsonl --rate 10",
    "karat shadow run prod next --log l.jsonl --out s.jsonl --load 10,20,50",
    of=shadow,
)
@click.argument("baseline")
@click.argument("candidate")
@options.option(
    "--log FILE",
    "The query log to replay, with times or counts; or a file of queries.",
    required=True,
)
@options.option("--out FILE", "The shadow log to write, .jsonl.", required=True)
@options.option("--speed", "How many times as fast as the log's times.", 1.0, type=float)
@options.option("--rate N", "Requests a second, instead of the log's times.", type=float)
@options.option("--load N,N", "Rising load: requests a second, one level after the other.")
@options.option("--seconds", "Length of each level of --load.", 30.0, type=float)
@options.option(
    "--warm-up N", "The first N requests are cold: counted by themselves.", 0,
    type=click.IntRange(min=0),
)  # fmt: skip
@options.option("--again/--once", "Ask the baseline twice, to know its noise.", True)
@options.option("--depth", "Documents to ask for.", 10, type=click.IntRange(1))
@options.option(
    "--timeout SECONDS", "Timeout of each call.  [default: that of the engine]", type=float
)
@options.option("--limit N", "Stop after N requests.", type=click.IntRange(1))
@options.option(
    "--workers", "Requests that wait for answers at once.", 64, type=click.IntRange(1, 1024)
)
@options.option("--seed", "Random seed of the order of sides.", 0, type=click.IntRange(min=0))
@compared
def run(baseline: str, candidate: str, **settings: Any) -> int:
    """Replay a query log against two engines, and compare their answers.

    BASELINE and CANDIDATE are declared in karat.toml ([engine.NAME]). Each request is sent at its
    time, whether or not earlier ones are answered, to both in random order. An interrupted replay
    goes on where it stopped when it is repeated. Exit codes: as karat shadow compare.
    """
    from karat.formats.own.engines import read_engine
    from karat.workflows.experiments.replay import Pace, replay, replayed_note

    out, log = settings.pop("out"), settings.pop("log")
    names = ("speed", "rate", "seconds", "warm_up")
    pace = Pace(load=_levels(settings.pop("load")), **{key: settings.pop(key) for key in names})
    configs = [read_engine(name, Path()) for name in (baseline, candidate)]
    asked = ("again", "depth", "timeout", "limit", "workers", "seed")
    how = {key: settings.pop(key) for key in asked}
    found = replay(configs, log, out, pace, shown=True, **how)
    print(f"karat: {replayed_note(found)}", file=sys.stderr)
    return _compared((out,), **settings)


def _levels(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(level) for level in (text or "").split(",") if text)
    except ValueError:
        raise UsageError(
            f"--load {text!r} is not a list of numbers", fix="--load 10,20,50"
        ) from None


def _compared(
    files: tuple[str, ...],
    *,
    qrels: str | None,
    queries: str | None,
    explained: str | None,
    workspace: str | None,
    queue: bool,
    output: str,
    all_notes: bool,
    **how: Any,
) -> int:
    from karat.cli.workspace.workspace import enqueue
    from karat.reports.experiments import shadow as shown
    from karat.workflows.experiments.shadow import compare_shadow, to_judge

    if queue and (workspace is None or not how["judge_next"]):
        raise UsageError(
            "--queue needs a workspace and documents to judge", fix="-w DIR --judge-next 20"
        )
    judged, known = _known(qrels, queries, workspace)
    found = compare_shadow(files, qrels=judged, queries=known, explained=explained or "", **how)
    if queue and workspace is not None:
        enqueue(workspace, to_judge(found, known), "to judge")
    options.emit(shown, found, output, all_notes=all_notes)
    return found.exit_code


def _known(
    qrels: str | None, queries: str | None, workspace: str | None
) -> tuple[Qrels | None, Queries | None]:
    """Judgments and queries: of files, or else of the workspace."""
    from karat import formats

    if queries is None and qrels is not None and formats.holds_queries(qrels):
        queries = qrels
    judged = None if qrels is None else formats.read_qrels(qrels)
    known = None if queries is None else formats.read_queries(queries)
    if workspace is None or (judged is not None and known is not None):
        return judged, known
    from karat.cli.workspace.workspace import opened
    from karat.workflows.workspace.stored_inputs import golden_queries, qrels_now

    with opened(Path(workspace)) as found:
        judged = qrels_now(found) if judged is None else judged
        return judged, golden_queries(found) if known is None else known
