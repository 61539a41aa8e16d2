"""The command line: all commands, and the exit codes of errors.

Exit codes: 0 success · 1 fail · 2 usage or bad input · 3 cannot tell · 4 error. Commands import
lazily, to keep ``karat --help`` fast.
"""

from __future__ import annotations

import sys

import click

from karat.cli import _streams, completion, mistakes, options
from karat.cli.accounts import people
from karat.cli.diagnosis import diagnose
from karat.cli.engines import engine, search, tries, tune
from karat.cli.experiments import experiment, shadow
from karat.cli.golden import golden
from karat.cli.judging import autojudge, judge
from karat.cli.lint import lint
from karat.cli.offline import compare, evaluate, explain, fuse, measures
from karat.cli.online import clicks, online
from karat.cli.release import gate, release, review, trend
from karat.cli.workspace import backup, demo, init, serve


class _BrokenPipeError(Exception):
    """A pipe other than a standard stream has no reader."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click would end at a broken pipe with 1, which means "fail"."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _BrokenPipeError from error


def _version(ctx: click.Context, _option: click.Parameter, requested: bool) -> None:
    if not requested:
        return
    from importlib import metadata

    try:
        version = metadata.version("karat")
    except metadata.PackageNotFoundError:
        version = "(run from source, not installed)"
    click.echo(f"karat {version}")
    ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=options.examples(
        "karat evaluate qrels.txt run.txt -m nDCG@10", "karat compare qrels.txt old.txt new.txt"
    ),
)
@options.option(
    "--version", "Print the version and exit.", expose_value=False, is_eager=True, callback=_version
)
def karat() -> None:
    """Measure whether your search got better, how certain that is, and where it fails.

    \b
    New here?    karat demo
    Your files?  karat lint FILE…, then karat evaluate QRELS RUN…
    """  # noqa: D301 - click wants a real backspace before what it must not wrap


for command in (
    autojudge.autojudge,
    backup.backup,
    clicks.clicks,
    compare.compare,
    completion.completion,
    demo.demo,
    diagnose.diagnose,
    engine.engine,
    evaluate.evaluate,
    experiment.experiment,
    explain.explain,
    fuse.fuse,
    gate.gate,
    golden.golden,
    init.init,
    judge.judge,
    lint.lint,
    measures.measures,
    online.online,
    people.people,
    release.release,
    backup.restore,
    review.review,
    search.search,
    serve.serve,
    shadow.shadow,
    trend.trend,
    tries.try_,
    tune.tune,
):
    karat.add_command(command)
completion.add_completion(karat)


def main() -> None:
    out = _streams.guard()
    code = _run()
    sys.stdout.flush()
    if out is not None and out.lost is not None:
        error = out.lost
        code = mistakes.say(OSError(error.errno, error.strerror, "standard output"))
    sys.stderr.flush()
    sys.exit(code)


def _run() -> int:
    try:
        code = karat(prog_name="karat", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        print("karat: stopped", file=sys.stderr)
        return 130
    except _BrokenPipeError as error:
        return mistakes.say(error.__cause__ or error)
    except Exception as error:  # noqa: BLE001 - Python's own exit code 1 would read as "fail"
        return mistakes.say(error)
    except BaseException as error:
        # From a library in Rust: not an Exception, so it would exit with 1, "fail", too.
        if type(error).__name__ != "PanicException":
            raise
        return mistakes.say(error)
    return code if isinstance(code, int) else 0
