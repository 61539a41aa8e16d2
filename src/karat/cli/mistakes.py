"""Errors of commands: the message on standard error, and the exit code."""

from __future__ import annotations

import re
import sys

import click

from karat.errors import KaratError, MissingExtra, UsageError, nearest

_BUG = 4
_REPORT = ("altair", "jinja2", "vl_convert")
_STORE = ("sqlalchemy", "alembic")
_ENGINES = ("httpx2", "jsonpath")
_WEB = ("argon2", "cryptography", "fastapi", "python_multipart", "uvicorn")
PACKAGES = {
    "report": _REPORT,
    "store": _STORE,
    "engines": _ENGINES,
    "web": (*_STORE, *_ENGINES, *_WEB, *_REPORT),
    "postgres": (*_STORE, "psycopg"),
    "tune": (*_ENGINES, "optuna"),
    "duckdb": ("duckdb", "pyarrow"),
    "spark": ("pyspark", "pyarrow"),
    "s3": ("pyarrow",),
}
"""Modules that each extra of pyproject.toml installs; included extras come first."""
EXTRAS = {package: extra for extra, packages in reversed(PACKAGES.items()) for package in packages}
"""Importable name of each optional package → the smallest extra that installs it."""


def say(error: BaseException) -> int:
    """Print an error and its fix on standard error; return its exit code."""
    error = _with_extra(error)
    text, code = message_and_code(error)
    if is_bug(error):
        import traceback

        traceback.print_exception(error)
    print(f"karat: {printable(text)}", file=sys.stderr)
    return code


def message_and_code(error: BaseException) -> tuple[str, int]:
    """The message, without "karat: ", and the exit code."""
    error = _with_extra(error)
    if isinstance(error, KaratError):
        return str(error), error.exit_code
    if isinstance(error, click.ClickException):
        return str(_usage_error(error)), 2
    if isinstance(error, OSError):  # a full disk, a read-only folder
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", _BUG
    if isinstance(error, MemoryError):
        return "out of memory", _BUG
    return f"this is a bug in karat ({type(error).__name__})", _BUG


def is_bug(error: BaseException) -> bool:
    """Whether the error is a bug in karat, not a mistake of the user or the environment."""
    return not isinstance(error, KaratError | click.ClickException | OSError | MemoryError)


def _with_extra(error: BaseException) -> BaseException:
    """The error; for a package that is not installed, one that names its extra."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return MissingExtra(package, EXTRAS[package], "this") if package in EXTRAS else error


def printable(text: str) -> str:
    """Text with control characters escaped: ids and file names are untrusted."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _usage_error(error: click.ClickException) -> UsageError:
    """An error of click, in karat's form."""
    message = error.format_message().rstrip(".")
    for theirs, ours in (("integer", "whole number"), ("float", "number")):
        message = re.sub(rf"is not a valid {theirs}( range)?$", f"is not a {ours}", message)
    near: list[str] = []
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        message = f"no such option: {error.option_name}"
        near = list(error.possibilities or ())[:1]
    elif (chosen := re.search(r"'([^']*)' is not one of (.*)", message)) is not None:
        near = nearest(chosen[1], re.findall(r"'([^']*)'", chosen[2]), 1)
    elif (named := re.match(r"No such command '([^']*)'", message)) is not None:
        message = named[0]
        commands = getattr(getattr(context, "command", None), "commands", {})
        near = nearest(named[1], commands, 1)
    path = "karat" if context is None else context.command_path
    # QRELS and other metavars stay in capitals.
    if not message[1:2].isupper():
        message = message[:1].lower() + message[1:]
    return UsageError(message, nearest=near, fix=f"{path} --help")
