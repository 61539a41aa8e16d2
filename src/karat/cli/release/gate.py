"""karat gate."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import mistakes, options
from karat.cli.offline import inputs
from karat.cli.pages import need_report, show_page, write_page
from karat.cli.workspace.workspace import clock, need_store
from karat.errors import InputError, KaratError, UsageError

if TYPE_CHECKING:
    from karat.release.policy import Policy
    from karat.reports.release.gate import Failed
    from karat.tables.release.gate import Gate

_POLICY = "--policy FILE; karat gate --init writes a starter policy"
_STARTING = ("qrels", "runs", "policy", "queries", "input_format", "qrels_format")


@options.command(
    "karat gate --init qrels.txt main.trec",
    "karat gate --policy gate.toml qrels.txt main.trec candidate.trec",
    "karat gate --save-baseline main.json -m nDCG@10 qrels.txt main.trec",
)
@click.argument("qrels", metavar="QRELS", required=False)
@click.argument("runs", metavar="[BASELINE] CANDIDATE", nargs=-1)
@options.option("--policy FILE", "Policy that the candidate must pass (TOML).")
@options.option(
    "--init",
    "Write a starter policy to --policy FILE or gate.toml; with QRELS RUN, adapted to them.",
)
@options.option(
    "--save-baseline FILE",
    "Save the values of QRELS RUN as a baseline (.json), by the policy's measures or -m.",
)
@options.measures("With --save-baseline: a measure to save; repeat for more.")
@options.part
@options.queries
@options.rel
@options.scale
@options.fully_judged
@options.complete
@options.depth
@options.collapse
@options.documents
@options.output("table", "json", "junit", "github", "md")
@options.all_notes
@options.page
@options.history
@options.option(
    "--no-keep",
    "In the folder of a workspace: do not store the result, which its page Gates would show.",
)
@options.option(
    "--notify URL",
    "Post the result as JSON unless it passes; signed if KARAT_WEBHOOK_SECRET is set.",
)
@options.read
def gate(
    save_baseline: str | None, output: str, notify: str | None, commit: str | None, **given: Any
) -> int:
    """Check a candidate against a policy: can it ship?

    BASELINE is a run or a saved baseline; leave it out if no rule is about a drop. Exit codes: 0
    every rule passes · 1 a rule fails · 3 cannot tell (too little evidence, an unhealthy search, a
    stale baseline) · 4 a rule cannot be applied.
    """
    if given.pop("init"):
        return _start(**{key: given[key] for key in _STARTING})
    if given["qrels"] is None or not given["runs"]:
        raise click.UsageError("a gate needs QRELS and a run.")
    reporting: dict[str, Any] = {"output": output, "notify": notify, "commit": commit}
    try:
        return _gate(save_baseline=save_baseline, **reporting, **given)
    except Exception as error:
        if save_baseline is not None:
            raise
        return _failed(error, **reporting)


def _start(
    qrels: str | None,
    runs: tuple[str, ...],
    policy: str | None,
    queries: str | None,
    input_format: str | None,
    qrels_format: str | None,
) -> int:
    from karat import formats
    from karat.workflows.release.gate import DEFAULT, start_policy

    typed = options.options_except(click.get_current_context(), {"init", *_STARTING})
    if typed:
        raise UsageError(f"--init does not take {typed[0]}", fix="karat gate --init QRELS RUN")
    path, judgments, run = policy or DEFAULT, None, None
    if qrels is not None:
        if len(runs) != 1:
            raise UsageError(
                f"--init expects one run, got {len(runs)}", fix="karat gate --init QRELS RUN"
            )
        with _in_order(1, saving=True):
            run = formats.read_run(runs[0], input_format)
            judgments = formats.read_qrels(qrels, qrels_format)
        if not queries and formats.holds_queries(qrels):
            queries = qrels
    start_policy(path, judgments, run, queries=queries)
    files = shlex.join([path, *([] if qrels is None else [qrels, *runs])])
    names = "QRELS BASELINE CANDIDATE" if qrels is None else "CANDIDATE"
    print(f"karat: wrote {path}, a policy to start with: review it, and change what does not fit")
    print(f"next: karat gate --policy {files} {names}")
    return 0


def _gate(
    qrels: str,
    runs: tuple[str, ...],
    policy: str | None,
    save_baseline: str | None,
    measures: tuple[str, ...],
    output: str,
    all_notes: bool,
    report: str | None,
    open_page: bool,
    history: str | None,
    commit: str | None,
    corpus: str | None,
    series: str | None,
    notify: str | None,
    no_keep: bool,
    input_format: str | None,
    qrels_format: str | None,
    part: str | None,
    **settings: Any,
) -> int:
    from karat import formats
    from karat.cli.release.trend import commit as commit_of
    from karat.formats.own.baseline import holds_baseline
    from karat.formats.own.policy import read_policy
    from karat.reports.release import gate as reports
    from karat.workflows.release.gate import gate as hold

    if notify is not None:
        from karat.clients import webhook

        webhook.checked(notify)
    if policy is None and save_baseline is None:
        raise UsageError("no policy to check the candidate against", fix=_POLICY)
    need_report(report, opened=open_page)
    _refuse_files(runs, saving=save_baseline is not None)
    if measures and (save_baseline is None or policy is not None):
        raise UsageError("-m has no effect here: the policy names the measures", fix="leave -m out")
    spec = None if policy is None else read_policy(policy, settings["rel"])
    by = {"by": spec.attributes if spec else []}
    settings["documents"] = options.documents_in(qrels, settings | by)
    with _in_order(len(runs), saving=save_baseline is not None):
        judgments, read, uses = inputs.read(
            qrels,
            lambda watch: [
                path
                if len(runs) > at + 1 and holds_baseline(path)
                else formats.read_run(
                    path, input_format, watch=watch, may_be_empty=save_baseline is None
                )
                for at, path in enumerate(runs)
            ],
            settings,
            qrels_format=qrels_format,
            part=part,
        )
    demands = spec is not None and (spec.fully_judged or spec.health.min_judged is not None)
    keys = ("scale",) if demands else ("scale", "fully_judged")
    options.fill_defaults(settings, qrels, judgments, keys)
    if save_baseline is not None:
        wanted = [str(measure) for measure in spec.measures] if spec else list(measures) or None
        return _save(save_baseline, judgments, read[0], wanted, settings, uses)
    code, now = commit_of(commit, os.environ), clock()
    before = [None] * (len(read) == 1)
    found = hold(spec, judgments, *before, *read, **settings, commit=code)
    found.notes[:0] = uses(commit=code)
    # The verdict first, whether or not the rest fails.
    options.emit(reports, found, output, all_notes=all_notes)
    page = None if no_keep else _keep(found, code, now)
    further = []
    if history is not None:
        rules, run = {**settings, "part": part}, read[-1]
        further.append(lambda: _append(history, found, run, code, now, corpus, rules, series))
    if report is not None:
        further.append(lambda: _report(report, found, spec, read, judgments, qrels, settings))
        if open_page:
            further.append(lambda: show_page(report))
    if notify is not None:
        further.append(lambda: _notify(notify, found, code, page))
    return _then(found.exit_code, further)


def _save(
    path: str,
    judgments: Any,
    run: Any,
    measures: Sequence[str] | None,
    settings: Mapping[str, Any],
    uses: Callable[[], Sequence[str]],
) -> int:
    from karat.workflows.release.baseline import save_baseline

    rules = {name: value for name, value in settings.items() if name != "fully_judged"}
    saved = save_baseline(path, judgments, run, measures, **rules)  # that changes no value
    what = f"{', '.join(saved.measures)} of {saved.run}"
    options.notes_aside([f"{path} holds {what}", *uses(), *saved.notes])
    return 0


def _keep(found: Gate, commit: str | None, now: int) -> str | None:
    """Store the result if the current folder is in a workspace; the path of its page.

    A failure is a note: it does not change the verdict.
    """
    from karat.formats.own.workspace import declares_store, find_workspace
    from karat.workflows.offline.parts import user

    start = Path()
    try:
        path = find_workspace(start)
    except UsageError:
        return None
    try:
        if not declares_store(path):
            return None
        need_store(start)
        from karat.workflows.release.stored_gates import Checked, keep_here

        number = keep_here(start, found, Checked("command", user(), now, commit))
    except Exception as error:  # noqa: BLE001 - a note, whatever it is
        what, _ = mistakes.message_and_code(error)
        options.notes_aside([mistakes.printable(f"the result is not stored: {what}")])
        return None
    options.notes_aside([f"the result is stored in the workspace: /gates/{number}"])
    return f"/gates/{number}"


def _then(code: int, further: Sequence[Callable[[], None]]) -> int:
    """Run each further step, even if others fail; an error changes only the exit code 0."""
    for step in further:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - printed, and in the exit code
            failed = mistakes.say(error)
            code = code or failed
    return code


def _failed(error: Exception, output: str, notify: str | None, commit: str | None) -> int:
    """Report an error in the output format, in place of a verdict."""
    from karat.reports.release import gate as reports

    failed = reports.Failed(*mistakes.message_and_code(error))
    if output != "table":
        options.emit(reports, failed, output)
    mistakes.say(error)
    if notify is not None:
        _then(failed.exit_code, [lambda: _notify_error(notify, failed, commit)])
    return failed.exit_code


@contextmanager
def _in_order(runs: int, *, saving: bool) -> Iterator[None]:
    """Add this command's order of arguments to the error of a file in the wrong place."""
    from karat.formats.tables.detect import WrongRole

    try:
        yield
    except WrongRole as error:
        order = "RUN" if saving else "BASELINE CANDIDATE" if runs > 1 else "CANDIDATE"
        fix = f"the order is QRELS {order}"
        raise InputError(error.what, file=error.file, fix=fix) from None


