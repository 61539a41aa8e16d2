"""Display names: errors that name a file as the user does, without the server's paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from karat.errors import InputError, UsageError

_ENDS = r"(?![\w-]|\.\w)"  # end of a name: /w/x does not match /w/xy, but "see /w/x."


@contextmanager
def display_name(path: Path, called: str, *folders: Path) -> Iterator[None]:
    """Replace the path of a file in errors by the name that the user knows."""
    paths = {str(path), str(path.resolve())}
    folder_paths = {f"{each}" for folder in (path.parent, *folders) if folder.is_absolute()
              for each in (folder, folder.resolve())} - {"/"}  # fmt: skip
    replacement = called.replace("\\", r"\\")  # for re.sub, which reads backslashes
    substitutions = [(_begins(name) + _ENDS, replacement) for name in _longest(paths)]
    for folder in _longest(folder_paths):
        substitutions += [(f"{_begins(folder)}/", ""), (_begins(folder) + _ENDS, "the folder")]

    def renamed(text: str) -> str:
        for place, name in substitutions:
            text = re.sub(place, name, text)
        return text

    try:
        yield
    except InputError as error:
        file = error.file and renamed(error.file)
        # Readers may name a part of the file.
        part = error.file and re.search(_begins(path.name) + _ENDS, error.file)
        raise InputError(
            renamed(error.what),
            file=called if part else file,
            line=error.line,
            query=error.query,
            doc_id=error.doc_id,
            fix=None if error.fix is None else renamed(error.fix),
            command=None if error.command is None else renamed(error.command),
        ) from None
    except UsageError as error:
        if renamed(str(error)) == str(error):
            raise  # the original, as it may be of a subclass
        fix = None if error.fix is None else renamed(error.fix)
        raise UsageError(renamed(error.what), nearest=error.nearest, fix=fix) from None


def _longest(names: set[str]) -> list[str]:
    return sorted(names, key=len, reverse=True)


def _begins(name: str) -> str:
    """A pattern for a name that does not match within another: x.csv, but not max.csv."""
    return rf"(?<![\w.-]){re.escape(name)}"
