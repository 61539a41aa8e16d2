"""karat release."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karat.cli import options
from karat.cli.workspace.workspace import clock, opened

if TYPE_CHECKING:
    from karat.tables.release.pipeline import ReleaseStatus
    from karat.workflows.release.pipeline import Release

_EXIT = {"pass": 0, "fail": 1, "breach": 1}
_where = options.option(
    "-w --workspace start DIR",
    "The workspace.  [default: that of the current folder]",
    Path(),
    type=click.Path(path_type=Path),
)
_reason = options.option("--reason TEXT", "Why; shown permanently.", required=True)
_output = options.output("table", "json")
_printed = options.output("table", "json", "md")
_acting = options.together(options.acting, _where, _output)
_Command = Callable[..., Any]


@click.group(
    epilog=options.examples(
        "karat release start hybrid bm25 hybrid --policy release.toml",
        "karat release status",
        "karat release run",
    )
)
def release() -> None:
    """From a change to a decision, and back when it was wrong.

    A release goes through its stages (offline, shadow, A/B test, ramp), each on evidence about
    this candidate, baseline, judgments and policy. A breached guardrail rolls it back at once.
    """


def _command(name: str, *examples: str) -> Callable[[_Command], _Command]:
    return release.command(name, epilog=options.examples(*examples))


def _of_release(name: str, *examples: str) -> Callable[[_Command], _Command]:
    """A command on the release NAME."""
    of_name = click.argument("name", metavar="NAME")
    return lambda command: _command(name, *examples)(of_name(command))


@contextmanager
def _release(name: str, start: Path) -> Iterator[Release]:
    """A release of a workspace, as it is now."""
    from karat.workflows.release.pipeline import Release

    with opened(start) as workspace:
        yield Release.of(workspace, name, clock())


def _show(status: ReleaseStatus, output: str) -> None:
    from karat.reports.release import pipeline as shown

    options.emit(shown, status, output)


@_command(
    "start",
    "karat release start hybrid bm25 hybrid --propose > release.toml",
    "karat release start hybrid bm25 hybrid --policy release.toml",
)
@click.argument("name", metavar="NAME")
@click.argument("baseline", metavar="BASELINE")
@click.argument("candidate", metavar="CANDIDATE")
@options.option("--policy FILE", "The policy (TOML): stages, guardrails, promises, switch.")
@options.option("--propose", "Print a policy to begin with: its promises are by the review.")
@_acting
def start(
    name: str,
    baseline: str,
    candidate: str,
    policy: str | None,
    propose: bool,
    by: str,
    start: Path,
    output: str,
) -> None:
    """Start the release NAME of CANDIDATE for BASELINE.

    Both are runs: stored ones by name, or files, which are stored. Its policy, and what it promises
    of gain, cost and risk, do not change afterwards.
    """
    from karat.workflows.release import pipeline

    with opened(start) as workspace:
        if propose:
            sys.stdout.write(pipeline.propose(workspace, baseline, candidate, now=clock()))
            return
        if policy is None:
            raise click.UsageError("--policy FILE is missing; --propose prints one to begin with.")
        found = pipeline.start(workspace, name, baseline, candidate, policy, by=by, now=clock())
    _show(found, output)


@_command("status", "karat release status", "karat release status hybrid -f json")
@click.argument("name", metavar="[NAME]", required=False)
@_where
@_printed
def status(name: str | None, start: Path, output: str) -> None:
    """Where releases are, and what comes next; all of them without NAME."""
    from karat.reports.release import pipeline as shown
    from karat.workflows.release import pipeline

    if name is not None:
        with _release(name, start) as release:
            _show(release.status(), output)
        return
    with opened(start) as workspace:
        options.emit(shown, pipeline.statuses(workspace, now=clock()), output)


@_of_release(
    "evidence",
    "karat release evidence hybrid",
    'karat release evidence hybrid --reviewed "12 new documents, 1 wrong"',
)
@options.option(
    "--reviewed NOTE", "Record that you looked at false positives; needed before the ramp."
)
@_acting
def evidence(name: str, reviewed: str | None, by: str, start: Path, output: str) -> int:
    """Gather the evidence that the stage of a release wants, and record it.

    A gate over the golden set, a shadow comparison, an analysis of the A/B test, or the rollback
    signal. Exit codes: 0 it passes · 1 it fails · 3 it cannot tell.
    """
    with _release(name, start) as release:
        if reviewed is not None:
            found = release.note("reviewed", by=by, reason=reviewed)
        else:
            found = release.evidence()
    _show(found, output)
    return 0 if reviewed is not None else _exit_code(found)


def _exit_code(found: ReleaseStatus) -> int:
    verdicts = [each.verdict for each in found.evidence if each.stage == found.stage]
    return _EXIT.get(verdicts[0], 3) if verdicts else 3


@_of_release("advance", "karat release advance hybrid")
@options.option("--stage NAME", "The stage to pass: refused if the release is in another.")
@_acting
def advance(name: str, stage: str | None, by: str, start: Path, output: str) -> None:
    """Pass the current stage, on its evidence."""
    with _release(name, start) as release:
        found = release.advance(by=by, stage=stage or "")
    _show(found, output)


@_of_release("skip", 'karat release skip hybrid --reason "no shadow traffic: hotfix"')
@_reason
@options.option("--stage NAME", "The stage to skip: refused if the release is in another.")
@_acting
def skip(name: str, reason: str, stage: str | None, by: str, start: Path, output: str) -> None:
    """Go on without the evidence of the current stage."""
    with _release(name, start) as release:
        found = release.skip(by=by, reason=reason, stage=stage or "")
    _show(found, output)


def _noted(name: str, kind: Any, by: str, reason: str, start: Path, output: str) -> None:
    with _release(name, start) as release:
        found = release.note(kind, by=by, reason=reason)
    _show(found, output)


@_of_release("hold", 'karat release hold hybrid --reason "deploy freeze"')
@_reason
@_acting
def hold(name: str, reason: str, by: str, start: Path, output: str) -> None:
    """Stop a release where it is; guardrails still roll it back."""
    _noted(name, "held", by, reason, start, output)


@_of_release("resume", 'karat release resume hybrid --reason "freeze is over"')
@_reason
@_acting
def resume(name: str, reason: str, by: str, start: Path, output: str) -> None:
    """Let a held release go on."""
    _noted(name, "resumed", by, reason, start, output)


@_of_release("rollback", 'karat release rollback hybrid --reason "wrong prices"')
@_reason
@_acting
def rollback(name: str, reason: str, by: str, start: Path, output: str) -> None:
    """Give all users the baseline again.

    Needs the switch and the folder of the workspace, and no database: the ledger is written as
    soon as it can be reached. There is no way back but a new release.
    """
    from karat.formats.own.workspace import find_workspace
    from karat.workflows.release import pipeline

    root = find_workspace(start).parent
    found = pipeline.roll_back_first(
        root, name, lambda: opened(start), by=by, reason=reason, now=clock()
    )
    if found.status is None:
        click.echo(f"{name} is rolled back.")
        click.echo(
            f"karat: the ledger could not be written: {found.problem}\n"
            "  fix: karat release run, once the store can be reached",
            err=True,
        )
        return
    _show(found.status, output)


@_command("why", "karat release why hybrid", "karat release why -f md")
@click.argument("name", metavar="[NAME]", required=False)
@_where
@_printed
def why(name: str | None, start: Path, output: str) -> None:
    """The story of a release on one page; without NAME, promised next to measured for all."""
    from karat.reports.release import story as shown
    from karat.workflows.release import pipeline

    if name is not None:
        with _release(name, start) as release:
            options.emit(shown, release.story(), output)
        return
    with opened(start) as workspace:
        options.emit(shown, pipeline.track_record(workspace), output)


@_command("run", "karat release run", "karat release run -f json")
@_where
@_output
def run(start: Path, output: str) -> int:
    """Move every release on as far as its evidence carries it, and put its switch in place.

    For cron or a timer, each minute. Exit codes: 0 · 1 a switch is not where it should be.
    """
    from karat.reports.release import rounds as shown
    from karat.workflows.release import pipeline

    with opened(start) as workspace:
        found = pipeline.run(workspace, now=clock())
    options.emit(shown, found, output)
    return int(any(each.problem for each in found))


@_of_release("watch", "karat release watch hybrid")
@options.option(
    "--override REASON", "Ignore the rollback signal from now on: for those whom the policy names."
)
@_acting
def watch(name: str, override: str | None, by: str, start: Path, output: str) -> int:
    """Check the rollback signal of a release that all users have.

    Exit codes: 0 within its limit · 1 beyond it · 3 cannot tell.
    """
    with _release(name, start) as release:
        if override is not None:
            release.note("overridden", by=by, reason=override)
        found = release.watch()
    _show(found, output)
    return _exit_code(found)