def _report(
    path: str,
    found: Gate,
    policy: Policy | None,
    read: Sequence[Any],
    judgments: Any,
    qrels: str,
    settings: Mapping[str, Any],
) -> None:
    from karat.tables import Run
    from karat.workflows.offline.report import compare_gated

    names = ("rel", "complete", "depth", "collapse", "scale", "fully_judged")
    settings = {**settings, "fully_judged": found.fully_judged}
    rules = {name: settings[name] for name in names}
    runs = [run for run in read if isinstance(run, Run)]
    side_by_side = None
    if policy is not None and len(runs) == 2:
        measures, by = list(map(str, policy.measures)), policy.attributes
        asked = {"queries": settings["queries"], "documents": settings["documents"]}
        side_by_side = compare_gated(found, judgments, runs, measures, by=by, **asked, **rules)
    write_page(path, found, runs, judgments, qrels, settings, side_by_side)


def _append(
    history: str,
    found: Gate,
    run: Any,  # the candidate
    commit: str | None,
    now: int,
    corpus: str | None,
    settings: Mapping[str, Any],
    series: str | None,
) -> None:
    from karat.cli.release import trend
    from karat.tables.about import name_in
    from karat.workflows.release.trend import keep_gate, rules_text

    keep_gate(
        history, found, time=trend.moment(now), commit=commit, corpus=corpus,
        rules=rules_text(settings), series=series or name_in(run.about),
    )  # fmt: skip


def _notify(url: str, found: Gate, commit: str | None, page: str | None) -> None:
    from karat.cli.release import trend
    from karat.workflows.release.trend import event

    trend.send(url, event(found, time=trend.now(), commit=commit, page=page))


def _notify_error(url: str, failed: Failed, commit: str | None) -> None:
    """Post ``gate.error``, unless the address itself is invalid."""
    from karat.cli.release import trend
    from karat.clients import webhook
    from karat.workflows.release.trend import payload

    try:
        webhook.checked(url)
    except KaratError:
        return
    commit, content = trend.commit(commit, os.environ), failed.to_dict()
    trend.send(url, payload("gate.error", failed.error, content, time=trend.now(), commit=commit))


def _refuse_files(runs: tuple[str, ...], *, saving: bool) -> None:
    if saving and len(runs) != 1:
        raise UsageError(
            f"--save-baseline expects one run, got {len(runs)}",
            fix="karat gate --save-baseline FILE QRELS RUN",
        )
    if len(runs) > 2:
        raise UsageError(
            f"expected at most two runs, BASELINE and CANDIDATE, got {len(runs)}",
            fix="karat gate --policy FILE QRELS BASELINE CANDIDATE",
        )
