"""The command line: all commands, and the exit codes of errors.

Exit codes: 0 success · 1 fail · 2 usage or bad input · 3 cannot tell · 4 error. Only the command
that is asked for is imported, and it imports its work when it runs: each start takes less time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from karat.cli import _streams, completion, mistakes, options

HOMES = {
    "autojudge": "judging.autojudge",
    "backup": "workspace.backup",
    "clicks": "online.clicks",
    "compare": "offline.compare",
    "completion": "completion",
    "demo": "workspace.demo",
    "diagnose": "diagnosis.diagnose",
    "engine": "engines.engine",
    "evaluate": "offline.evaluate",
    "experiment": "experiments.experiment",
    "explain": "offline.explain",
    "fuse": "offline.fuse",
    "gate": "release.gate",
    "golden": "golden.golden",
    "init": "workspace.init",
    "judge": "judging.judge",
    "lint": "lint.lint",
    "measures": "offline.measures",
    "online": "online.online",
    "people": "accounts.people",
    "release": "release.release",
    "restore": "workspace.backup",
    "review": "release.review",
    "search": "engines.search",
    "serve": "workspace.serve",
    "shadow": "experiments.shadow",
    "trend": "release.trend",
    "try": "engines.tries",
    "tune": "engines.tune",
}


class _Lazy(Mapping[str, click.Command]):
    """The commands by name; a command is imported when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"karat.cli.{HOMES[name]}")
        found: click.Command = getattr(module, "try_" if name == "try" else name)
        completion.add_completion(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


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
    commands=_Lazy(),
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
