"""Naming: errors that speak of a file as its owner calls it, and not of where it lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.errors import Advice, InputError, UsageError

_ENDS = r"(?![\w-]|\.\w)"  # where a name ends: /w/x is not in /w/xy, and is in "see /w/x."


@contextmanager
def told_as(path: Path, called: str, *folders: Path) -> Iterator[None]:
    """Let errors speak of a file by the name that its owner knows, not of where it lies.

    Args:
        path: Where it lies.
        called: What its owner calls it.
        folders: Others whose place is nobody's business.
    """
    own = {str(path), str(path.resolve())}
    around = {f"{each}" for folder in (path.parent, *folders) if folder.is_absolute()
              for each in (folder, folder.resolve())} - {"/"}  # fmt: skip
    plainly = called.replace("\\", r"\\")  # for re.sub, which reads backslashes
    instead = [(_begins(name) + _ENDS, plainly) for name in _longest(own)]
    for folder in _longest(around):
        instead += [(f"{_begins(folder)}/", ""), (_begins(folder) + _ENDS, "the folder")]

    def told(text: str) -> str:
        if isinstance(text, Advice):
            return Advice(told(str(text)), page=told(text.page))
        for place, name in instead:
            text = re.sub(place, name, text)
        return text

    try:
        yield
    except InputError as error:
        file = error.file and told(error.file)
        # Readers may say which part of a file: then it is still the file.
        part = error.file and re.search(_begins(path.name) + _ENDS, error.file)
        raise InputError(
            told(error.what),
            file=called if part else file,
            line=error.line,
            query=error.query,
            doc_id=error.doc_id,
            fix=None if error.fix is None else told(error.fix),
        ) from None
    except UsageError as error:
        if told(str(error)) == str(error):
            raise  # of whatever kind it is
        fix = None if error.fix is None else told(error.fix)
        raise UsageError(told(error.what), nearest=error.nearest, fix=fix) from None


def _longest(names: set[str]) -> list[str]:
    return sorted(names, key=len, reverse=True)


def _begins(name: str) -> str:
    """A name as a pattern that does not match within another: x.csv is not in max.csv."""
    return rf"(?<![\w.-]){re.escape(name)}"
