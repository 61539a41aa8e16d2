"""Search functions in the user's code: loading ``module:function``, and locating their errors."""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from karat.errors import InputError, UsageError, nearest

_HERE = Path(__file__).resolve().parents[1]
_ELSEWHERE = tuple(
    Path(folder).resolve()
    for name, folder in sysconfig.get_paths().items()
    if name in {"stdlib", "platstdlib", "purelib", "platlib"}
)


def load(spec: str, folders: Sequence[Path]) -> Callable[[str], Any]:
    """Load ``module:function``, or an attribute of it, from these folders or the Python path.

    An error in the module is an InputError with its file and line.
    """
    name, _, attribute = spec.partition(":")
    if not name or not attribute:
        raise UsageError(f"{spec!r} is not module:function", fix="--python my_search:search")
    if name.endswith(".py") or "/" in name or "\\" in name:
        stem = Path(name.replace("\\", "/")).stem
        raise UsageError(
            f"{name!r} is a file; expected a module name, importable from the current folder",
            fix=f"--python {stem}:{attribute}, in the folder of {stem}.py",
        )
    module = _imported(name, folders)
    try:
        function: Any = operator.attrgetter(attribute)(module)
    except AttributeError:
        names = [key for key, value in vars(module).items() if callable(value) and key[:1] != "_"]
        raise UsageError(
            f"the module {name} has no {attribute!r}",
            nearest=[f"{name}:{each}" for each in nearest(attribute, names, 1)],
            fix=f"it has {', '.join(names[:8])}" if names else f"define it in {_file(module)}",
        ) from None
    if not callable(function):
        raise UsageError(
            f"{spec} is of type {type(function).__name__}, not a function",
            fix="name a function that takes the text of a query",
        )
    _refuse_arguments(spec, function)
    return function  # type: ignore[no-any-return]


def place_of(error: BaseException) -> str | None:
    """File and line in the user's code where an error was raised, or None."""
    place = None
    for frame in traceback.extract_tb(error.__traceback__):
        if _of_user(frame.filename):
            place = f"{_short(frame.filename)}, line {frame.lineno}"
    return place


def _imported(name: str, folders: Sequence[Path]) -> Any:
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - users' code raises anything
        missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise UsageError(
                f"no module {name!r} in {' or '.join(map(str, folders))} or installed",
                nearest=nearest(name, [p.stem for f in folders for p in f.glob("*.py")], 1),
                fix="run karat in the folder of the module, or set PYTHONPATH",
            ) from None
        raise _unimportable(name, error) from None
    _refuse_other(name, folders)
    return module


def _unimportable(name: str, error: BaseException) -> InputError:
    if isinstance(error, SyntaxError):
        return InputError(
            f"{type(error).__name__}: {error.msg}",
            file=None if error.filename is None else _short(error.filename),
            line=error.lineno,
            fix=f"python -c 'import {name}' shows more",
        )
    file, _, line = (place_of(error) or name).rpartition(", line ")
    message = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    fix = f"python -c 'import {name}' shows the traceback"
    if isinstance(error, SystemExit):
        what, fix = "it exits Python", "move that code under if __name__ == '__main__':"
    return InputError(
        f"the module {name} cannot be imported: {what}",
        file=file or None,
        line=int(line) if line.isdigit() else None,
        fix=fix,
    )


def _refuse_other(name: str, folders: Sequence[Path]) -> None:
    """Refuse a module from elsewhere that shadows one in the folders."""
    top = name.partition(".")[0]
    for folder in folders:
        for own in (folder / f"{top}.py", folder / top / "__init__.py"):
            if not own.is_file():
                continue
            loaded = getattr(sys.modules.get(top), "__file__", None)
            if loaded is None or Path(loaded).resolve() != own.resolve():
                raise UsageError(
                    f"another module {top!r} shadows {own}",
                    fix=f"rename {own.name}, for example to my_{top}.py",
                )
            return


def _refuse_arguments(spec: str, function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with one argument, the query text."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # some functions in C have no signature
    try:
        signature.bind("text")
    except TypeError as error:
        code = getattr(inspect.unwrap(function), "__code__", None)
        raise InputError(
            f"{spec}{signature} cannot be called with only the query text: {error}",
            file=None if code is None else _short(code.co_filename),
            line=None if code is None else code.co_firstlineno,
            fix="accept one argument; give others defaults, or use functools.partial",
        ) from None


def _file(module: Any) -> str:
    return _short(str(getattr(module, "__file__", None) or module.__name__))


def _of_user(file: str) -> bool:
    path = Path(file)
    if not path.is_file():
        return False
    path = path.resolve()
    return not any(path.is_relative_to(folder) for folder in (_HERE, *_ELSEWHERE))


def _short(file: str) -> str:
    """A path relative to the current folder, if it is below it."""
    path = Path(file)
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (OSError, ValueError):
        return file
