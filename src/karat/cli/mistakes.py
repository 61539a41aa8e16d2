"""What became of a command that could not end as it should: a sentence, and an exit code."""

from __future__ import annotations

import re
import sys

import click

from karat.errors import KaratError, MissingExtra, UsageError, nearest

_BUG = 4
_REPORT = ("altair", "jinja2", "vl_convert")
_STORE = ("sqlalchemy", "alembic")
_WEB = ("argon2", "fastapi", "httpx2", "python_multipart", "uvicorn")
PACKAGES = {
    "report": _REPORT,
    "store": _STORE,
    "web": (*_STORE, *_WEB, *_REPORT),
    "postgres": (*_STORE, "psycopg"),
    "duckdb": ("duckdb", "pyarrow"),
    "spark": ("pyspark", "pyarrow"),
}
"""Modules that an extra of pyproject.toml installs, with those of the extras it includes; an extra
that is included comes before those that include it.
"""
EXTRAS = {package: extra for extra, packages in reversed(PACKAGES.items()) for package in packages}
"""Optional packages, as they are imported, and the smallest extra that has each."""


def say(error: BaseException) -> int:
    """Say on standard error what is wrong, and what to do; the exit code that goes with it."""
    error = _lacking(error)
    text, code = told(error)
    if is_bug(error):
        import traceback

        traceback.print_exception(error)
    print(f"karat: {printable(text)}", file=sys.stderr)
    return code


def told(error: BaseException) -> tuple[str, int]:
    """What is wrong, without "karat: ", and the exit code."""
    error = _lacking(error)
    if isinstance(error, KaratError):
        return str(error), error.exit_code
    if isinstance(error, click.ClickException):
        return str(_typed(error)), 2
    if isinstance(error, OSError):  # a full disk, a folder nobody may write to
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", _BUG
    if isinstance(error, MemoryError):
        return "out of memory", _BUG
    return f"this is a bug in karat ({type(error).__name__})", _BUG


def is_bug(error: BaseException) -> bool:
    """Whether nobody but karat is to blame."""
    return not isinstance(error, KaratError | click.ClickException | OSError | MemoryError)


def _lacking(error: BaseException) -> BaseException:
    """The error; a package that is not installed is named with its extra."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return MissingExtra(package, EXTRAS[package], "this") if package in EXTRAS else error


def printable(text: str) -> str:
    """Ids and file names come from strangers: nothing in them may command the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _typed(error: click.ClickException) -> UsageError:
    """A mistake that click found, in karat's form."""
    what = error.format_message().rstrip(".")
    near: list[str] = []
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        what = f"no such option: {error.option_name}"
        near = list(error.possibilities or ())[:1]
    elif (chosen := re.search(r"'([^']*)' is not one of (.*)", what)) is not None:
        near = nearest(chosen[1], re.findall(r"'([^']*)'", chosen[2]), 1)
    elif (named := re.match(r"No such command '([^']*)'", what)) is not None:
        what = named[0]
        commands = getattr(getattr(context, "command", None), "commands", {})
        near = nearest(named[1], commands, 1)
    path = "karat" if context is None else context.command_path
    # QRELS and other names keep their letters.
    if not what[1:2].isupper():
        what = what[:1].lower() + what[1:]
    return UsageError(what, nearest=near, fix=f"{path} --help")
