"""karat fuse."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.progress import watching
from karat.errors import UsageError

if TYPE_CHECKING:
    from karat.fusion import Tuned
    from karat.tables import Run


@options.command(
    "karat fuse bm25.trec dense.trec -o fused.trec",
    "karat fuse bm25.trec dense.trec --tune qrels.txt -m nDCG@10 -o fused.trec",
)
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@options.option(
    "-o --out FILE",
    "File for the fused run; its suffix sets the format.  [default: standard output, as TREC]",
    "-",
    show_default=False,
)
@options.option(
    "--method",
    "rrf: reciprocal rank; sum: weighted sum of normalised scores.  [default: rrf; sum with "
    "--tune]",
    type=click.Choice(["rrf", "sum"]),
)
@options.option("--k K", "With rrf: 1 / (K + rank).  [default: 60]", type=float)
@options.option(
    "--weights W,W…", "Comma-separated positive weights, one per run.  [default: all 1]"
)
@options.option(
    "--normalise",
    "With sum: normalisation of scores.  [default: min-max]",
    type=click.Choice(["min-max", "z-score", "sum", "none"]),
)
@options.option("--depth N", "Read the best N of each run, and keep the best N.", type=int)
@options.option("--name NAME", "Name of the fused run.  [default: rrf, sum or tuned]")
@options.option("--tune QRELS", "Tune the weights on these judgments, by cross-validation.")
@options.option("-m --measure MEASURE", "With --tune: the measure to optimise.  [default: nDCG@10]")
@options.option("--folds N", "With --tune: number of folds.  [default: 5]", type=int)
@options.option("--seed N", "With --tune: random seed.  [default: 0]", type=int)
@options.input_format
def fuse(
    runs: tuple[str, ...],
    out: str,
    method: str | None,
    k: float | None,
    weights: str | None,
    tune: str | None,
    measure: str | None,
    folds: int | None,
    seed: int | None,
    input_format: str | None,
    **settings: Any,
) -> None:
    """Fuse several runs into one.

    By reciprocal rank, which needs no comparable scores; or by a weighted sum of scores, normalised
    within each query, with given weights or weights tuned on judgments. In the sum, a document
    missing from a run gets the lowest score: 0, or that of the run's last document.
    """
    from karat import formats
    from karat.workflows.offline.fuse import fuse as fused
    from karat.workflows.offline.fuse import fuse_tuned

    numbers = None if weights is None else _numbers(weights)
    about_tuning: dict[str, Any] = {"measure": measure, "folds": folds, "seed": seed}
    asked = {option: value for option, value in about_tuning.items() if value is not None}
    if tune is None and asked:
        raise UsageError(f"--{next(iter(asked))} needs --tune", fix="--tune QRELS")
    if tune is not None and (k is not None or method == "rrf"):
        raise UsageError("--tune needs --method sum", fix="--method sum, without --k")
    if tune is not None and numbers is not None:
        raise UsageError("--tune and --weights exclude each other", fix="leave out one of the two")
    with watching() as watch:
        read = [formats.read_run(path, input_format, watch=watch) for path in runs]
    if tune is None:
        formats.write_run(fused(read, method or "rrf", k=k, weights=numbers, **settings), out)
        return
    about = tune if formats.holds_queries(tune) else None
    found = fuse_tuned(read, tune, queries=about, **asked, **settings)
    formats.write_run(found.run, out)
    for line in _tuning(found, read):
        print(f"karat: {line}", file=sys.stderr)


def _numbers(text: str) -> list[float]:
    numbers = []
    for part in text.split(","):
        try:
            numbers.append(float(part))
        except ValueError:
            raise UsageError(
                f"the weight {part.strip()!r} is not a number", fix="--weights 0.7,0.3"
            ) from None
    return numbers


def _tuning(found: Tuned, runs: list[Run]) -> list[str]:
    from karat.reports.phrases.numbers import counted

    value = "no value" if found.value is None else f"{found.value:.4f}"
    lines = [f"{found.measure} {value} over {found.n} queries, each with weights tuned on others"]
    for number, fold in enumerate(found.folds, start=1):
        queries = counted(len(fold.query_ids), "query")
        lines.append(f"fold {number}, {queries}: {_named(runs, fold.weights)}")
    lines.append(f"final weights, tuned on all queries: {_named(runs, found.weights)}")
    return lines


def _named(runs: list[Run], weights: tuple[float, ...]) -> str:
    return ", ".join(f"{run.name} {weight:.3g}" for run, weight in zip(runs, weights, strict=True))
