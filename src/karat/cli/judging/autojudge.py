"""karat autojudge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.progress import working
from karat.errors import KaratError, UsageError

if TYPE_CHECKING:
    from karat.workflows.judging.autojudge import ToJudge

_FILES = options.together(
    options.option(
        "--qrels QRELS", "Without a workspace: judgments by people; their pairs are judged."
    ),
    options.option(
        "--queries QUERIES", "The queries, with texts, where QRELS does not have them (as BEIR)."
    ),
    options.option("--documents DOCUMENTS", "The documents, with texts, likewise."),
)


@options.group(
    "karat autojudge run cheap --dry-run",
    "karat autojudge certify cheap --qrels my-beir-folder",
)
def autojudge() -> None:
    """Grade documents by machine judges, and measure what their grades are worth.

    Judges are declared in karat.toml ([judge.NAME]): an OpenAI-compatible API, a program or a
    function. Their grades are kept apart from people's.
    """


@options.command(
    "karat autojudge run cheap --dry-run",
    "karat autojudge run cheap pool.csv --budget 2",
    "karat autojudge run cheap --qrels my-beir-folder -o grades.csv",
    of=autojudge,
)
@click.argument("judge")
@click.argument("pairs", required=False)
@_FILES
@options.option("--dry-run", "Say how many requests, tokens and dollars it takes; ask nothing.")
@options.option("--budget DOLLARS", "Most dollars of this run.", type=click.FloatRange(min=0))
@options.option("--patient", "Go on when many pairs get no grade.")
@options.option("-o --out FILE", "Write the grades here: .csv, .jsonl or .parquet.")
@options.option(
    "--batch-out FILE",
    "Ask nothing: write the requests here, as a batch file of OpenAI's form (.jsonl).",
)
@options.option(
    "--batch-in FILE",
    "Ask nothing: read the answers of a batch, also a part of them. Repeatable.",
    multiple=True,
)
@options.output("table", "json")
def run(
    judge: str,
    pairs: str | None,
    dry_run: bool,
    budget: float | None,
    patient: bool,
    out: str | None,
    batch_out: str | None,
    batch_in: tuple[str, ...],
    output: str,
    **files: str | None,
) -> int:
    """Grade pairs of queries and documents by a machine judge.

    PAIRS is a file of pairs; without it and --qrels, the pairs of the golden set of the current
    folder's workspace are graded, where the grades are stored, as those of a machine. Pairs that
    were graded before are not asked for again: an interrupted run goes on.

    Exit codes: 0 all pairs have an outcome, 1 some have none (--budget, or an interruption), 4
    the judge cannot be asked.
    """
    from karat.formats.own.judges import read_judge
    from karat.formats.own.machine_grades import check_name, write_grades
    from karat.reports.judging import autojudge as report
    from karat.workflows.judging import batches
    from karat.workflows.judging.autojudge import judgments_frame, plan
    from karat.workflows.judging.autojudge import run as judged

    config = read_judge(judge, Path())
    if out is not None:
        check_name(out)
    given, store = _given(pairs, **files)
    planned = None
    if dry_run:
        planned = plan(config, given.pairs)
    elif batch_out is not None:
        planned = batches.batch_out(config, given.pairs, Path(batch_out), budget=budget)
    if planned is not None:
        options.print_or_show(vars(planned), output, lambda out: report.show_plan(planned, out))
        return 0
    with _ticking(len(given.pairs)) as tick:
        if batch_in:
            found = batches.batch_in(config, given.pairs, batch_in, tick)
        else:
            found = judged(config, given.pairs, budget=budget, patient=patient, tick=tick)
    if found.stopped and not found.judged:
        raise KaratError(found.stopped)
    if out is not None:
        write_grades(judgments_frame(found), out)
    if store:
        from karat.cli.workspace.workspace import opened
        from karat.workflows.judging.machine_grades import store_grades

        with opened(Path()) as workspace:
            store_grades(workspace, found)
    count = len({(pair.query_id, pair.doc_id) for pair in given.pairs})
    options.print_or_show(
        report.run_json(found, count),
        output,
        lambda out: report.show_run(found, count, out, given.notes),
    )
    return 1 if len(found.judged) < count else 0


@options.command(
    "karat autojudge certify cheap --by class",
    "karat autojudge certify cheap --qrels my-beir-folder",
    "karat autojudge certify cheap --run bm25.trec --run dense.trec",
    of=autojudge,
)
@click.argument("judge")
@_FILES
@options.option("--pairs N", "Number of pairs with grades by people.", 300, type=click.IntRange(1))
@options.option("--tests N", "Number of pairs of each test.", 24, type=click.IntRange(0))
@options.option("--by ATTRIBUTE", "An attribute of the queries: κ in each of its slices.")
@options.option(
    "--run runs RUN",
    "Whether the order of these runs, and their differences to the first, are those by people's "
    "grades; whole queries are judged then. Repeatable.",
    multiple=True,
)
@options.option("--measure NAME", "The measure of the runs.", "nDCG@10")
@options.output("table", "json")
def certify(
    judge: str,
    pairs: int,
    tests: int,
    by: str | None,
    runs: tuple[str, ...],
    measure: str,
    output: str,
    **files: str | None,
) -> int:
    """Measure a machine judge against people's grades, and write its passport.

    The passport has agreement with people, confusion, outcomes, costs, and tests: padding,
    keywords, orders in documents, documents that only look relevant, and asking again; with a
    passport of before, also drift. The judge is certified if the lower end of κ reaches its bar
    (kappa in karat.toml) and no test fails.

    Exit codes: 0 certified, 1 candidate, 4 the judge cannot be asked.
    """
    from karat.formats import read_run
    from karat.formats.own.judges import read_judge
    from karat.formats.own.passports import write_passport
    from karat.reports.judging import autojudge as report
    from karat.reports.writers.plain import to_json
    from karat.workflows.judging import autojudge as judging

    config = read_judge(judge, Path())
    read = [read_run(run) for run in runs]
    given, _ = _given(None, by=by, **files)
    with _ticking(min(pairs, len(given.pairs)) + 5 * tests) as tick:
        found = judging.certify(
            config, given, pairs=pairs, tests=tests, runs=read, measure=measure, tick=tick
        )
    if not found.states:
        raise KaratError("; ".join(found.notes))
    content = report.passport_json(found)
    write_passport(config.root, config.rater, to_json(content))
    options.print_or_show(
        content, output, lambda out: report.show_passport(content, out, given.notes)
    )
    return 0 if found.verdict == "certified" else 1


@options.command(
    "karat autojudge doubts cheap --queue",
    "karat autojudge doubts cheap strict --budget 40 -o chances.csv",
    "karat autojudge doubts cheap --run bm25.trec --run dense.trec --queue",
    of=autojudge,
)
@click.argument("judges", metavar="JUDGE…", nargs=-1, required=True)
@options.option("--qrels QRELS", "Without a workspace: judgments by people.")
@options.option("--budget N", "Number of pairs to draw.", 50, type=click.IntRange(1))
@options.option(
    "--run runs RUN",
    "Draw what moves the mean of this run; twice, the difference of the two.",
    multiple=True,
)
@options.option("--measure NAME", "The measure of the runs: P@k, DCG@k or RBP.", "DCG@10")
@options.option("--queue", "Put the pairs into the judging queue of the workspace.")
@options.option("-o --out FILE", "Write the chances of all pairs here, for --chances.")
@options.output("table", "json")
def doubts(
    judges: tuple[str, ...],
    qrels: str | None,
    runs: tuple[str, ...],
    queue: bool,
    out: str | None,
    output: str,
    **how: Any,
) -> None:
    """List the pairs that people should look at next to what machine judges graded.

    Pairs that people have not judged are drawn by chance: the more likely the machine errs, or the
    further several judges disagree, and the more a pair moves the result of the runs, the higher
    its chance. An estimate may use what people say of them: --machine-grades with --chances. Pairs
    whose grades by people and by the machine are two steps apart follow; in the queue, one more
    person judges these.
    """
    from karat import formats
    from karat.formats.own.judges import read_judge
    from karat.formats.own.machine_grades import check_name, write_grades
    from karat.reports.judging import autojudge as report
    from karat.workflows.judging import doubts as verbs

    if out is not None:
        check_name(out)
    configs = [read_judge(judge, Path()) for judge in dict.fromkeys(judges)]
    how["runs"] = [formats.read_run(run) for run in runs]
    if qrels is not None:
        if queue:
            raise UsageError("--queue needs a workspace, and --qrels is without one")
        people = formats.read_qrels(qrels).frame
        found = verbs.doubts(configs, people, salt="karat doubts", **how)
    else:
        from karat.cli.workspace.workspace import clock, opened
        from karat.workflows.judging.machine_grades import doubts_in

        with opened(Path()) as workspace:
            found = doubts_in(workspace, configs, queue=queue, now=clock(), **how)
    if out is not None:
        write_grades(found.chances, out)
    options.print_or_show(
        report.doubts_json(found.pairs, found.queued),
        output,
        lambda out: report.show_doubts(found.pairs, found.queued, out),
    )


@options.command("karat autojudge list --format json", of=autojudge, name="list")
@options.output("table", "json")
def list_(output: str) -> None:
    """List the declared judges, with their passports and costs."""
    from karat.formats.own.judges import read_judges
    from karat.reports.judging import autojudge as report
    from karat.workflows.judging.machine_judges import judge_states

    rows = report.judges_rows(judge_states(list(read_judges(Path()).values())))
    options.print_or_show(rows, output, lambda out: report.show_judges(rows, out))


@options.command("karat autojudge show cheap", of=autojudge)
@click.argument("judge")
@options.output("table", "json")
def show(judge: str, output: str) -> None:
    """Print the passport of a judge."""
    from karat.formats.own.judges import read_judge
    from karat.formats.own.passports import read_passport
    from karat.reports.judging import autojudge as report

    config = read_judge(judge, Path())
    found = read_passport(config.root, config.rater)
    if found is None:
        raise UsageError(
            f"{config.rater} has no passport", fix=f"karat autojudge certify {config.name}"
        )
    options.print_or_show(found, output, lambda out: report.show_passport(found, out))


@options.command(
    "karat autojudge fake-server --qrels q.txt --confusion m.csv --port 8099", of=autojudge
)
@click.option("--qrels", metavar="QRELS", required=True, help="The true grades.")
@click.option(
    "--confusion",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="A matrix as CSV: a row for each true grade, a column for each given one.",
)
@options.option("--port", "The port; 0 for a free one.", 0, type=click.IntRange(0, 65535))
@options.option("--seed", "Of its errors.", 0)
def fake_server(qrels: str, confusion: Path, port: int, seed: int) -> None:
    """Serve an OpenAI-compatible judge that knows the grades and errs as given, on loopback.

    For rehearsals and tests without a key: the worth of such a judge is known. It answers until
    it is interrupted.
    """
    from karat import formats
    from karat.clients.llm.fake_server import FakeJudge, read_confusion, serve

    rows = formats.read_qrels(qrels).frame.select("query_id", "doc_id", "grade").iter_rows()
    grades = {(query_id, doc_id): float(grade) for query_id, doc_id, grade in rows}
    fake = FakeJudge(grades, read_confusion(confusion), seed=seed)

    def started(url: str) -> None:
        print(f'base_url = "{url}"', flush=True)

    try:
        serve(fake, port, started)
    except KeyboardInterrupt:
        return


@contextmanager
def _ticking(total: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar with the cost so far."""
    from karat.reports.judging.autojudge import dollars

    with working("judging") as bar:

        def tick(done: int, nano: int) -> None:
            if bar is not None:
                bar(done, total, f"judging, {dollars(nano / 1e9)}")

        yield tick


def _given(
    pairs: str | None,
    *,
    qrels: str | None,
    queries: str | None,
    documents: str | None,
    by: str | None = None,
) -> tuple[ToJudge, bool]:
    """What is to be judged, and whether it is that of the workspace."""
    from karat import formats
    from karat.workflows.judging.autojudge import pairs_to_judge

    if pairs is None and qrels is None:
        if queries is not None or documents is not None:
            raise UsageError("no pairs", fix="--qrels QRELS, or a file of pairs")
        from karat.cli.workspace.workspace import opened
        from karat.workflows.judging.machine_grades import pairs_of_golden_set

        with opened(Path()) as workspace:
            return pairs_of_golden_set(workspace, by=by), True
    if qrels is not None and Path(qrels).is_dir():
        queries, documents = queries or qrels, documents or qrels
    if queries is None or documents is None:
        missing = "--queries" if queries is None else "--documents"
        raise UsageError(f"{missing} is missing", fix=f"{missing} FILE, with their texts")
    chosen = formats.read_qrels(qrels) if qrels is not None else formats.read_pairs(str(pairs))
    read = pairs_to_judge(
        chosen, formats.read_queries(queries), formats.read_documents(documents), by=by
    )
    return read, False
